/**
 * What comes in at the addresses of one table `[[statsd]]`: lines are summed up, and at each flush become values of the sensor
 * of its tenant.
 */
import { BasicType } from '../../../protocol/monitor/constants.ts'
import { KnownLines } from '../../../protocol/statsd/known-lines.ts'
import { MAX_LINE_BYTES, parseLine, type StatsdLine } from '../../../protocol/statsd/lines.ts'
import { AllowedSenders } from '../../kit/by-tenant.ts'
import type { StreamTaker } from '../../kit/io/pacer.ts'
import type { LabelledSensor } from '../../kit/labelled-sensor.ts'
import { LabelledSeries } from '../../kit/labelled-series.ts'
import { fromForeign, type SensorStatus } from '../../kit/metrics.ts'
import type { Clock, Steps } from '../../kit/running.ts'
import type { StatsdTable } from './config.ts'
import { copyOf, StatsdMetric } from './metric.ts'

export const STATSD_FAMILY = 'statsd.'

const METRICS_PER_STEP = 64
const LINES_PER_STEP = 64
/** For lines that come again. */
const KNOWN_BYTES = 8 << 20
const NEWLINE = 0x0a
const TOO_LARGE = 'a sum or a count that would be too large'
const types = {
  counter: BasicType.DOUBLE,
  gauge: BasicType.DOUBLE,
  set: BasicType.UINT64,
  timer: BasicType.REC,
} as const

/** What is known of a line before its number is. */
interface KnownLine {
  readonly metric: StatsdMetric
  readonly weight: number
}

export interface StatsdFeedOptions extends Pick<StatsdTable, 'tenant' | 'allow' | 'flushMs' | 'keepMs' | 'maxMetrics'> {
  readonly sensor: LabelledSensor
  /** The label `node` of its series: in a cluster each node sums up what is sent to it. Undefined without a cluster. */
  readonly node: string | undefined
  readonly clock: Pick<Clock, 'monotonicMs' | 'microseconds'>
  /** Does work of the sensor in steps. */
  readonly run: (steps: Steps<void>) => void
  /** A metric could not be flushed. */
  readonly failed: (error: unknown) => void
}

export class StatsdFeed {
  readonly sensor: LabelledSensor
  readonly senders: AllowedSenders
  readonly #options: StatsdFeedOptions
  /** By name and tags in the order of their names. */
  readonly #metrics = new Map<string, StatsdMetric>()
  readonly #known = new KnownLines<KnownLine>(KNOWN_BYTES)
  readonly #listening: string[] = []
  #kernelDrops: () => number | undefined = () => undefined
  #flushedMs: number
  #startUs: number
  #isFlushing = false
  readonly #counters = {
    datagrams: 0,
    streams: 0,
    lines: 0,
    badLines: 0,
    otherLines: 0,
    metricsFull: 0,
    membersFull: 0,
    overQuota: 0,
    refusedSource: 0,
  }
  /** What was wrong with the last bad line, and who sent it. */
  #lastProblem = ''

  constructor(options: StatsdFeedOptions) {
    const { sensor, allow, clock } = options
    this.sensor = sensor
    this.senders = new AllowedSenders(allow)
    this.#options = options
    this.#flushedMs = clock.monotonicMs()
    this.#startUs = clock.microseconds()
  }

  listens(detail: string, kernelDrops?: () => number | undefined): void {
    this.#listening.push(detail)
    if (kernelDrops) this.#kernelDrops = kernelDrops
  }

  /** A datagram of lines. */
  datagram(bytes: Uint8Array, from: string): Steps<void> | undefined {
    const { address, allowed } = this.senders.check(from)
    if (!allowed) {
      this.#counters.refusedSource++
      return undefined
    }
    this.#counters.datagrams++
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
    // Most datagrams have few lines, and need no steps.
    const rest = this.#takeSome(bytes, view, 0, address)
    return rest < bytes.length ? this.#takeRest(bytes, view, rest, address) : undefined
  }

  /** A stream of lines; undefined if its sender is refused. */
  open(from: string): StreamTaker | undefined {
    const { address, allowed } = this.senders.check(from)
    if (!allowed) {
      this.#counters.refusedSource++
      return undefined
    }
    this.#counters.streams++
    return new LineStream(
      (line) => this.#take(line, address),
      () => this.#bad(`a line of more than ${MAX_LINE_BYTES} bytes`, address),
    )
  }

  *#takeRest(bytes: Uint8Array, view: DataView, start: number, from: string): Steps<void> {
    for (let at = start; at < bytes.length; at = this.#takeSome(bytes, view, at, from)) yield
  }

  /** Takes the lines of a step, from `start` on. Returns where the next one begins. */
  #takeSome(bytes: Uint8Array, view: DataView, start: number, from: string): number {
    let at = start
    for (let taken = 0; taken < LINES_PER_STEP && at < bytes.length; taken++) {
      const newline = bytes.indexOf(NEWLINE, at)
      const end = newline < 0 ? bytes.length : newline
      this.#takeLine(bytes, view, at, end, from)
      at = end + 1
    }
    return at
  }

  #takeLine(bytes: Uint8Array, view: DataView, start: number, end: number, from: string): void {
    const known = this.#known.find(view, start, end)
    if (known === undefined || known.metric.isForgotten) {
      const taken = this.#take(textOf(bytes.subarray(start, end)), from)
      if (taken !== undefined) this.#known.keep(view, start, end, taken)
      return
    }
    const { metric, weight } = known
    if (!this.sensor.meter.take()) this.#counters.overQuota++
    else if (metric.takeNumber(this.#known.number, weight) !== undefined) {
      this.#bad(TOO_LARGE, from)
      return
    } else metric.heardMs = this.#options.clock.monotonicMs()
    this.#counters.lines++
  }

  /** Returns what is known of the lines that differ from this one in their number only; undefined if each has to be read. */
  #take(text: string, from: string): KnownLine | undefined {
    const line = parseLine(text.endsWith('\r') ? text.slice(0, -1) : text)
    if (line === undefined) {
      if (text !== '' && text !== '\r') this.#counters.otherLines++
      return undefined
    }
    if ('problem' in line) {
      this.#bad(line.problem, from)
      return undefined
    }
    let metric: StatsdMetric | string | undefined
    if (!this.sensor.meter.take()) this.#counters.overQuota++
    else metric = this.#count(line)
    if (typeof metric === 'string') {
      this.#bad(metric, from)
      return undefined
    }
    this.#counters.lines++
    return metric === undefined || line.kind === 'set' ? undefined : { metric, weight: line.weight }
  }

  #bad(problem: string, from: string): void {
    this.#counters.badLines++
    this.#lastProblem = `${problem} (from ${from})`
  }

  /** Returns its metric, or what is wrong with the line if that cannot take it; undefined if there are too many. */
  #count(line: StatsdLine): StatsdMetric | string | undefined {
    const tags = inOrder(line.tags)
    const key = `${line.name}\0${tags.map(([name, text]) => `${name}\0${text}`).join('\0')}`
    const known = this.#metrics.get(key)
    if (known !== undefined && known.kind !== line.kind) return `a ${line.kind} with the name of a ${known.kind}`
    if (known === undefined && this.#metrics.size >= this.#options.maxMetrics) {
      this.#counters.metricsFull++
      return undefined
    }
    const metric = known ?? new StatsdMetric({ ...line, tags })
    const refused = metric.take(line)
    if (refused === 'size') return TOO_LARGE
    if (refused === 'members') this.#counters.membersFull++
    metric.heardMs = this.#options.clock.monotonicMs()
    if (known === undefined) this.#metrics.set(copyOf(key), metric)
    return metric
  }

  /** To be called every second. */
  sweep(): void {
    const { clock, flushMs, run } = this.#options
    const now = clock.monotonicMs()
    if (this.#isFlushing || now - this.#flushedMs < flushMs) return
    this.#flushedMs = now
    this.#isFlushing = true
    run(this.#flush())
  }

  *#flush(): Steps<void> {
    const { clock, keepMs } = this.#options
    const end = clock.microseconds()
    // A clock that was set back makes no interval begin after its end.
    const start = Math.min(this.#startUs, end)
    this.#startUs = end
    const oldest = clock.monotonicMs() - keepMs
    let seen = 0
    try {
      for (const [key, metric] of this.#metrics) {
        if (metric.isTouched) this.#tryEmit(metric, start, end)
        else if (metric.heardMs < oldest) {
          metric.isForgotten = true
          this.#metrics.delete(key)
        }
        if (++seen % METRICS_PER_STEP === 0) yield
      }
    } finally {
      this.#isFlushing = false
    }
  }

  /** What one metric throws costs no other its value. */
  #tryEmit(metric: StatsdMetric, start: number, end: number): void {
    try {
      this.#emit(metric, start, end)
    } catch (error) {
      this.#options.failed(error)
    }
  }

  #emit(metric: StatsdMetric, start: number, end: number): void {
    const { kind, name, tags, unit } = metric
    const value = metric.flush(start)
    const { node } = this.#options
    const labels = tags.map(([tag, text]): readonly [string, string] => [fromForeign(tag), text])
    if (node !== undefined) labels.push(['node', node])
    const series = this.sensor.of(STATSD_FAMILY + name, labels)
    // The sensor counts what is beyond the bounds.
    if (!(series instanceof LabelledSeries)) return
    const isCounter = kind === 'timer' ? undefined : kind === 'counter'
    this.sensor.describe(series, { type: types[kind], unit: unit || undefined, description: undefined, isCounter })
    this.sensor.take(series, value, end)
  }

  status(): SensorStatus {
    const kernelDrops = this.#kernelDrops()
    return {
      name: `statsd-feed/${this.#options.tenant}`,
      state: this.#listening.length > 0 ? 'listening' : 'off',
      detail: [...this.#listening, this.#lastProblem].filter((part) => part !== '').join('; '),
      counters: { ...this.#counters, metrics: this.#metrics.size, ...(kernelDrops !== undefined && { kernelDrops }) },
    }
  }
}

/** Of equal names the last one counts. */
function inOrder(tags: StatsdLine['tags']): StatsdLine['tags'] {
  if (tags.length < 2) return tags
  return [...new Map(tags)].sort(([one], [other]) => (one < other ? -1 : 1))
}

const utf8 = new TextDecoder()

function textOf(bytes: Uint8Array): string {
  return utf8.decode(bytes)
}

/** Lines of a stream. One that is too long is passed over up to its end. */
class LineStream implements StreamTaker {
  readonly #take: (line: string) => void
  readonly #tooLong: () => void
  /** The beginning of a line whose end has not come. */
  #rest: Uint8Array = new Uint8Array(0)
  #isSkipping = false

  constructor(take: (line: string) => void, tooLong: () => void) {
    this.#take = take
    this.#tooLong = tooLong
  }

  readonly push = (bytes: Uint8Array): number => {
    const end = bytes.indexOf(NEWLINE)
    const piece = end < 0 ? bytes : bytes.subarray(0, end)
    if (!this.#isSkipping && this.#rest.length + piece.length > MAX_LINE_BYTES) {
      this.#tooLong()
      this.#isSkipping = true
      this.#rest = new Uint8Array(0)
    }
    if (!this.#isSkipping) this.#rest = joined(this.#rest, piece)
    if (end < 0) return bytes.length
    if (!this.#isSkipping) this.#take(textOf(this.#rest))
    this.#isSkipping = false
    this.#rest = new Uint8Array(0)
    return end + 1
  }

  end(): void {
    if (!this.#isSkipping && this.#rest.length > 0) this.#take(textOf(this.#rest))
    this.#rest = new Uint8Array(0)
  }
}

/** A copy: the bytes of a chunk are not kept. */
function joined(one: Uint8Array, other: Uint8Array): Uint8Array {
  const both = new Uint8Array(one.length + other.length)
  both.set(one)
  both.set(other, one.length)
  return both
}
