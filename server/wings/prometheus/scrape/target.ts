/**
 * One target: when it is scraped, and what becomes of it. It is scraped at its interval while an instance may select its
 * series, and once when somebody asks. What it will say is unknown before, so one placeholder stands for all its series.
 */
import { TextMemory, TextParser } from '../../../../protocol/prometheus/text.ts'
import type { TextMetadata } from '../../../../protocol/prometheus/text-line.ts'
import type { Kit } from '../../../kit/kit.ts'
import type { LabelledSensor } from '../../../kit/labelled-sensor.ts'
import {
  fromForeign,
  type Labels,
  labelsFrom,
  type SensorStatus,
  type Series,
  type StatusEntry,
  type Subscription,
} from '../../../kit/metrics.ts'
import type { Poll } from '../../../kit/poll.ts'
import type { Clock, Timer } from '../../../kit/running.ts'
import { PROMETHEUS_FAMILY } from '../metric-types.ts'
import type { Fetched } from './fetcher.ts'
import type { TargetSpec } from './job.ts'
import { untouchedBy } from './relabel.ts'
import { type Known, Scrape, ScrapedSeries } from './scraped-series.ts'

/** Asked by many, a target that nobody has bound is scraped no more often than this. */
const REFRESHED_MS = 1_000
/** Whoever COLLECTs binds soon after that, and is to have the first values too. */
const FIRST_MS = 100
/** How long somebody who asks waits for a scrape. */
const MAX_REFRESH_MS = 5_000
const SECOND_MS = 1_000
/** Names of metrics; those in quotes, which may have any characters, are found by whoever asks for `prometheus.` by name. */
export const PLAIN_NAMES = /^[A-Za-z0-9_:]*$/
const LIMITS = { lineBytes: 65_536, families: 20_000 }

/** What a scrape says of its families. */
type Families = ReadonlyMap<string, TextMetadata>

export interface TargetOptions extends Pick<Kit, 'poll' | 'clock' | 'log' | 'peer'> {
  readonly spec: TargetSpec
  /** What it is called; no other one is called so. */
  readonly name: string
  readonly sensor: LabelledSensor
  readonly fetcher: { fetch(signal: AbortSignal): Promise<Fetched>; close(): void }
  /** 0..1; spreads targets over their interval. */
  readonly random?: () => number
}

export class ScrapeTarget implements StatusEntry {
  readonly owner: { readonly tenant: string }
  /** Stands for all its series. */
  readonly placeholder: Series
  readonly #options: TargetOptions
  readonly #clock: Clock
  readonly #poll: Poll
  readonly #series: ScrapedSeries
  readonly #samples: Scrape
  /** The lines of the last scrape. */
  readonly #memory = new TextMemory<Known>()
  /** Where it is, without what may be a secret. */
  readonly #shownUrl: string
  #isStarted = false
  #isWanted = false
  #timer: Timer | undefined
  /** When the next scrape is due while it is wanted, monotonic milliseconds. */
  #nextMs = 0
  #startedMs = Number.NEGATIVE_INFINITY
  #running: Promise<void> | undefined
  #abort: AbortController | undefined
  /** Undefined before the first scrape. */
  #isUp: boolean | undefined
  #problem = ''
  /** Why the last scrape was put off. */
  #waits = ''
  readonly #counters = {
    scrapes: 0,
    failures: 0,
    postponed: 0,
    samples: 0,
    duplicates: 0,
    repeated: 0,
    dropped: 0,
    refused: 0,
  }

  constructor(options: TargetOptions) {
    const { spec, sensor, clock, poll } = options
    this.#options = options
    this.#clock = clock
    this.#poll = poll
    this.owner = { tenant: spec.tenant }
    this.#series = new ScrapedSeries({ ...spec, sensor, clock })
    this.#samples = new Scrape(this.#series, spec)
    const { origin, pathname } = new URL(spec.url)
    this.#shownUrl = origin + pathname
    // A target may have labels of its own in their place, if it may; and rules may change them.
    const known = spec.honorsLabels ? {} : untouchedBy(spec.metricRelabel, spec.labels)
    const labels = labelsFrom(Object.entries(known).map(([name, text]) => [fromForeign(name), text]))
    this.placeholder = new Placeholder(labels, (isWanted) => this.#want(isWanted))
  }

  /** Where it is, with what. */
  get spec(): TargetSpec {
    return this.#options.spec
  }

  get name(): string {
    return this.#options.name
  }

  /** Takes its values. */
  get sensor(): LabelledSensor {
    return this.#options.sensor
  }

  /** Nothing is scraped before: values would find no channels. */
  start(): void {
    this.#isStarted = true
    this.#want(this.#isWanted)
  }

  /** Scrapes it for somebody who asks, unless its values are new. Never rejects; undefined if there is nothing to wait for. */
  refresh(): Promise<unknown> | undefined {
    if (!this.#isStarted) return undefined
    const isReceived = this.#isWanted && this.#isUp !== undefined
    const isNew = this.#clock.monotonicMs() - this.#startedMs < REFRESHED_MS
    const scraping = this.#running ?? (isReceived || isNew || this.#postponedMs() > 0 ? undefined : this.#begin())
    return scraping && this.#within(scraping)
  }

  status(): SensorStatus {
    const isAwaited = this.#running !== undefined
    const isOff = !isAwaited && (this.#isUp === undefined || !this.#isWanted)
    return {
      name: `scrape/${this.name}`,
      state: this.#isUp === false ? 'failed' : isOff ? 'off' : 'measuring',
      detail: [this.#shownUrl, this.#problem, this.#waits].filter((part) => part !== '').join('; '),
      counters: { ...this.#counters, series: this.#series.size, awaited: isAwaited ? 1 : 0 },
    }
  }

  /** Ends it with its series. */
  async close(): Promise<void> {
    await this.stop()
    await this.#poll.work(this.owner, this.#series.close())
  }

  /** Ends what it does; its series stay, because the server ends. */
  async stop(): Promise<void> {
    this.#isStarted = false
    this.#clock.clear(this.#timer)
    this.#timer = undefined
    this.#abort?.abort(new Error('the server ends'))
    await this.#running
    this.#options.fetcher.close()
  }

  #want(isWanted: boolean): void {
    this.#isWanted = isWanted
    this.#clock.clear(this.#timer)
    this.#timer = undefined
    if (!isWanted || !this.#isStarted) return
    const now = this.#clock.monotonicMs()
    this.#schedule(Math.max(now + FIRST_MS, this.#startedMs + REFRESHED_MS))
    // From the first on, targets that became wanted together go their own ways.
    const { random = Math.random } = this.#options
    this.#nextMs += this.spec.intervalMs * (1 - random() / 2)
  }

  #schedule(atMs: number): void {
    this.#nextMs = atMs
    this.#timer = this.#clock.setTimeout(() => this.#due(), atMs - this.#clock.monotonicMs())
  }

  #due(): void {
    this.#timer = undefined
    const { intervalMs } = this.spec
    const postponedMs = this.#postponedMs()
    if (postponedMs > 0) {
      this.#counters.postponed++
      this.#timer = this.#clock.setTimeout(() => this.#due(), Math.min(postponedMs, intervalMs))
      return
    }
    void this.#begin()
    const now = this.#clock.monotonicMs()
    const behind = Math.max(0, Math.ceil((now + 1 - this.#nextMs) / intervalMs))
    this.#schedule(this.#nextMs + behind * intervalMs)
  }

  /** Milliseconds until values may come again; 0 if they may now. */
  #postponedMs(): number {
    const refusal = this.#poll.refusal(this.sensor)
    this.#waits = refusal === undefined ? '' : `waits: ${refusal.detail}`
    return refusal?.waitMs ?? 0
  }

  /** Scrapes now, unless it does so already. Never rejects. */
  #begin(): Promise<void> {
    this.#running ??= this.#scrape().finally(() => {
      this.#running = undefined
    })
    return this.#running
  }

  async #scrape(): Promise<void> {
    try {
      await this.#scrapeOnce()
    } catch (error) {
      this.#poll.failed(this.sensor, error)
    }
  }

  async #scrapeOnce(): Promise<void> {
    const startedMs = this.#clock.monotonicMs()
    const time = this.#clock.microseconds()
    this.#startedMs = startedMs
    this.#counters.scrapes++
    const read = await this.#read()
    if (!this.#isStarted || this.#poll.refusal(this.sensor)?.reason === 'fenced') return
    const scrape_duration_seconds = (this.#clock.monotonicMs() - startedMs) / SECOND_MS
    if ('problem' in read) {
      this.#counters.failures++
      this.#memory.forget()
      this.#samples.clear()
      this.#samples.trim()
      await this.#poll.work(this.owner, this.#series.fail())
      this.#series.takeOwn({ up: 0, scrape_duration_seconds, scrape_samples_scraped: 0 }, time)
      this.#turned(false, read.problem)
      return
    }
    const { size } = this.#samples
    const taken = await this.#poll.work(this.owner, this.#series.take(this.#samples, read, time))
    this.#samples.trim()
    for (const name of ['samples', 'duplicates', 'repeated', 'dropped', 'refused'] as const)
      this.#counters[name] += taken[name]
    this.#series.takeOwn({ up: 1, scrape_duration_seconds, scrape_samples_scraped: size }, time)
    this.#turned(true, '')
  }

  /** All of a scrape, or why there is none. */
  async #read(): Promise<Families | { readonly problem: string }> {
    const { fetcher } = this.#options
    const { timeoutMs } = this.spec
    const abort = new AbortController()
    this.#abort = abort
    const late = new Error(`no answer within ${timeoutMs / SECOND_MS} s`)
    const timer = this.#clock.setTimeout(() => abort.abort(late), timeoutMs)
    try {
      const fetched = await fetcher.fetch(abort.signal)
      if (fetched.isWhole) this.#clock.clear(timer)
      return await this.#body(fetched, abort.signal)
    } catch (error) {
      const { aborted, reason } = abort.signal
      // Ends a body that was not read to its end.
      abort.abort()
      return { problem: messageOf(aborted ? reason : (error as Error)) }
    } finally {
      this.#clock.clear(timer)
      this.#abort = undefined
    }
  }

  async #body({ format, body }: Fetched, signal: AbortSignal): Promise<Families> {
    this.#samples.clear()
    const parser = new TextParser(format, LIMITS, this.#samples, this.#memory)
    for await (const chunk of body) {
      signal.throwIfAborted()
      await this.#poll.work(this.owner, parser.push(chunk))
    }
    signal.throwIfAborted()
    await this.#poll.work(this.owner, parser.end())
    return parser.families
  }

  /** Reports a target that is down, and one that is up again. */
  #turned(isUp: boolean, problem: string): void {
    const { log, peer, name } = this.#options
    const wasUp = this.#isUp
    this.#isUp = isUp
    this.#problem = problem
    if (isUp === wasUp || (isUp && wasUp === undefined)) return
    const detail = isUp ? `target ${name} is up again` : `target ${name} is down: ${problem}`
    log[isUp ? 'info' : 'warn']({ target: name, url: this.#shownUrl, problem }, isUp ? 'target up' : 'target down')
    peer.notice({ severity: isUp ? 'info' : 'warning', subject: 'scrape', detail }, this.owner)
  }

  #within(scraping: Promise<unknown>): Promise<void> {
    return new Promise((resolve) => {
      const timer = this.#clock.setTimeout(resolve, MAX_REFRESH_MS)
      void scraping.then(() => {
        this.#clock.clear(timer)
        resolve()
      })
    })
  }
}

/** Has no values, but can be wanted. */
class Placeholder implements Series {
  readonly name = PROMETHEUS_FAMILY
  readonly anyName = PLAIN_NAMES
  readonly subscriptions: Subscription[] = []
  readonly labels: Labels
  readonly wanted: (isWanted: boolean) => void

  constructor(labels: Labels, wanted: (isWanted: boolean) => void) {
    this.labels = labels
    this.wanted = wanted
  }

  matches(): boolean {
    return false
  }
}

/** A name with several addresses (localhost) fails with one error for each of them and no message of its own. */
function messageOf(error: Error): string {
  const all: readonly Error[] = error instanceof AggregateError ? error.errors : [error]
  return all
    .map(({ message }) => message)
    .join(', ')
    .replaceAll(/\p{Cc}+/gu, ' ')
    .toWellFormed()
}
