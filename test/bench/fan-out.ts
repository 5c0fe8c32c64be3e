/**
 * One metric on `--channels` (1,000) durable channels, each on a connection of its own, every value COMMITted by itself or
 * `--through`. The benchmark's process feeds (smon over TCP, or `--gmetric`: Node reads at most 32 datagrams in a turn, which
 * bounds what goes out at once) and consumes. It never has more than `--ahead` values of the metric under way.
 */
import { optionsIn } from '../rig/options.ts'
import { args, command, str, type } from '../support/bytes.ts'
import { freePort } from '../support/free-port.ts'
import { Commits } from './commits.ts'
import { type BenchConnection, Local, openMany } from './connection.ts'
import { GmetricFeed } from './gmetric-feed.ts'
import { limitServer, storedIn } from './limit/start.ts'
import { MeasuredServer } from './measured.ts'
import type { Figures } from './ratios.ts'
import { SmonFeed } from './smon-feed.ts'

const METRIC = 'load'
/** Nothing came for so long: a datagram was lost. */
const LOST_MS = 3_000

/** Where the values come from. */
interface Feed {
  readonly sent: number
  send(count: number): Promise<void>
  close(): void
}

export async function benchFanOut(argv: string[]): Promise<object> {
  const smonPort = await freePort()
  const server = new MeasuredServer(`[smon]\ntcp = "127.0.0.1:${smonPort}"\n`)
  await server.start()
  return run({ server, smonPort, user: new Local(server.localSecret) }, optionsOf(argv))
}

/** The same with the least that any server has to do, which takes no datagrams; `measured`: figures of the same with the server. */
export async function limitOfFanOut(argv: string[], measured: Figures): Promise<Figures | undefined> {
  const options = optionsOf(argv)
  if (options.gmetric) return undefined
  const feedPort = await freePort()
  const definitions = { bytes: SmonFeed.definition(METRIC).length, values: 1 }
  const stored = storedIn(measured, Number(measured['values']))
  const server = limitServer({ workload: 'delivery', ...stored, definitions, feedPort })
  await server.start()
  return run({ server, smonPort: feedPort, user: undefined }, options)
}

type Options = ReturnType<typeof optionsOf>

function optionsOf(argv: string[]) {
  return optionsIn(argv, { channels: 1_000, values: 20_000_000, ahead: 1_024, gmetric: false, through: false })
}

interface Started {
  readonly server: MeasuredServer
  readonly smonPort: number
  /** Undefined at a limit server. */
  readonly user: Local | undefined
}

async function run({ server, smonPort, user }: Started, options: Options): Promise<Figures> {
  const { channels } = options
  const wanted = Math.ceil(options.values / channels)
  const smon = await SmonFeed.open(smonPort, METRIC)
  const connections = await openMany(server.tcpPort, user, channels)
  const fan = new Fan(connections, options.through)
  const name = options.gmetric ? `gmetric.${METRIC}` : `smon.${METRIC}`
  const source = options.gmetric
    ? args(['host', type.string, str('127.0.0.1')])
    : args(['source', type.string, str(smon.source)])
  for (const connection of connections) {
    const metric = await connection.ask((seq) => command.collect(seq, name, source))
    await connection.ask((seq) => command.subscribe(seq, metric))
  }
  const feed = options.gmetric ? await GmetricFeed.open(server.gmetricPort, [METRIC]) : smon

  server.resetLoopDelay()
  const writtenBefore = server.writtenMiB
  const cpu = server.cpu()
  const own = process.cpuUsage()
  const started = performance.now()
  const values = await fan.run(feed, wanted, options.ahead)
  const seconds = (performance.now() - started) / 1000
  const { user: ownUser, system: ownSystem } = process.cpuUsage(own)
  const spent = server.cpu()
  const loopDelayP99Ms = await server.loopDelayP99Ms()
  const { peakRssMiB } = server
  const writtenMiB = server.writtenMiB - writtenBefore
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
    writtenMiB,
    frameBytes: fan.frameBytes,
    loopDelayP99Ms,
  }
}

/** The consumers, counted together. */
class Fan {
  readonly #channels: number
  readonly #commits: Commits[] = []
  #values = 0
  #responses = 0
  /** Of the last value. */
  frameBytes = 0
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
        this.frameBytes = 4 + view.getUint32(at)
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
