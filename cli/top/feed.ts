/**
 * Turns the values of a consumer into rows: subscribes to the host and the given metrics, starts with their current values, and
 * finds out after a lost connection which values have changed or vanished.
 */
import type { ClientClock } from '../../client/clock.ts'
import { type Arguments, BasicType, type Sample, StatusError, type Value } from '../../client/index.ts'
import { formatDuration } from '../format.ts'
import { fieldText, listMetrics, toRecords } from '../records.ts'
import { HOST_METRICS, TopHost } from './host.ts'
import { type ReceivedValue, TopRows } from './rows.ts'

/** The part of a consumer that is used here. */
interface TopConsumer {
  follow(metric: string, args: Arguments, handler: (sample: ReceivedValue) => unknown): Promise<unknown>
  query(metric: string, args?: Arguments): Promise<Pick<Sample, 'time' | 'value'>>
  on(event: 'connected' | 'disconnected' | 'gap', listener: () => void): () => void
  on(event: 'notice', listener: (notice: { readonly detail: string }) => void): () => void
  /** Resolves when the consumer is closed; rejects with the error that ended it. */
  run(): Promise<void>
}

interface TopFeedOptions {
  readonly patterns: readonly string[]
  /** Arguments for all patterns. */
  readonly args: Arguments
  /** The interval between two measurements. */
  readonly intervalMs: number
  readonly url: string
  readonly clock: Pick<ClientClock, 'monotonicMs'>
  /** Milliseconds since 1970. */
  readonly wallMs: () => number
  /** Called when there is something new to show. */
  readonly changed: () => void
}

/** How long a message is shown. */
const MESSAGE_MS = 8_000
/** How often the catalogue is listed for a metric that is not in it, and for one that has no unit. */
const UNKNOWN_MS = 1_000
const UNITLESS_MS = 60_000

export class TopFeed {
  readonly rows = new TopRows()
  readonly host = new TopHost()
  readonly units: Units
  readonly #consumer: TopConsumer
  readonly #options: TopFeedOptions
  #disconnectedMs: number | undefined
  #message = { text: '', untilMs: 0 }

  constructor(consumer: TopConsumer, options: TopFeedOptions) {
    this.#consumer = consumer
    this.#options = options
    this.units = new Units(() => this.#listUnits(), options.clock)
  }

  /** Resolves when the consumer is closed; rejects with the error that ended it, or with a refusal. */
  async run(): Promise<void> {
    const { clock } = this.#options
    const offs = [
      this.#consumer.on('disconnected', () => {
        this.#disconnectedMs = clock.monotonicMs()
        this.#options.changed()
      }),
      this.#consumer.on('connected', () => {
        this.#disconnectedMs = undefined
        this.#options.changed()
        void this.#seed()
      }),
      this.#consumer.on('gap', () => this.#showMessage('values arrive faster than they can be read: some were lost')),
      this.#consumer.on('notice', ({ detail }) => this.#showMessage(detail)),
    ]
    try {
      await Promise.all([this.#consumer.run(), this.#follow()])
    } finally {
      for (const off of offs) off()
    }
  }

  /** A problem or a recent message; empty if there is none. */
  message(): string {
    const nowMs = this.#options.clock.monotonicMs()
    if (this.#disconnectedMs !== undefined) {
      return `no connection to ${this.#options.url} for ${formatDuration(nowMs - this.#disconnectedMs)}, reconnecting`
    }
    return nowMs < this.#message.untilMs ? this.#message.text : ''
  }

  async #follow(): Promise<void> {
    const { patterns, args, intervalMs, clock, changed } = this.#options
    const interval = { interval_ms: intervalMs }
    const { producer } = args
    // The host is that of the one producer that is asked for; where there may be several, it is that of the server.
    const place = typeof producer === 'string' && !producer.includes('*') ? { producer } : {}
    const ofHost = HOST_METRICS.map((metric) =>
      this.#consumer
        .follow(metric, { ...interval, ...place }, (sample) => {
          this.host.take(sample)
          changed()
        })
        .catch(unlessRefused),
    )
    const ofTable = patterns.map((metric) =>
      this.#consumer.follow(metric, { ...interval, ...args }, (sample) => {
        this.rows.take(sample, clock.monotonicMs())
        changed()
      }),
    )
    await Promise.all([...ofHost, ...ofTable])
    await this.#seed()
    await this.units.refresh()
  }

  /** Queries the current values. If that fails, values appear as they arrive. */
  async #seed(): Promise<void> {
    const { patterns, args, clock, wallMs, changed } = this.#options
    for (const name of patterns) {
      const queriedMs = clock.monotonicMs()
      const answer = await this.#consumer.query(name, args).catch(() => undefined)
      if (!answer) continue
      const { time, value } = answer
      const list = toRecords(value)
      const values = list?.records.map((record): Value => ({ type: BasicType.REC, value: record })) ?? [value]
      const arrivals = values.map((one) => ({ name, time, value: one }))
      const at = { nowMs: clock.monotonicMs(), wallMs: wallMs() }
      this.rows.seed(arrivals, name, list?.isCut ? undefined : queriedMs, at)
      changed()
    }
  }

  async #listUnits(): Promise<ReadonlyMap<string, string>> {
    const lists = await Promise.all(this.#options.patterns.map((pattern) => listMetrics(this.#consumer, pattern)))
    const shown = new Set(Array.from(this.rows.values(), ({ metric }) => metric))
    const units = new Map<string, string>()
    for (const record of lists.flat()) {
      const name = fieldText(record, 'name')
      if (shown.has(name)) units.set(name, fieldText(record, 'unit'))
    }
    this.#options.changed()
    return units
  }

  #showMessage(text: string): void {
    this.#message = { text, untilMs: this.#options.clock.monotonicMs() + MESSAGE_MS }
    this.#options.changed()
  }
}

/** Metrics that the user may not read are not shown. */
function unlessRefused(error: unknown): undefined {
  if (!(error instanceof StatusError)) throw error
}

/** The units of metrics in the catalogue. They are listed again, at most at intervals, while a shown metric has none. */
class Units {
  readonly #list: () => Promise<ReadonlyMap<string, string>>
  readonly #clock: Pick<ClientClock, 'monotonicMs'>
  #units: ReadonlyMap<string, string> = new Map()
  #listedMs = Number.NEGATIVE_INFINITY
  #isListing = false

  /** `list` resolves with the units of the shown metrics by name; a unit may be empty. */
  constructor(list: () => Promise<ReadonlyMap<string, string>>, clock: Pick<ClientClock, 'monotonicMs'>) {
    this.#list = list
    this.#clock = clock
  }

  /** Empty while it is unknown; then the catalogue is listed again. */
  of(metric: string): string {
    const unit = this.#units.get(metric)
    const waited = this.#clock.monotonicMs() - this.#listedMs
    if (!unit && waited >= (unit === undefined ? UNKNOWN_MS : UNITLESS_MS)) void this.refresh()
    return unit ?? ''
  }

  /** Never rejects. */
  async refresh(): Promise<void> {
    if (this.#isListing) return
    this.#isListing = true
    try {
      this.#units = await this.#list()
    } catch {
      // Users who may not read the catalogue see no units.
    } finally {
      this.#listedMs = this.#clock.monotonicMs()
      this.#isListing = false
    }
  }
}
