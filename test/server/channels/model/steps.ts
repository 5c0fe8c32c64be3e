/**
 * What can happen to a queue, each as one step: it does something, and tells the shadow what may be gone by it and what
 * must be.
 */
import { MessageId } from '../../../../protocol/monitor/constants.ts'
import { getUint53 } from '../../../../server/channels/block.ts'
import type { Gap } from '../../../../server/channels/gap.ts'
import type { Hold } from '../../../../server/channels/queue-state.ts'
import { type Cause, type Place, type Shadow, same, type Value } from './shadow.ts'
import { CHANNELS, frameOf, framesIn, headOf, type Random, type SentFrame, tailOf, type World } from './world.ts'

const METRICS = [7, 8, 9] as const
const RESULT = 99

export class Steps {
  readonly #world: World
  readonly #random: Random
  readonly #holds = CHANNELS.map((): Hold[] => [])
  readonly #heads = new Map<string, Uint8Array>()
  #unholds: (() => void)[] = []
  /** Values that came back from the store: keep-latest does not know their series any more. */
  #restored = new Set<Value>()
  #damaged = new Set<number>()
  #time = 1_700_000_000_000_000

  constructor(world: World, random: Random) {
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

  append(index: number): void {
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
    const bytes = [...before.places.keys(), ...values].reduce((sum, value) => sum + value.bytes, 0)
    const isTight = !this.#world.uniform || bytes > settings.maxBytes
    const known = [...before.places.values()].filter(({ value }) => !this.#restored.has(value))
    shadow.check({
      why: (place) => {
        if (cause === 'full') return undefined
        if (isOlder(place) && !place.value.exempt && !this.#restored.has(place.value)) return 'superseded'
        if (settings.overflow === 'drop-newest' || !isTight) return undefined
        return shadow.flying.has(place.value) || place.value.exempt ? undefined : 'overflow'
      },
      must: cause === 'full' ? [] : known.filter(isOlder).map(({ value }) => value),
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
    const frames = await from.queue.framesOf(metric, this.#world.read)
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

  attach(index: number): void {
    const shadow = this.#shadow(index)
    this.#detach(shadow)
    shadow.queue.attach()
    shadow.attached = true
    shadow.lastId = 0
    shadow.check({ why: () => undefined })
  }

  detach(index: number): void {
    this.#detach(this.#shadow(index))
  }

  #detach(shadow: Shadow): void {
    const flew = new Set(shadow.flying)
    shadow.flying.clear()
    shadow.flyingGaps.clear()
    shadow.queue.detach()
    shadow.attached = false
    shadow.check({
      why: ({ value }) =>
        shadow.queue.settings.overflow === 'keep-latest' && flew.has(value) && !value.exempt ? 'superseded' : undefined,
    })
  }

  /** A link with room for `budget` bytes. */
  async send(index: number, budget: number): Promise<void> {
    const shadow = this.#shadow(index)
    const { queue } = shadow
    if (!shadow.attached) return
    let expected = this.#toSend(shadow)
    let sent = new Set<Value>()
    let sentGaps = new Set<Gap>()
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
      const next = queue.next(budget)
      if (next === undefined) break
      if (next === 'window') {
        same(this.#isWindowFull(shadow, expected[0]), true, 'the window is full')
        break
      }
      if ('load' in next) {
        settle()
        const damaged = new Set<unknown>()
        for (const block of queue.ahead()) {
          const bytes = await this.#world.read(block)
          if (bytes === undefined) damaged.add(block)
          queue.loaded(block, bytes)
        }
        settle(damaged)
        continue
      }
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
      const { chunk } = next
      if (chunk !== undefined) this.#unholds.push(() => chunk.unhold())
    }
    settle()
    if (this.#random.below(2) === 0) this.drained()
  }

  /** Links have written what they were given. */
  drained(): void {
    for (const unhold of this.#unholds) unhold()
    this.#unholds = []
  }

  #toSend(shadow: Shadow): (Place | Gap)[] {
    return shadow.view.order.filter((entry) => {
      if ('kind' in entry) return entry.lane === 0 && !shadow.flyingGaps.has(entry)
      return entry.lane.id === 0 && !shadow.flying.has(entry.value) && !isStopped(shadow, entry)
    })
  }

  #checkSent(index: number, { metric, id, time, frame }: SentFrame, entry: Place | Gap | undefined): void {
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
    for (const { from } of this.#holds[index]!) same(id < from, true, 'a hold holds')
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

  #isWindowFull(shadow: Shadow, next: Place | Gap | undefined): boolean {
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
    switch (this.#random.below(8)) {
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
    const isMeant = (gap: Gap): boolean =>
      gap.lane === 0 && (gap.transaction === id || (through && gap.transaction < id && shadow.flyingGaps.has(gap)))
    const gaps = [...shadow.view.gaps.keys()].filter(isMeant)
    same(shadow.queue.commit(id, through), shadow.queue.settings.durable, 'COMMIT of a given id')
    if (!shadow.queue.settings.durable) return
    shadow.check({ why: ({ value }) => (must.has(value) ? 'committed' : undefined), must, gap: isMeant })
    for (const gap of gaps) same(gap.settled, true, 'a GAP is committed')
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
    for (const metric of shadow.queue.endStops()) {
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
    const old = [...shadow.view.places.values()].filter((place) => may(place) && place.block.stamp < before)
    const must = old.map(({ value }) => value)
    shadow.queue.expire()
    shadow.check({ why: (place) => (may(place) ? 'expired' : undefined), must })
  }

  hold(index: number): void {
    const holds = this.#holds[index]!
    const { queue } = this.#shadow(index)
    if (holds.length < 2) holds.push(queue.hold())
    else queue.letGo(holds.shift()!)
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
    const stored = blocks.filter((block) => block.stored === block.count)
    if (stored.length === 0 || storage.damage === undefined) return
    const block = this.#random.pick(stored)
    storage.damage(block.id)
    this.#damaged.add(block.id)
  }

  async crash(): Promise<void> {
    this.drained()
    for (const holds of this.#holds) holds.length = 0
    await this.#world.crash()
    this.#restored = new Set(this.#world.shadows.flatMap(({ view }) => [...view.places.keys()]))
  }

  /** A clean end and a new start: no GAP says that something may be missing. */
  async restart(): Promise<void> {
    this.full(false)
    for (const { queue } of this.#world.shadows) queue.giveBack()
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
      for (const hold of this.#holds[index]!.splice(0)) queue.letGo(hold)
      this.attach(index)
    }
    for (let rounds = 0; !this.#world.shadows.every(({ queue }) => queue.empty); rounds++) {
      same(rounds < 50, true, 'everything is sent')
      for (const [index, shadow] of this.#world.shadows.entries()) {
        for (const metric of METRICS) shadow.queue.release(metric)
        shadow.check({
          why: ({ lane }) =>
            shadow.queue.settings.overflow === 'keep-latest' && lane.id === 0 ? 'superseded' : undefined,
        })
        await this.send(index, 1 << 20)
        if (shadow.lastId > 0) this.commitOne(index, shadow.lastId, true)
      }
      await this.batch()
    }
    while (this.#world.journal.busy) await this.batch()
    this.drained()
    same(this.#world.host.unstored, 0, 'bytes that are not stored')
    same(this.#world.host.pool.used, 0, 'bytes of buffers in use')
  }
}

/** STOP passes it over. */
function isStopped(shadow: Shadow, { value, block, ordinal, lane }: Place): boolean {
  const through = shadow.queue.stops.get(value.metric)
  return lane.id === 0 && through !== undefined && block.first + ordinal <= through
}
