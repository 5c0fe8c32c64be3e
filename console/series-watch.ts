/**
 * The values of one metric while somebody looks at them: first what the server has kept (`producer.recent`), or if that is nothing the
 * last value, then what comes. A lost connection leaves a hole, which is filled from the server's memory as far as that reaches; what is lost is shown as lost.
 */
import { type ReadonlySignal, signal } from '@preact/signals'
import {
  BasicType,
  type Consumer,
  type Field,
  type Followed,
  type GapEvent,
  type Plain,
  type PlainRecord,
  plainOf,
  type Sample,
  type Value,
} from '../client/browser.ts'
import { isOfOwnMachine, isUnaskedPart, isWhole } from './own-machine.ts'
import { producersOf } from './producers.ts'
import { pagesOf, untilAnswered } from './query.ts'
import { reasonOf } from './refusals.ts'
import { Samples } from './samples.ts'

/** Samples that are kept of all series of a metric together; each has room for so many at least. */
const MAX_SAMPLES = 65_536
const LEAST_SAMPLES = 256
/** Series of one metric that are kept; the others are counted. */
const MAX_SERIES = 512
const MAX_HOLES = 32
/**
 * Which value is late is decided as at the server (docs/sources/README.md#times): how far ahead of its clock a time may be, and how
 * long a value makes older ones late.
 */
const AHEAD_MS = 60_000
const LATE_MS = 60_000
/** Lines of texts and events that are kept. */
const MAX_LINES = 200
/** Characters of a line. */
const MAX_TEXT = 2_000
/** New series and texts are shown after this time at the earliest. */
const APART_MS = 200
/** Seconds in which a value that was asked for comes again where it is followed, if it is measured on request. */
const TWICE = 0.5
/** After each label in the key of a series. */
const END = '\0'

/** The arguments of a metric, by name. */
export type LineArguments = Readonly<Record<string, string>>

/** The time by the clock of the server, in milliseconds since 1970. */
export interface ServerClock {
  readonly nowMs: number
}

/** What nothing is known of, in seconds since 1970. */
export interface Hole {
  readonly from: number
  readonly to: number
  /** Values that are missing for certain; 0 if that is unknown. */
  readonly count: number
}

export interface WatchedSeries {
  /** Its own, where that of the watch is a pattern. */
  readonly metric: string
  /** Those that no argument fixes, by name. */
  readonly labels: LineArguments
  readonly samples: Samples
  readonly holes: Hole[]
  /** When the newest sample came, by the clock of the server. */
  cameMs: number
  /** The time of the sample that was asked for, in seconds since 1970. */
  askedAt: number
  /** When the connection was lost, until it is known what came meanwhile. */
  cutAt: number | undefined
}

/** A text or an event. */
export interface TextLine {
  readonly number: number
  /** Microseconds since 1970. */
  readonly time: number
  readonly metric: string
  readonly labels: LineArguments
  readonly text: string
}

export interface WatchedState {
  /** In the order in which they appeared; their samples are changed in place. */
  readonly series: readonly WatchedSeries[]
  /** Texts and events, the newest first. */
  readonly lines: readonly TextLine[]
  /** Series beyond those that are kept. */
  readonly more: number
  /** Why nothing can be shown; empty if something can. */
  readonly problem: string
  readonly isLoaded: boolean
}

export class SeriesWatch {
  readonly metric: string
  readonly #consumer: Consumer
  readonly #args: LineArguments
  readonly #lastMs: number
  readonly #clock: ServerClock
  readonly #state = signal<WatchedState>({ series: [], lines: [], more: 0, problem: '', isLoaded: false })
  readonly #byKey = new Map<string, WatchedSeries>()
  readonly #ignored = new Set<string>()
  readonly #lastTexts = new Map<string, string>()
  readonly #listeners = new Set<() => void>()
  readonly #stops: (() => void)[] = []
  /** Losses that concern every series. */
  readonly #gaps: Hole[] = []
  #lines: TextLine[] = []
  #lineCount = 0
  #room = MAX_SAMPLES
  /** There is one subscription, however often it is asked for. */
  #following: Promise<Followed> | undefined
  #followed: Followed | undefined
  readonly #abort = new AbortController()
  #isFilling = false
  #isOver = false
  #isScheduled = false
  #hasNewState = false
  #changedMs = Number.NEGATIVE_INFINITY

  constructor(consumer: Consumer, metric: string, args: LineArguments, lastMs: number, clock: ServerClock) {
    this.#consumer = consumer
    this.metric = metric
    this.#args = args
    this.#lastMs = lastMs
    this.#clock = clock
  }

  get state(): ReadonlySignal<WatchedState> {
    return this.#state
  }

  get gaps(): readonly Hole[] {
    return this.#gaps
  }

  /** Calls the listener at most once per frame, after values have come. Returns the function that removes it. */
  onValues(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** Never rejects. */
  async begin(): Promise<void> {
    this.#stops.push(
      this.#consumer.on('connected', () => void this.#follow().then(() => this.#fill())),
      this.#consumer.on('disconnected', () => this.#cut()),
      this.#consumer.on('gap', (gap) => this.#lost(gap)),
    )
    await this.#fill()
    await Promise.all([this.#follow(), this.#askLast()])
  }

  end(): void {
    this.#isOver = true
    for (const stop of this.#stops) stop()
    this.#abort.abort()
    this.#following?.then((followed) => followed.stop()).catch(() => {})
  }

  async #follow(): Promise<void> {
    if (this.#isOver) return
    const follow = () => this.#consumer.follow(this.metric, this.#args, (sample) => this.#took(sample))
    this.#following ??= untilAnswered(this.#consumer, this.#abort.signal, follow)
    const following = this.#following
    try {
      this.#followed = await following
      this.#changed({ problem: '' })
    } catch (error) {
      if (this.#following === following) this.#following = undefined
      this.#changed({ problem: reasonOf(error) })
    }
  }

  /** Adds what the server has kept and is not here yet. */
  async #fill(): Promise<void> {
    this.#isFilling = true
    try {
      await this.#fillFromRecent()
    } catch {
      // Metrics with parameters of their own are not kept, and what is refused is said by `follow`.
    }
    this.#isFilling = false
    for (const series of this.#byKey.values()) {
      const { samples, cutAt } = series
      if (cutAt === undefined) continue
      for (let index = samples.indexOf(cutAt + 0.002); index < samples.length; index++) {
        if (Number.isNaN(samples.valueAt(index))) continue
        this.#closeHole(series, samples.timeAt(index))
        break
      }
    }
    this.#changed({ isLoaded: true })
  }

  async #fillFromRecent(): Promise<void> {
    const { interval_ms: _, deadline_ms: __, producer, ...labels } = this.#args
    // The server keeps its own values only.
    if (producer !== undefined && producer !== producersOf(this.#consumer).name) return
    const args = { ...labels, metric: this.metric, last_ms: this.#lastMs }
    const ask = (after: string) => this.#consumer.query('producer.recent', { ...args, after })
    for await (const records of pagesOf(ask, { first: '0' })) {
      for (const record of records) this.#merge(record)
      if (this.#isOver || this.#ignored.size > 0) return
    }
  }

  get #hasSome(): boolean {
    return this.#byKey.size > 0 || this.#lines.length > 0
  }

  /** Asks for the last values, if the server has kept none: what is pushed may be rare. Never rejects. */
  async #askLast(): Promise<void> {
    if (this.#isOver || this.#hasSome) return
    try {
      const { elements } = await this.#consumer.query(this.metric, this.#args, { signal: this.#abort.signal })
      if (this.#isOver || this.#hasSome) return
      for (const { value, time } of elements) if (isLast(value)) this.#took({ value: untimed(value), time })
      for (const series of this.#byKey.values()) series.askedAt = series.samples.lastTime
    } catch {
      // What is refused is said by `follow`; values come with the next connection, or in their time.
    }
  }

  #merge({ name, times, values, ...labels }: PlainRecord): void {
    if (isOfOwnMachine(this.metric) && (isWhole(labels, this.#args) || isUnaskedPart(labels, this.#args))) return
    const open = Object.entries(labels).filter(([label]) => this.#isOpen(label))
    const series = this.#of([...(this.metric.includes('*') ? [['name', String(name)] as const] : []), ...open])
    if (series === undefined) return
    const seconds = Float64Array.from(times as readonly number[], (time) => Number(time) / 1e6)
    const { cutAt } = series
    if (cutAt !== undefined && (seconds[0] ?? Number.POSITIVE_INFINITY) <= cutAt) series.cutAt = undefined
    const isSetBack = setBackAfter(seconds, (this.#clock.nowMs + AHEAD_MS) / 1000)
    const stays = (_: unknown, at: number) => isSetBack[at] === 0
    series.samples.merge(seconds.filter(stays), (values as readonly number[]).filter(stays))
    series.cameMs = this.#clock.nowMs
  }

  /** Whether the values have this label: those that an argument fixes have not, and of the machine of the server no others. */
  #isOpen(label: string): boolean {
    return this.#args[label]?.includes('*') ?? !isOfOwnMachine(this.metric)
  }

  /** Called for each value: makes no objects for a number of a series that is known. */
  #took({ value: whole, time }: Pick<Sample, 'value' | 'time'>): void {
    const fields = whole.type === BasicType.REC ? whole.value : undefined
    const isLabelled = fields !== undefined && areLabels(fields)
    const measured = isLabelled ? (fields[fields.length - 1] as Field) : whole
    const key = isLabelled ? keyOf(fields) : ''
    const { value } = measured
    const isNumber = typeof value === 'number' || typeof value === 'bigint' || typeof value === 'boolean'
    if (!isNumber && measured.type !== BasicType.VOID) this.#tookText(key, isLabelled ? fields : [], measured, time)
    else {
      const series = this.#byKey.get(key) ?? this.#of(labelsOf(isLabelled ? fields : []))
      if (series === undefined) return
      const seconds = time / 1e6
      if (series.cutAt !== undefined && isNumber && !this.#isFilling) this.#closeHole(series, seconds)
      // The server measures at once when somebody looks, and again with the next interval.
      const since = seconds - this.#lastMs / 1000
      if (this.#isTakenBefore(series, seconds)) series.samples.dropFrom(seconds)
      else if (seconds - series.askedAt < TWICE) series.samples.dropFrom(series.askedAt)
      series.askedAt = Number.NEGATIVE_INFINITY
      if (!series.samples.push(seconds, isNumber ? Number(value) : Number.NaN, this.#room, since)) return
      series.cameMs = this.#clock.nowMs
    }
    this.#schedule()
  }

  /** Whether a value that is not newer than the newest one takes its place: it has its time, or the clock that gave both was set back. */
  #isTakenBefore({ samples, cameMs }: WatchedSeries, seconds: number): boolean {
    if (seconds >= samples.lastTime) return seconds === samples.lastTime
    const { nowMs } = this.#clock
    return samples.lastTime * 1000 > nowMs + AHEAD_MS || nowMs - cameMs >= LATE_MS
  }

  #tookText(key: string, labels: readonly Field[], measured: Pick<Field, 'type' | 'value'>, time: number): void {
    const text = textOf(plainOf(measured as Field))
    const isEvent = measured.type === BasicType.REC || measured.type === BasicType.ARRAY
    // A text that is measured again and again is a line only when it has changed.
    if (!isEvent && this.#lastTexts.get(key) === text) return
    if (this.#lastTexts.size < MAX_SERIES || this.#lastTexts.has(key)) this.#lastTexts.set(key, text)
    const line = { number: ++this.#lineCount, time, ...this.#named(labelsOf(labels)), text }
    this.#lines.push(line)
    if (this.#lines.length > 2 * MAX_LINES) this.#lines = this.#lines.slice(-MAX_LINES)
    this.#hasNewState = true
  }

  /** The connection is lost: no line is drawn over what may be missing. */
  #cut(): void {
    this.#isFilling = true
    for (const series of this.#byKey.values()) {
      if (series.samples.lastValue === undefined) continue
      series.cutAt ??= series.samples.lastTime
      series.samples.cut(this.#room)
    }
    this.#schedule()
  }

  #closeHole(series: WatchedSeries, to: number): void {
    const { cutAt, holes } = series
    series.cutAt = undefined
    if (cutAt === undefined || to <= cutAt) return
    holes.push({ from: cutAt, to, count: 0 })
    if (holes.length > MAX_HOLES) holes.shift()
  }

  #lost({ id, count, from, to }: GapEvent): void {
    if (id !== 0 && id !== this.#followed?.id) return
    const last = Math.max(0, ...[...this.#byKey.values()].map(({ samples }) => samples.lastTime))
    const now = this.#clock.nowMs / 1000
    this.#gaps.push({ from: from === 0 ? last || now : from / 1e6, to: to === 0 ? now : to / 1e6, count })
    if (this.#gaps.length > MAX_HOLES) this.#gaps.shift()
    for (const { samples } of this.#byKey.values()) samples.cut(this.#room)
    this.#schedule()
  }

  #of(labels: readonly (readonly [name: string, label: Plain])[]): WatchedSeries | undefined {
    const key = labels.map(([, label]) => String(label) + END).join('')
    const known = this.#byKey.get(key)
    if (known !== undefined) return known
    if (this.#byKey.size >= MAX_SERIES) {
      if (this.#ignored.size < MAX_SAMPLES) this.#ignored.add(key)
      return undefined
    }
    const series: WatchedSeries = {
      ...this.#named(labels),
      samples: new Samples(),
      holes: [],
      cameMs: Number.NEGATIVE_INFINITY,
      askedAt: Number.NEGATIVE_INFINITY,
      cutAt: undefined,
    }
    this.#byKey.set(key, series)
    this.#room = Math.max(LEAST_SAMPLES, Math.floor(MAX_SAMPLES / this.#byKey.size))
    this.#hasNewState = true
    return series
  }

  /** The first label of what a pattern gives is the name of its metric [MON 9 Patterns]. */
  #named(labels: readonly (readonly [name: string, label: Plain])[]): Pick<WatchedSeries, 'metric' | 'labels'> {
    const texts = labels.map(([name, label]) => [name, String(label)] as const)
    const isPattern = this.metric.includes('*') && texts.length > 0
    return {
      metric: isPattern ? (texts[0]?.[1] as string) : this.metric,
      labels: Object.fromEntries(isPattern ? texts.slice(1) : texts),
    }
  }

  /** Once per frame at most, however many values come. */
  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    requestAnimationFrame((nowMs) => {
      this.#isScheduled = false
      if (this.#hasNewState && nowMs - this.#changedMs > APART_MS) {
        this.#changedMs = nowMs
        this.#changed({})
      } else for (const listener of this.#listeners) listener()
      if (this.#hasNewState) this.#schedule()
    })
  }

  #changed(change: Partial<Pick<WatchedState, 'problem' | 'isLoaded'>>): void {
    if (this.#isOver) return
    this.#hasNewState = false
    this.#state.value = {
      ...this.#state.value,
      series: [...this.#byKey.values()],
      lines: this.#lines.slice(-MAX_LINES).reverse(),
      more: this.#ignored.size,
      ...change,
    }
    for (const listener of this.#listeners) listener()
  }
}

/** Whether a REC stands for a series [MON 9 Patterns]: texts that are its labels, and last `value`. */
function areLabels(fields: readonly Field[]): boolean {
  const last = fields.length - 1
  if (last < 1 || fields[last]?.name !== 'value') return false
  for (let index = 0; index < last; index++) if (fields[index]?.type !== BasicType.STRING) return false
  return true
}

/** Whether a value is one that a chart or a line shows; a list or record would stand there twice. */
function isLast(value: Value): boolean {
  if (value.type === BasicType.VOID || value.type === BasicType.ARRAY) return false
  return value.type !== BasicType.REC || areLabels((untimed(value) as typeof value).value)
}

/** A value of a list without its time, as it comes where it is followed. */
function untimed(value: Value): Value {
  if (value.type !== BasicType.REC) return value
  return { ...value, value: value.value.filter(({ name }) => name !== 'time') }
}

/** As `SeriesWatch.of` makes it of the labels. */
function keyOf(fields: readonly Field[]): string {
  let key = ''
  for (let index = 0; index < fields.length - 1; index++) key += textIn(fields[index] as Field) + END
  return key
}

function labelsOf(fields: readonly Field[]): readonly (readonly [string, string])[] {
  return fields.slice(0, -1).map((field) => [field.name, textIn(field)])
}

function textIn(field: Field): string {
  return typeof field.value === 'string' ? field.value : String(plainOf(field))
}

/** What an event says, in one line. */
function textOf(plain: Plain): string {
  const text = (part: Plain): string => {
    if (part instanceof Uint8Array) return `${part.length} bytes`
    if (Array.isArray(part)) return `[${part.map(text).join(', ')}]`
    if (part === null || typeof part !== 'object') return String(part)
    return Object.entries(part)
      .map(([name, value]) => `${name}: ${text(value)}`)
      .join(', ')
  }
  const whole = text(plain)
  return whole.length > MAX_TEXT ? `${whole.slice(0, MAX_TEXT)}…` : whole
}

/** Marks times beyond `newest` that earlier ones follow: the clock that gave them was set back. */
function setBackAfter(times: Float64Array, newest: number): Uint8Array {
  const marks = new Uint8Array(times.length)
  let least = Number.POSITIVE_INFINITY
  for (let at = times.length - 1; at >= 0; at--) {
    const time = times[at] as number
    if (time > newest && time > least) marks[at] = 1
    least = Math.min(least, time)
  }
  return marks
}
