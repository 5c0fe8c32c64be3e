import fc from 'fast-check'
import { beforeEach, describe, expect, test } from 'vitest'
import type { GmetricPacket, Metadata, PacketHost, ValueType } from '../../../../protocol/gmetric/packet.ts'
import { BasicType } from '../../../../protocol/monitor/constants.ts'
import { DEFAULT_LIMITS, Hosts } from '../../../../server/wings/gmetric/hosts.ts'
import { vector } from '../../../protocol/gmetric/vectors.ts'

const { INT32, UINT32, DOUBLE, STRING } = BasicType
const SENDER = '192.0.2.7'
const START = 1_700_000_000_000
const SECOND = 1000

const unspoofed = (label = ''): PacketHost => ({ spoofed: false, label })
const spoofed = (address: string, name: string): PacketHost => ({ spoofed: true, address, name })

function about(metric: string, metadata: Partial<Metadata> = {}, host = unspoofed()): GmetricPacket {
  const whole = { type: 'uint32', units: '', slope: 3, tmax: 60, dmax: 0, extra: [], ...metadata }
  return { kind: 'metadata', host, metric, metadata: whole }
}

function text(metric: string, value: string | Uint8Array, host = unspoofed()): GmetricPacket {
  return { kind: 'value', host, metric, type: 'string', format: '%s', value }
}

function typed(metric: string, type: ValueType, value: number, host = unspoofed()): GmetricPacket {
  return { kind: 'value', host, metric, type, format: '', value }
}

let hosts: Hosts

beforeEach(() => {
  hosts = new Hosts()
})

describe('a metric', () => {
  test('is told from its captured metadata and value', () => {
    const { packet: metadata } = vector('gmetric 128 temp')
    const { packet: value } = vector('gmetric 133 temp')
    expect(hosts.accept(metadata, SENDER, START)).toMatchObject({ kind: 'metadata', born: true })
    const accepted = hosts.accept(value, SENDER, START + 1)
    expect(accepted).toMatchObject({
      kind: 'value',
      born: false,
      reading: { value: { type: DOUBLE, value: 36.6 }, timeMs: START + 1 },
      series: {
        host: { address: '10.0.0.9', name: 'spoofed.example', label: 'spoofed.example' },
        metric: 'temp',
        metadata: {
          units: 'Celsius',
          slope: 1,
          tmax: 30,
          dmax: 300,
          extra: [
            { key: 'SPOOF_HOST', data: '10.0.0.9:spoofed.example' },
            { key: 'GROUP', data: 'sensors' },
            { key: 'DESC', data: 'room temp' },
            { key: 'TITLE', data: 'Temperature' },
          ],
        },
      },
    })
    expect(hosts.tally.counters).toMatchObject({ metadata: 1, values: 1 })
  })

  test('exists from its first value on, with the type it travelled as', () => {
    const cases = [
      ['uint16', UINT32],
      ['uint32', UINT32],
      ['int16', INT32],
      ['int32', INT32],
      ['float', DOUBLE],
      ['double', DOUBLE],
    ] as const
    for (const [type, basic] of cases) {
      const accepted = hosts.accept(typed(type, type, 7), SENDER, START)
      expect(accepted).toMatchObject({ born: true, reading: { value: { type: basic, value: 7 } } })
    }
    expect(hosts.accept(text('text', '7'), SENDER, START)).toMatchObject({
      reading: { value: { type: STRING, value: '7' } },
    })
  })

  test('has its declared type from the next value on', () => {
    hosts.accept(text('foo', '7'), SENDER, START)
    expect(hosts.accept(about('foo'), SENDER, START)).toMatchObject({ kind: 'metadata', born: false })
    expect(hosts.series(SENDER, 'foo')?.latest?.value).toEqual({ type: STRING, value: '7' })
    expect(hosts.accept(text('foo', '8'), SENDER, START)).toMatchObject({
      reading: { value: { type: UINT32, value: 8 } },
    })
  })

  test('of the older family brings both at once', () => {
    const accepted = hosts.accept(vector('0 user-defined').packet, SENDER, START)
    expect(accepted).toMatchObject({
      kind: 'value',
      born: true,
      reading: { value: { type: UINT32, value: 7 } },
      series: { metadata: { units: 'u', tmax: 60 } },
    })
    expect(hosts.tally.counters).toMatchObject({ metadata: 0, values: 1 })
  })

  test('whose value does not parse is counted against its sender, changes nothing and is not made', () => {
    expect(hosts.accept({ ...vector('0 user-defined').packet, value: 'x' } as GmetricPacket, SENDER, START)).toEqual({
      kind: 'refused',
      reason: 'unparsable',
    })
    expect(hosts.hostCount).toBe(0)
    hosts.accept(about('foo', { dmax: 10 }), SENDER, START)
    for (const value of ['x', '-1', '', Uint8Array.of(0xff)]) hosts.accept(text('foo', value), SENDER, START + SECOND)
    expect(hosts.tally.counters).toMatchObject({ unparsable: 5, values: 0 })
    expect(hosts.tally.badBySource.get(SENDER)).toBe(5)
    expect(hosts.series(SENDER, 'foo')).toMatchObject({ latest: undefined, heardMs: START })
  })

  test('called heartbeat is a number even as text that nothing was declared for', () => {
    expect(hosts.accept(vector('gmetric 133 heartbeat').packet, SENDER, START)).toMatchObject({
      reading: { value: { type: UINT32, value: 0 } },
    })
    expect(hosts.accept(vector('4097 spoofed heartbeat').packet, SENDER, START)).toMatchObject({
      reading: { value: { type: UINT32, value: 0 } },
    })
    expect(hosts.accept(vector('gmond 133 location').packet, SENDER, START)).toMatchObject({
      reading: { value: { type: STRING, value: '1,2,3' } },
    })
  })

  test('that somebody asks for is counted and not made', () => {
    expect(hosts.accept(vector('gmond 136 novalmeta').packet, SENDER, START)).toEqual({ kind: 'request' })
    expect(hosts.tally.counters.requests).toBe(1)
    expect(hosts.hostCount).toBe(0)
  })
})

describe('a host', () => {
  test('that is not spoofed is its source address, and its own name is only a label', () => {
    hosts.accept(text('foo', '1', unspoofed('web1')), SENDER, START)
    expect(hosts.find(SENDER)).toMatchObject({ address: SENDER, name: '', label: 'web1' })
    expect(hosts.find('web1')).toBeUndefined()
    hosts.accept(text('foo', '1'), SENDER, START)
    expect(hosts.find(SENDER)?.label).toBe(SENDER)
  })

  test('that is spoofed is found by address and by name', () => {
    hosts.accept(text('foo', '1', spoofed('10.0.0.9', 'web1')), SENDER, START)
    expect(hosts.series('10.0.0.9', 'foo')).toBeDefined()
    expect(hosts.series('web1', 'foo')).toBe(hosts.series('10.0.0.9', 'foo'))
    expect(hosts.find(SENDER)).toBeUndefined()
  })

  test('is one host, spoofed or speaking for itself, and keeps its name', () => {
    hosts.accept(text('own', '1', unspoofed('me')), '10.0.0.9', START)
    const accepted = hosts.accept(text('foo', '1', spoofed('10.0.0.9', 'web1')), SENDER, START)
    expect(accepted).toMatchObject({ renamed: [{ address: '10.0.0.9', name: 'web1' }] })
    expect(hosts.accept(text('own', '2', unspoofed('me')), '10.0.0.9', START)).toMatchObject({ renamed: [] })
    expect(hosts.hostCount).toBe(1)
    expect(hosts.series('web1', 'own')).toMatchObject({ host: { label: 'web1' } })
    expect([...hosts.all(hosts.find('web1'))].map(({ metric }) => metric)).toEqual(['own', 'foo'])
  })

  test('loses its name to the one that uses it later', () => {
    hosts.accept(text('foo', '1', spoofed('10.0.0.9', 'web1')), SENDER, START)
    const accepted = hosts.accept(text('foo', '2', spoofed('10.0.0.10', 'web1')), SENDER, START)
    expect(accepted).toMatchObject({ renamed: [{ address: '10.0.0.10' }, { address: '10.0.0.9', name: '' }] })
    expect(hosts.find('web1')?.address).toBe('10.0.0.10')
    expect(hosts.find('10.0.0.9')?.label).toBe('10.0.0.9')
  })

  test('with a new name is no longer found by the old one', () => {
    hosts.accept(text('foo', '1', spoofed('10.0.0.9', 'old')), SENDER, START)
    hosts.accept(text('foo', '1', spoofed('10.0.0.9', 'new')), SENDER, START)
    expect(hosts.find('old')).toBeUndefined()
    expect(hosts.find('new')?.address).toBe('10.0.0.9')
  })

  test('changes its name at most once a minute, and so does a name its host', () => {
    const nameAfter = (address: string, name: string, ms: number) => {
      hosts.accept(text('foo', '1', spoofed(address, name)), SENDER, START + ms)
      return hosts.find(address)?.name
    }
    expect(nameAfter('10.0.0.9', 'a', 0)).toBe('a')
    expect(nameAfter('10.0.0.9', 'b', 1)).toBe('b')
    expect([nameAfter('10.0.0.9', 'c', 2), nameAfter('10.0.0.9', 'a', 60_001)]).toEqual(['b', 'b'])
    expect(nameAfter('10.0.0.10', 'b', 60_001)).toBe('')
    expect(nameAfter('10.0.0.10', 'b', 60_002)).toBe('b')
    expect([nameAfter('10.0.0.9', 'b', 60_003), nameAfter('10.0.0.9', 'a', 60_003)]).toEqual(['', ''])
    expect(nameAfter('10.0.0.9', 'b', 120_003)).toBe('b')
    expect(hosts.find('10.0.0.10')?.name).toBe('')
  })

  test('cannot hide an address by being called like it', () => {
    hosts.accept(text('foo', '1', spoofed('10.0.0.9', SENDER)), SENDER, START)
    hosts.accept(text('foo', '1'), SENDER, START)
    expect(hosts.find(SENDER)?.address).toBe(SENDER)
  })

  test('called like an address loses that name when a host with this address appears', () => {
    hosts.accept(text('foo', '1', spoofed('10.0.0.9', SENDER)), SENDER, START)
    expect(hosts.find(SENDER)?.address).toBe('10.0.0.9')
    expect(hosts.accept(text('foo', '1'), SENDER, START)).toMatchObject({
      renamed: [{ address: '10.0.0.9', name: '', label: '10.0.0.9' }],
    })
  })

  test('is not called like the address of another, but like its own it may be', () => {
    hosts.accept(text('foo', '1'), SENDER, START)
    hosts.accept(text('foo', '1', spoofed('10.0.0.9', 'web1')), SENDER, START)
    expect(hosts.accept(text('foo', '1', spoofed('10.0.0.9', SENDER)), SENDER, START)).toMatchObject({ renamed: [] })
    expect(hosts.find('web1')).toMatchObject({ address: '10.0.0.9', name: 'web1' })
    hosts.accept(text('foo', '1', spoofed('10.0.0.9', '10.0.0.9')), SENDER, START)
    expect(hosts.find('10.0.0.9')).toMatchObject({ name: '10.0.0.9' })
  })

  test('is not spoofed where that is switched off', () => {
    hosts = new Hosts({ ...DEFAULT_LIMITS, spoof: false })
    for (const packet of [vector('gmetric 128 temp').packet, vector('4097 spoofed heartbeat').packet]) {
      expect(hosts.accept(packet, SENDER, START)).toEqual({ kind: 'refused', reason: 'spoof' })
    }
    expect(hosts.tally.counters).toMatchObject({ spoofRefused: 2, values: 0, metadata: 0 })
    expect(hosts.hostCount).toBe(0)
    expect(hosts.accept(text('foo', '1'), SENDER, START)).toMatchObject({ kind: 'value' })
  })
})

describe('time', () => {
  const freshAt = (metric: string, seconds: number) =>
    hosts.fresh(hosts.series(SENDER, metric)!, START + seconds * SECOND) !== undefined

  test('a value is fresh for four times its tmax', () => {
    hosts.accept(about('foo', { tmax: 30 }), SENDER, START)
    expect(freshAt('foo', 0)).toBe(false)
    hosts.accept(text('foo', '1'), SENDER, START)
    expect([freshAt('foo', 120), freshAt('foo', 120.001)]).toEqual([true, false])
  })

  test('60 s stand in for a tmax that is 0 or not known', () => {
    hosts.accept(text('bare', '1'), SENDER, START)
    hosts.accept(about('zero', { tmax: 0 }), SENDER, START)
    hosts.accept(text('zero', '1'), SENDER, START)
    for (const metric of ['bare', 'zero']) expect([freshAt(metric, 240), freshAt(metric, 241)]).toEqual([true, false])
  })

  test('a metric silent for longer than its dmax is neither fresh nor kept', () => {
    hosts.accept(about('foo', { dmax: 10 }), SENDER, START)
    hosts.accept(text('foo', '1'), SENDER, START)
    hosts.accept(about('foo', { dmax: 10 }), SENDER, START + 5 * SECOND)
    expect([freshAt('foo', 15), freshAt('foo', 15.001)]).toEqual([true, false])
    expect([...hosts.expire(START + 15 * SECOND)]).toEqual([])
    const before = hosts.series(SENDER, 'foo')
    expect([...hosts.expire(START + 15 * SECOND + 1)]).toEqual([before])
    expect(hosts.series(SENDER, 'foo')).toBeUndefined()
    expect([hosts.metricCount, hosts.bytes, hosts.hostCount]).toEqual([0, 0, 1])
    expect(hosts.accept(text('foo', '1'), SENDER, START)).toMatchObject({ born: true })
  })

  test('dmax 0 lasts as long as its host, a host a day beyond its last packet', () => {
    const day = DEFAULT_LIMITS.hostDmaxMs
    hosts.accept(text('foo', '1', spoofed('10.0.0.9', 'web1')), SENDER, START)
    hosts.accept(about('bar', { dmax: 1_000_000 }, spoofed('10.0.0.9', 'web1')), SENDER, START + 1)
    hosts.accept(text('foo', '1'), SENDER, START + day)
    expect([...hosts.expire(START + 1 + day)]).toEqual([])
    expect(Array.from(hosts.expire(START + 2 + day), (gone) => gone?.metric)).toEqual(['foo', 'bar'])
    expect([hosts.find('10.0.0.9'), hosts.find('web1')]).toEqual([undefined, undefined])
    expect([hosts.hostCount, hosts.metricCount]).toEqual([1, 1])
  })

  test('a host that is heard of while it is removed stays, without what was removed by then', () => {
    for (let n = 0; n < 600; n++) hosts.accept(text(`m${n}`, '1'), SENDER, START)
    const now = START + DEFAULT_LIMITS.hostDmaxMs + 1
    const gone: unknown[] = []
    for (const series of hosts.expire(now)) {
      // A place to pause.
      if (series === undefined) hosts.accept(text('back', '1'), SENDER, now)
      else gone.push(series)
    }
    expect(gone).toHaveLength(255)
    expect(Array.from(hosts.all()).map(({ metric }) => metric)).toContain('back')
    expect([hosts.metricCount, hosts.hostCount]).toEqual([600 - 255 + 1, 1])
    Array.from(hosts.expire(now + DEFAULT_LIMITS.hostDmaxMs + 1))
    expect([hosts.metricCount, hosts.bytes, hosts.hostCount]).toEqual([0, 0, 0])
  })

  test('a clock that went back makes nothing stale', () => {
    hosts.accept(about('foo', { dmax: 10 }), SENDER, START)
    hosts.accept(text('foo', '1'), SENDER, START)
    expect(freshAt('foo', -100_000)).toBe(true)
    expect([...hosts.expire(START - 100_000 * SECOND)]).toEqual([])
  })
})

describe('bounds', () => {
  const limited = (limits: Partial<typeof DEFAULT_LIMITS>) => new Hosts({ ...DEFAULT_LIMITS, ...limits })
  const full = { kind: 'refused', reason: 'full' }

  test('no host too many: the known ones go on', () => {
    hosts = limited({ maxHosts: 2 })
    for (const address of ['10.0.0.1', '10.0.0.2']) hosts.accept(text('foo', '1'), address, START)
    expect(hosts.accept(text('foo', '1'), '10.0.0.3', START)).toEqual(full)
    expect(hosts.accept(text('bar', '1'), '10.0.0.1', START)).toMatchObject({ kind: 'value' })
    expect(hosts.tally.counters).toMatchObject({ hostsFull: 1, metricsFull: 0, bytesFull: 0, values: 3 })
  })

  test('no metric too many, of all hosts together, and no empty host for one', () => {
    hosts = limited({ maxMetrics: 2 })
    for (const metric of ['foo', 'bar']) hosts.accept(text(metric, '1'), SENDER, START)
    expect(hosts.accept(text('baz', '1'), '10.0.0.3', START)).toEqual(full)
    expect(hosts.accept(text('foo', '2'), SENDER, START)).toMatchObject({ kind: 'value' })
    expect(hosts.tally.counters).toMatchObject({ metricsFull: 1 })
    expect([hosts.hostCount, hosts.metricCount]).toEqual([1, 2])
  })

  test('no byte too many: a value that grows is refused, the one before stays, a smaller one is taken', () => {
    hosts = limited({ maxBytes: 1000 })
    hosts.accept(text('foo', 'x'.repeat(500)), SENDER, START)
    expect(hosts.accept(text('foo', 'x'.repeat(5000)), SENDER, START)).toEqual(full)
    expect(hosts.series(SENDER, 'foo')?.latest?.value.value).toBe('x'.repeat(500))
    expect(hosts.accept(about('foo', { extra: [{ key: 'DESC', data: 'x'.repeat(900) }] }), SENDER, START)).toEqual(full)
    expect(hosts.tally.counters).toMatchObject({ bytesFull: 2 })
    expect(hosts.accept(text('foo', 'x'), SENDER, START)).toMatchObject({ kind: 'value' })
    expect(hosts.bytes).toBeLessThan(500)
  })

  test('one source cannot take the last tenth of hosts, metrics or bytes from the others', () => {
    hosts = limited({ maxHosts: 100, maxMetrics: 1000, maxBytes: 1_000_000 })
    for (let i = 0; i < 200; i++) hosts.accept(text('foo', '1', spoofed(`10.0.0.${i}`, `h${i}`)), SENDER, START)
    expect([hosts.hostCount, hosts.tally.counters.hostsFull]).toEqual([90, 110])
    const own = spoofed('10.0.0.1', 'h1')
    for (let i = 0; i < 2000; i++) hosts.accept(text(`made up ${i}`, '1', own), SENDER, START)
    expect([hosts.metricCount, hosts.tally.counters.metricsFull]).toEqual([900, 1190])
    for (let i = 0; i < 20; i++) hosts.accept(text(`made up ${i}`, 'x'.repeat(60_000), own), SENDER, START)
    expect(hosts.bytes).toBeGreaterThan(800_000)
    expect(hosts.bytes).toBeLessThanOrEqual(900_000)
    expect(hosts.tally.badBySource.get(SENDER)).toBeGreaterThan(1300)
    for (let i = 0; i < 9; i++) {
      expect(hosts.accept(text('foo', '1'), `192.0.2.${100 + i}`, START)).toMatchObject({ kind: 'value' })
    }
    expect(hosts.accept(text('foo', '1'), SENDER, START)).toEqual(full)
    Array.from(hosts.expire(START + 2 * DEFAULT_LIMITS.hostDmaxMs))
    expect([hosts.hostCount, hosts.metricCount, hosts.bytes]).toEqual([0, 0, 0])
    for (let i = 0; i < 50; i++) {
      expect(hosts.accept(text('foo', '1', spoofed(`10.0.0.${i}`, `h${i}`)), SENDER, START)).toMatchObject({
        kind: 'value',
      })
    }
  })

  test('whatever comes, the limits hold and everything is counted once', () => {
    const host = fc.oneof(
      fc.constantFrom('', 'a', 'b').map(unspoofed),
      fc.tuple(fc.constantFrom('1', '2', '3', '4'), fc.constantFrom('a', 'b', '2')).map(([ip, n]) => spoofed(ip, n)),
    )
    const metric = fc.constantFrom('p', 'q', 'r', 's')
    const packet = fc.oneof(
      fc.tuple(metric, fc.constantFrom(0, 1, 30), host).map(([name, dmax, from]) => about(name, { dmax }, from)),
      fc.tuple(metric, fc.constantFrom('1', 'x', 'y'.repeat(300)), host).map(([name, v, from]) => text(name, v, from)),
      host.map((from): GmetricPacket => ({ kind: 'request', host: from, metric: 'p' })),
    )
    const step = fc.tuple(packet, fc.constantFrom('1', '2', '5'), fc.nat(100_000), fc.boolean())
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const some = limited({ maxHosts: 3, maxMetrics: 5, maxBytes: 1500, hostDmaxMs: 60_000 })
        let now = START
        for (const [packet, source, waitMs, expire] of steps) {
          now += waitMs
          some.accept(packet, source, now)
          const all = [...some.all()]
          expect(some.hostCount).toBeLessThanOrEqual(3)
          expect(all.length).toBeLessThanOrEqual(5)
          expect(some.bytes).toBeLessThanOrEqual(1500)
          expect(some.metricCount).toBe(all.length)
          for (const { host } of all.filter(({ host }) => host.name !== '')) {
            const found = some.find(host.name)
            expect(found).toBe(host)
          }
          if (expire) Array.from(some.expire(now))
        }
        const { packets, ...outcomes } = some.tally.counters
        expect(Object.values(outcomes).reduce((sum, count) => sum + count)).toBe(steps.length)
        Array.from(some.expire(now + 61_000))
        expect([some.hostCount, some.metricCount, some.bytes, some.find('a'), some.find('b')]).toEqual([
          0,
          0,
          0,
          undefined,
          undefined,
        ])
      }),
    )
  })
})
