/** Looks at `producer.channels` all the time: what is stored, whether the ledgers balance, whether everything is still there. */
import { command } from '../../support/bytes.ts'
import { balance, decoded, type Json } from '../../support/records.ts'
import type { Checker } from './checker.ts'
import type { Consumer } from './consumer.ts'
import type { Link, Message } from './link.ts'

const PAUSE_MS = 15

export class Watcher {
  readonly #checker: Checker
  readonly #answers = new Map<number, (value: Json) => void>()
  readonly #early = new Map<number, Json>()
  #link: Link | undefined
  /** Datagrams that were sent, and those that the server had taken, at the first look on this connection. */
  #before: { readonly sent: number; readonly taken: number } | undefined
  /** Counters that the server has taken, by its own count: a datagram that the kernel's table lacks may wait in the server. */
  #taken: ReadonlyMap<number, number> = new Map()
  /** Whether everything that was sent before the last look was taken. */
  hasTakenAll = false
  looks = 0

  constructor(checker: Checker) {
    this.#checker = checker
  }

  attach(link: Link): void {
    this.#link = link
    this.#before = undefined
    this.#taken = new Map()
    this.hasTakenAll = false
    link.onMessage = (message) => this.#receive(message)
  }

  /** Ends its connection. */
  detach(): void {
    this.#link?.close()
  }

  /** The records by channel; undefined if the server is gone. Judges those of `consumers`. */
  async look(consumers: Iterable<Consumer>): Promise<Map<number, Json> | undefined> {
    if (!(await this.#lookAtFeed())) return undefined
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
      if (Number(record.unstored) === 0 && consumer.history.policy !== 'overflow') consumer.history.solid(this.#taken)
      for (const metric of bindings.get(consumer) ?? []) {
        if (record.bindings.some((binding: Json) => binding.metric === metric)) continue
        this.#checker.fault('lost', `the binding ${metric} of channel ${consumer.channel}`)
      }
    }
    return byChannel
  }

  /** Asks how much of what was sent was taken; false if the server is gone. */
  async #lookAtFeed(): Promise<boolean> {
    const counters = this.#checker.counters()
    const sent = sum(counters)
    const sensors: Json[] | undefined = await this.query('producer.sensors')
    if (sensors === undefined) return false
    const taken: number = sensors.find(({ name }) => name === 'gmetric').counters.packets
    this.#before ??= { sent, taken }
    this.hasTakenAll = taken - this.#before.taken >= sent - this.#before.sent
    if (this.hasTakenAll) this.#taken = counters
    return true
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

function sum(counters: ReadonlyMap<number, number>): number {
  return [...counters.values()].reduce((total, count) => total + count, 0)
}
