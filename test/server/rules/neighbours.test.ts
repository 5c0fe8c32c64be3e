/**
 * One bad neighbour harms nobody: what one tenant asks for takes its share of each turn of the event loop and no more. Work
 * is counted, not timed: every look at the clock makes it later.
 */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Metric, Series } from '../../../server/kernel/metrics/metric.ts'
import { args, command, status, str, type } from '../../support/bytes.ts'
import { DeafPeer } from '../../support/deaf-peer.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { TestProducer } from '../../support/producer.ts'
import type { Seat } from '../../support/seat.ts'
import { PushSensor } from '../../support/test-sensor.ts'

const METRICS = 1_000
/** With 50 looks at the clock a turn is over, and one step may pass over 64 metrics, and then over 64 series. */
const LOOK_MS = 0.1
const MOST_A_TURN = 50 * 128
/** Turns until a NOP is answered: one each until it is its turn, until the response goes out, and until it is read. */
const NOP_TURNS = 6

class LookedAtClock extends FakeClock {
  lookMs = 0
  #lookedMs = 0

  override monotonicMs(): number {
    this.#lookedMs += this.lookMs
    return super.monotonicMs() + this.#lookedMs
  }
}

/** Counts the metrics and series that it is asked for. */
class CountingSensor extends PushSensor {
  asked = 0

  override *metrics(): Iterable<Metric> {
    yield* this.#counted(super.metrics())
  }

  override *series(name?: string): Iterable<Series> {
    yield* this.#counted(super.series(name))
  }

  *#counted<T>(all: Iterable<T>): Iterable<T> {
    for (const one of all) {
      this.asked++
      yield one
    }
  }
}

let clock: LookedAtClock
let producer: TestProducer
let crowd: CountingSensor

beforeEach(async () => {
  clock = new LookedAtClock()
  producer = await TestProducer.start({ clock })
  crowd = new CountingSensor(producer.server.parts.hub, 'crowd.', { tenant: 'globex' })
  for (let index = 0; index < METRICS; index++) crowd.push(`crowd.m${index}`, { type: 2, value: 1 }, 1)
})
afterEach(() => {
  clock.lookMs = 0
  return producer.stop()
})

const turn = () => new Promise((resolve) => setImmediate(resolve))
const repeated = (count: number, make: (seq: number) => Uint8Array): Uint8Array[] =>
  Array.from({ length: count }, (_, index) => make(0x1000 + index))
/** Everything that the commands of these tests are answered with. */
const answered = ({ peer }: Seat, kind: 'response' | 'value') =>
  peer.log.filter((message) => message.kind === kind).length

describe('while a consumer pipelines', () => {
  const released = async (eve: Seat): Promise<Uint8Array[]> => {
    const ids: number[] = []
    for (let count = 0; count < 20; count++) ids.push(await eve.collect('crowd.*'))
    for (const id of ids) await eve.ok((seq) => command.buffer(seq, id))
    crowd.push('crowd.m0', { type: 2, value: 2 }, 2)
    return ids.map((id, index) => command.get(0x1000 + index, id))
  }
  const floods: [string, (eve: Seat) => Uint8Array[] | Promise<Uint8Array[]>, number][] = [
    ['QUERYs of a pattern that nothing matches', () => repeated(100, (seq) => command.query(seq, 'crowd.*z')), 100],
    ['QUERYs of a pattern', () => repeated(20, (seq) => command.query(seq, 'crowd.*')), 20],
    ['QUERYs of producer.metrics', () => repeated(20, (seq) => command.query(seq, 'producer.metrics')), 20],
    ['COLLECTs of patterns', () => repeated(50, (seq) => command.collect(seq, 'crowd.*')), 0],
    ['COLLECTs of patterns that nothing matches', () => repeated(100, (seq) => command.collect(seq, 'crowd.*z')), 0],
    ['GETs that release what waits', released, 20],
  ]
  it.each(floods)('%s, a NOP of another is answered within a few turns', async (_, flood, values) => {
    const [eve, bob] = [await producer.seat('eve', 'globex'), await producer.seat('bob')]
    const frames = await flood(eve)
    const had = { responses: answered(eve, 'response'), values: answered(eve, 'value') }
    clock.lookMs = LOOK_MS
    crowd.asked = 0
    eve.peer.send(...frames)
    const nop = bob.send((seq) => command.nop(seq))
    const isAnswered = () => bob.peer.log.some((message) => message.kind === 'response' && message.seq === nop)
    const isDone = () =>
      answered(eve, 'response') - had.responses === frames.length && answered(eve, 'value') - had.values === values
    // What is done before anybody else is heard is a turn too.
    let [turns, nopTurns, most, before] = [0, 0, crowd.asked, crowd.asked]
    do {
      await turn()
      most = Math.max(most, crowd.asked - before)
      before = crowd.asked
      if (!isAnswered()) nopTurns++
    } while (++turns < 20_000 && !isDone())
    expect(isDone()).toBe(true)
    expect(most).toBeLessThanOrEqual(MOST_A_TURN)
    expect(nopTurns).toBeLessThanOrEqual(NOP_TURNS)
  })

  it('is stopped for no longer by a change of its rules', async () => {
    await producer.addUser('boss', { role: 'admin' })
    await producer.addUser('op', { tenant: 'globex', role: 'operator' })
    const [boss, op, bob] = [
      await producer.seat('boss'),
      await producer.seat('op', 'globex'),
      await producer.seat('bob'),
    ]
    for (let count = 0; count < 20; count++) {
      const id = await op.collect('crowd.*')
      await op.ok((seq) => command.subscribe(seq, id))
    }
    clock.lookMs = LOOK_MS
    crowd.asked = 0
    const list = args(
      ['role', type.string, str('operator')],
      ['command', type.string, str('COLLECT')],
      ['object', type.string, str('crowd.m1*')],
    )
    boss.peer.send(command.execute(0x1000, 'role.deny', list))
    const nop = bob.send((seq) => command.nop(seq))
    let [most, before] = [0, 0]
    while (!boss.peer.log.some(({ kind }) => kind === 'value')) {
      await turn()
      most = Math.max(most, crowd.asked - before)
      before = crowd.asked
    }
    expect((await bob.response(nop)).status).toBe(status.OK)
    expect(most).toBeLessThanOrEqual(MOST_A_TURN)
    clock.lookMs = 0
    crowd.push('crowd.m1', { type: 2, value: 7 }, 7)
    crowd.push('crowd.m2', { type: 2, value: 7 }, 7)
    await producer.settle()
    expect(await op.values(20)).toHaveLength(20)
    expect(op.rest().filter(({ kind }) => kind === 'value')).toEqual([])
  })
})

describe('metrics of others', () => {
  it('are not looked at, so that the time of an answer tells nothing of them', async () => {
    const bob = await producer.seat('bob')
    crowd.asked = 0
    const id = await bob.collect('crowd.*')
    await bob.ok((seq) => command.subscribe(seq, id))
    await bob.ok((seq) => command.get(seq, id))
    await bob.ok((seq) => command.query(seq, 'crowd.*1'))
    await bob.ok((seq) => command.query(seq, 'producer.metrics', args(['match', type.string, str('crowd.m1*')])))
    await bob.values(3)
    expect(crowd.asked).toBe(0)
  })
})

describe('a peer that takes no answers', () => {
  it('is made only one list more than 1 MiB of them', async () => {
    const deaf = await DeafPeer.login(producer, 'admin', 'admin-password')
    for (let index = 0; index < 4; index++) {
      producer.push.push(`test.large${index}`, { type: 7, value: 'x'.repeat(200 << 10) }, 1)
    }
    const before = deaf.waiting
    deaf.send(...repeated(50, (seq) => command.query(seq, 'test.large*')))
    await producer.settle()
    expect(deaf.waiting - before).toBeGreaterThan(1 << 20)
    expect(deaf.waiting - before).toBeLessThan(2 << 20)
    expect(deaf.paused).toBe(true)
    deaf.destroy()
  })
})

describe('the end of a channel with much on it', () => {
  const BOUND = 400
  const WAITING = 400
  /** With 50 looks at the clock a turn is over. */
  const MOST_ENDED_A_TURN = 60

  it('is in the store at once, takes its share of each turn, and is answered when nothing is left', async () => {
    const [eve, bob] = [await producer.seat('eve', 'globex'), await producer.seat('bob')]
    const { parts } = producer.server
    const { registry, instances, accounts, quotas } = parts.producer
    const user = accounts.find('globex', 'eve')?.id as number
    const channel = registry.byId(eve.channel)
    for (let count = 0; count < BOUND; count++) {
      const id = await eve.collect('crowd.m0')
      await eve.ok((seq) => (count < WAITING ? command.buffer(seq, id) : command.subscribe(seq, id)))
    }
    crowd.push('crowd.m0', { type: 2, value: 2 }, 2)
    expect(channel?.queue.counts.queued).toBe(WAITING)
    clock.lookMs = LOOK_MS
    const ended = eve.send((seq) => command.delChannel(seq, eve.channel))
    const nop = bob.send((seq) => command.nop(seq))
    const left = () => instances.of(user).length + (channel?.queue.counts.queued ?? 0)
    const isAnswered = ({ peer }: Seat, of: number) =>
      peer.log.some((message) => message.kind === 'response' && message.seq === of)
    let [most, before, nopTurns, turns] = [0, left(), 0, 0]
    for (; left() > 0 && turns < 1_000; turns++) {
      await turn()
      most = Math.max(most, before - left())
      before = left()
      if (!isAnswered(bob, nop)) nopTurns++
      if (before > 0) expect(isAnswered(eve, ended)).toBe(false)
      // A value that comes meanwhile enters nothing.
      crowd.push('crowd.m0', { type: 2, value: 3 }, 3)
      expect(registry.byId(eve.channel)).toBeUndefined()
    }
    clock.lookMs = 0
    await eve.peer.until('notice')
    expect(isAnswered(eve, ended)).toBe(true)
    expect([left(), quotas.of('globex').queued.bytes, parts.producer.host.unstored]).toEqual([0, 0, 0])
    expect(most).toBeLessThanOrEqual(MOST_ENDED_A_TURN)
    expect(nopTurns).toBeLessThanOrEqual(NOP_TURNS)
    expect(turns).toBeGreaterThan(5)
  })
})

it('the metric ids of a connection that ends, and that it never bound, take their share of each turn', async () => {
  const IDS = 400
  const [eve, bob] = [await producer.seat('eve', 'globex'), await producer.seat('bob')]
  const { instances, accounts } = producer.server.parts.producer
  const user = accounts.find('globex', 'eve')?.id as number
  for (let count = 0; count < IDS; count++) await eve.collect('crowd.m0')
  clock.lookMs = LOOK_MS
  eve.peer.destroy()
  let [most, before] = [0, instances.of(user).length]
  expect(before).toBe(IDS)
  for (let turns = 0; before > 0 && turns < 1_000; turns++) {
    await turn()
    const left = instances.of(user).length
    most = Math.max(most, before - left)
    before = left
  }
  clock.lookMs = 0
  expect(before).toBe(0)
  expect(most).toBeLessThanOrEqual(60)
  await bob.ok((seq) => command.nop(seq))
})
