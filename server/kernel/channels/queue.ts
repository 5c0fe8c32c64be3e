/**
 * The queue of a channel: values that are accepted, wait, are in flight, are committed or lost. It decides; the store keeps.
 *
 * It is composed of objects that each keep one invariant: `TransactionIds` the ids and their reservation, `Lanes` the order,
 * `Window` what is in flight, `Persistence` what is stored and in memory, `Settlement` the ledger and the bytes. `Losses`,
 * `Delivery` and `MetricValues` act on these.
 *
 * `append` is the hottest path: one call per value and channel, allocation only at the borders of blocks, nothing awaited. Most
 * values go through the `Inlet`, which counts them later; those that find it closed through `Arrivals`. What reads or changes
 * entries, ids or counts closes it first.
 */
import { BasicType, GapReason } from '../../../protocol/monitor/constants.ts'
import { FRAME_METRIC, FRAME_TYPE } from '../../../protocol/monitor/message.ts'
import { CHANNEL_WIDTH } from '../../../storage/store.ts'
import { finish, type Steps } from '../core/fair-work.ts'
import { Arrivals } from './arrivals.ts'
import type { BatchBuilder } from './batch.ts'
import { Block } from './block.ts'
import { Delivery, type Next } from './delivery.ts'
import { GapEntry, type Loss } from './gap.ts'
import { Inlet } from './inlet.ts'
import type { Journaled } from './journal.ts'
import { type Entry, isUnsettled, type Lane, Lanes } from './lane.ts'
import { QueueLedger } from './ledger.ts'
import { Losses } from './losses.ts'
import { MetricCopies, MetricValues, type ReadBlock } from './metric-values.ts'
import { Persistence } from './persistence.ts'
import type { QueueHost, QueueListener, QueueSettings, SharedLimit } from './queue-host.ts'
import { countsOf, type QueueCounts, type QueueStatus, type StatusParts, statusOf } from './queue-status.ts'
import { seriesKeyOfFrame } from './series-key.ts'
import { Settlement } from './settlement.ts'
import { TransactionIds } from './transaction-ids.ts'
import { type SendBarrier, Window } from './window.ts'

export class Queue implements Journaled {
  // What each value touches comes first: with a thousand channels, each line of memory counts.
  readonly #inlet: Inlet
  readonly #lanes = new Lanes()
  readonly #sending = this.#lanes.sending
  readonly #ledger: QueueLedger
  #settings: QueueSettings
  readonly #host: QueueHost
  readonly #settlement: Settlement
  readonly #ids: TransactionIds
  readonly #persistence: Persistence
  readonly #listener: QueueListener
  readonly #window: Window
  readonly #losses: Losses
  readonly #arrivals: Arrivals
  readonly #delivery: Delivery
  readonly #metricValues: MetricValues
  readonly #statusParts: StatusParts

  /** `share` is the limit that it fills together with others; by default it stands alone. */
  constructor(
    channel: number,
    origin: number,
    settings: QueueSettings,
    host: QueueHost,
    listener: QueueListener,
    share: SharedLimit = { bytes: 0, limit: Number.POSITIVE_INFINITY },
  ) {
    this.#host = host
    this.#ledger = new QueueLedger(host.dropped)
    this.#listener = listener
    this.#settings = settings
    const ids = new TransactionIds(origin)
    const lanes = this.#lanes
    const ledger = this.#ledger
    const window = new Window(() => listener.ready())
    window.configure(settings)
    const persistence = new Persistence(settings.durable, { channel, ids, lanes, ledger, host, listener })
    const settlement = new Settlement({ ids, lanes, window, ledger, persistence, listener, share })
    const losses = new Losses({ ids, lanes, persistence, settlement, host, listener })
    const sending = this.#sending
    const delivery = new Delivery({ ids, sending, window, persistence, settlement, host })
    this.#inlet = new Inlet({ ids, ledger, persistence, settlement, host, share })
    const inForce = (): QueueSettings => this.#settings
    this.#arrivals = new Arrivals(
      inForce,
      { ids, lanes, ledger, persistence, settlement, losses, host, listener },
      this.#inlet,
    )
    this.#ids = ids
    this.#window = window
    this.#persistence = persistence
    this.#losses = losses
    this.#settlement = settlement
    this.#delivery = delivery
    this.#statusParts = { ids, lanes, ledger, window, persistence, settlement }
    this.#metricValues = new MetricValues({ ids, lanes, losses, settlement, delivery, listener })
  }

  get settings(): QueueSettings {
    return this.#settings
  }

  /** `durable` may change only while the queue is empty. */
  set settings(settings: QueueSettings) {
    this.#inlet.close()
    this.#settings = settings
    this.#window.configure(settings)
    this.#persistence.isDurable = settings.durable
    this.#listener.ready()
  }

  /**
   * Takes a value into the sending order, or into the buffer lane of `waiting` (a metric id). `head`: the prefix of the frame,
   * of which length, id and time are filled in; `tail`: basic type and value. `time`: microseconds since 1970.
   */
  append(waiting: number, head: Uint8Array, tail: Uint8Array, time: number): void {
    if (waiting === 0 && this.#inlet.take(head, tail, time)) return
    this.#inlet.close()
    this.#arrivals.append(waiting === 0 ? this.#sending : this.#lanes.open(waiting), head, tail, time)
  }

  /** Values that were to come are lost. `waiting` as in `append`. */
  lost(waiting: number, loss: Loss): void {
    this.#inlet.close()
    this.#losses.add(waiting === 0 ? this.#sending : this.#lanes.open(waiting), loss)
    this.#listener.ready()
  }

  /** The result of an EXECUTE: a block of its own that no limit touches. Returns its transaction id, 0 if not durable. */
  appendResult(head: Uint8Array, tail: Uint8Array, time: number): number {
    this.#inlet.close()
    return this.#arrivals.appendResult(head, tail, time)
  }

  /** GET and SUBSCRIBE: what waits for a metric enters the sending order, in order. */
  release(metric: number): void {
    this.#inlet.close()
    const lane = this.#lanes.takeWaiting(metric)
    if (lane === undefined) return
    this.#sending.sealTail()
    for (const entry of lane) if (isUnsettled(entry)) this.#enterSending(entry)
    this.#persistence.entered()
    this.#persistence.changed()
    this.#listener.ready()
  }

  /** An entry of a buffer lane goes to the end of the sending order and gets its ids. */
  #enterSending(entry: Entry): void {
    const sending = this.#sending
    const { durable } = this.#settings
    entry.lane = 0
    if (entry.kind === 'gap') {
      if (this.#losses.joinTail(entry)) return
      if (durable) entry.transaction = this.#ids.give()
      this.#persistence.touchGap(entry)
    } else {
      if (entry.key !== undefined) {
        const older = sending.supersededBy(entry.key)
        if (older !== undefined) this.#arrivals.supersede(sending, older)
        sending.latest.set(entry.key, entry)
      }
      entry.sealed = true
      entry.first = this.#ids.give(entry.count)
      if (durable) entry.number(entry.first)
      this.#persistence.moved(entry)
    }
    sending.push(entry)
  }

  /** Takes whole VALUE frames that stand back to back into the sending lane, with new ids and their old times. */
  appendFrames(frames: Uint8Array, pattern: boolean): void {
    this.#inlet.close()
    this.#arrivals.appendFrames(frames, pattern)
  }

  /** COMMIT [MON 8]: false if the channel has never given this id. */
  commit(transaction: number, through: boolean): boolean {
    this.#inlet.close()
    return this.#settlement.commit(transaction, through)
  }

  /** Commits ids from `first` on, as far as they are in flight and come in order; returns how many, of `count` at most. */
  commitRun(first: number, count: number): number {
    this.#inlet.close()
    return this.#settlement.commitRun(first, count)
  }

  /** Nothing that enters the sending order from now on is sent before the barrier is released. */
  holdBack(): SendBarrier {
    this.#inlet.close()
    return this.#window.holdBack(this.#ids.next)
  }

  attach(): void {
    this.#inlet.close()
    this.#persistence.isConnected = true
    this.#listener.ready()
  }

  /** The connection ended or left. */
  detach(): void {
    this.#inlet.close()
    this.#persistence.isConnected = false
    this.#delivery.detach()
    this.#losses.detached()
    if (this.#settings.overflow === 'keep-latest') this.#supersedeOlder()
  }

  #supersedeOlder(): void {
    const sending = this.#sending
    for (const entry of sending) {
      if (entry.kind === 'block' && entry.key !== undefined && sending.latest.get(entry.key) !== entry) {
        this.#settlement.settleAll(entry, 'superseded')
      }
    }
    sending.dropSettledHead()
  }

  next(maxBytes: number, mayExceed = true): Next {
    this.#inlet.close()
    return this.#delivery.next(maxBytes, mayExceed)
  }

  readAhead(): Block[] {
    this.#inlet.close()
    return this.#delivery.readAhead()
  }

  /** The bytes of a block that was read; undefined if they are damaged: a GAP reports that. */
  loaded(block: Block, bytes: Uint8Array | undefined): void {
    this.#inlet.close()
    this.#delivery.endLoading(block)
    if (bytes === undefined) this.#losses.dropDamaged(block)
    else this.#persistence.loaded(block, bytes)
  }

  stop(metric: number, read: ReadBlock): Promise<void> | undefined {
    this.#inlet.close()
    return this.#metricValues.stop(metric, read)
  }

  /** The stops in force, to be stored: metric id and last transaction id. */
  get stops(): ReadonlyMap<number, number> {
    return this.#delivery.stops
  }

  restoreStop(metric: number, through: number): void {
    this.#delivery.stop(metric, through)
  }

  endPassedStops(): number[] {
    this.#inlet.close()
    return this.#delivery.endPassedStops()
  }

  purge(only: { readonly metric?: number; readonly through?: number }, read: ReadBlock): Promise<number> {
    this.#inlet.close()
    return this.#metricValues.purge(only, read)
  }

  copiesOf(metric: number, read: ReadBlock): MetricCopies {
    this.#inlet.close()
    return new MetricCopies(metric, read, this.#lanes, this.#delivery)
  }

  /** The next values of a metric begin new blocks. */
  seal(metric: number): void {
    this.#inlet.close()
    this.#sending.sealTail()
    this.#lanes.get(metric)?.sealTail()
  }

  /** Drops values older than `max_age`, and gives back what a quiet queue does not need. To be called every second. */
  expire(): void {
    this.#inlet.close()
    this.#losses.expire(this.#host.age() - this.#settings.maxAgeMs)
    this.#persistence.rest()
  }

  submit(builder: BatchBuilder): void {
    this.#inlet.close()
    this.#persistence.submit(builder)
  }

  durable(): void {
    this.#inlet.close()
    this.#persistence.durable()
  }

  /** Has its numbers, and with them the channel, written with the next batch. */
  markChanged(): void {
    this.#persistence.changed()
  }

  /** The channel is deleted: everything is discarded, and nothing is reported. */
  *discard(): Steps<void> {
    this.#inlet.close()
    const sending = this.#sending
    for (const metric of this.#lanes.waitingIds()) yield* this.#metricValues.dropLane(metric)
    yield* this.#settlement.discard(sending)
    sending.dropSettledHead()
  }

  /** The server stops: nothing new is sent before another batch. */
  close(): void {
    this.#inlet.close()
    this.#persistence.close()
  }

  /** Restores the numbers of a row. Blocks and GAPs follow by `restoreBlock` and `restoreGap`, in order, then `recovered`. */
  restoreNumbers(numbers: Float64Array, row: number): { floor: number; clean: boolean } {
    const [, floor = 0, next = 0, reserved = 0] = numbers.subarray(row * CHANNEL_WIDTH, (row + 1) * CHANNEL_WIDTH)
    this.#ids.restore(next, reserved)
    this.#ledger.restore(numbers.subarray(row * CHANNEL_WIDTH + 4, (row + 1) * CHANNEL_WIDTH))
    return { floor, clean: reserved <= next }
  }

  /** Restores a block. Its frames stay on disk until their turn comes. */
  restoreBlock(rows: Float64Array, row: number, floor: number, bitmap: Uint8Array | undefined): Block {
    const block = Block.restored(rows, row, floor, bitmap)
    if (block.unsettled === 0) this.#persistence.remove(block)
    else {
      this.#settlement.enter(block.unsettled, block.unsettledBytes)
      this.#lanes.open(block.lane).push(block)
    }
    return block
  }

  restoreGap(rows: Float64Array, row: number): void {
    const gap = GapEntry.restored(rows, row)
    const lane = this.#lanes.open(gap.lane)
    const isAfter = (entry: Entry): boolean => (gap.lane === 0 ? entry.first > gap.transaction : entry.id > gap.id)
    let index = lane.length
    while (index > 0 && isAfter(lane.at(index - 1) as Entry)) index--
    lane.insert(index, gap)
  }

  /** Restores a result of an EXECUTE; false if its value is gone. */
  restoreResult(transaction: number): boolean {
    const sending = this.#sending
    const entry = sending.at(sending.find(transaction))
    if (entry?.kind !== 'block') return false
    entry.exempt = true
    return true
  }

  /**
   * Everything is restored; `clean` is what `restoreNumbers` returned. After an unclean end a GAP with `reason` reports that
   * values may be missing; so does one for blocks that are damaged and gone: the ledger knows how many they had [MON 8].
   */
  recovered(clean: boolean, reason: 'restart' | 'restored' = 'restart'): void {
    const ledger = this.#ledger
    this.#ids.recovered(clean)
    const missing = ledger.imbalance
    if (!this.#settings.durable) {
      // Its values survive nothing, and no storage is to blame.
      ledger.accepted -= missing
      return
    }
    if (missing > 0) {
      ledger.drop('damaged', missing)
      this.#losses.add(this.#sending, { reason: GapReason.damaged, metric: 0, count: missing, from: 0, to: 0 })
    }
    if (!clean) this.addGap(reason)
  }

  /** Reports the loss of an unknown number of values at the end of the sending order. */
  addGap(reason: keyof typeof GapReason): void {
    this.#inlet.close()
    this.#losses.add(this.#sending, { reason: GapReason[reason], metric: 0, count: 0, from: 0, to: 0 })
  }

  /**
   * keep-latest: only the frame of a restored value has its series, so these are read back before anything is sent; there is
   * one for each series. `isPattern`: whether the values of a metric id carry labels; undefined if that is not known now, and then
   * all of them stay.
   */
  async restoreSeries(read: ReadBlock, isPattern: (metric: number) => boolean | undefined): Promise<void> {
    if (this.#settings.overflow !== 'keep-latest') return
    for (const lane of [...this.#lanes]) {
      for (const block of [...lane]) {
        if (block.kind !== 'block' || block.key !== undefined || block.count !== 1 || block.exempt) continue
        const frame = await read(block)
        // A damaged one is reported when its turn comes.
        if (frame === undefined || block.unsettled === 0) continue
        const view = new DataView(frame.buffer, frame.byteOffset, frame.byteLength)
        const hasLabels = isPattern(view.getUint32(FRAME_METRIC))
        if (hasLabels === undefined) continue
        const labelled = view.getUint32(FRAME_TYPE) === BasicType.REC && hasLabels
        this.#keepNewest(lane, block, seriesKeyOfFrame(frame, labelled))
      }
      lane.dropSettledHead()
    }
  }

  #keepNewest(lane: Lane, block: Block, key: string): void {
    const other = lane.latest.get(key)
    if (other !== undefined && other.id > block.id) {
      this.#settlement.settleAll(block, 'superseded')
      return
    }
    if (other !== undefined) this.#settlement.settleAll(other, 'superseded')
    block.key = key
    lane.latest.set(key, block)
  }

  /** True if something waits for GET. */
  isWaiting(metric: number): boolean {
    this.#inlet.close()
    return metric !== 0 && this.#lanes.get(metric)?.lastUnsettled !== undefined
  }

  /** The entries, lane by lane, in order. Not to be changed. */
  lanes(): IterableIterator<Lane> {
    this.#inlet.close()
    return this.#lanes[Symbol.iterator]()
  }

  /** Bytes of frames that it holds in memory. */
  get resident(): number {
    return this.#persistence.resident
  }

  /** Nothing is queued, in flight or waiting. */
  get empty(): boolean {
    this.#inlet.close()
    return this.#ledger.unsettled === 0 && [...this.#lanes].every((lane) => lane.length === 0)
  }

  /** Zero while the ledger balances. */
  get imbalance(): number {
    this.#inlet.close()
    return this.#ledger.imbalance
  }

  get counts(): QueueCounts {
    this.#inlet.close()
    return countsOf(this.#statusParts)
  }

  /** The status of this moment, at once: for where nobody else is kept waiting. */
  status(): QueueStatus {
    return finish(this.measure())
  }

  measure(): Steps<QueueStatus> {
    this.#inlet.close()
    return statusOf(this.#statusParts)
  }
}
