/**
 * From a consumer to rows: follows the host and what is asked for, starts with the values that are there, and after a lost
 * connection finds out what has changed and what is gone.
 */

import type { ClientClock } from '../../client/clock.ts'
import { type Arguments, BasicType, StatusError, type Value, type ValueMessage } from '../../client/index.ts'
import { listMetrics } from '../catalogue.ts'
import { formatDuration } from '../output/quantity.ts'
import { recordsOf, textOf } from '../records.ts'
import { HOST_METRICS, Host } from './host.ts'
import { type Arrival, Rows } from './rows.ts'
import { Units } from './units.ts'

/** What is needed of a consumer. */
export interface Followable {
  follow(metric: string, args: Arguments, handler: (sample: Arrival) => unknown): Promise<unknown>
  query(metric: string, args?: Arguments): Promise<ValueMessage>
  on(event: 'connected' | 'disconnected' | 'gap', listener: () => void): () => void
  on(event: 'notice', listener: (notice: { readonly detail: string }) => void): () => void
  /** Until it is closed; rejects with what ended it. */
  run(): Promise<void>
}

export interface FeedOptions {
  /** Metrics and patterns. */
  readonly asked: readonly string[]
  /** For all of them. */
  readonly args: Arguments
  /** How often what is measured is measured. */
  readonly intervalMs: number
  /** Where it is connected to. */
  readonly url: string
  readonly clock: Pick<ClientClock, 'monotonicMs'>
  /** There is something new. */
  readonly changed: () => void
}

/** How long something that was said is shown. */
const SAID_MS = 8_000

export class Feed {
  readonly rows = new Rows()
  readonly host = new Host()
  readonly units: Units
  readonly #consumer: Followable
  readonly #options: FeedOptions
  #lostMs: number | undefined
  #said = { text: '', untilMs: 0 }

  constructor(consumer: Followable, options: FeedOptions) {
    this.#consumer = consumer
    this.#options = options
    this.units = new Units(() => this.#listUnits(), options.clock)
  }

  /** Settles when the consumer is closed; rejects with what ended it or was refused. */
  async run(): Promise<void> {
    const { clock } = this.#options
    const offs = [
      this.#consumer.on('disconnected', () => {
        this.#lostMs = clock.monotonicMs()
        this.#options.changed()
      }),
      this.#consumer.on('connected', () => {
        this.#lostMs = undefined
        this.#options.changed()
        void this.#seed()
      }),
      this.#consumer.on('gap', () => this.#say('more comes in than could be taken: some values were left out')),
      this.#consumer.on('notice', ({ detail }) => this.#say(detail)),
    ]
    try {
      await Promise.all([this.#consumer.run(), this.#follow()])
    } finally {
      for (const off of offs) off()
    }
  }

  /** What is wrong, or was said lately; empty if nothing. */
  message(): string {
    const nowMs = this.#options.clock.monotonicMs()
    if (this.#lostMs !== undefined) {
      return `no connection to ${this.#options.url} since ${formatDuration(nowMs - this.#lostMs)}, trying again`
    }
    return nowMs < this.#said.untilMs ? this.#said.text : ''
  }

  async #follow(): Promise<void> {
    const { asked, args, intervalMs, clock, changed } = this.#options
    const interval = { interval_ms: intervalMs }
    const ofHost = HOST_METRICS.map((metric) =>
      this.#consumer
        .follow(metric, interval, (sample) => {
          this.host.take(sample)
          changed()
        })
        .catch(unlessRefused),
    )
    const ofTable = asked.map((metric) =>
      this.#consumer.follow(metric, { ...interval, ...args }, (sample) => {
        this.rows.take(sample, clock.monotonicMs())
        changed()
      }),
    )
    await Promise.all([...ofHost, ...ofTable])
    await this.#seed()
    await this.units.refresh()
  }

  /** Where that fails, values appear as they come. */
  async #seed(): Promise<void> {
    const { asked, args, clock, changed } = this.#options
    for (const name of asked) {
      const askedMs = clock.monotonicMs()
      const answer = await this.#consumer.query(name, args).catch(() => undefined)
      if (!answer) continue
      const { time, value } = answer
      const list = recordsOf(value)
      const values = list?.records.map((record): Value => ({ type: BasicType.REC, value: record })) ?? [value]
      const arrivals = values.map((one) => ({ name, time, value: one }))
      this.rows.seed(arrivals, name, list?.isCut ? undefined : askedMs, clock.monotonicMs())
      changed()
    }
  }

  async #listUnits(): Promise<ReadonlyMap<string, string>> {
    const lists = await Promise.all(this.#options.asked.map((pattern) => listMetrics(this.#consumer, pattern)))
    const shown = new Set(Array.from(this.rows.values(), ({ metric }) => metric))
    const units = new Map<string, string>()
    for (const record of lists.flat()) {
      const name = textOf(record, 'name')
      if (shown.has(name)) units.set(name, textOf(record, 'unit'))
    }
    this.#options.changed()
    return units
  }

  #say(text: string): void {
    this.#said = { text, untilMs: this.#options.clock.monotonicMs() + SAID_MS }
    this.#options.changed()
  }
}

/** What this identity may not see is not shown. */
function unlessRefused(error: unknown): undefined {
  if (!(error instanceof StatusError)) throw error
}
