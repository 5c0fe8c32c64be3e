/**
 * The queue of a channel: values that are accepted, wait, are in flight, are committed or lost. It decides; the store keeps.
 *
 * It is composed of objects that each keep one invariant: `TransactionIds` the ids and their reservation, `Lanes` the order,
 * `Window` what is in flight, `Persistence` what is stored and in memory, `Settlement` the ledger and the bytes. `Losses`,
 * `Delivery` and `MetricValues` act on these.
 *
 * `append` is the hottest path: one call per value and channel, allocation only at the borders of blocks, nothing awaited. Most
 * values go through the `Inlet`, which counts them later; those that find it closed through `Arrivals`. The queue has its parts
 * from the inlet alone, which closes itself before it hands them out: what reads or changes entries, ids or counts cannot forget it.
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
import { type Entry, isUnsettled, type Lane } from './lane.ts'
import { Losses } from './losses.ts'
import { MetricCopies, MetricValues, type ReadBlock } from './metric-values.ts'
import { Persistence } from './persistence.ts'
import { QueueCore } from './queue-core.ts'
import type { QueueHost, QueueListener, QueueSettings, SharedLimit } from './queue-host.ts'
import { countsOf, type QueueCounts, type QueueStatus, statusOf } from './queue-status.ts'
import { seriesKeyOfFrame } from './series-key.ts'
import { Settlement } from './settlement.ts'
import type { SendBarrier } from './window.ts'

/** Made in this order: each part is given all of them, and takes those before it that its type names. */
class QueueParts extends QueueCore {
  readonly persistence = new Persistence(this)
  readonly settlement: Settlement = new Settlement(this)
  readonly losses: Losses = new Losses(this)
  readonly delivery: Delivery = new Delivery(this)
  readonly inlet = new Inlet<QueueParts>(this)
  readonly arrivals: Arrivals = new Arrivals(this)
  readonly metricValues: MetricValues = new MetricValues(this)
}

export class Queue implements Journaled {
  /** The only way to the parts, and `closed` of it: nothing can be read or changed while values are not counted yet. */
  readonly #inlet: Inlet<QueueParts>

  /** `share` is the limit that it fills together with others; by default it stands alone. */
  constructor(
    channel: number,
    origin: number,
    settings: QueueSettings,
    host: QueueHost,
    listener: QueueListener,
    share: SharedLimit = { bytes: 0, limit: Number.POSITIVE_INFINITY },
  ) {
    this.#inlet = new QueueParts({ channel, origin, settings, host, listener, share }).inlet
  }

  get settings(): QueueSettings {
    return this.#inlet.closed().settings
  }

  /** `durable` may change only while the queue is empty. */
  set settings(settings: QueueSettings) {
    const parts = this.#inlet.closed()
    parts.settings = settings
    parts.window.configure(settings)
    parts.persistence.isDurable = settings.durable
    parts.listener.ready()
  }

  /**
   * Takes a value into the sending order, or into the buffer lane of `waiting` (a metric id). `head`: the prefix of the frame,
   * of which length, id and time are filled in; `tail`: basic type and value. `time`: microseconds since 1970.
   */
  append(waiting: number, head: Uint8Array, tail: Uint8Array, time: number): void {
    if (waiting === 0 && this.#inlet.take(head, tail, time)) return
    const { arrivals, lanes, sending } = this.#inlet.closed()
    arrivals.append(waiting === 0 ? sending : lanes.open(waiting), head, tail, time)
  }

  /** Values that were to come are lost. `waiting` as in `append`. */
  lost(waiting: number, loss: Loss): void {
    const { losses, lanes, sending, listener } = this.#inlet.closed()
    losses.add(waiting === 0 ? sending : lanes.open(waiting), loss)
    listener.ready()
  }

  /** The result of an EXECUTE: a block of its own that no limit touches. Returns its transaction id, 0 if not durable. */
  appendResult(head: Uint8Array, tail: Uint8Array, time: number): number {
    return this.#inlet.closed().arrivals.appendResult(head, tail, time)
  }

  /** Bytes of results that are neither committed nor dropped. */
  get resultBytes(): number {
    return this.#inlet.closed().settlement.resultBytes
  }

  /** GET and SUBSCRIBE: what waits for a metric enters the sending order, in order. */
  release(metric: number): void {
    const parts = this.#inlet.closed()
    const lane = parts.lanes.takeWaiting(metric)
    if (lane === undefined) return
    parts.sending.sealTail()
    for (const entry of lane) if (isUnsettled(entry)) enterSending(parts, entry)
    parts.persistence.entered()
    parts.persistence.changed()
    parts.listener.ready()
  }

  /** Takes whole VALUE frames that stand back to back into the sending lane, with new ids and their old times. */
  appendFrames(frames: Uint8Array, pattern: boolean): void {
    this.#inlet.closed().arrivals.appendFrames(frames, pattern)
  }

  /** COMMIT [MON 8]: false if the channel has never given this id. */
  commit(transaction: number, through: boolean): boolean {
    return this.#inlet.closed().settlement.commit(transaction, through)
  }

  /** Commits ids from `first` on, as far as they are in flight and come in order; returns how many, of `count` at most. */
  commitRun(first: number, count: number): number {
    return this.#inlet.closed().settlement.commitRun(first, count)
  }

  /** Whether a value that was sent is neither committed nor dropped. */
  isUnsettled(transaction: number): boolean {
    return this.#inlet.closed().settlement.isUnsettled(transaction)
  }

  /** Nothing that enters the sending order from now on is sent before the barrier is released. */
  holdBack(): SendBarrier {
    const { window, ids } = this.#inlet.closed()
    return window.holdBack(ids.next)
  }

  attach(): void {
    const { persistence, listener } = this.#inlet.closed()
    persistence.isConnected = true
    listener.ready()
  }

  /** The connection ended or left. */
  detach(): void {
    const parts = this.#inlet.closed()
    parts.persistence.isConnected = false
    parts.delivery.detach()
    parts.losses.detached()
    if (parts.settings.overflow === 'keep-latest') supersedeOlder(parts)
  }

  next(maxBytes: number, mayExceed = true): Next {
    return this.#inlet.closed().delivery.next(maxBytes, mayExceed)
  }

  readAhead(): Block[] {
    return this.#inlet.closed().delivery.readAhead()
  }

  /** The bytes of a block that was read; undefined if they are damaged: a GAP reports that. */
  loaded(block: Block, bytes: Uint8Array | undefined): void {
    const { delivery, losses, persistence } = this.#inlet.closed()
    delivery.endLoading(block)
    if (bytes === undefined) losses.dropDamaged(block)
    else persistence.loaded(block, bytes)
  }

  stop(metric: number, read: ReadBlock): Promise<void> | undefined {
    return this.#inlet.closed().metricValues.stop(metric, read)
  }

  /** The stops in force, to be stored: metric id and last transaction id. */
  get stops(): ReadonlyMap<number, number> {
    return this.#inlet.closed().delivery.stops
  }

  restoreStop(metric: number, through: number): void {
    this.#inlet.closed().delivery.stop(metric, through)
  }

  endPassedStops(): number[] {
    return this.#inlet.closed().delivery.endPassedStops()
  }

  purge(only: { readonly metric?: number; readonly through?: number }, read: ReadBlock): Promise<number> {
    return this.#inlet.closed().metricValues.purge(only, read)
  }

  copiesOf(metric: number, read: ReadBlock): MetricCopies {
    const { lanes, delivery } = this.#inlet.closed()
    return new MetricCopies(metric, read, lanes, delivery)
  }

  /** The next values of a metric begin new blocks. */
  seal(metric: number): void {
    const { sending, lanes } = this.#inlet.closed()
    sending.sealTail()
    lanes.get(metric)?.sealTail()
  }

  /** Drops values older than `max_age`, and gives back what a quiet queue does not need. To be called every second. */
  expire(): void {
    const { losses, host, settings, persistence } = this.#inlet.closed()
    losses.expire(host.age() - settings.maxAgeMs)
    persistence.rest()
  }

  submit(builder: BatchBuilder): void {
    this.#inlet.closed().persistence.submit(builder)
  }

  durable(): void {
    this.#inlet.closed().persistence.durable()
  }

  /** Has its numbers, and with them the channel, written with the next batch. */
  markChanged(): void {
    this.#inlet.closed().persistence.changed()
  }

  /** The channel is deleted: everything is discarded, and nothing is reported. */
  *discard(): Steps<void> {
    const { lanes, sending, metricValues, settlement } = this.#inlet.closed()
    for (const metric of lanes.waitingIds()) yield* metricValues.dropLane(metric)
    yield* settlement.discard(sending)
    sending.dropSettledHead()
  }

  /** The server stops: nothing new is sent before another batch. */
  close(): void {
    this.#inlet.closed().persistence.close()
  }

  /** Whether it has nothing to store since then; otherwise it has to be closed again. */
  get isClosed(): boolean {
    return this.#inlet.closed().persistence.isClosed
  }

  /** Restores the numbers of a row. Blocks and GAPs follow by `restoreBlock` and `restoreGap`, in order, then `recovered`. */
  restoreNumbers(numbers: Float64Array, row: number): { floor: number; clean: boolean } {
    const [, floor = 0, next = 0, reserved = 0] = numbers.subarray(row * CHANNEL_WIDTH, (row + 1) * CHANNEL_WIDTH)
    const { ids, ledger } = this.#inlet.closed()
    ids.restore(next, reserved)
    ledger.restore(numbers.subarray(row * CHANNEL_WIDTH + 4, (row + 1) * CHANNEL_WIDTH))
    return { floor, clean: reserved <= next }
  }

  /** Restores a block. Its frames stay on disk until their turn comes. */
  restoreBlock(rows: Float64Array, row: number, floor: number, bitmap: Uint8Array | undefined): Block {
    const { persistence, settlement, lanes } = this.#inlet.closed()
    const block = Block.restored(rows, row, floor, bitmap)
    if (block.unsettled === 0) persistence.remove(block)
    else {
      settlement.enter(block.unsettled, block.unsettledBytes)
      lanes.open(block.lane).push(block)
    }
    return block
  }

  restoreGap(rows: Float64Array, row: number): void {
    const gap = GapEntry.restored(rows, row)
    const lane = this.#inlet.closed().lanes.open(gap.lane)
    const isAfter = (entry: Entry): boolean => (gap.lane === 0 ? entry.first > gap.transaction : entry.id > gap.id)
    let index = lane.length
    while (index > 0 && isAfter(lane.at(index - 1) as Entry)) index--
    lane.insert(index, gap)
  }

  /** Restores a result of an EXECUTE; false if its value is gone. */
  restoreResult(transaction: number): boolean {
    const { sending, settlement } = this.#inlet.closed()
    const entry = sending.at(sending.find(transaction))
    if (entry?.kind !== 'block') return false
    settlement.enterResult(entry)
    return true
  }

  /**
   * Everything is restored; `clean` is what `restoreNumbers` returned. After an unclean end a GAP with `reason` reports that
   * values may be missing; so does one for blocks that are damaged and gone: the ledger knows how many they had [MON 8].
   */
  recovered(clean: boolean, reason: 'restart' | 'restored' = 'restart'): void {
    const { ids, ledger, losses, sending, settings } = this.#inlet.closed()
    ids.recovered(clean)
    const missing = ledger.imbalance
    if (!settings.durable) {
      // Its values survive nothing, and no storage is to blame.
      ledger.accepted -= missing
      return
    }
    if (missing > 0) {
      ledger.drop('damaged', missing)
      losses.add(sending, { reason: GapReason.damaged, metric: 0, count: missing, from: 0, to: 0 })
    }
    if (!clean) this.addGap(reason)
  }

  /** Reports the loss of an unknown number of values at the end of the sending order. */
  addGap(reason: keyof typeof GapReason): void {
    const { losses, sending } = this.#inlet.closed()
    losses.add(sending, { reason: GapReason[reason], metric: 0, count: 0, from: 0, to: 0 })
  }

  /**
   * keep-latest: only the frame of a restored value has its series, so these are read back before anything is sent; there is
   * one for each series. `isPattern`: whether the values of a metric id carry labels; undefined if that is not known now, and then
   * all of them stay.
   */
  async restoreSeries(read: ReadBlock, isPattern: (metric: number) => boolean | undefined): Promise<void> {
    const { settings, lanes } = this.#inlet.closed()
    if (settings.overflow !== 'keep-latest') return
    for (const lane of [...lanes]) {
      for (const block of [...lane]) {
        if (block.kind !== 'block' || block.key !== undefined || block.count !== 1 || block.exempt) continue
        const frame = await read(block)
        // A damaged one is reported when its turn comes.
        if (frame === undefined || block.unsettled === 0) continue
        const view = new DataView(frame.buffer, frame.byteOffset, frame.byteLength)
        const hasLabels = isPattern(view.getUint32(FRAME_METRIC))
        if (hasLabels === undefined) continue
        const labelled = view.getUint32(FRAME_TYPE) === BasicType.REC && hasLabels
        keepNewest(this.#inlet.closed(), lane, block, seriesKeyOfFrame(frame, labelled))
      }
      lane.dropSettledHead()
    }
  }

  /** True if something waits for GET. */
  isWaiting(metric: number): boolean {
    return metric !== 0 && this.#inlet.closed().lanes.get(metric)?.lastUnsettled !== undefined
  }

  /** The entries, lane by lane, in order. Not to be changed. */
  lanes(): IterableIterator<Lane> {
    return this.#inlet.closed().lanes[Symbol.iterator]()
  }

  /** Bytes of frames that it holds in memory. */
  get resident(): number {
    return this.#inlet.closed().persistence.resident
  }

  /** Nothing is queued, in flight or waiting. */
  get empty(): boolean {
    const { ledger, lanes } = this.#inlet.closed()
    return ledger.unsettled === 0 && [...lanes].every((lane) => lane.length === 0)
  }

  /** Zero while the ledger balances. */
  get imbalance(): number {
    return this.#inlet.closed().ledger.imbalance
  }

  get counts(): QueueCounts {
    return countsOf(this.#inlet.closed())
  }

  /** The status of this moment, at once: for where nobody else is kept waiting. */
  status(): QueueStatus {
    return finish(this.measure())
  }

  measure(): Steps<QueueStatus> {
    return statusOf(this.#inlet.closed())
  }
}

/** An entry of a buffer lane goes to the end of the sending order and gets its ids. */
function enterSending({ sending, settings, losses, ids, persistence, arrivals }: QueueParts, entry: Entry): void {
  const { durable } = settings
  entry.lane = 0
  if (entry.kind === 'gap') {
    if (losses.joinTail(entry)) return
    if (durable) entry.transaction = ids.give()
    persistence.touchGap(entry)
  } else {
    if (entry.key !== undefined) {
      const older = sending.supersededBy(entry.key)
      if (older !== undefined) arrivals.supersede(sending, older)
      sending.latest.set(entry.key, entry)
    }
    entry.sealed = true
    entry.first = ids.give(entry.count)
    if (durable) entry.number(entry.first)
    persistence.moved(entry)
  }
  sending.push(entry)
}

/** keep-latest: a connection has ended, so that values which were in flight are no longer the latest of their series. */
function supersedeOlder({ sending, settlement }: QueueParts): void {
  for (const entry of sending) {
    if (entry.kind === 'block' && entry.key !== undefined && sending.latest.get(entry.key) !== entry) {
      settlement.settleAll(entry, 'superseded')
    }
  }
  sending.dropSettledHead()
}

/** keep-latest: of two restored values of a series, the newer one stays. */
function keepNewest({ settlement }: QueueParts, lane: Lane, block: Block, key: string): void {
  const other = lane.latest.get(key)
  if (other !== undefined && other.id > block.id) {
    settlement.settleAll(block, 'superseded')
    return
  }
  if (other !== undefined) settlement.settleAll(other, 'superseded')
  block.key = key
  lane.latest.set(key, block)
}
