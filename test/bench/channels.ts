/**
 * `--channels` (10,000) durable channels, each with one value a second, spread over 100 metrics and over the second. Nobody
 * is connected to them; every `--visit` seconds (10; 0 = never) a consumer comes to each by SET_CHANNEL, takes what waits and
 * commits it `through`. What counts is the storage thread's share of a core, and the memory; with `--cluster 1|3`, the shares of
 * the node that leads, of the others and of the nats-servers.
 */
import { optionsIn } from '../rig/options.ts'
import { args, command, str, type } from '../support/bytes.ts'
import { aCluster, type ChannelsSubject, oneServer } from './channels-subject.ts'
import { Commits } from './commits.ts'
import { BenchConnection, inTurns } from './connection.ts'
import { GmetricFeed } from './gmetric-feed.ts'

const METRICS = 100
const VISITORS = 64
/** Defining so many channels is not what is measured. */
const WARM_UP_SECONDS = 3
/** A visitor that gets nothing for so long goes on: nothing was there. */
const NOTHING_MS = 500
/** The seq of SET_CHANNELs; COMMITs have another. */
const MOVE = 1

export async function benchChannels(argv: string[]): Promise<object> {
  const options = optionsIn(argv, { channels: 10_000, seconds: 60, visit: 10, cluster: '' })
  const { channels, seconds, visit: visitSeconds } = options
  const limits = `[limits]\nchannels_per_identity = ${channels + 100}\ninstances_per_identity = ${METRICS + 100}\n`
  if (!['', '1', '3'].includes(options.cluster)) throw new Error(`--cluster ${options.cluster}: 1 or 3 nodes`)
  const subject = options.cluster === '' ? await oneServer(limits) : await aCluster(Number(options.cluster), limits)
  try {
    return await measured(subject, { channels, seconds, visitSeconds })
  } finally {
    await subject.remove()
  }
}

interface Workload {
  readonly channels: number
  readonly seconds: number
  readonly visitSeconds: number
}

async function measured(subject: ChannelsSubject, { channels, seconds, visitSeconds }: Workload): Promise<object> {
  const { tcpPort, gmetricPort, user } = subject
  const maker = await BenchConnection.open(tcpPort, user)
  const began = performance.now()
  const ids = await makeChannels(maker, channels)
  const made = (performance.now() - began) / 1000
  subject.made()

  const feed = await GmetricFeed.open(gmetricPort, metricNames())
  const visits = visitSeconds > 0 ? new Visits(ids, visitSeconds) : undefined
  visits?.begin(await Promise.all(Array.from({ length: VISITORS }, () => BenchConnection.open(tcpPort, user))))
  await feed.flood(METRICS, WARM_UP_SECONDS)
  subject.begin()
  const sent = feed.sent
  const started = performance.now()
  await feed.flood(METRICS, seconds)
  const elapsed = (performance.now() - started) / 1000
  const figures = await subject.figures(elapsed)
  const committed = (await visits?.end()) ?? 0
  feed.close()
  maker.close()
  return {
    channels,
    channelsMadePerSecond: Math.round(channels / made),
    valuesPerSecond: Math.round(((feed.sent - sent) * channels) / METRICS / elapsed),
    committed,
    ...figures,
  }
}

function metricNames(): string[] {
  return Array.from({ length: METRICS }, (_, index) => `reading.${index}`)
}

/** Gives their ids. One metric id is bound on many channels. */
async function makeChannels(maker: BenchConnection, channels: number): Promise<number[]> {
  const host = args(['host', type.string, str('127.0.0.1')])
  const metrics: number[] = []
  for (const name of metricNames()) {
    metrics.push(await maker.ask((seq) => command.collect(seq, `gmetric.${name}`, host)))
  }
  const ids: number[] = []
  await inTurns(channels, async (index) => {
    const channel = await maker.ask((seq) => command.defChannel(seq))
    await maker.ask((seq) => command.subscribe(seq, metrics[index % METRICS] as number, channel))
    ids.push(channel)
  })
  return ids
}

/** Consumers that go round. */
class Visits {
  readonly #ids: readonly number[]
  readonly #roundSeconds: number
  #visitors: readonly BenchConnection[] = []
  #walks: Promise<void>[] = []
  #ended = false
  #committed = 0

  constructor(ids: readonly number[], roundSeconds: number) {
    this.#ids = ids
    this.#roundSeconds = roundSeconds
  }

  begin(visitors: readonly BenchConnection[]): void {
    this.#visitors = visitors
    this.#walks = visitors.map((visitor, index) => this.#walk(visitor, index))
  }

  /** Gives how many values were committed. */
  async end(): Promise<number> {
    this.#ended = true
    await Promise.all(this.#walks)
    for (const visitor of this.#visitors) visitor.close()
    return this.#committed
  }

  /** Each visitor has every so-manieth channel, and comes to one after the other at an even pace, or as fast as it can. */
  async #walk(visitor: BenchConnection, index: number): Promise<void> {
    const commits = new Commits(true)
    /** SET_CHANNELs without a response. */
    let moves = 0
    let taken: () => void = () => {}
    visitor.listener = {
      // A COMMIT would reach the next channel already: what comes too late comes again on the next visit.
      value: (view, at) => {
        if (moves === 0) commits.add(view, at)
      },
      // At once: values may stand after the response in the same read.
      response: (seq) => {
        if (seq === MOVE) moves--
      },
      read: () => {
        const bytes = commits.take()
        if (bytes === undefined) return
        visitor.write(bytes)
        taken()
      },
    }
    const mine = this.#ids.filter((_, at) => at % VISITORS === index)
    const started = performance.now()
    for (let visit = 0; !this.#ended; visit++) {
      await until(started + (visit * this.#roundSeconds * 1000) / mine.length)
      const values = new Promise<void>((resolve) => {
        taken = resolve
      })
      moves++
      visitor.write(command.setChannel(MOVE, mine[visit % mine.length] as number))
      await Promise.race([values, until(performance.now() + NOTHING_MS)])
    }
    this.#committed += commits.committed
  }
}

async function until(time: number): Promise<void> {
  const early = time - performance.now()
  if (early > 0) await new Promise((resolve) => setTimeout(resolve, early))
}
