/**
 * Values that are not sent before they are stored: those that come again if the process ends before. Whoever had such a value already
 * could not tell, since it would have another transaction id the next time.
 */
import type { Journal, Journaled } from '../kernel/channels/journal.ts'
import type { HeldQueue, Series } from '../kernel/metrics/metric.ts'

interface Barrier {
  release(): void
}

export class HeldValues implements Journaled {
  readonly #journal: Pick<Journal, 'touch'>
  /** What holds back the values that no batch has yet, by the queue, and those of the batch on its way. */
  readonly #held = new Map<HeldQueue, Barrier>()
  readonly #submitted: Barrier[] = []
  #round = 1

  constructor(journal: Pick<Journal, 'touch'>) {
    this.#journal = journal
  }

  /** Another number for each batch: what is held back is so until that of its round is stored. */
  get round(): number {
    return this.#round
  }

  /** To be called in the turn in which values are appended to the queue, before they are. */
  hold(queue: HeldQueue): void {
    if (this.#held.has(queue)) return
    if (this.#held.size === 0) this.#journal.touch(this)
    this.#held.set(queue, queue.holdBack())
  }

  /** The same for the durable channels of those who get the values of a series. */
  holdSeries({ subscriptions }: Pick<Series, 'subscriptions'>): void {
    for (const { sink } of subscriptions) if (sink.isDurable === true && sink.queue !== undefined) this.hold(sink.queue)
  }

  submit(): void {
    this.#round++
    this.#submitted.push(...this.#held.values())
    this.#held.clear()
  }

  durable(): void {
    for (const barrier of this.#submitted.splice(0)) barrier.release()
  }
}
