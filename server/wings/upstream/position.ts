/**
 * How far the channel of an upstream was taken. It is stored in the batch that has the values, so that a crash neither loses nor
 * repeats one; what is stored is committed at the upstream.
 */

import { HeldValues } from '../../kit/held-values.ts'
import type { StoredPeers, UpstreamRow } from '../../kit/peer.ts'
import type { BatchBuilder, HeldQueue, Journaled } from '../../kit/producers.ts'

export class Position implements Journaled {
  readonly #name: string
  readonly #journal: Pick<StoredPeers['journal'], 'touch'>
  /** Called with what was stored. */
  onStored: (reached: number) => void = () => {}
  #row: UpstreamRow | undefined
  #reached = 0
  #submitted = 0
  #durable = 0
  readonly #held: HeldValues
  /** Whether the next batch has it already. */
  #isTouched = false

  /** `name`: `tenant/name`. `row`: as it was stored. */
  constructor(name: string, row: UpstreamRow | undefined, journal: Pick<StoredPeers['journal'], 'touch'>) {
    this.#name = name
    this.#journal = journal
    this.#held = new HeldValues(journal)
    this.#row = row
    this.#reached = row?.reached ?? 0
    this.#durable = this.#reached
  }

  /** Undefined before the first channel was taken up. */
  get row(): Pick<UpstreamRow, 'generation' | 'channel'> | undefined {
    return this.#row
  }

  /** Everything up to this id was taken. */
  get reached(): number {
    return this.#reached
  }

  /** Everything up to this id is on the disk. */
  get stored(): number {
    return this.#durable
  }

  /** Another history of ids begins. */
  begin(generation: string, channel: number): void {
    this.#reached = 0
    this.#submitted = 0
    this.#durable = 0
    this.#row = { name: this.#name, generation, channel, reached: 0 }
    this.#journal.touch(this)
  }

  /** Another number for each batch: what is held back is so until that of its round is stored. */
  get round(): number {
    return this.#held.round
  }

  /** What is appended to a queue from now on is not sent before it is stored: after a crash it would come from the upstream again. */
  hold(queue: HeldQueue): void {
    this.#held.hold(queue)
  }

  /** To be called in the turn in which the values up to this id were appended. */
  reach(transaction: number): void {
    this.#reached = transaction
    if (this.#isTouched) return
    this.#isTouched = true
    this.#journal.touch(this)
  }

  submit(builder: BatchBuilder): void {
    this.#isTouched = false
    if (this.#row === undefined) return
    this.#submitted = this.#reached
    builder.changes.push({ put: 'upstream', row: { ...this.#row, reached: this.#reached } })
  }

  durable(): void {
    this.#durable = this.#submitted
    this.onStored(this.#durable)
  }
}
