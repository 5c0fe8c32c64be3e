/**
 * What the model knows of one queue. It does not repeat the queue's arithmetic: it looks at what is left in the lanes after
 * every step and wants a cause for each value that is gone, the same count in the ledger, and a GAP for what must be reported.
 */
import assert from 'node:assert/strict'
import { GapReason } from '../../../../../protocol/monitor/constants.ts'
import type { Block } from '../../../../../server/kernel/channels/block.ts'
import type { GapEntry } from '../../../../../server/kernel/channels/gap.ts'
import type { Lane } from '../../../../../server/kernel/channels/lane.ts'
import type { DropCause } from '../../../../../server/kernel/channels/ledger.ts'
import type { Queue } from '../../../../../server/kernel/channels/queue.ts'
import type { QueueStatus } from '../../../../../server/kernel/channels/queue-status.ts'

/** A value as the test made it. `time` is unique. */
export interface Value {
  readonly time: number
  readonly metric: number
  readonly series: number
  readonly bytes: number
  readonly stamp: number
  readonly exempt: boolean
}

export type Cause = DropCause | 'committed'

/** Where a value is that is neither committed nor dropped. */
export interface Place {
  readonly value: Value
  readonly lane: Lane
  readonly block: Block
  readonly ordinal: number
  /** 0 while it waits, or on a channel that is not durable. */
  readonly id: number
}

export interface View {
  readonly places: ReadonlyMap<Value, Place>
  /** Lane by lane, in order. */
  readonly order: readonly (Place | GapEntry)[]
  readonly gaps: ReadonlyMap<GapEntry, number>
  readonly status: QueueStatus
}

export interface Gone {
  /** Why a value may be gone; undefined: it must not be. */
  readonly why: (place: Place) => Cause | undefined
  /** Values that must be gone. */
  readonly must?: Iterable<Value>
  /** Values that were offered in this step and are not there: why. */
  readonly refused?: readonly { readonly value: Value; readonly cause: Cause }[]
  /** GAPs that may be gone: sent and committed, or discarded. */
  readonly gap?: (gap: GapEntry) => boolean
}

const untold: readonly Cause[] = ['committed', 'superseded', 'stopped']

export class Shadow {
  queue: Queue
  /** Values of each block, by ordinal. */
  contents = new WeakMap<Block, Value[]>()
  /** Handed to the connection that is there now. */
  readonly flying = new Set<Value>()
  readonly flyingGaps = new Set<GapEntry>()
  attached = false
  /** The highest id sent on this connection. */
  lastId = 0
  view: View

  /** All values have the same size. */
  readonly uniform: boolean

  constructor(queue: Queue, uniform: boolean) {
    this.queue = queue
    this.uniform = uniform
    this.view = this.look()
  }

  look(): View {
    const places = new Map<Value, Place>()
    const order: (Place | GapEntry)[] = []
    const gaps = new Map<GapEntry, number>()
    for (const lane of this.queue.lanes()) {
      for (const entry of lane) {
        if (entry.kind === 'gap') {
          if (entry.settled) continue
          gaps.set(entry, entry.count)
          order.push(entry)
        } else {
          for (const place of this.#placesOf(lane, entry)) {
            places.set(place.value, place)
            order.push(place)
          }
        }
      }
    }
    return { places, order, gaps, status: this.queue.status() }
  }

  *#placesOf(lane: Lane, block: Block): IterableIterator<Place> {
    const values = this.contents.get(block) ?? []
    same(values.length, block.count, 'values of a block')
    let left = 0
    for (const [ordinal, value] of values.entries()) {
      if (block.isSettled(ordinal)) continue
      left++
      const id = lane.id === 0 && this.queue.settings.durable ? block.first + ordinal : 0
      yield { value, lane, block, ordinal, id }
    }
    same(left, block.unsettled, 'left in a block')
  }

  /** After a step: what is gone has the right cause, and is counted and reported. */
  check({ why, must = [], refused = [], gap = () => false }: Gone): void {
    const before = this.view
    const after = this.look()
    this.view = after
    const causes = new Map<Cause, number>()
    const losses: { value: Value; cause: Cause }[] = []
    const book = (value: Value, cause: Cause): void => {
      causes.set(cause, (causes.get(cause) ?? 0) + 1)
      if (!untold.includes(cause)) losses.push({ value, cause })
    }
    for (const value of must) same(after.places.has(value), false, `value ${value.time} must be gone`)
    for (const [value, place] of before.places) {
      if (after.places.has(value)) continue
      const cause = why(place)
      if (cause === undefined) throw new Error(`value ${value.time} is gone without a cause`)
      this.flying.delete(value)
      book(value, cause)
    }
    for (const { value, cause } of refused) book(value, cause)
    this.#checkLedger(before.status, after.status, causes)
    this.#checkTold(before, after, losses, gap)
    this.#checkState(after)
  }

  #checkLedger(before: QueueStatus, after: QueueStatus, causes: ReadonlyMap<Cause, number>): void {
    same(after.committed - before.committed, causes.get('committed') ?? 0, 'committed')
    for (const cause of Object.keys(after.dropped) as DropCause[]) {
      same(after.dropped[cause] - before.dropped[cause], causes.get(cause) ?? 0, cause)
    }
  }

  #checkTold(
    before: View,
    after: View,
    losses: readonly { value: Value; cause: Cause }[],
    mayGo: (gap: GapEntry) => boolean,
  ): void {
    let expected = losses.length
    for (const [gap, count] of before.gaps) {
      if (after.gaps.has(gap)) {
        if (gap.wasSent && this.flyingGaps.has(gap)) same(gap.count, count, 'a GAP that was sent')
        expected += count
      } else if (!mayGo(gap)) {
        // It went into another one, which happens to GAPs beyond the 1,024th only.
        expected += count
      }
    }
    for (const gap of this.flyingGaps) if (!after.gaps.has(gap)) this.flyingGaps.delete(gap)
    let reported = 0
    for (const count of after.gaps.values()) reported += count
    same(reported, expected, 'values reported by GAPs')
    for (const { value, cause } of losses) {
      const covered = [...after.gaps.keys()].some((gap) => gap.reason === reasonOf(cause) && covers(gap, value))
      if (!covered) throw new Error(`no GAP covers value ${value.time}, lost by ${cause}`)
    }
  }

  #checkState(after: View): void {
    const { queue, flying } = this
    same(queue.imbalance, 0, 'imbalance')
    const { status } = after
    same(status.inFlight, flying.size, 'in flight')
    same(status.queued, after.places.size - flying.size, 'queued')
    let resident = 0
    let [last, unstored, unsentGaps] = [0, 0, 0]
    const blocks = new Set<Block>()
    for (const entry of after.order) {
      if ('kind' in entry) {
        if (!entry.wasSent) unsentGaps++
        if (entry.lane !== 0 || !queue.settings.durable) continue
        assert.ok(entry.transaction > last, 'ids ascend')
        last = entry.transaction
        continue
      }
      blocks.add(entry.block)
      if (entry.ordinal >= entry.block.durable) unstored++
      if (entry.id === 0) continue
      assert.ok(entry.id > last, 'ids ascend')
      last = entry.id
    }
    for (const block of blocks) resident += block.size
    same(queue.resident, resident, 'resident')
    same(status.unstored, unstored, 'unstored')
    let bytes = 0
    for (const value of after.places.keys()) if (!flying.has(value)) bytes += value.bytes
    // Sizes that differ are booked by their average, block by block.
    if (this.uniform) same(status.queuedBytes, bytes, 'queued bytes')
    else assert.ok(status.queuedBytes >= 0, `queued bytes: ${status.queuedBytes}`)
    assert.ok(unsentGaps <= 1024, 'unsent GAPs')
    const empty = after.places.size === 0 && after.gaps.size === 0
    same(queue.empty, empty, 'empty')
  }
}

function reasonOf(cause: Cause): number | undefined {
  return cause in GapReason ? GapReason[cause as keyof typeof GapReason] : undefined
}

function covers(gap: GapEntry, value: Value): boolean {
  const inTime = (gap.from === 0 || gap.from <= value.time) && (gap.to === 0 || gap.to >= value.time)
  return inTime && (gap.metric === 0 || gap.metric === value.metric)
}

/** assert.equal hides the two when it has a message. */
export function same(actual: unknown, expected: unknown, what: string): void {
  if (actual !== expected) throw new assert.AssertionError({ message: `${what}: ${actual}, not ${expected}` })
}
