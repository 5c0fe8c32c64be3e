/**
 * The queue of a channel: what is accepted, waits, is in flight, is committed or lost. It decides; the store keeps.
 * This is its door; what it consists of is `queue-state.ts`, and each verb has its file beside it.
 */
import { append, appendFrames, appendResult, release } from './appending.ts'
import type { BatchBuilder } from './batch.ts'
import type { Block } from './block.ts'
import type { Lane } from './lane.ts'
import type { DropCause } from './ledger.ts'
import { addDamage, expire } from './limits.ts'
import {
  type QueueHost,
  type QueueListener,
  type QueueSettings,
  QueueState,
  type SendBarrier,
  type SharedLimit,
} from './queue-state.ts'
import { recovered, restoreBlock, restoreGap, restoreNumbers, restoreSeries } from './restoring.ts'
import { discardAll, dropLane, framesOf, purge, type ReadBlock, stop } from './selecting.ts'
import { ahead, attach, detach, loaded, type Next, next } from './sending.ts'
import { commit } from './settling.ts'
import { rest, stored, storedThrough, take } from './storing.ts'

export interface QueueStatus {
  readonly accepted: number
  readonly committed: number
  readonly inFlight: number
  readonly queued: number
  readonly queuedBytes: number
  /** The highest id up to which everything in the sending order is stored or committed, and no loss is untold on disk. */
  readonly stored: number
  /** Accepted values that are neither. */
  readonly unstored: number
  readonly gaps: number
  /** Time of the oldest value not settled, microseconds; 0 if there is none. */
  readonly oldest: number
  readonly dropped: Readonly<Record<DropCause, number>>
}

export class Queue {
  readonly #state: QueueState

  /** `share`: what it fills together with others; without one it stands alone. */
  constructor(
    channel: number,
    origin: number,
    settings: QueueSettings,
    host: QueueHost,
    listener: QueueListener,
    share: SharedLimit = { bytes: 0, limit: Number.POSITIVE_INFINITY },
  ) {
    this.#state = new QueueState(channel, origin, settings, host, listener, share)
  }

  get settings(): QueueSettings {
    return this.#state.settings
  }

  /** `durable` may change only while the queue is empty. */
  set settings(settings: QueueSettings) {
    const state = this.#state
    const turned = settings.durable !== state.settings.durable
    // Once more while it is durable: what was removed goes on disk. Or for the first time since it is.
    if (turned) state.changed()
    state.settings = settings
    if (turned) {
      // What a channel that left the store had to store was forgotten.
      state.numbersChanged = false
      state.changed()
    }
    state.listener.ready()
  }

  /** Takes a value into the sending order, or into the buffer lane of `waiting` (a metric id). See `append`. */
  append(waiting: number, head: Uint8Array, tail: Uint8Array, time: number): void {
    append(this.#state, waiting === 0 ? this.#state.sending : this.#state.openLane(waiting), head, tail, time)
  }

  /** The result of an EXECUTE, which no limit touches. Gives its transaction id, 0 on a channel that is not durable. */
  appendResult(head: Uint8Array, tail: Uint8Array, time: number): number {
    const transaction = appendResult(this.#state, head, tail, time)
    return this.#state.settings.durable ? transaction : 0
  }

  /** A result that came back from the store. */
  restoreResult(transaction: number): boolean {
    const entry = this.#state.sending.at(this.#state.sending.find(transaction))
    if (entry?.kind !== 'block') return false
    entry.exempt = true
    return true
  }

  /** GET and SUBSCRIBE: what waits for a metric enters the sending order, in order. */
  release(metric: number): void {
    release(this.#state, metric)
  }

  commit(transaction: number, through: boolean): boolean {
    return commit(this.#state, transaction, through)
  }

  /** Nothing that enters the sending order from now on is sent before the hold is let go. */
  holdBack(): SendBarrier {
    const hold = { from: this.#state.next }
    this.#state.holds.add(hold)
    return hold
  }

  letGo(hold: SendBarrier): void {
    this.#state.holds.delete(hold)
    this.#state.listener.ready()
  }

  stop(metric: number, read: ReadBlock): Promise<void> | undefined {
    return stop(this.#state, metric, read)
  }

  /** The stops in force, to be stored: metric id and last transaction id. */
  get stops(): ReadonlyMap<number, number> {
    return this.#state.stops
  }

  restoreStop(metric: number, through: number): void {
    this.#state.stops.set(metric, through)
  }

  /** Forgets stops that everything is behind of; gives their metric ids. */
  endPassedStops(): number[] {
    const state = this.#state
    const head = state.sending.head
    const floor = head === undefined ? state.next : head.first
    const ended = [...state.stops].filter(([, through]) => through < floor).map(([metric]) => metric)
    for (const metric of ended) state.stops.delete(metric)
    return ended
  }

  dropLane(metric: number): void {
    dropLane(this.#state, metric)
  }

  purge(only: { readonly metric?: number; readonly through?: number }, read: ReadBlock): Promise<number> {
    return purge(this.#state, only, read)
  }

  framesOf(metric: number, read: ReadBlock): Promise<Uint8Array[]> {
    return framesOf(this.#state, metric, read)
  }

  appendFrames(frames: Uint8Array, pattern: boolean): void {
    appendFrames(this.#state, frames, pattern)
  }

  attach(): void {
    attach(this.#state)
  }

  detach(): void {
    detach(this.#state)
  }

  next(maxBytes: number, mayExceed = true): Next {
    return next(this.#state, maxBytes, mayExceed)
  }

  /** The blocks to be read back when `next` says `load`: the one at the cursor and some behind it. */
  readAhead(): Block[] {
    return ahead(this.#state)
  }

  /** The bytes of a block that was asked for; undefined: they are damaged, which is told by a GAP. */
  loaded(block: Block, bytes: Uint8Array | undefined): void {
    if (bytes === undefined) addDamage(this.#state, block)
    else loaded(this.#state, block, bytes)
  }

  expire(): void {
    expire(this.#state)
    rest(this.#state)
  }

  submit(builder: BatchBuilder): void {
    take(this.#state, builder)
  }

  durable(): void {
    stored(this.#state)
  }

  restoreNumbers(numbers: Float64Array, row: number): { floor: number; clean: boolean } {
    return restoreNumbers(this.#state, numbers, row)
  }

  restoreBlock(rows: Float64Array, row: number, floor: number, bitmap: Uint8Array | undefined): Block {
    return restoreBlock(this.#state, rows, row, floor, bitmap)
  }

  restoreGap(rows: Float64Array, row: number): void {
    restoreGap(this.#state, rows, row)
  }

  /** Has its numbers, and with them the channel, written with the next batch. */
  markChanged(): void {
    this.#state.changed()
  }

  /** Numbers, blocks and GAPs are restored. `clean`: what `restoreNumbers` said. */
  recovered(clean: boolean): void {
    recovered(this.#state, clean)
  }

  /** keep-latest: learns of restored values which series they are of. Before anything is sent. */
  restoreSeries(read: ReadBlock, isPattern: (metric: number) => boolean): Promise<void> {
    return restoreSeries(this.#state, read, isPattern)
  }

  /** The channel is deleted: everything is let go of, nothing is told. */
  discard(): void {
    discardAll(this.#state)
  }

  /** The server stops: the rest of the range of ids is given back with the last batch, and nothing new is sent before another. */
  close(): void {
    this.#state.lastAppend = Number.NEGATIVE_INFINITY
    this.#state.changed()
  }

  /** True if something waits for GET. */
  isWaiting(metric: number): boolean {
    return (this.#state.waiting.get(metric)?.length ?? 0) > 0
  }

  /** False only if it surely has no value of this metric. */
  mayHold(metric: number): boolean {
    for (const lane of this.#state.lanes()) {
      for (const entry of lane) {
        if (entry.kind === 'block' && entry.unsettled > 0 && (entry.metric === metric || entry.metric === 0))
          return true
      }
    }
    return false
  }

  /** What is in it, lane by lane, in order. Not to be changed. */
  lanes(): IterableIterator<Lane> {
    return this.#state.lanes()
  }

  /** Bytes of frames that it holds in memory. */
  get resident(): number {
    return this.#state.resident
  }

  /** Nothing queued, in flight or waiting. */
  get empty(): boolean {
    const { ledger, sending, waiting } = this.#state
    return ledger.unsettled === 0 && sending.length === 0 && [...waiting.values()].every((lane) => lane.length === 0)
  }

  /** Zero while the ledger balances. */
  get imbalance(): number {
    return this.#state.ledger.imbalance
  }

  status(): QueueStatus {
    const state = this.#state
    const { ledger, inFlight } = state
    let unstored = 0
    let storedId = state.next - 1
    let oldest = Number.POSITIVE_INFINITY
    for (const lane of state.lanes()) {
      for (const entry of lane) {
        if (lane.id === 0) storedId = Math.min(storedId, storedThrough(entry, state.storedNext))
        if (entry.kind === 'gap' || entry.unsettled === 0) continue
        oldest = Math.min(oldest, entry.minTime)
        unstored += entry.countUnstored
      }
    }
    return {
      accepted: ledger.accepted,
      committed: ledger.committed,
      inFlight,
      queued: ledger.unsettled - inFlight,
      // Both may be averages, if frames differ in size.
      queuedBytes: Math.max(0, state.bytes - state.inFlightBytes),
      stored: storedId,
      unstored,
      gaps: ledger.gaps,
      oldest: Number.isFinite(oldest) ? oldest : 0,
      dropped: { ...ledger.dropped },
    }
  }
}
