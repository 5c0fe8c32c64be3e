/**
 * One metric on `--channels` (1,000) durable channels, each on a connection of its own, every value COMMITted by itself or
 * `--through`. The benchmark's process feeds (smon over TCP, or `--gmetric`: Node reads at most 32 datagrams in a turn, which
 * bounds what goes out at once) and consumes. It never has more than `--ahead` values of the metric under way.
 */

import { parseArgs } from 'node:util'
import { args, command, str, type } from '../support/bytes.ts'
import { freePort } from '../support/free-port.ts'
import { Commits } from './commits.ts'
import { type BenchConnection, Local, openMany } from './connection.ts'
import { GmetricFeed } from './gmetric-feed.ts'
import { MeasuredServer } from './measured.ts'
import { SmonFeed } from './smon-feed.ts'

/** Nothing came for so long: a datagram was lost. */
const LOST_MS = 3_000

/** Where the values come from. */
interface Feed {
  readonly sent: number
  send(count: number): Promise<void>
  close(): void
}

export async function benchFanOut(argv: string[]): Promise<object> {
  const { values: options } = parseArgs({
    args: argv,
    options: {
      channels: { type: 'string', default: '1000' },
      values: { type: 'string', default: '20000000' },
      ahead: { type: 'string', default: '1024' },
      gmetric: { type: 'boolean', default: false },
      through: { type: 'boolean', default: false },
    },
  })
  const channels = Number(options.channels)
  const wanted = Math.ceil(Number(options.values) / channels)
  const smonPort = await freePort()
  const server = new MeasuredServer(`[smon]\ntcp = "127.0.0.1:${smonPort}"\n`)
  await server.start()
  const smon = await SmonFeed.open(smonPort, 'load')
  const user = new Local(server.localSecret)
  const connections = await openMany(server.tcpPort, user, channels)
  const fan = new Fan(connections, options.through)
  const name = options.gmetric ? 'gmetric.load' : 'smon.load'
  const source = options.gmetric
    ? args(['host', type.string, str('127.0.0.1')])
    : args(['source', type.string, str(smon.source)])
  for (const connection of connections) {
    const metric = await connection.ask((seq) => command.collect(seq, name, source))
    await connection.ask((seq) => command.subscribe(seq, metric))
  }
  const feed = options.gmetric ? await GmetricFeed.open(server.gmetricPort, ['load']) : smon

  server.resetLoopDelay()
  const cpu = server.cpu()
  const own = process.cpuUsage()
  const started = performance.now()
  const values = await fan.run(feed, wanted, Number(options.ahead))
  const seconds = (performance.now() - started) / 1000
  const { user: ownUser, system: ownSystem } = process.cpuUsage(own)
  const spent = server.cpu()
  const loopDelayP99Ms = await server.loopDelayP99Ms()
  const { peakRssMiB } = server
  feed.close()
  smon.close()
  for (const connection of connections) connection.close()
  await server.remove()
  const perMillion = (cpuSeconds: number): string => ((cpuSeconds * 1e6) / values).toFixed(3)
  return {
    values,
    lost: wanted * channels - values,
    seconds: seconds.toFixed(2),
    valuesPerSecond: Math.round(values / seconds),
    valuesPerRead: (values / fan.reads).toFixed(1),
    cpuPerMillion: perMillion(spent.all - cpu.all),
    mainCpuPerMillion: perMillion(spent.main - cpu.main),
    consumerCpuPerMillion: perMillion((ownUser + ownSystem) / 1e6),
    peakRssMiB,
    loopDelayP99Ms,
  }
}

/** The consumers, counted together. */
class Fan {
  readonly #channels: number
  readonly #commits: Commits[] = []
  #values = 0
  #responses = 0
  /** Reads with values in them: how much the server sends at once. */
  reads = 0
  /** Something came: what is awaited may be there. */
  #came: () => void = () => {}

  constructor(connections: readonly BenchConnection[], through: boolean) {
    this.#channels = connections.length
    for (const connection of connections) this.#commits.push(this.#listen(connection, new Commits(through)))
  }

  #listen(connection: BenchConnection, commits: Commits): Commits {
    connection.listener = {
      value: (view, at) => {
        this.#values++
        commits.add(view, at)
      },
      response: () => {
        this.#responses++
      },
      read: () => {
        const bytes = commits.take()
        if (bytes !== undefined) {
          this.reads++
          connection.write(bytes)
        }
        this.#came()
      },
    }
    return commits
  }

  /** Until every value that came is committed and its COMMIT answered OK. Gives their number. */
  async run(feed: Feed, wanted: number, ahead: number): Promise<number> {
    const slice = Math.max(1, ahead >> 3)
    for (let left = wanted; left > 0; left -= slice) {
      await feed.send(Math.min(left, slice))
      await this.#until(() => this.#values >= (feed.sent - ahead) * this.#channels)
    }
    await this.#until(() => this.#values >= feed.sent * this.#channels)
    const due = this.#commits.reduce((sum, { sent }) => sum + sent, 0)
    await this.#until(() => this.#responses >= due)
    return this.#values
  }

  /** Until it is so, or nothing more comes. */
  async #until(done: () => boolean): Promise<void> {
    if (done()) return
    await new Promise<void>((resolve) => {
      let seen = -1
      const timer = setInterval(() => {
        if (seen === this.#values) finish()
        seen = this.#values
      }, LOST_MS)
      const finish = (): void => {
        clearInterval(timer)
        this.#came = () => {}
        resolve()
      }
      this.#came = () => {
        if (done()) finish()
      }
    })
  }
}
