/**
 * A channel with `--values` (10 million) that nobody took: the server is killed (`--clean`: stopped), started again, and a
 * consumer takes and COMMITs them, each by itself or `--through`. How soon it serves, and what the backlog takes of memory.
 */
import { optionsIn } from '../rig/options.ts'
import { args, command, str, type } from '../support/bytes.ts'
import { freePort } from '../support/free-port.ts'
import { ledgerOf } from './asking.ts'
import { Commits } from './commits.ts'
import { BenchConnection, Local } from './connection.ts'
import { limitServer } from './limit/start.ts'
import { MeasuredServer } from './measured.ts'
import type { Figures } from './ratios.ts'
import { SmonFeed } from './smon-feed.ts'

/** More than one value takes. */
const BYTES_PER_VALUE = 64
const POLL_MS = 100
/** How long the kinds of memory that a process needs for a while only have to go. */
const CALM_MS = 3_000

export async function benchBacklog(argv: string[]): Promise<object> {
  const options = optionsOf(argv)
  const { values } = options
  const smonPort = await freePort()
  const server = new MeasuredServer(
    `[smon]\ntcp = "127.0.0.1:${smonPort}"\n[channels]\nmax_bytes = ${values * BYTES_PER_VALUE + (64 << 20)}\n`,
  )
  await server.start()
  const user = new Local(server.localSecret)
  const filled = await fill(server, user, smonPort, values)
  await server.end(options.clean ? 'SIGTERM' : 'SIGKILL')

  const listeningAfterSeconds = await server.start()
  const started = performance.now()
  const consumer = await BenchConnection.open(server.tcpPort, user, 1 << 20)
  const first = firstValue(consumer)
  await consumer.ask((seq) => command.setChannel(seq, filled.channel))
  const answeredAfterSeconds = listeningAfterSeconds + (performance.now() - started) / 1000
  await first
  const firstValueAfterSeconds = listeningAfterSeconds + (performance.now() - started) / 1000
  await new Promise((resolve) => setTimeout(resolve, options.calm))
  const { rssMiB: rssServingMiB, peakRssMiB: peakRssOfRestartMiB } = server
  consumer.close()

  server.resetPeak()
  server.resetLoopDelay()
  const asker = await BenchConnection.open(server.tcpPort, user)
  const { queued, gaps } = await ledgerOf(asker, filled.channel)
  const drained = await drain(server, user, { ...filled, ...options, queued, gaps })
  const left = await ledgerOf(asker, filled.channel)
  asker.close()
  const loopDelayP99Ms = await server.loopDelayP99Ms()
  const { peakRssMiB: peakRssOfDrainMiB } = server
  await server.remove()
  return {
    ...filled.figures,
    listeningAfterSeconds: listeningAfterSeconds.toFixed(2),
    answeredAfterSeconds: answeredAfterSeconds.toFixed(2),
    firstValueAfterSeconds: firstValueAfterSeconds.toFixed(2),
    rssServingMiB,
    peakRssOfRestartMiB,
    drained: queued - left.queued - left.in_flight,
    ...drained,
    peakRssOfDrainMiB,
    loopDelayP99Ms,
  }
}

/** The drain alone, with the least that any server has to do; `measured`: figures of the same with the server. */
export async function limitOfBacklog(argv: string[], measured: Figures): Promise<Figures> {
  const { through } = optionsOf(argv)
  const [queued, frameBytes] = [Number(measured['queued']), Number(measured['frameBytes'])]
  const server = limitServer({ workload: 'drain', frameBytes, values: queued })
  await server.start()
  const figures = await drain(server, undefined, { channel: 1, queued, gaps: 0, through })
  await server.remove()
  return figures
}

function optionsOf(argv: string[]) {
  return optionsIn(argv, { values: 10_000_000, calm: CALM_MS, through: false, clean: false })
}

/** Until everything is stored. */
async function fill(
  server: MeasuredServer,
  user: Local,
  smonPort: number,
  values: number,
): Promise<{ channel: number; figures: object }> {
  const feed = await SmonFeed.open(smonPort, 'load')
  const maker = await BenchConnection.open(server.tcpPort, user)
  const channel = await maker.ask((seq) => command.defChannel(seq))
  const source = args(['source', type.string, str(feed.source)])
  const metric = await maker.ask((seq) => command.collect(seq, 'smon.load', source))
  await maker.ask((seq) => command.subscribe(seq, metric, channel))
  const started = performance.now()
  await feed.send(values)
  let ledger = await ledgerOf(maker, channel)
  while (ledger.accepted < values || ledger.unstored > 0) {
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
    ledger = await ledgerOf(maker, channel)
  }
  const seconds = (performance.now() - started) / 1000
  const figures = {
    filledPerSecond: Math.round(values / seconds),
    queued: ledger.queued,
    queuedMiB: Math.round(ledger.queued_bytes / 2 ** 20),
    rssFilledMiB: server.rssMiB,
  }
  maker.close()
  // The feed: not before the server is killed: that its source is gone would be a value more.
  return { channel, figures }
}

function firstValue(consumer: BenchConnection): Promise<void> {
  return new Promise((resolve) => {
    consumer.listener = { value: () => resolve() }
  })
}

interface Backlog {
  readonly channel: number
  readonly queued: number
  readonly gaps: number
  readonly through: boolean
}

/** `user`: undefined at a limit server. */
async function drain(server: MeasuredServer, user: Local | undefined, backlog: Backlog): Promise<Figures> {
  const { channel, queued, gaps, through } = backlog
  const consumer = await BenchConnection.open(server.tcpPort, user, 1 << 20)
  const commits = new Commits(through)
  const cpu = server.cpu().all
  const started = performance.now()
  let frameBytes = 0
  const done = new Promise<void>((resolve) => {
    let responses = 0
    let entries = 0
    consumer.listener = {
      value: (view, at) => {
        if (entries++ === 0) frameBytes = 4 + view.getUint32(at)
        commits.add(view, at)
      },
      response: () => {
        responses++
      },
      read: () => {
        const bytes = commits.take()
        if (bytes !== undefined) consumer.write(bytes)
        if (entries >= queued + gaps && responses === commits.sent) resolve()
      },
    }
  })
  await consumer.ask((seq) => command.setChannel(seq, channel))
  await done
  const seconds = (performance.now() - started) / 1000
  const spent = server.cpu().all - cpu
  consumer.close()
  return {
    drainedPerSecond: Math.round(queued / seconds),
    drainCpuPerMillion: ((spent * 1e6) / queued).toFixed(3),
    frameBytes,
  }
}
