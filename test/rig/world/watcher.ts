/** Looks at `producer.channels` all the time: what is stored, whether the ledgers balance, whether everything is still there. */
import { command } from '../../support/bytes.ts'
import { balance, decoded, type Json } from '../../support/records.ts'
import type { Checker } from './checker.ts'
import type { Consumer } from './consumer.ts'
import type { Feed } from './feed.ts'
import type { Link, Message } from './link.ts'

const PAUSE_MS = 15

export class Watcher {
  readonly #checker: Checker
  readonly #feed: Feed
  readonly #answers = new Map<number, (value: Json) => void>()
  readonly #early = new Map<number, Json>()
  #link: Link | undefined
  /** What had surely been read by the server at the last look. */
  #read: ReadonlyMap<number, number> = new Map()
  looks = 0

  constructor(checker: Checker, feed: Feed) {
    this.#checker = checker
    this.#feed = feed
  }

  attach(link: Link): void {
    this.#link = link
    this.#read = new Map()
    link.onMessage = (message) => this.#receive(message)
  }

  /** Ends its connection. */
  detach(): void {
    this.#link?.close()
  }

  /** The records by channel; undefined if the server is gone. Judges those of `consumers`. */
  async look(consumers: Iterable<Consumer>): Promise<Map<number, Json> | undefined> {
    // A datagram may still be on its way where the table says that nothing waits: only what was sent before the last look counts.
    const read = this.#read
    if (this.#feed.idle) this.#read = this.#checker.counters()
    // As they are now: what is answered while the records are on their way need not be in them.
    const watched = [...consumers]
    const bindings = new Map(watched.map((consumer) => [consumer, consumer.sure ? [...consumer.bound.keys()] : []]))
    const records: Json[] | undefined = await this.query('producer.channels')
    if (records === undefined) return undefined
    this.looks++
    const byChannel = new Map<number, Json>(records.map((record) => [record.channel, record]))
    for (const record of records) {
      if (record.durable && balance(record) !== 0) this.#checker.fault('lost', `the ledger ${JSON.stringify(record)}`)
    }
    for (const consumer of watched) {
      const record = byChannel.get(consumer.channel)
      if (record === undefined) {
        if (!consumer.gone) this.#checker.fault('lost', `channel ${consumer.channel} itself`)
        continue
      }
      consumer.history.stored(Number(record.stored))
      // What was dropped is not unstored, though its GAP may not be on the disk: a restart's GAP stands for it [MON 8].
      if (Number(record.unstored) === 0 && consumer.history.policy !== 'overflow') consumer.history.solid(read)
      for (const metric of bindings.get(consumer) ?? []) {
        if (record.bindings.some((binding: Json) => binding.metric === metric)) continue
        this.#checker.fault('lost', `the binding ${metric} of channel ${consumer.channel}`)
      }
    }
    return byChannel
  }

  /** Looks until the server is gone, or the answer is no; `pauseMs`: between two looks. */
  async run(consumers: () => Iterable<Consumer>, pauseMs = PAUSE_MS): Promise<void> {
    while ((await this.look(consumers())) !== undefined) await new Promise((resolve) => setTimeout(resolve, pauseMs))
  }

  /** The value of a metric; undefined if the server is gone. */
  async query(metric: string): Promise<Json | undefined> {
    const link = this.#link
    const id = await link?.ok((seq) => command.query(seq, metric))
    if (link === undefined || id === undefined) return undefined
    const early = this.#early.get(id)
    this.#early.delete(id)
    if (early !== undefined) return early
    const answer = new Promise<Json>((resolve) => this.#answers.set(id, resolve))
    return Promise.race([answer, link.ended.then(() => undefined)])
  }

  #receive(message: Message): void {
    if (message.kind !== 'value') return
    const value = decoded(message)
    const waiting = this.#answers.get(message.metric)
    this.#answers.delete(message.metric)
    if (waiting !== undefined) waiting(value)
    else this.#early.set(message.metric, value)
  }
}
