/**
 * The values of one metric while somebody looks at them: first what the server has kept (`producer.recent`), then what comes. A
 * lost connection leaves a hole, which is filled from the server's memory as far as that reaches; what is lost is shown as lost.
 */
import { type ReadonlySignal, signal } from '@preact/signals'
import type { Consumer, Followed, PlainRecord, Sample } from '../client/browser.ts'

/** Samples that are kept of a series: an hour of one a second. */
const MAX_SAMPLES = 3_600
/** Series of one metric that are kept; the others are counted. */
const MAX_SERIES = 512

export interface WatchedSeries {
  /** The labels as text, such as `web1` or `web1 eth0`; empty if the metric has one series only. */
  readonly label: string
  /** Seconds since 1970, ascending. */
  readonly times: number[]
  /** As many; null is a hole. */
  readonly values: (number | null)[]
  /** The last value that is no number. */
  text: string | undefined
}

export interface WatchedState {
  /** In the order in which they appeared. The arrays are changed in place; `version` grows with every change. */
  readonly series: readonly WatchedSeries[]
  readonly version: number
  /** Series beyond those that are kept. */
  readonly more: number
  /** Why nothing can be shown; empty if something can. */
  readonly problem: string
}

export class SeriesWatch {
  readonly #consumer: Consumer
  readonly #metric: string
  readonly #args: Readonly<Record<string, string | number>>
  readonly #lastMs: number
  readonly #state = signal<WatchedState>({ series: [], version: 0, more: 0, problem: '' })
  readonly #byLabel = new Map<string, WatchedSeries>()
  readonly #ignored = new Set<string>()
  readonly #stops: (() => void)[] = []
  #followed: Followed | undefined
  #isOver = false
  #isScheduled = false

  constructor(consumer: Consumer, metric: string, args: Readonly<Record<string, string | number>>, lastMs: number) {
    this.#consumer = consumer
    this.#metric = metric
    this.#args = args
    this.#lastMs = lastMs
  }

  get state(): ReadonlySignal<WatchedState> {
    return this.#state
  }

  /** Never rejects. */
  async begin(): Promise<void> {
    this.#stops.push(this.#consumer.on('connected', () => void this.#fill()))
    this.#stops.push(this.#consumer.on('disconnected', () => this.#cut()))
    try {
      await this.#fill()
      const followed = await this.#consumer.follow(this.#metric, this.#args, (sample) => this.#took(sample))
      if (this.#isOver) await followed.stop()
      else this.#followed = followed
    } catch (error) {
      this.#state.value = { ...this.#state.value, problem: error instanceof Error ? error.message : String(error) }
    }
  }

  end(): void {
    this.#isOver = true
    for (const stop of this.#stops) stop()
    this.#followed?.stop().catch(() => {})
  }

  /** Adds what the server has kept and is not here yet. */
  async #fill(): Promise<void> {
    const { interval_ms: _, ...labels } = this.#args
    for (let after = '0'; !this.#isOver; ) {
      const answer = await this.#consumer.query('producer.recent', {
        ...labels,
        metric: this.#metric,
        last_ms: this.#lastMs,
        after,
      })
      const records = (Array.isArray(answer.plain) ? answer.plain : []) as readonly PlainRecord[]
      for (const record of records) if (record['more'] !== true) this.#merge(record)
      const last = records.at(-1)
      if (last?.['more'] !== true || typeof last['after'] !== 'string') break
      after = last['after']
    }
    this.#changed()
  }

  #merge(record: PlainRecord): void {
    const { name, times, values, ...labels } = record
    const series = this.#of(labelText(String(name), labels, this.#metric))
    if (series === undefined) return
    const known = new Set(series.times)
    const added = (times as readonly number[])
      .map((time, index) => ({ time: Number(time) / 1e6, value: Number((values as readonly number[])[index]) }))
      .filter(({ time }) => !known.has(time))
    const all = [
      ...series.times.map((time, index) => ({ time, value: series.values[index] as number | null })),
      ...added,
    ]
    all.sort((a, b) => a.time - b.time)
    series.times.splice(0, Number.POSITIVE_INFINITY, ...all.map(({ time }) => time))
    series.values.splice(0, Number.POSITIVE_INFINITY, ...all.map(({ value }) => value))
  }

  #took(sample: Sample): void {
    const series = this.#of(labelText(sample.metric, sample.labels, this.#metric))
    if (series === undefined) return
    const { number, plain } = sample
    const value = number ?? (typeof plain === 'boolean' ? Number(plain) : undefined)
    if (value === undefined && plain !== null) series.text = String(plain)
    const time = sample.time / 1e6
    // The server measures at once when somebody looks, and again with the next interval.
    if (time <= (series.times.at(-1) ?? 0)) return
    series.times.push(time)
    series.values.push(value ?? null)
    if (series.times.length > MAX_SAMPLES) {
      series.times.shift()
      series.values.shift()
    }
    this.#schedule()
  }

  /** The connection is lost: no line is drawn over what may be missing. */
  #cut(): void {
    for (const { times, values } of this.#byLabel.values()) {
      const last = times.at(-1)
      if (last === undefined || values.at(-1) === null) continue
      times.push(last + 0.001)
      values.push(null)
    }
    this.#changed()
  }

  #of(label: string): WatchedSeries | undefined {
    const known = this.#byLabel.get(label)
    if (known !== undefined) return known
    if (this.#byLabel.size >= MAX_SERIES) {
      this.#ignored.add(label)
      return undefined
    }
    const series: WatchedSeries = { label, times: [], values: [], text: undefined }
    this.#byLabel.set(label, series)
    return series
  }

  /** Once per frame at most, however many values come. */
  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    requestAnimationFrame(() => {
      this.#isScheduled = false
      this.#changed()
    })
  }

  #changed(): void {
    if (this.#isOver) return
    const { version, problem } = this.#state.value
    this.#state.value = { series: [...this.#byLabel.values()], version: version + 1, more: this.#ignored.size, problem }
  }
}

function labelText(name: string, labels: Readonly<Record<string, unknown>>, metric: string): string {
  const texts = Object.values(labels).filter((label) => label !== '' && label !== undefined)
  return [...(name === metric ? [] : [name]), ...texts].join(' ')
}
