/**
 * What a channel's queue consists of. The files beside it act on it, each with one purpose: `appending`, `sending`,
 * `settling`, `limits`, `storing`; `queue.ts` is the door. Nothing outside this folder touches the state.
 */
import type { Overflow } from '../../storage/store.ts'
import type { Block } from './block.ts'
import type { GapEntry } from './gap.ts'
import { Lane } from './lane.ts'
import { QueueLedger } from './ledger.ts'
import type { Pool } from './pool.ts'

/** What several queues together hold and may hold: those of a tenant [MON 8 Limits]. */
export interface SharedLimit {
  /** Of VALUE frames that are not settled. */
  bytes: number
  readonly limit: number
}

export interface QueueSettings {
  readonly durable: boolean
  readonly window: number
  readonly windowBytes: number
  readonly maxBytes: number
  readonly maxAgeMs: number
  readonly overflow: Overflow
}

/** What a queue needs around it; the registry hands it in. */
export interface QueueHost {
  readonly pool: Pool
  /** A new id for a block or a GAP. */
  nextId(): number
  /** The age clock, ms: monotonic, going on while the server is down. */
  age(): number
  /** The same, read once in a turn: for values. */
  stamp(): number
  /** The disk is full, or too much waits to be stored: durable channels take nothing more. */
  readonly refusing: 'full' | 'overflow' | undefined
  /** Bytes of all durable channels that no durable batch holds yet. */
  unstored: number
}

/** What the queue tells its surroundings; set once by the channel. */
export interface QueueListener {
  /** Something is to be stored. */
  changed(): void
  /** Something is to be sent. */
  ready(): void
  /** The value of an EXECUTE's result is committed or dropped. */
  resultGone(id: number): void
}

/** A GET, SUBSCRIBE ... whose response is not out yet: nothing from `from` on is sent before. */
export interface SendBarrier {
  readonly from: number
}

export class QueueState {
  readonly channel: number
  settings: QueueSettings
  readonly host: QueueHost
  readonly share: SharedLimit
  readonly listener: QueueListener
  readonly ledger = new QueueLedger()
  readonly sending = new Lane(0)
  /** By metric id. */
  readonly waiting = new Map<number, Lane>()
  /** Metric id -> transaction id up to which its values are passed over. */
  readonly stops = new Map<number, number>()
  /** keep-latest: the key of each frame template seen. */
  readonly keys = new WeakMap<Uint8Array, string>()

  /** The first id of the channel, the next one, and those reserved on disk. */
  origin: number
  next: number
  reserved: number
  /** The next one when the last durable batch was taken: what has ids from here on may not be on disk, be it a GAP. */
  storedNext: number
  /** Age of the last value, for giving the range back. */
  lastAppend = Number.NEGATIVE_INFINITY

  connected = false
  /** The window keeps back what could be sent. */
  standsStill = false
  inFlight = 0
  inFlightGaps = 0
  inFlightBytes = 0
  /** Bytes of VALUE frames that are not settled. */
  bytes = 0
  /** Bytes of frames held in memory. */
  resident = 0
  unsentGaps = 0
  readonly holds = new Set<SendBarrier>()

  /** Blocks and GAPs with something to store; blocks and GAPs to be removed from the store. */
  dirtyBlocks: Block[] | undefined
  dirtyGaps: GapEntry[] = []
  removedBlocks: number[] = []
  removedGaps: number[] = []
  movedBlocks: Block[] = []
  numbersChanged = false
  /** Of the batch on its way: its blocks, the ids that it reserves up to, and the next one when it was taken. */
  takenBlocks: readonly Block[] | undefined
  takenReserving = 0
  takenNext = 0

  constructor(
    channel: number,
    origin: number,
    settings: QueueSettings,
    host: QueueHost,
    listener: QueueListener,
    share: SharedLimit,
  ) {
    this.channel = channel
    this.origin = origin
    this.next = origin
    this.reserved = origin
    this.storedNext = origin
    this.settings = settings
    this.host = host
    this.share = share
    this.listener = listener
  }

  /** Ids from here on must not be sent yet: not reserved on disk, or held back for a response. */
  get sendLimit(): number {
    let limit = this.settings.durable ? this.reserved : Number.POSITIVE_INFINITY
    for (const hold of this.holds) limit = Math.min(limit, hold.from)
    return limit
  }

  *lanes(): IterableIterator<Lane> {
    yield this.sending
    yield* this.waiting.values()
  }

  lane(id: number): Lane | undefined {
    return id === 0 ? this.sending : this.waiting.get(id)
  }

  /** The lane of that id, made if it is not there. */
  openLane(id: number): Lane {
    let lane = this.lane(id)
    if (lane === undefined) {
      lane = new Lane(id)
      this.waiting.set(id, lane)
    }
    return lane
  }

  touch(block: Block): void {
    if (!this.settings.durable) return
    if (!block.dirty) {
      block.dirty = true
      // An array made by `push` has room for 17: ten thousand channels with a value a second felt it.
      if (this.dirtyBlocks) this.dirtyBlocks.push(block)
      else this.dirtyBlocks = [block]
    }
    this.changed()
  }

  touchGap(gap: GapEntry): void {
    if (!this.settings.durable) return
    if (!gap.dirty) {
      gap.dirty = true
      this.dirtyGaps.push(gap)
    }
    this.changed()
  }

  changed(): void {
    if (this.numbersChanged || !this.settings.durable) return
    this.numbersChanged = true
    this.listener.changed()
  }
}
