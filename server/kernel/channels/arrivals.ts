/**
 * How values enter a queue: the limits of the channel are judged, and the block is found that takes the value. What follows in
 * the sending order goes through the inlet alone, as long as it is open.
 */

import { FRAME_TIME, HEADER_BYTES } from '../../../protocol/monitor/message.ts'
import { Block, getUint53 } from './block.ts'
import { lossOfFrame } from './gap.ts'
import type { Inlet } from './inlet.ts'
import type { Lane } from './lane.ts'
import type { Losses } from './losses.ts'
import { MAX_BLOCK_BYTES } from './pool.ts'
import { seriesKey, seriesKeyOfFrame } from './series-key.ts'
import type { SettledQueue } from './settlement.ts'

const MIN_BLOCK_BYTES = 1024
/** Where a channel is full, it drops a block: that is to be a small part of what it has. */
const BLOCKS_AT_LEAST = 8

interface ArrivalsParts extends SettledQueue {
  readonly losses: Losses
  readonly inlet: Inlet
}

/** The inlet is closed before each call. */
export class Arrivals {
  readonly #parts: ArrivalsParts
  readonly #inlet: Inlet
  /** keep-latest: the key of each frame template seen. */
  readonly #keys = new WeakMap<Uint8Array, string>()

  constructor(parts: ArrivalsParts) {
    this.#parts = parts
    this.#inlet = parts.inlet
  }

  /** Takes a value into a lane, as `Queue.append` does. */
  append(lane: Lane, head: Uint8Array, tail: Uint8Array, time: number, key?: string): void {
    try {
      this.#append(lane, head, tail, time, key)
    } catch (error) {
      // There is no memory for a block, for example: the value is lost, and the loss is reported.
      this.#inlet.close()
      this.#drop('overflow', lane, head, time)
      this.#parts.host.refused++
      throw error
    }
  }

  /** A value that came is not taken. */
  #drop(cause: 'full' | 'overflow', lane: Lane, head: Uint8Array, time: number): void {
    const { ledger, host, losses } = this.#parts
    ledger.accepted++
    host.accepted++
    ledger.drop(cause)
    losses.add(lane, lossOfFrame(cause, head, time))
  }

  #append(lane: Lane, head: Uint8Array, tail: Uint8Array, time: number, key?: string): void {
    const { settings, settlement, losses, listener, host } = this.#parts
    const { refusing } = host
    const bytes = head.length + tail.length
    if (refusing !== undefined && settings.durable) {
      this.#drop(refusing, lane, head, time)
      host.refused++
      return
    }
    const series = settings.overflow === 'keep-latest' ? (key ?? seriesKey(this.#keys, head)) : undefined
    const older = series === undefined ? undefined : lane.supersededBy(series)
    // A superseded value leaves its room to the arriving one, and stays if that finds none.
    const more = older === undefined ? bytes : bytes - older.unsettledBytes
    if (!settlement.fits(more, settings.maxBytes) && !losses.makeRoom(settings, bytes, older)) {
      this.#drop('overflow', lane, head, time)
      return
    }
    if (older !== undefined) this.supersede(lane, older)
    const maxBlockBytes = Math.min(
      MAX_BLOCK_BYTES,
      Math.max(MIN_BLOCK_BYTES, Math.floor(settings.maxBytes / BLOCKS_AT_LEAST)),
    )
    const block = this.#openBlock(lane, bytes, maxBlockBytes)
    this.#inlet.open(block, Math.min(maxBlockBytes, block.length + settlement.roomIn(settings.maxBytes)))
    this.#inlet.put(head, tail, time)
    if (lane.id === 0 && series === undefined) this.#inlet.leaveOpen()
    else this.#inlet.close()
    if (series !== undefined) {
      block.sealed = true
      block.key = series
      lane.latest.set(series, block)
    }
    if (lane.id === 0) listener.ready()
    else losses.waits(block)
  }

  /** The block at the end of the lane if it has room for the frame, else a new one. */
  #openBlock(lane: Lane, bytes: number, maxBytes: number): Block {
    const { ids, persistence, host } = this.#parts
    const { tail } = lane
    if (tail?.kind === 'block' && !tail.sealed) {
      if (persistence.reserve(tail, bytes, maxBytes)) return tail
      tail.sealed = true
    }
    const block = new Block(host.nextId(), lane.id, lane.id === 0 ? ids.next : 0)
    persistence.reserve(block, bytes, maxBytes)
    lane.push(block)
    return block
  }

  /** A newer value of its series has come. */
  supersede(lane: Lane, older: Block): void {
    this.#parts.settlement.settleAll(older, 'superseded')
    lane.dropSettledHead()
  }

  /** As `Queue.appendResult`. */
  appendResult(head: Uint8Array, tail: Uint8Array, time: number): number {
    const { ids, sending, persistence, settlement, host, listener } = this.#parts
    const bytes = head.length + tail.length
    sending.sealTail()
    const block = new Block(host.nextId(), 0, ids.next)
    persistence.reserve(block, bytes, bytes)
    sending.push(block)
    this.#inlet.open(block, bytes)
    this.#inlet.put(head, tail, time)
    this.#inlet.close()
    settlement.enterResult(block)
    block.sealed = true
    listener.ready()
    return persistence.isDurable ? block.first : 0
  }

  /** As `Queue.appendFrames`. */
  appendFrames(frames: Uint8Array, pattern: boolean): void {
    const { sending, settings } = this.#parts
    const keepsLatest = settings.overflow === 'keep-latest'
    const view = new DataView(frames.buffer, frames.byteOffset, frames.byteLength)
    for (let at = 0, end = 0; at < frames.length; at = end) {
      end = at + 4 + view.getUint32(at)
      const key = keepsLatest ? seriesKeyOfFrame(frames.subarray(at, end), pattern) : undefined
      const head = frames.subarray(at, at + HEADER_BYTES)
      const time = getUint53(view, at + FRAME_TIME)
      this.append(sending, head, frames.subarray(at + HEADER_BYTES, end), time, key)
      this.#inlet.close()
    }
  }
}
