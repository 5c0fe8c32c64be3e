/**
 * How long a value takes from the socket of a feed to that of a consumer, at each of `--rates` per second for `--seconds`: through
 * a durable channel, where every value is committed, and one that is not, beside what others do. One process is both ends, so
 * that one clock counts. It sends every millisecond. Whoever does not keep up is shown with the rate that it has reached.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { tableOf } from '../rig/figures.ts'
import { optionsIn } from '../rig/options.ts'
import { args, command, str, type, u32 } from '../support/bytes.ts'
import { freePort } from '../support/free-port.ts'
import { Commits } from './commits.ts'
import { BenchConnection, Local } from './connection.ts'
import { Latencies } from './latencies.ts'
import { MeasuredServer } from './measured.ts'
import { natsCore, natsJetStream, redisStreams, type Streaming } from './peers/streaming.ts'
import { SmonFeed } from './smon-feed.ts'

/** V8 compiles what is hot on the thread that serves. Without 5 s of these before, one value in a hundred waited for that. */
const WARM_UP_RATE = 10_000
/** Of the offered rate: whoever has less does not keep up. */
const KEEPS_UP = 0.97
const BUFFER_BYTES = 1 << 20
const MAX_CHANNEL_BYTES = 1 << 30

/** In seconds. */
interface Spans {
  readonly 'warm-up': number
  /** What is under way at the end may still come for so long. */
  readonly settle: number
  readonly seconds: number
}

interface Run {
  readonly server: string
  readonly rate: number
  readonly keepsUp: boolean
  readonly receivedPerSecond: number
  readonly p50Ms: string
  readonly p99Ms: string
  readonly p999Ms: string
  readonly loopDelayP99Ms: string
}

export async function benchLatency(argv: string[]): Promise<object> {
  const given = optionsIn(argv, { rates: '1000,100000,500000', seconds: 5, 'warm-up': 5, settle: 1, alone: false })
  const peers = given.alone ? [] : [natsCore, natsJetStream, redisStreams('no'), redisStreams('always')]
  const runs: Run[] = []
  for (const rate of given.rates.split(',').map(Number)) {
    for (const streaming of [cinnabar(true), cinnabar(false), ...peers]) {
      const why = streaming.missing()
      if (why === undefined) runs.push(await measure(streaming, rate, given))
      else console.log(`${streaming.name}: left out, ${why}`)
    }
  }
  const load = loadavg().map((minutes) => minutes.toFixed(1))
  console.log(table(runs))
  return { runs, load: load.join(' ') }
}

async function measure(streaming: Streaming, rate: number, spans: Spans): Promise<Run> {
  const { seconds } = spans
  const directory = mkdtempSync(join(tmpdir(), 'cinnabar-bench-latency-'))
  let latencies = new Latencies()
  const ends = await streaming.open(directory, (count) => latencies.receive(count, performance.now()))
  try {
    await sendFor(spans['warm-up'], WARM_UP_RATE, (count) => {
      latencies.send(count, performance.now())
      ends.send(count)
    })
    await settle(latencies, spans.settle)
    latencies = new Latencies()
    const startedMs = performance.now()
    await sendFor(seconds, rate, (count) => {
      latencies.send(count, performance.now())
      ends.send(count)
    })
    const [sent, received, tookMs] = [latencies.sent, latencies.received, performance.now() - startedMs]
    const loopDelayP99Ms = (await ends.loopDelayP99Ms?.()) ?? '-'
    await settle(latencies, spans.settle)
    const within = (share: number): string => latencies.within(share)?.toFixed(2) ?? '-'
    return {
      server: streaming.name,
      rate,
      keepsUp: received >= KEEPS_UP * sent && sent >= KEEPS_UP * rate * seconds,
      receivedPerSecond: Math.round((received / tookMs) * 1_000),
      p50Ms: within(0.5),
      p99Ms: within(0.99),
      p999Ms: within(0.999),
      loopDelayP99Ms,
    }
  } finally {
    await ends.close()
    rmSync(directory, { recursive: true, maxRetries: 5, retryDelay: 100 })
  }
}

/** What is due is sent each millisecond, as far as this process gets the processor. */
async function sendFor(seconds: number, rate: number, send: (count: number) => void): Promise<void> {
  const startedMs = performance.now()
  for (let sent = 0; ; ) {
    const elapsedMs = performance.now() - startedMs
    if (elapsedMs >= seconds * 1_000) return
    const due = Math.floor((elapsedMs / 1_000) * rate) - sent
    if (due > 0) send(due)
    sent += due
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
}

async function settle(latencies: Latencies, seconds: number): Promise<void> {
  const endMs = performance.now() + seconds * 1_000
  while (latencies.received < latencies.sent && performance.now() < endMs) {
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

function cinnabar(isDurable: boolean): Streaming {
  return {
    name: isDurable ? 'cinnabar, durable' : 'cinnabar, not durable',
    missing: () => undefined,
    async open(_, received) {
      const smonPort = await freePort()
      const limits = `[channels]\nmax_bytes = ${MAX_CHANNEL_BYTES}\n`
      const server = new MeasuredServer(`[smon]\ntcp = "127.0.0.1:${smonPort}"\n${limits}`)
      await server.start()
      const consumer = await BenchConnection.open(server.tcpPort, new Local(server.localSecret), BUFFER_BYTES)
      const feed = await SmonFeed.open(smonPort, 'load')
      const durable = args(['durable', type.boolean, u32(Number(isDurable))])
      const channel = await consumer.ask((seq) => command.defChannel(seq, '', durable))
      const source = args(['source', type.string, str(feed.source)])
      const metric = await consumer.ask((seq) => command.collect(seq, 'smon.load', source))
      await consumer.ask((seq) => command.subscribe(seq, metric, channel))
      const commits = new Commits(false)
      let count = 0
      consumer.listener = {
        value: (view, at) => {
          count++
          commits.add(view, at)
        },
        read: () => {
          received(count)
          count = 0
          const bytes = commits.take()
          if (bytes !== undefined) consumer.write(bytes)
        },
      }
      await consumer.ask((seq) => command.setChannel(seq, channel))
      server.resetLoopDelay()
      return {
        send: (values) => void feed.send(values),
        loopDelayP99Ms: () => server.loopDelayP99Ms(),
        async close() {
          feed.close()
          consumer.close()
          await server.remove()
        },
      }
    },
  }
}

function table(runs: readonly Run[]): string {
  const head = ['', 'offered/s', 'keeps up', 'p50 ms', 'p99 ms', 'p99.9 ms', 'loop p99 ms']
  const rows = runs.map(({ server, rate, keepsUp, receivedPerSecond, p50Ms, p99Ms, p999Ms, loopDelayP99Ms }) => {
    const reached = keepsUp ? 'yes' : `${receivedPerSecond}/s`
    return [server, String(rate), reached, p50Ms, p99Ms, p999Ms, loopDelayP99Ms]
  })
  return tableOf(head, rows)
}
