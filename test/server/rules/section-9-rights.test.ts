/** Section 9, Metrics: what may not be read is not there, judged per metric and per match. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { done } from '../../support/administration.ts'
import { args, command, status, str, type, u64 } from '../../support/bytes.ts'
import { TestProducer } from '../../support/producer.ts'
import { decoded } from '../../support/records.ts'
import type { Seat } from '../../support/seat.ts'
import { PushSensor } from '../../support/test-sensor.ts'

let producer: TestProducer
let root: Seat
let seat: Seat
beforeEach(async () => {
  producer = await TestProducer.start()
  await producer.addUser('root', { role: 'admin' })
  await producer.addUser('op', { role: 'operator' })
  root = await producer.seat('root')
  seat = await producer.seat('op')
})
afterEach(() => producer.stop())

const rule = (effect: 'allow' | 'deny', object: string, where = '') =>
  done(root, `role.${effect}`, { role: 'operator', command: 'COLLECT', object, where })
const hostArgument = (host: string) => args(['host', type.string, str(host)])
const push = (name: string, value: number, host: string) => producer.push.push(name, { type: 2, value }, value, host)

/** The status and detail of COLLECT and of QUERY, with the name taken out. */
async function refusals(of: Seat, name: string): Promise<unknown[]> {
  const collect = await of.ask((seq) => command.collect(seq, name))
  const query = await of.ask((seq) => command.query(seq, name))
  return [collect, query].map(({ status, detail }) => ({ status, detail: detail.replaceAll(name, 'NAME') }))
}

async function names(of: Seat): Promise<string[]> {
  return decoded(await of.query('producer.metrics')).map(({ name }: { name: string }) => name)
}

describe('a metric of a closed family that may not be read', () => {
  it('is answered, byte for byte, as one that there is not', async () => {
    await rule('deny', 'producer.stats')
    expect(await refusals(seat, 'producer.stats')).toEqual(await refusals(seat, 'producer.nonsense'))
    expect((await refusals(seat, 'producer.stats'))[0]).toMatchObject({ status: status.NO_SUCH_METRIC })
    expect(await names(seat)).not.toContain('producer.stats')
    for (const other of [root, await producer.seat()]) {
      expect(await names(other)).toContain('producer.stats')
      expect((await other.query('producer.stats')).type).toBe(type.rec)
    }
  })

  it('is passed over by a pattern', async () => {
    const listed = async () => decoded(await seat.query('producer.st*')).length
    // It, and its twelve numbers by themselves.
    expect(await listed()).toBe(13)
    await rule('deny', 'producer.s*')
    expect(await listed()).toBe(0)
  })
})

describe('producer.audit', () => {
  it('is there for admins alone, unless a rule allows it', async () => {
    expect(await refusals(seat, 'producer.audit')).toEqual(await refusals(seat, 'producer.nonsense'))
    expect(await names(seat)).not.toContain('producer.audit')
    await rule('allow', 'producer.audit')
    await seat.collect('producer.audit')
    expect(await names(seat)).toContain('producer.audit')
    expect(await refusals(await producer.seat(), 'producer.audit')).toMatchObject([
      { status: status.NO_SUCH_METRIC },
      { status: status.NO_SUCH_METRIC },
    ])
  })
})

describe('a rule with a condition', () => {
  it('is judged per match: of what is there, and of what is born later', async () => {
    await rule('deny', 'test.*', 'host=h2')
    push('test.a', 1, 'h2')
    const id = await seat.collect('test.*')
    await seat.ok((seq) => command.subscribe(seq, id))
    push('test.a', 2, 'h1')
    push('test.a', 3, 'h2')
    push('test.born', 4, 'h2')
    push('test.born', 5, 'h1')
    const got = await seat.values(2)
    expect(got.map((value) => decoded(value))).toEqual([
      { name: 'test.a', host: 'h1', value: 2 },
      { name: 'test.born', host: 'h1', value: 5 },
    ])
    await producer.settle()
    expect(seat.rest()).toEqual([])
    expect(decoded(await seat.query('test.*')).map(({ host }: { host: string }) => host)).toEqual(['h1', 'h1'])
  })

  it('can let in what another rule keeps out', async () => {
    await rule('deny', 'test.*')
    await rule('allow', 'test.*', 'host=h1')
    push('test.a', 1, 'h1')
    push('test.a', 2, 'h2')
    const last = async (host: string) => decoded(await seat.query('test.a', hostArgument(host)))
    expect(await last('h1')).toBe(1)
    expect(await last('h2')).toBeNull()
  })

  it('of a polled metric is PERMISSION_DENIED with arguments that are not allowed: the catalogue shows the metric', async () => {
    await rule('deny', 'slow.value', 'which=7')
    const which = (value: number) => args(['which', type.int32, new Uint8Array([0, 0, 0, value])])
    expect(await seat.ask((seq) => command.collect(seq, 'slow.value', which(7)))).toMatchObject({
      status: status.PERMISSION_DENIED,
    })
    expect(await seat.ask((seq) => command.collect(seq, 'slow.value', which(8)))).toMatchObject({ status: status.OK })
    expect(await names(seat)).toContain('slow.value')
  })

  it('of an event-like metric likewise, and it ends what is bound when it comes', async () => {
    await rule('allow', 'producer.audit', 'after=5')
    const above = (value: number) => args(['after', type.uint64, u64(value)])
    for (const list of [args(), above(0)]) {
      expect(await seat.ask((seq) => command.collect(seq, 'producer.audit', list))).toMatchObject({
        status: status.PERMISSION_DENIED,
      })
    }
    const id = await seat.collect('producer.audit', above(5))
    await seat.ok((seq) => command.subscribe(seq, id, 0))
    await rule('deny', 'producer.audit', 'after=5')
    expect(await seat.notice()).toMatchObject({ code: 4 })
    expect((await seat.ask((seq) => command.get(seq, id))).status).toBe(status.NO_SUCH_ID)
  })
})

describe('what belongs to another tenant', () => {
  it('is not there, for whatever role, but for an admin', async () => {
    const feed = new PushSensor(producer.server.parts.hub, 'north.', { tenant: 'north' })
    feed.push('north.a', { type: 2, value: 9 }, 1)
    await rule('allow', '*')
    await producer.addUser('ann', { tenant: 'north' })
    for (const stranger of [seat, await producer.seat()]) {
      expect(await refusals(stranger, 'north.a')).toEqual(await refusals(stranger, 'nonsense.a'))
      expect(await names(stranger)).not.toContain('north.a')
      expect(decoded(await stranger.query('*.a'))).toEqual([])
    }
    for (const theirs of [root, await producer.seat('ann', 'north')]) {
      expect(decoded(await theirs.query('north.a', hostArgument('h1')))).toBe(9)
    }
  })

  it('is not in the counts of `producer.stats`, but for an admin', async () => {
    await producer.addUser('ann', { tenant: 'north' })
    const ann = await producer.seat('ann', 'north')
    await ann.defChannel()
    const counts = async (of: Seat) => {
      const { connections, channels } = decoded(await of.query('producer.stats'))
      return [connections, channels]
    }
    expect(await counts(ann)).toEqual([1, 2])
    expect(await counts(seat)).toEqual([1, 2])
    expect(await counts(root)).toEqual([3, 4])
  })
})
