/**
 * The consumer's side of the model: connections, what is sent on them, window and order, COMMITs, and responses that hold
 * values back.
 */
import { MessageId } from '../../../../../protocol/monitor/constants.ts'
import { getUint53 } from '../../../../../server/kernel/channels/block.ts'
import type { Slice } from '../../../../../server/kernel/channels/delivery.ts'
import type { GapEntry } from '../../../../../server/kernel/channels/gap.ts'
import type { SendBarrier } from '../../../../../server/kernel/channels/window.ts'
import type { Random } from '../../../../support/random.ts'
import { type Place, type Shadow, same, type Value } from './shadow.ts'
import { CHANNELS, frameOf, framesIn, type SentFrame, type World } from './world.ts'

export class Consumer {
  readonly #world: World
  readonly #random: Random
  readonly holds = CHANNELS.map((): SendBarrier[] => [])
  /** Slices that a link has not written yet. */
  #slices: { readonly slice: Slice; readonly bytes: Uint8Array }[] = []

  constructor(world: World, random: Random) {
    this.#world = world
    this.#random = random
  }

  #shadow(index: number): Shadow {
    return this.#world.shadows[index]!
  }

  attach(index: number): void {
    const shadow = this.#shadow(index)
    this.#detach(shadow)
    shadow.queue.attach()
    shadow.attached = true
    shadow.lastId = 0
    shadow.check({ why: () => undefined })
  }

  /** Most consumers are there soon after the start. */
  comeBack(): void {
    for (const index of CHANNELS.keys()) if (this.#random.below(4) > 0) this.attach(index)
  }

  detach(index: number): void {
    this.#detach(this.#shadow(index))
  }

  #detach(shadow: Shadow): void {
    const flew = new Set(shadow.flying)
    const keepsLatest = shadow.queue.settings.overflow === 'keep-latest'
    const must: Value[] = []
    // The newest of each series, from behind.
    const newest = new Set<string>()
    for (const entry of [...shadow.view.order].reverse()) {
      if (!keepsLatest || 'kind' in entry || entry.lane.id !== 0 || entry.value.exempt) continue
      if (this.#world.restored.has(entry.value)) continue
      const series = `${entry.value.metric} ${entry.value.series}`
      if (newest.has(series)) must.push(entry.value)
      newest.add(series)
    }
    shadow.flying.clear()
    shadow.flyingGaps.clear()
    shadow.queue.detach()
    shadow.attached = false
    shadow.check({
      why: ({ value }) => (keepsLatest && flew.has(value) && !value.exempt ? 'superseded' : undefined),
      must,
    })
  }

  /** A link with room for `budget` bytes. */
  async send(index: number, budget: number): Promise<void> {
    const shadow = this.#shadow(index)
    const { queue } = shadow
    if (!shadow.attached) return
    let expected = this.#toSend(shadow)
    let sent = new Set<Value>()
    let sentGaps = new Set<GapEntry>()
    const settle = (damaged?: ReadonlySet<unknown>): void => {
      const { durable } = queue.settings
      shadow.check({
        why: (place) => {
          if (!durable && sent.has(place.value)) return 'committed'
          if (damaged?.has(place.block) && !shadow.flying.has(place.value)) return 'damaged'
          return isStopped(shadow, place) && !shadow.flying.has(place.value) ? 'stopped' : undefined
        },
        must: durable ? [] : sent,
        gap: (gap) => !durable && sentGaps.has(gap),
      })
      expected = this.#toSend(shadow)
      sent = new Set()
      sentGaps = new Set()
    }
    while (budget > 0) {
      const mayExceed = this.#random.below(2) === 0
      const next = queue.next(budget, mayExceed)
      if (next.kind === 'nothing') break
      if (next.kind === 'window') {
        same(this.#isWindowFull(shadow, expected[0]), true, 'the window is full')
        break
      }
      if (next.kind === 'load') {
        settle()
        const damaged = new Set<unknown>()
        for (const block of queue.readAhead()) {
          const bytes = await this.#world.read(block)
          if (bytes === undefined) damaged.add(block)
          queue.loaded(block, bytes)
        }
        settle(damaged)
        continue
      }
      const isSingle = framesIn(next.bytes).length === 1
      same(next.bytes.length <= budget || (mayExceed && isSingle), true, 'no more than the link has room for')
      budget -= next.bytes.length
      for (const frame of framesIn(next.bytes)) {
        const entry = expected.shift()
        this.#checkSent(index, frame, entry)
        if (entry === undefined) continue
        if ('kind' in entry) {
          sentGaps.add(entry)
          if (queue.settings.durable) shadow.flyingGaps.add(entry)
        } else {
          sent.add(entry.value)
          if (queue.settings.durable) shadow.flying.add(entry.value)
        }
        this.#checkWindow(shadow)
      }
      this.#slices.push({ slice: next, bytes: next.bytes.slice() })
    }
    settle()
    if (this.#random.below(2) === 0) this.drained()
  }

  /** Links have written what they were given. */
  drained(): void {
    for (const { slice, bytes } of this.#slices) {
      same(Buffer.compare(slice.bytes, bytes), 0, 'bytes change while a link holds them')
      slice.chunk?.unhold()
    }
    this.#slices = []
  }

  #toSend(shadow: Shadow): (Place | GapEntry)[] {
    return shadow.view.order.filter((entry) => {
      if ('kind' in entry) return entry.lane === 0 && !shadow.flyingGaps.has(entry)
      return entry.lane.id === 0 && !shadow.flying.has(entry.value) && !isStopped(shadow, entry)
    })
  }

  #checkSent(index: number, { metric, id, time, frame }: SentFrame, entry: Place | GapEntry | undefined): void {
    const shadow = this.#shadow(index)
    if (entry === undefined) throw new Error(`nothing was to be sent, but ${id} was`)
    const { durable } = shadow.queue.settings
    if ('kind' in entry) {
      same(metric, MessageId.GAP, 'a GAP')
      same(id, entry.transaction, 'id of a GAP')
      const view = new DataView(frame.buffer)
      same(view.getUint32(16), entry.metric, 'metric of a GAP')
      same(getUint53(view, 20), entry.count, 'count of a GAP')
    } else {
      same(time, entry.value.time, 'the next value')
      same(id, entry.id, 'id of a value')
      same(Buffer.compare(frame, frameOf(entry.value, id)), 0, 'bytes of a value')
    }
    if (!durable) return
    same(id > shadow.lastId, true, 'ids ascend on a connection')
    shadow.lastId = id
    same(id < this.#world.reserved[index]!, true, 'a sent id is reserved on disk')
    for (const { from } of this.holds[index]!) same(id < from, true, 'a hold holds')
    if ('kind' in entry) return
    const given = this.#world.given[index]!
    if (given.has(id)) same(given.get(id)?.time, time, `what transaction ${id} means`)
    given.set(id, entry.value)
  }

  #flyingBytes(shadow: Shadow): number {
    let bytes = 0
    for (const value of shadow.flying) bytes += value.bytes
    return bytes
  }

  #checkWindow(shadow: Shadow): void {
    const { window, windowBytes } = shadow.queue.settings
    const count = shadow.flying.size + shadow.flyingGaps.size
    if (count <= 1) return
    same(count <= window, true, 'within the window')
    if (this.#world.uniform) same(this.#flyingBytes(shadow) <= windowBytes, true, 'within the window of bytes')
  }

  #isWindowFull(shadow: Shadow, next: Place | GapEntry | undefined): boolean {
    const { window, windowBytes } = shadow.queue.settings
    const count = shadow.flying.size + shadow.flyingGaps.size
    if (count >= window || !this.#world.uniform || next === undefined) return count > 0
    const more = 'kind' in next ? 0 : next.value.bytes
    return count > 0 && this.#flyingBytes(shadow) + more >= windowBytes
  }

  commit(index: number): void {
    const shadow = this.#shadow(index)
    const values = [...shadow.flying].map((value) => shadow.view.places.get(value)?.id ?? 0)
    const ids = [...values, ...[...shadow.flyingGaps].map(({ transaction }) => transaction)].sort((a, b) => a - b)
    switch (this.#random.below(9)) {
      case 0:
      case 1:
        for (const id of ids.slice(0, 1 + this.#random.below(20))) this.commitOne(index, id, false)
        return
      case 2:
        for (let count = this.#random.below(10); count > 0; count--) {
          if (ids.length > 0) this.commitOne(index, this.#random.pick(ids), false)
        }
        return
      case 3:
        if (ids.length > 0) this.commitOne(index, this.#random.pick(ids), true)
        return
      case 4: {
        const alive = [...shadow.view.places.values()].filter(({ id }) => id !== 0)
        if (alive.length > 0) this.commitOne(index, this.#random.pick(alive).id, this.#random.below(2) === 0)
        return
      }
      case 5: {
        const given = [...this.#world.given[index]!.keys()]
        if (given.length > 0) this.commitOne(index, this.#random.pick(given), this.#random.below(2) === 0)
        return
      }
      case 6:
        for (const { transaction } of shadow.flyingGaps) this.commitOne(index, transaction, false)
        return
      case 7:
        if (ids.length > 0) this.commitOne(index, ids.at(-1)!, true)
        return
      default:
        for (const id of [1, 2 ** 40, Number.MAX_SAFE_INTEGER]) same(shadow.queue.commit(id, true), false, 'unknown id')
        same(shadow.queue.commit(0, true), true, 'COMMIT 0')
        shadow.check({ why: () => undefined })
    }
  }

  commitOne(index: number, id: number, through: boolean): void {
    const shadow = this.#shadow(index)
    const must = new Set<Value>()
    for (const { value, id: of } of shadow.view.places.values()) {
      if (of !== 0 && (of === id || (through && of < id && shadow.flying.has(value)))) must.add(value)
    }
    const isMeant = (gap: GapEntry): boolean =>
      gap.lane === 0 && (gap.transaction === id || (through && gap.transaction < id && shadow.flyingGaps.has(gap)))
    const gaps = [...shadow.view.gaps.keys()].filter(isMeant)
    same(shadow.queue.commit(id, through), shadow.queue.settings.durable, 'COMMIT of a given id')
    if (!shadow.queue.settings.durable) return
    shadow.check({ why: ({ value }) => (must.has(value) ? 'committed' : undefined), must, gap: isMeant })
    for (const gap of gaps) same(gap.settled, true, 'a GAP is committed')
  }

  hold(index: number): void {
    const holds = this.holds[index]!
    const { queue } = this.#shadow(index)
    if (holds.length === 0) holds.push(queue.holdBack())
    else holds.shift()!.release()
  }
}

/** STOP passes it over. */
function isStopped(shadow: Shadow, { value, block, ordinal, lane }: Place): boolean {
  const through = shadow.queue.stops.get(value.metric)
  return lane.id === 0 && through !== undefined && block.first + ordinal <= through
}
