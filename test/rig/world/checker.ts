/**
 * The judge of a run in which a server dies and comes back. Lost = stored (as `producer.channels` said) minus delivered or
 * reported dropped; unexpected = never sent, or the same value under two ids, or one id for two things (reused). The same value
 * under the same id may come as often as it likes, until its COMMIT is answered.
 */

import type { Totals } from '../rig.ts'
import { type Fault, History, type Policy } from './history.ts'

/** What was sent, and in which life of the server. */
export interface Feeds {
  /** The present life, counted from 0. */
  readonly life: number
  /** The last counter of a source that was sent; they begin at 1. */
  sent(source: number): number
  /** The lives in which counters from .. to - 1 were sent: each with its first one and the one after its last: none yet of the present life. */
  lives(source: number, from: number, to: number): { life: number; first: number; end: number }[]
}

export class Checker implements Feeds {
  readonly #seed: number
  readonly #histories = new Map<number, History>()
  readonly #done: History[] = []
  readonly #sent = new Map<number, number>()
  /** Per source, the last counter before each life. */
  readonly #before: Map<number, number>[] = [new Map()]
  readonly #faults: Record<Fault, number> = { lost: 0, unexpected: 0, duplicate: 0, reused: 0, order: 0, committed: 0 }
  readonly #examples: string[] = []
  /** What the error says of the moment. */
  step = ''

  constructor(seed: number) {
    this.#seed = seed
  }

  get life(): number {
    return this.#before.length - 1
  }

  sent(source: number): number {
    return this.#sent.get(source) ?? 0
  }

  /** Gives the next counter of a source, about to be sent. */
  next(source: number): number {
    const counter = this.sent(source) + 1
    this.#sent.set(source, counter)
    return counter
  }

  counters(): ReadonlyMap<number, number> {
    return new Map(this.#sent)
  }

  lives(source: number, from: number, to: number): { life: number; first: number; end: number }[] {
    const found: { life: number; first: number; end: number }[] = []
    for (let life = this.life; life >= 0; life--) {
      const first = (this.#before[life]!.get(source) ?? 0) + 1
      const end = life === this.life ? Number.POSITIVE_INFINITY : (this.#before[life + 1]!.get(source) ?? 0) + 1
      if (end <= from) break
      if (first < to) found.push({ life, first, end })
    }
    return found
  }

  channel(id: number, policy: Policy): History {
    const history = new History(id, policy, this, (fault, what, count = 1) => this.fault(fault, what, count))
    this.#histories.set(id, history)
    return history
  }

  fault(fault: Fault, what: string, count = 1): void {
    this.#faults[fault] += count
    if (this.#examples.length < 10) this.#examples.push(`${fault}: ${what} [${this.step}]`)
  }

  /** The server died. What is sent from now on belongs to its next life. */
  died(): void {
    for (const history of this.#histories.values()) history.died()
    this.#before.push(new Map(this.#sent))
  }

  /** A channel is about to be deleted, or was never surely there: what came of it is judged as far as it came. */
  close(history: History, sure = true): void {
    if (!this.#histories.delete(history.channel)) return
    if (sure) history.judge(false)
    this.#done.push(history)
  }

  /** The end: everything was waited for on fresh connections. */
  judge(): void {
    for (const history of [...this.#histories.values()]) {
      history.judge(true)
      this.#histories.delete(history.channel)
      this.#done.push(history)
    }
    this.verify()
  }

  /** Throws if anything was found so far. */
  verify(): void {
    if (this.#examples.length === 0) return
    throw new Error(`seed ${this.#seed}: ${JSON.stringify(this.#faults)}\n  ${this.#examples.join('\n  ')}`)
  }

  /** For each GAP of a restart, the life that began with it. */
  get restartGaps(): number[] {
    return this.#all.flatMap((history) => history.restartGaps)
  }

  get #all(): History[] {
    return [...this.#done, ...this.#histories.values()]
  }

  totals(): Totals {
    const all = this.#all
    const sum = (of: (history: History) => number): number => all.reduce((total, history) => total + of(history), 0)
    const { lost, unexpected, duplicate, reused, order, committed } = this.#faults
    return {
      channels: all.length,
      sent: [...this.#sent.values()].reduce((total, count) => total + count, 0),
      stored: sum((history) => history.storedIds),
      delivered: sum((history) => history.delivered),
      repeated: sum((history) => history.repeated),
      toldDropped: sum((history) => history.toldDrops),
      restartGaps: sum((history) => history.restartGaps.length),
      lost,
      unexpected: unexpected + duplicate,
      reused,
      outOfOrder: order,
      committedAgain: committed,
    }
  }
}
