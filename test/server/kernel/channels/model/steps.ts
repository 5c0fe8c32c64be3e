/**
 * What can happen to a queue, each as one step: it does something, and tells the shadow what may be gone by it and what
 * must be.
 */

import type { Sensor } from '../../../../../server/kernel/metrics/metric.ts'
import type { Random } from '../../../../support/random.ts'
import { Consumer } from './consumer.ts'
import { type Cause, type Place, type Shadow, same, type Value } from './shadow.ts'
import { CHANNELS, framesIn, headOf, tailOf, type World } from './world.ts'

const METRICS = [7, 8, 9] as const
const RESULT = 99
const SENSOR = {} as Sensor

/** A mark that was taken, and what was appended before it. */
interface Mark {
  readonly number: number
  readonly isRefused: boolean
  readonly values: readonly (readonly [number, Value])[]
}

export class Steps {
  readonly #world: World
  readonly #random: Random
  readonly #heads = new Map<string, Uint8Array>()
  #damaged = new Set<number>()
  readonly #open = new Set<Mark>()
  #last: Mark | undefined
  #broken: unknown
  #time = 1_700_000_000_000_000

  readonly consumer: Consumer

  constructor(world: World, random: Random) {
    this.consumer = new Consumer(world, random)
    this.#world = world
    this.#random = random
  }

  #shadow(index: number): Shadow {
    return this.#world.shadows[index]!
  }

  #newValue(metric: number, exempt = false): Value {
    const random = this.#random
    const series = metric === RESULT ? 0 : random.below(3)
    const head = series === 0 ? 24 : 28
    const tail = this.#world.uniform ? 100 - head : 4 + 4 * random.below(random.below(20) === 0 ? 700 : 30)
    // Times need not ascend.
    this.#time += 8
    const time = this.#time + 4 * random.below(5) + (this.#time % 3)
    return { time, metric, series, bytes: head + tail, stamp: this.#world.host.now, exempt }
  }

  #head({ metric, series }: Value): Uint8Array {
    const key = `${metric} ${series}`
    let head = this.#heads.get(key)
    if (head === undefined) {
      head = headOf(metric, series)
      this.#heads.set(key, head)
    }
    return head
  }

  /**
   * A request: values for both channels, and a mark after them. What it is answered is judged whenever that is. One that
   * `isRepeated` has the values of the last again, which are passed over.
   */
  publish(isRepeated: boolean): void {
    const { host, intake } = this.#world
    const { refused } = host
    const taking = intake.begin(SENSOR)
    if (!isRepeated || this.#last === undefined) {
      const values = CHANNELS.flatMap((_, index) => this.append(index).map((value) => [index, value] as const))
      this.#last = { number: ++this.#world.marks, isRefused: host.refused > refused, values }
    }
    const mark = { ...this.#last, isRefused: host.refused > refused }
    this.#open.add(mark)
    void taking.stored().then((refusal) => {
      this.#open.delete(mark)
      if (refusal !== undefined) return
      try {
        this.#checkYes(mark)
      } catch (error) {
        this.#broken ??= error
      }
    })
  }

  /** What a yes was given for is on the disk, or was gone when that was written. */
  #checkYes({ number, isRefused, values }: Mark): void {
    same(isRefused, false, `mark ${number} is a yes for values that were refused`)
    for (const [index, value] of values) {
      const { queue, view } = this.#shadow(index)
      if (!queue.settings.durable) continue
      const stored = this.#world.stored[index]!
      same(stored.marks >= number, true, `mark ${number} is a yes for a batch that was written after it`)
      const isThere = view.places.has(value)
      if (isThere) same(stored.view.places.has(value), true, `value ${value.time} of mark ${number} is on the disk`)
    }
  }

  /** Throws what a mark has shown since it was asked last; and once everything is stored, or lost, no mark is open. */
  marks(isOver = false): void {
    if (this.#broken !== undefined) throw this.#broken
    if (isOver) same(this.#open.size, 0, 'open marks')
  }

  append(index: number): readonly Value[] {
    const { queue } = this.#shadow(index)
    const count = queue.settings.overflow === 'keep-latest' ? 1 : 1 + this.#random.below(25)
    const lane = this.#random.below(3) === 0 ? this.#random.pick(METRICS) : 0
    const values: Value[] = []
    for (let i = 0; i < count; i++) {
      const value = this.#newValue(lane === 0 ? this.#random.pick(METRICS) : lane)
      const head = this.#head(value)
      queue.append(lane, head, tailOf(value.bytes - head.length, value.time), value.time)
      this.#land(index, lane, value)
      values.push(value)
    }
    this.#checkAppended(index, lane, values)
    return values
  }

  /** Notes in which block a value went, if it got in. */
  #land(index: number, lane: number, value: Value): void {
    const shadow = this.#shadow(index)
    for (const { id, tail } of shadow.queue.lanes()) {
      if (id !== lane || tail?.kind !== 'block') continue
      const values = shadow.contents.get(tail) ?? []
      if (tail.count > values.length) values.push(value)
      shadow.contents.set(tail, values)
    }
  }

  #checkAppended(index: number, lane: number, values: readonly Value[]): void {
    const shadow = this.#shadow(index)
    const { settings } = shadow.queue
    const { refusing } = this.#world.host
    const latest = settings.overflow === 'keep-latest' ? values[0] : undefined
    const isOlder = ({ value, lane: { id } }: Place): boolean =>
      value.metric === latest?.metric && value.series === latest.series && id === lane && !shadow.flying.has(value)
    const before = shadow.view
    const present = shadow.look().places
    const cause: Cause = refusing !== undefined && settings.durable ? 'full' : 'overflow'
    const refused = values.filter((value) => !present.has(value)).map((value) => ({ value, cause }))
    // A value that finds no room supersedes nothing.
    const supersedes = latest !== undefined && present.has(latest)
    const bytes = [...before.places.keys(), ...values].reduce((sum, value) => sum + value.bytes, 0)
    const isTight = !this.#world.uniform || bytes > settings.maxBytes
    const known = [...before.places.values()].filter(({ value }) => !this.#world.restored.has(value))
    shadow.check({
      why: (place) => {
        if (cause === 'full') return undefined
        if (isOlder(place) && !place.value.exempt && !this.#world.restored.has(place.value)) {
          return supersedes ? 'superseded' : undefined
        }
        if (settings.overflow === 'drop-newest' || !isTight) return undefined
        return shadow.flying.has(place.value) || place.value.exempt ? undefined : 'overflow'
      },
      must: !supersedes ? [] : known.filter(isOlder).map(({ value }) => value),
      refused,
    })
    if (this.#world.uniform && settings.overflow !== 'keep-latest') this.#checkBytes(shadow)
    // What was dropped is older than what was kept, lane by lane.
    const kept = new Set<unknown>()
    for (const entry of before.order) {
      if ('kind' in entry || entry.value.exempt || shadow.flying.has(entry.value) || isOlder(entry)) continue
      if (present.has(entry.value)) kept.add(entry.lane)
      else same(kept.has(entry.lane), false, 'an older value was kept and a newer one dropped')
    }
  }

  #checkBytes(shadow: Shadow): void {
    let bytes = 0
    for (const { value } of shadow.view.places.values()) if (!value.exempt) bytes += value.bytes
    same(bytes <= shadow.queue.settings.maxBytes, true, 'within max_bytes')
  }

  result(index: number): void {
    const shadow = this.#shadow(index)
    const value = this.#newValue(RESULT, true)
    const head = this.#head(value)
    const id = shadow.queue.appendResult(head, tailOf(value.bytes - head.length, value.time), value.time)
    this.#land(index, 0, value)
    shadow.check({ why: () => undefined })
    same(shadow.view.places.get(value)?.id, id, 'id of a result')
  }

  release(index: number): void {
    const shadow = this.#shadow(index)
    const metric = this.#random.pick(METRICS)
    shadow.queue.release(metric)
    const keepsLatest = shadow.queue.settings.overflow === 'keep-latest'
    shadow.check({
      why: ({ value, lane }) =>
        keepsLatest && lane.id === 0 && value.metric === metric && !shadow.flying.has(value) ? 'superseded' : undefined,
    })
  }

  /** SUBSCRIBE's copy into the other channel. */
  async copy(index: number): Promise<void> {
    const from = this.#shadow(index)
    const into = this.#shadow(1 - index)
    if (into.queue.settings.overflow === 'keep-latest') return
    const metric = this.#random.pick(METRICS)
    const copies = from.queue.copiesOf(metric, this.#world.read)
    await copies.load()
    const found = copies.now()
    if (found === undefined) throw new Error('frames are missing after they were loaded')
    const frames = found.map(({ frame }) => frame)
    const through = from.queue.stops.get(metric) ?? 0
    const isCopied = ({ value, block, lane, ordinal }: Place): boolean =>
      value.metric === metric &&
      (lane.id === 0 ? block.first + ordinal > through : lane.id === metric) &&
      (block.chunk !== undefined || !this.#damaged.has(block.id))
    const copied = [...from.view.places.values()].filter(isCopied).map(({ value }) => value)
    const times = frames.map((frame) => framesIn(frame)[0]?.time)
    same(times.join(), copied.map(({ time }) => time).join(), 'copied values')
    const values = copied.map((value) => ({ ...value, stamp: this.#world.host.now, exempt: false }))
    values.forEach((value, at) => {
      into.queue.appendFrames(frames[at]!, false)
      this.#land(1 - index, 0, value)
    })
    if (values.length > 0) this.#checkAppended(1 - index, 0, values)
  }

  async stop(index: number): Promise<void> {
    const shadow = this.#shadow(index)
    const metric = this.#random.pick(METRICS)
    const must = new Set<Value>()
    for (const { value, lane, block } of shadow.view.places.values()) {
      if (block.chunk === undefined && this.#damaged.has(block.id)) continue
      if (lane.id === metric || (value.metric === metric && shadow.flying.has(value))) must.add(value)
    }
    const lost = new Set([...shadow.view.places.values()].filter(({ lane }) => lane.id === metric).map((p) => p.value))
    for (const value of lost) must.add(value)
    const done = shadow.queue.stop(metric, this.#world.read)
    const through = shadow.queue.stops.get(metric)
    const row = { channel: CHANNELS[index]!, metric, through: through ?? 0 }
    if (through !== undefined) this.#world.journal.change({ put: 'stop', row })
    await done
    shadow.check({
      why: ({ value }) => (must.has(value) ? 'stopped' : undefined),
      must,
      gap: (gap) => gap.lane === metric,
    })
  }

  endStops(index: number): void {
    const shadow = this.#shadow(index)
    for (const metric of shadow.queue.endPassedStops()) {
      this.#world.journal.change({ remove: 'stop', channel: CHANNELS[index]!, metric })
    }
    shadow.check({ why: () => undefined })
  }

  async purge(index: number): Promise<void> {
    const shadow = this.#shadow(index)
    const { random } = { random: this.#random }
    const metric = random.below(2) === 0 ? undefined : random.pick(METRICS)
    const ids = [...shadow.view.places.values()].map(({ id }) => id).filter((id) => id > 0)
    const through = random.below(2) === 0 || ids.length === 0 ? undefined : random.pick(ids)
    const must = new Set<Value>()
    for (const { value, block, id, lane } of shadow.view.places.values()) {
      if (metric !== undefined && value.metric !== metric) continue
      if (through !== undefined && (id > through || lane.id !== 0)) continue
      const isUnreadable = block.chunk === undefined && this.#damaged.has(block.id)
      if (!isUnreadable || metric === undefined || block.metric === metric) must.add(value)
    }
    const only = { ...(metric === undefined ? {} : { metric }), ...(through === undefined ? {} : { through }) }
    same(await shadow.queue.purge(only, this.#world.read), must.size, 'purged')
    shadow.check({ why: ({ value }) => (must.has(value) ? 'purged' : undefined), must })
  }

  expire(index: number): void {
    const shadow = this.#shadow(index)
    this.#world.host.now += this.#random.below(4_000)
    const before = this.#world.host.now - shadow.queue.settings.maxAgeMs
    const may = ({ value }: Place): boolean => value.stamp < before && !shadow.flying.has(value) && !value.exempt
    const old = [...shadow.view.places.values()].filter((place) => may(place) && place.block.appendedAge < before)
    const must = old.map(({ value }) => value)
    shadow.queue.expire()
    shadow.check({ why: (place) => (may(place) ? 'expired' : undefined), must })
  }

  /** Long enough for a range of ids to be given back. */
  quiet(index: number): void {
    this.#world.host.now += 11_000
    this.expire(index)
  }

  window(index: number): void {
    const { queue } = this.#shadow(index)
    const window = this.#random.pick([1, 3, 50, 65_536])
    queue.settings = { ...queue.settings, window, windowBytes: this.#random.pick([250, 3_000, 1 << 20]) }
  }

  async batch(): Promise<void> {
    if (this.#world.batchInFlight) await this.#world.storage.complete()
    else this.#world.journal.atTurnEnd()
    for (const shadow of this.#world.shadows) shadow.check({ why: () => undefined })
  }

  full(full: boolean): void {
    this.#world.storage.setFull?.(full)
  }

  damage(index: number): void {
    const { storage } = this.#world
    const blocks = [...this.#shadow(index).view.places.values()].map(({ block }) => block)
    const stored = blocks.filter((block) => block.durable === block.count)
    if (stored.length === 0 || storage.damage === undefined) return
    const block = this.#random.pick(stored)
    storage.damage(block.id)
    this.#damaged.add(block.id)
  }

  async crash(): Promise<void> {
    this.consumer.drained()
    for (const holds of this.consumer.holds) holds.length = 0
    await this.#world.crash()
    this.marks(true)
    this.#last = undefined
    this.#world.restored = new Set(this.#world.shadows.flatMap(({ view }) => [...view.places.keys()]))
  }

  /** A clean end and a new start: no GAP says that something may be missing. */
  async restart(): Promise<void> {
    this.full(false)
    for (const { queue } of this.#world.shadows) queue.close()
    while (this.#world.journal.busy) await this.batch()
    const gaps = this.#world.shadows.map(({ queue, view }) => (queue.settings.durable ? view.gaps.size : 0))
    const aside = this.#world.setAside.size
    await this.crash()
    if (this.#world.setAside.size > aside || this.#damaged.size > 0) return
    this.#world.shadows.forEach(({ view }, index) => {
      same(view.gaps.size, gaps[index], 'GAPs after a clean end')
    })
  }

  /** At last a good consumer comes: everything reaches it, and nothing is left. */
  async drain(): Promise<void> {
    this.full(false)
    for (const index of CHANNELS.keys()) {
      const { queue } = this.#shadow(index)
      queue.settings = { ...queue.settings, window: 65_536, windowBytes: 8 << 20 }
      for (const hold of this.consumer.holds[index]!.splice(0)) hold.release()
      this.consumer.attach(index)
    }
    for (let rounds = 0; !this.#world.shadows.every(({ queue }) => queue.empty); rounds++) {
      same(rounds < 50, true, 'everything is sent')
      for (const [index, shadow] of this.#world.shadows.entries()) {
        for (const metric of METRICS) shadow.queue.release(metric)
        shadow.check({
          why: ({ lane }) =>
            shadow.queue.settings.overflow === 'keep-latest' && lane.id === 0 ? 'superseded' : undefined,
        })
        await this.consumer.send(index, 1 << 20)
        if (shadow.lastId > 0) this.consumer.commitOne(index, shadow.lastId, true)
      }
      await this.batch()
    }
    while (this.#world.journal.busy) await this.batch()
    this.marks(true)
    this.consumer.drained()
    same(this.#world.host.unstored, 0, 'bytes that are not stored')
    same(this.#world.host.pool.used, 0, 'bytes of buffers in use')
  }
}
