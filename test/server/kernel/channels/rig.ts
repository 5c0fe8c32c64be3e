/** A queue over a store in memory, turned by hand: what the server does with it by timers and sockets, tests do by calls. */

import { FRAME_METRIC, FRAME_TIME, FRAME_TRANSACTION } from '../../../../protocol/monitor/message.ts'
import type { Block } from '../../../../server/kernel/channels/block.ts'
import { getUint53, writeFrame } from '../../../../server/kernel/channels/block.ts'
import { Journal } from '../../../../server/kernel/channels/journal.ts'
import { Queue } from '../../../../server/kernel/channels/queue.ts'
import type { QueueSettings, SharedLimit } from '../../../../server/kernel/channels/queue-host.ts'
import { TurnScheduler } from '../../../../server/kernel/channels/turn-scheduler.ts'
import { type Batch, BLOCK_WIDTH, CHANNEL_WIDTH, GAP_WIDTH, type Recovered } from '../../../../storage/store.ts'
import { FakeClock } from '../../../support/fake-clock.ts'
import { HandHost } from '../../../support/hand-host.ts'
import { MemoryStore } from '../../../support/memory-store/store.ts'

export const ORIGIN = 100

export const SETTINGS: QueueSettings = {
  durable: true,
  window: 65_536,
  windowBytes: 8 << 20,
  maxBytes: 64 << 20,
  maxAgeMs: 60_000,
  overflow: 'drop-oldest',
}

/** `VALUE 7 100 @1` or `GAP 7 104 x5 @1-5 overflow(1)`: what a consumer reads. */
export function describeFrames(bytes: Uint8Array): string[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const frames: string[] = []
  for (let at = 0; at < bytes.length; at += 4 + view.getUint32(at)) {
    const id = getUint53(view, at + FRAME_TRANSACTION)
    if (view.getUint32(at + FRAME_METRIC) === 0xfffffffc) {
      const [count, from, to] = [getUint53(view, at + 20), getUint53(view, at + 28), getUint53(view, at + 36)]
      frames.push(`GAP ${view.getUint32(at + 16)} ${id} x${count} @${from}-${to} reason ${view.getUint32(at + 44)}`)
    } else {
      frames.push(`VALUE ${view.getUint32(at + FRAME_METRIC)} ${id} @${getUint53(view, at + FRAME_TIME)}`)
    }
  }
  return frames
}

/** Appends a frame to a block that has room for it. */
export function append(block: Block, head: Uint8Array, tail: Uint8Array, transaction: number, time: number): void {
  block.extend(1, writeFrame(block.chunk!, block.length, head, tail, time), transaction)
}

class HandTurn extends TurnScheduler {
  override schedule(): void {}
}

export class Rig {
  readonly host = new HandHost()
  readonly batches: Batch[] = []
  readonly resultsGone: number[] = []
  store: MemoryStore
  journal: Journal
  queue: Queue
  ready = 0
  /** How often a batch was waited for because no ids are reserved. */
  awaited = 0
  #time = 0
  readonly #settings: QueueSettings
  readonly #share: SharedLimit | undefined

  constructor(settings: Partial<QueueSettings> = {}, store = new MemoryStore({ manual: true }), share?: SharedLimit) {
    this.#share = share
    this.#settings = { ...SETTINGS, ...settings }
    this.store = store
    this.journal = this.#newJournal()
    this.queue = this.#newQueue()
  }

  /** Opened and with a consumer. */
  static async connected(settings: Partial<QueueSettings> = {}): Promise<Rig> {
    const rig = new Rig(settings)
    await rig.open()
    rig.queue.attach()
    return rig
  }

  open(): Promise<Recovered> {
    return this.store.open({
      onDurable: (number) => this.journal.onDurable(number),
      onFull: () => {
        this.host.refusing = 'full'
      },
      onRoom: () => {
        this.host.refusing = undefined
      },
      onFailed: () => {},
    })
  }

  #newJournal(): Journal {
    const write = (batch: Batch): void => {
      this.batches.push({ ...batch, blocks: batch.blocks.slice(), channels: batch.channels.slice() })
      this.store.write(batch)
    }
    return new Journal({ write }, new HandTurn(new FakeClock()), { age: () => this.host.now, wallMs: () => 0 })
  }

  #newQueue(): Queue {
    const listener = {
      changed: () => this.journal.touch(queue),
      ready: () => {
        this.ready++
      },
      awaited: () => {
        this.awaited++
      },
      resultGone: (id: number) => this.resultsGone.push(id),
    }
    const queue: Queue = new Queue(1, ORIGIN, this.#settings, this.host, listener, this.#share)
    return queue
  }

  /** Values of a metric, with times 1, 2, 3 ..., `bytes` each. Into its buffer lane, if `waiting`. */
  append(metric: number, count: number, { waiting = false, bytes = 100, head = headOf(metric) } = {}): void {
    for (let i = 0; i < count; i++) {
      this.queue.append(waiting ? metric : 0, head, new Uint8Array(bytes - head.length), ++this.#time)
    }
  }

  /** Makes everything changed so far durable. */
  persist(): void {
    this.journal.atTurnEnd()
    this.store.complete()
  }

  readonly read = async (block: Block): Promise<Uint8Array | undefined> => (await this.store.read([block.id]))[0]?.bytes

  /** Sends what there is to send, at most `bytes`; reads back what is on disk. */
  async send(bytes = 1 << 20): Promise<string[]> {
    const frames: string[] = []
    for (let room = bytes; room > 0; ) {
      const next = this.queue.next(room)
      if (next.kind === 'nothing' || next.kind === 'window') break
      if (next.kind === 'load') {
        for (const block of this.queue.readAhead()) this.queue.loaded(block, await this.read(block))
        continue
      }
      room -= next.bytes.length
      frames.push(...describeFrames(next.bytes))
      next.chunk?.unhold()
    }
    return frames
  }

  /** The process ends now and starts again. True if the end was a clean one. */
  async crash(): Promise<boolean> {
    this.store = this.store.crash()
    this.journal = this.#newJournal()
    this.queue = this.#newQueue()
    this.host.refusing = undefined
    this.host.unstored = 0
    const { numbers, blocks, gaps, settled } = await this.open()
    let state = { floor: ORIGIN, clean: true }
    if (numbers.length >= CHANNEL_WIDTH) state = this.queue.restoreNumbers(numbers, 0)
    for (let row = 0; row * BLOCK_WIDTH < blocks.length; row++) {
      this.queue.restoreBlock(blocks, row, state.floor, settled.get(blocks[row * BLOCK_WIDTH]!))
    }
    for (let row = 0; row * GAP_WIDTH < gaps.length; row++) this.queue.restoreGap(gaps, row)
    this.queue.recovered(state.clean)
    return state.clean
  }
}

/** A template: metric, and constants that tell its series apart. */
export function headOf(metric: number, constants: readonly number[] = []): Uint8Array {
  const head = new Uint8Array(24 + 4 * constants.length)
  const view = new DataView(head.buffer)
  view.setUint32(FRAME_METRIC, metric)
  constants.forEach((constant, index) => {
    view.setUint32(24 + 4 * index, constant)
  })
  return head
}
