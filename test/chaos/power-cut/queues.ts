/**
 * Queues over a store, joined as the server joins them but without sensors, sessions and sockets: so a rig knows exactly
 * what was given, sent, committed and answered. The clock stands still unless the rig moves it.
 */

import { GapReason } from '../../../protocol/monitor/constants.ts'
import { FRAME_METRIC, FRAME_TIME, FRAME_TRANSACTION } from '../../../protocol/monitor/message.ts'
import { getUint53 } from '../../../server/kernel/channels/block.ts'
import { Journal } from '../../../server/kernel/channels/journal.ts'
import { Queue } from '../../../server/kernel/channels/queue.ts'
import { numberRows } from '../../../server/kernel/channels/registry.ts'
import { TurnScheduler } from '../../../server/kernel/channels/turn-scheduler.ts'
import { finish } from '../../../server/kernel/core/fair-work.ts'
import { type Batch, BLOCK_WIDTH, type ChannelRow, GAP_WIDTH, type Recovered } from '../../../storage/store.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { HandHost } from '../../support/hand-host.ts'

/** Bytes of a frame before its value: length, kind, transaction, time, metric. */
const HEAD_BYTES = 24

export interface Value {
  readonly kind: 'value'
  readonly id: number
  readonly metric: number
  /** Which of all values it is: it stands in the frame as its time. */
  readonly counter: number
  /** The bytes are those that were given for the counter. */
  readonly intact: boolean
}
export interface ToldGap {
  readonly kind: 'gap'
  readonly id: number
  readonly count: number
  readonly reason: number
}

export class Queues {
  readonly byId = new Map<number, Queue>()
  readonly rows = new Map<number, ChannelRow>()
  readonly turn: TurnScheduler
  readonly journal: Journal
  readonly host = new HandHost()

  /** `wall` names the batches: it is asked once for each. */
  constructor(write: (batch: Batch) => void, wall: () => number, turn = new TurnScheduler(new FakeClock())) {
    this.turn = turn
    this.journal = new Journal({ write }, turn, { age: () => this.host.now, wallMs: wall })
  }

  add(row: ChannelRow): Queue {
    const queue: Queue = new Queue(row.id, row.origin, row, this.host, {
      changed: () => this.journal.touch(queue),
      ready: () => {},
      awaited() {},
      resultGone: () => {},
    })
    this.rows.set(row.id, row)
    this.byId.set(row.id, queue)
    return queue
  }

  /** DEF_CHANNEL */
  define(row: ChannelRow): Queue {
    const queue = this.add(row)
    this.journal.change({ put: 'channel', row })
    queue.markChanged()
    return queue
  }

  /** DEL_CHANNEL */
  remove(id: number): void {
    const queue = this.byId.get(id)
    if (queue === undefined) return
    finish(queue.discard())
    this.journal.forget(queue)
    this.journal.change({ remove: 'channel', id })
    this.byId.delete(id)
    this.rows.delete(id)
  }

  restore(recovered: Recovered): void {
    this.host.now = recovered.age
    this.host.id = recovered.nextBlockId - 1
    const numbers = numberRows(recovered.numbers)
    const state = new Map<number, { floor: number; clean: boolean }>()
    for (const row of recovered.channels) {
      const queue = this.add(row)
      const at = numbers.get(row.id)
      if (at !== undefined) state.set(row.id, queue.restoreNumbers(recovered.numbers, at))
    }
    const { blocks, gaps, settled } = recovered
    for (let row = 0; row * BLOCK_WIDTH < blocks.length; row++) {
      const channel = blocks[row * BLOCK_WIDTH + 1] as number
      const bitmap = settled.get(blocks[row * BLOCK_WIDTH] as number)
      this.byId.get(channel)?.restoreBlock(blocks, row, state.get(channel)?.floor ?? 0, bitmap)
    }
    for (let row = 0; row * GAP_WIDTH < gaps.length; row++) {
      this.byId.get(gaps[row * GAP_WIDTH + 1] as number)?.restoreGap(gaps, row)
    }
    for (const { channel, metric, through } of recovered.stops) this.byId.get(channel)?.restoreStop(metric, through)
    for (const [id, { clean }] of state) this.byId.get(id)?.recovered(clean)
  }
}

/** The id that the next value of the sending order gets. */
export function nextIdOf(queue: Queue): number {
  const hold = queue.holdBack()
  hold.release()
  return hold.from
}

/** A template of a metric, and the value of a counter. */
export function headOf(metric: number): Uint8Array {
  const head = new Uint8Array(HEAD_BYTES)
  new DataView(head.buffer).setUint32(FRAME_METRIC, metric)
  return head
}

export function tailOf(counter: number): Uint8Array {
  // Mostly small, some of several pages.
  const length = counter % 97 === 0 ? 40_000 : 16 + 4 * ((counter * 7919) % 225)
  return new Uint8Array(length).fill((counter * 31) & 255)
}

/** The frames that a consumer reads. */
export function framesIn(bytes: Uint8Array): (Value | ToldGap)[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const frames: (Value | ToldGap)[] = []
  for (let at = 0; at < bytes.length; at += 4 + view.getUint32(at)) {
    const id = getUint53(view, at + FRAME_TRANSACTION)
    const metric = view.getUint32(at + FRAME_METRIC)
    if (metric === 0xfffffffc) {
      frames.push({ kind: 'gap', id, count: getUint53(view, at + 20), reason: view.getUint32(at + 44) })
      continue
    }
    const counter = getUint53(view, at + FRAME_TIME)
    const value = bytes.subarray(at + HEAD_BYTES, at + 4 + view.getUint32(at))
    frames.push({ kind: 'value', id, metric, counter, intact: Buffer.compare(value, tailOf(counter)) === 0 })
  }
  return frames
}

/** Everything that a queue sends with a window without end; `read` gives the frames of a block. */
export function deliver(queue: Queue, read: (block: number) => Uint8Array | undefined): (Value | ToldGap)[] {
  const frames: (Value | ToldGap)[] = []
  queue.attach()
  for (;;) {
    const next = queue.next(1 << 30)
    if (next.kind === 'nothing' || next.kind === 'window') return frames
    if (next.kind === 'load') {
      for (const block of queue.readAhead()) queue.loaded(block, read(block.id))
      continue
    }
    frames.push(...framesIn(next.bytes))
    next.chunk?.unhold()
  }
}

export function isDamage(gap: ToldGap): boolean {
  return gap.reason === GapReason.damaged
}
