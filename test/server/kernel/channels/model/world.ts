/**
 * Two queues with a journal over a store, as the server has them, but turned by hand: the outbox, the consumer and the
 * registry are the test. Everything random comes from one seed.
 */

import { FRAME_METRIC, FRAME_TIME, FRAME_TRANSACTION } from '../../../../../protocol/monitor/message.ts'
import type { Block } from '../../../../../server/kernel/channels/block.ts'
import { getUint53, setUint53 } from '../../../../../server/kernel/channels/block.ts'
import { Intake } from '../../../../../server/kernel/channels/intake.ts'
import { Journal } from '../../../../../server/kernel/channels/journal.ts'
import { Pool } from '../../../../../server/kernel/channels/pool.ts'
import { Queue } from '../../../../../server/kernel/channels/queue.ts'
import type { QueueSettings } from '../../../../../server/kernel/channels/queue-host.ts'
import { TurnScheduler } from '../../../../../server/kernel/channels/turn-scheduler.ts'
import {
  type Batch,
  BLOCK_WIDTH,
  CHANNEL_WIDTH,
  GAP_WIDTH,
  type Recovered,
  type Store,
  type StoreEvents,
} from '../../../../../storage/store.ts'
import { FakeClock } from '../../../../support/fake-clock.ts'
import { HandHost } from '../../../../support/hand-host.ts'
import { Shadow, same, type Value, type View } from './shadow.ts'

/** A store that completes its batch, and can be killed. */
export interface Storage {
  readonly store: Store
  /** The batch in flight is durable. */
  complete(): Promise<void>
  /** What a restart finds. */
  crash(): Promise<Storage>
  close(): Promise<void>
  /** Only where it can be done. */
  setFull?(full: boolean): void
  damage?(block: number): void
}

/** What was stored with a batch, of one queue. */
interface Snapshot {
  readonly view: View
  readonly contents: ReadonlyMap<number, Value[]>
  readonly stops: ReadonlyMap<number, number>
  /** The number of marks that were taken before. */
  readonly marks: number
}

class HandTurn extends TurnScheduler {
  override schedule(): void {}
}

export const CHANNELS = [1, 2] as const
/** High enough that ids need their upper half. */
const ORIGIN = 2 ** 40 + 1

export class World {
  readonly settings: readonly QueueSettings[]
  readonly host = new HandHost(1_000)
  storage: Storage
  journal: Journal
  intake: Intake
  /** The number of marks that were taken. */
  marks = 0
  shadows: Shadow[] = []
  /** Ids of values that were ever sent, by channel: none may ever mean another. */
  readonly given = CHANNELS.map(() => new Map<number, Value>())
  /** Blocks that a read found damaged. */
  readonly setAside = new Set<number>()
  /** Values that came back from the store: keep-latest does not know their series any more. */
  restored = new Set<Value>()
  /** Ids reserved on disk, by channel. */
  readonly reserved: number[] = CHANNELS.map(() => ORIGIN)
  #inFlight: { snapshots: Snapshot[]; reserved: number[] } | undefined
  stored: Snapshot[] = []

  readonly uniform: boolean

  constructor(storage: Storage, settings: readonly QueueSettings[], uniform: boolean) {
    this.uniform = uniform
    this.settings = settings
    this.storage = storage
    this.journal = this.#newJournal()
    this.intake = this.#newIntake()
  }

  async open(): Promise<void> {
    await this.storage.store.open(this.#events())
    this.shadows = CHANNELS.map((_, index) => new Shadow(this.#newQueue(index), this.uniform))
    this.stored = this.#snapshots()
  }

  #newJournal(): Journal {
    const write = (batch: Batch): void => {
      const { channels } = batch
      const reserved = [...this.reserved]
      for (let at = 0; at < channels.length; at += CHANNEL_WIDTH) reserved[channels[at]! - 1] = channels[at + 3]!
      this.#inFlight = { snapshots: this.#snapshots(), reserved }
      this.storage.store.write(batch)
    }
    return new Journal({ write }, new HandTurn(new FakeClock()), {
      age: () => this.host.now,
      wallMs: () => this.host.now,
    })
  }

  #newIntake(): Intake {
    const { journal, host } = this
    return new Intake({ host, journal, storage: { state: 'ok', isBehind: () => false }, whenAsked: () => undefined })
  }

  #newQueue(index: number): Queue {
    const queue: Queue = new Queue(CHANNELS[index]!, ORIGIN, this.settings[index]!, this.host, {
      changed: () => this.journal.touch(queue),
      ready: () => {},
      awaited() {},
      resultGone: () => {},
    })
    return queue
  }

  #events(): StoreEvents {
    return {
      onDurable: (number) => {
        const batch = this.#inFlight
        if (batch === undefined) throw new Error('no batch is in flight')
        this.#inFlight = undefined
        this.stored = batch.snapshots
        batch.reserved.forEach((reserved, index) => {
          this.reserved[index] = reserved
        })
        this.journal.onDurable(number)
      },
      onFull: () => {
        this.host.refusing = 'full'
      },
      onRoom: () => {
        this.host.refusing = undefined
      },
      onFailed: (error) => {
        throw error
      },
    }
  }

  #snapshots(): Snapshot[] {
    return this.shadows.map((shadow) => {
      const contents = new Map<number, Value[]>()
      for (const lane of shadow.queue.lanes()) {
        for (const entry of lane) {
          if (entry.kind === 'block') contents.set(entry.id, [...(shadow.contents.get(entry) ?? [])])
        }
      }
      return { view: shadow.look(), contents, stops: new Map(shadow.queue.stops), marks: this.marks }
    })
  }

  readonly read = async (block: Block): Promise<Uint8Array | undefined> => {
    const [found] = await this.storage.store.read([block.id])
    if (found?.bytes === undefined) this.setAside.add(block.id)
    return found?.bytes
  }

  get batchInFlight(): boolean {
    return this.#inFlight !== undefined
  }

  /** The process dies and starts again. */
  async crash(): Promise<void> {
    this.storage = await this.storage.crash()
    const { stored } = this
    this.#inFlight = undefined
    this.host.refusing = undefined
    this.host.unstored = 0
    this.host.pool = new Pool()
    this.intake.end()
    this.journal = this.#newJournal()
    this.intake = this.#newIntake()
    const recovered = await this.storage.store.open(this.#events())
    this.host.id = Math.max(this.host.id, recovered.nextBlockId)
    this.shadows = CHANNELS.map((_, index) => this.#restore(index, recovered, stored[index]!))
  }

  /** As the registry does it; and what comes back is what was stored. */
  #restore(index: number, recovered: Recovered, stored: Snapshot): Shadow {
    const channel = CHANNELS[index]!
    const queue = this.#newQueue(index)
    const shadow = new Shadow(queue, this.uniform)
    const { numbers, blocks, gaps, settled } = recovered
    let state = { floor: ORIGIN, clean: true }
    for (let row = 0; row * CHANNEL_WIDTH < numbers.length; row++) {
      if (numbers[row * CHANNEL_WIDTH] === channel) state = queue.restoreNumbers(numbers, row)
    }
    const clean = queue.settings.durable ? this.reserved[index]! <= this.#nextOf(numbers, channel) : true
    same(state.clean, clean, 'clean end')
    for (let row = 0; row * BLOCK_WIDTH < blocks.length; row++) {
      const [id, of] = blocks.subarray(row * BLOCK_WIDTH)
      if (of !== channel) continue
      const block = queue.restoreBlock(blocks, row, state.floor, settled.get(id!))
      shadow.contents.set(block, stored.contents.get(id!) ?? [])
    }
    for (let row = 0; row * GAP_WIDTH < gaps.length; row++) {
      if (gaps[row * GAP_WIDTH + 1] === channel) queue.restoreGap(gaps, row)
    }
    for (const [metric, through] of stored.stops) queue.restoreStop(metric, through)
    for (const { value, id } of stored.view.places.values()) if (value.exempt) queue.restoreResult(id)
    const before = queue.status()
    queue.recovered(state.clean)
    shadow.view = shadow.look()
    this.#compare(shadow, stored, before.dropped.damaged, state.clean)
    return shadow
  }

  #nextOf(numbers: Float64Array, channel: number): number {
    for (let at = 0; at < numbers.length; at += CHANNEL_WIDTH) if (numbers[at] === channel) return numbers[at + 2]!
    return ORIGIN
  }

  #compare(shadow: Shadow, stored: Snapshot, damagedBefore: number, clean: boolean): void {
    const { view, queue } = shadow
    same(queue.imbalance, 0, 'imbalance after a restart')
    if (!queue.settings.durable) {
      same(queue.empty, true, 'a channel that is not durable keeps nothing')
      return
    }
    let missing = 0
    for (const [value, { block, ordinal, lane, id }] of stored.view.places) {
      const place = view.places.get(value)
      if (place === undefined && this.setAside.has(block.id)) {
        missing++
        continue
      }
      if (place === undefined) throw new Error(`value ${value.time} was stored and is lost`)
      same(`${place.id} ${place.lane.id} ${place.ordinal}`, `${id} ${lane.id} ${ordinal}`, 'place of a stored value')
    }
    same(view.places.size, stored.view.places.size - missing, 'values after a restart')
    same(view.status.dropped.damaged - damagedBefore, missing, 'damaged values after a restart')
    const gaps = stored.view.gaps.size + (missing > 0 ? 1 : 0) + (clean ? 0 : 1)
    same(view.gaps.size, gaps, 'GAPs after a restart')
    const sum = (counts: Iterable<number>): number => [...counts].reduce((a, b) => a + b, 0)
    same(sum(view.gaps.values()), sum(stored.view.gaps.values()) + missing, 'values reported after a restart')
    same(view.status.accepted, stored.view.status.accepted, 'accepted after a restart')
    same(view.status.committed, stored.view.status.committed, 'committed after a restart')
  }
}

/** A template of metric and series. */
export function headOf(metric: number, series: number): Uint8Array {
  const head = new Uint8Array(series === 0 ? 24 : 28)
  const view = new DataView(head.buffer)
  view.setUint32(FRAME_METRIC, metric)
  if (series > 0) view.setUint32(24, series)
  return head
}

/** The rest of a frame: every byte tells which value it is of. */
export function tailOf(bytes: number, time: number): Uint8Array {
  return new Uint8Array(bytes).fill(time % 251)
}

export interface SentFrame {
  readonly metric: number
  readonly id: number
  readonly time: number
  readonly frame: Uint8Array
}

export function framesIn(bytes: Uint8Array): SentFrame[] {
  const frames: SentFrame[] = []
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  for (let at = 0; at < bytes.length; ) {
    const end = at + 4 + view.getUint32(at)
    const metric = view.getUint32(at + FRAME_METRIC)
    const id = getUint53(view, at + FRAME_TRANSACTION)
    frames.push({ metric, id, time: getUint53(view, at + FRAME_TIME), frame: bytes.slice(at, end) })
    at = end
  }
  return frames
}

/** The whole frame of a value, made without the queue. */
export function frameOf(value: Value, id: number): Uint8Array {
  const head = headOf(value.metric, value.series)
  const frame = new Uint8Array(value.bytes).fill(value.time % 251)
  frame.set(head)
  const view = new DataView(frame.buffer)
  view.setUint32(0, value.bytes - 4)
  setUint53(view, FRAME_TRANSACTION, id)
  setUint53(view, FRAME_TIME, value.time)
  return frame
}
