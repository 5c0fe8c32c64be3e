import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { BasicType } from '../../../../protocol/monitor/constants.ts'
import { finish } from '../../../../server/kernel/core/fair-work.ts'
import { captured, derived, vectors } from '../../../protocol/gmetric/vectors.ts'
import { FakeHub, makeSensor, metadata, nameOf, networks, SENDER, text, xdr } from './fixture.ts'

const { UINT32, DOUBLE, STRING } = BasicType
const START_US = 1_700_000_000_000_000

const make = (config: Parameters<typeof makeSensor>[1] = {}) => makeSensor(new FakeHub(), config)

describe('a datagram', () => {
  test('of a new metric is a birth, and a value a value at the time it came', () => {
    const { hub, clock, send } = make()
    send('gmetric 128 foo')
    expect(hub.news()).toEqual([`born gmetric.foo@${SENDER}`])
    clock.advance(1500)
    send('gmetric 133 foo')
    expect(hub.news()).toEqual([`gmetric.foo@${SENDER} = 42`])
    expect(hub.times).toEqual([START_US + 1_500_000])
  })

  test('that is spoofed is shown by the name it gives the host', () => {
    const { hub, send } = make()
    send('gmetric 133 temp')
    expect(hub.news()).toEqual(['born gmetric.temp@spoofed.example', 'gmetric.temp@spoofed.example = 36.6'])
  })

  test('of every kind that was ever captured is taken', () => {
    const { sensor } = make()
    for (const { bytes } of captured) sensor.packet(bytes, SENDER)
    const { packets, values, metadata, requests } = sensor.status().counters
    expect([packets, values! + metadata! + requests!]).toEqual([captured.length, captured.length])
    expect([...sensor.metrics()].map(({ name }) => name).toSorted()).toEqual(
      'boottime cpu_num d disk_total foo heartbeat load_one location machine_type os_name s temp'
        .split(' ')
        .map((name) => `gmetric.${name}`),
    )
  })

  test('from an address that is not allowed is counted and not even decoded', () => {
    const { hub, sensor } = make()
    for (const { bytes } of derived) sensor.packet(bytes, '198.51.100.1')
    sensor.packet(Buffer.from('?'), '198.51.100.1')
    expect(hub.news()).toEqual([])
    expect(sensor.status().counters).toMatchObject({
      packets: derived.length + 1,
      refusedSource: derived.length + 1,
      malformed: 0,
      hosts: 0,
    })
  })

  test('over IPv6 from an IPv4 address is the same host as over IPv4', () => {
    const { hub, sensor, send } = make()
    send('gmetric 133 foo', `::ffff:${SENDER}`)
    send('gmetric 133 foo')
    expect(hub.news()).toEqual([
      `born gmetric.foo@${SENDER}`,
      `gmetric.foo@${SENDER} = 42`,
      `gmetric.foo@${SENDER} = 42`,
    ])
    expect(sensor.status().counters).toMatchObject({ hosts: 1, values: 2 })
  })

  test('that speaks for another host is refused where spoofing is off', () => {
    const { hub, sensor, send } = make({ spoof: false })
    send('gmetric 133 temp')
    send('gmetric 133 foo')
    expect(hub.news()).toEqual([`born gmetric.foo@${SENDER}`, `gmetric.foo@${SENDER} = 42`])
    expect(sensor.status().counters).toMatchObject({ spoofRefused: 1, values: 1 })
  })

  test('for which there is no room is counted, and what is known goes on', () => {
    const { hub, sensor, send } = make({ maxHosts: 1, maxMetrics: 2 })
    for (const name of ['gmetric 133 foo', 'gmetric 133 s', 'gmetric 133 d', 'gmetric 133 temp']) send(name)
    hub.news()
    send('gmetric 133 foo')
    expect(hub.news()).toEqual([`gmetric.foo@${SENDER} = 42`])
    expect(sensor.status().counters).toMatchObject({ metricsFull: 1, hostsFull: 1, hosts: 1, metrics: 2 })
  })

  test('of random bytes never throws and is counted once', () => {
    const { sensor } = make()
    const words = fc.constantFrom(0, 1, 5, 15, 33, 128, 129, 130, 131, 132, 133, 134, 135, 136, 192, 200, 4096, 4097)
    const begun = fc.tuple(words, fc.uint8Array({ maxLength: 80 })).map(([word, rest]) => {
      const bytes = Buffer.alloc(4 + rest.length)
      bytes.writeUInt32BE(word)
      bytes.set(rest, 4)
      return bytes
    })
    const damaged = fc
      .tuple(fc.constantFrom(...vectors), fc.nat(), fc.nat(255), fc.nat())
      .map(([{ bytes }, at, byte, length]) => {
        const copy = Uint8Array.from(bytes)
        copy[at % copy.length] = byte
        return copy.subarray(0, length % (copy.length + 1))
      })
    let sent = 0
    fc.assert(
      fc.property(fc.oneof(fc.uint8Array({ maxLength: 100 }), begun, damaged), (bytes) => {
        sensor.packet(bytes, SENDER)
        sent++
        const { hosts, metrics, bytes: _bytes, packets, ...outcomes } = sensor.status().counters
        expect(packets).toBe(sent)
        expect(Object.values(outcomes).reduce((sum, count) => sum + count)).toBe(sent)
      }),
      { numRuns: 2000 },
    )
  })

  test('that is good is lost to no bad one before, after or between', () => {
    const clean = make()
    const mixed = make()
    const bad = [
      Buffer.alloc(0),
      Buffer.from('00000085', 'hex'),
      Buffer.from('deadbeef00000000', 'hex'),
      Buffer.alloc(9),
    ]
    for (const [index, { bytes }] of vectors.entries()) {
      clean.sensor.packet(bytes, SENDER)
      mixed.sensor.packet(bad[index % bad.length]!, SENDER)
      mixed.sensor.packet(bytes, SENDER)
    }
    const reported = clean.hub.news()
    expect(reported.length).toBeGreaterThan(vectors.length)
    expect(mixed.hub.news()).toEqual(reported)
    const { unknownId, malformed } = mixed.sensor.status().counters
    expect([unknownId! > 0, malformed! > 0, unknownId! + malformed!]).toEqual([true, true, vectors.length])
  })
})

describe('a metric', () => {
  test('is told from its metadata: type, unit, description, and a host to choose', () => {
    const { sensor, send } = make()
    send('gmetric 128 temp')
    send('gmetric 133 temp')
    expect([...sensor.metrics()]).toMatchObject([
      {
        name: 'gmetric.temp',
        kind: 'continuous',
        type: DOUBLE,
        unit: 'Celsius',
        description: 'room temp',
        parameters: [{ name: 'host', type: STRING, selects: 'any' }],
      },
    ])
  })

  test('changes its type with the next value after new metadata', () => {
    const { hub, sensor } = make()
    sensor.packet(text('', 'foo', '7'), SENDER)
    expect(sensor.metric('gmetric.foo')?.type).toBe(STRING)
    sensor.packet(metadata('', 'foo', 'uint8', { units: 'B' }), SENDER)
    expect(sensor.metric('gmetric.foo')).toMatchObject({ type: STRING, unit: 'B' })
    sensor.packet(text('', 'foo', '8'), SENDER)
    expect(sensor.metric('gmetric.foo')).toMatchObject({ type: UINT32, unit: 'B' })
    sensor.packet(text('', 'foo', '300'), SENDER)
    expect(hub.news().slice(1)).toEqual([`gmetric.foo@${SENDER} = 7`, `gmetric.foo@${SENDER} = 8`])
    expect(sensor.status()).toMatchObject({
      counters: { unparsable: 1 },
      detail: `most bad packets came from ${SENDER}: 1`,
    })
  })

  test('that nobody sent yet has a name and no type, if the name can be one', () => {
    const { sensor } = make()
    expect(sensor.metric('gmetric.later')).toMatchObject({ name: 'gmetric.later', type: undefined, unit: '' })
    for (const name of ['gmetric.', 'gmetric', 'host.load.one', 'gmetric.a\n', `gmetric.${'x'.repeat(248)}`]) {
      expect(sensor.metric(name)).toBeUndefined()
    }
    expect([...sensor.metrics()]).toEqual([])
  })
})

describe('the last value', () => {
  const lastOf = ({ sensor }: ReturnType<typeof make>, metric: string) =>
    [...sensor.series(`gmetric.${metric}`)].map((series) => sensor.last(series))

  test('has its own time, also when it is asked for later', () => {
    const gmetric = make()
    gmetric.send('gmetric 133 foo')
    gmetric.clock.advance(100_000)
    expect(lastOf(gmetric, 'foo')).toEqual([{ value: { type: STRING, value: '42' }, time: START_US }])
  })

  test('is none before the first value, and none once it is stale', () => {
    const gmetric = make()
    gmetric.send('gmetric 128 foo')
    expect(lastOf(gmetric, 'foo')).toEqual([undefined])
    gmetric.send('gmetric 133 foo')
    gmetric.clock.advance(240_000)
    expect(lastOf(gmetric, 'foo')).toMatchObject([{ value: { value: 42 } }])
    gmetric.clock.advance(1)
    expect(lastOf(gmetric, 'foo')).toEqual([undefined])
  })

  test('does not grow stale because somebody set the clock', () => {
    const gmetric = make()
    gmetric.send('gmetric 133 foo')
    gmetric.clock.jumpWall(86_400_000)
    finish(gmetric.sensor.sweep())
    expect(lastOf(gmetric, 'foo')).toMatchObject([{ time: START_US }])
  })
})

test('a sweep is done in steps, and one that begins meanwhile has nothing to do', () => {
  const { hub, sensor, clock } = make()
  for (let n = 0; n < 900; n++) sensor.packet(text('', `m${n}`, '1'), SENDER)
  hub.news()
  clock.advance(86_400_001)
  const steps = sensor.sweep()
  for (let n = 0; n < 100; n++) expect(steps.next().done).toBe(false)
  const begun = hub.news().length
  expect(begun).toBeLessThan(200)
  finish(sensor.sweep())
  expect(hub.news()).toEqual([])
  finish(steps)
  expect(begun + hub.news().length).toBe(900)
  sensor.packet(text('', 'm', '1'), SENDER)
  finish(sensor.sweep())
  expect(hub.news()).toContain(`ganglia.host.up@${SENDER} = true`)
})

describe('a silent metric', () => {
  test('dies after its dmax, and is born again by its next value', () => {
    const { hub, clock, sensor } = make()
    sensor.packet(metadata('', 'foo', 'uint32', { dmax: 10 }), SENDER)
    sensor.packet(text('', 'foo', '1'), SENDER)
    sensor.packet(text('', 'lasting', '1'), SENDER)
    hub.news()
    finish(sensor.sweep())
    hub.news()
    clock.advance(10_000)
    finish(sensor.sweep())
    expect(hub.news()).toEqual([])
    clock.advance(1)
    finish(sensor.sweep())
    expect(hub.news()).toEqual([`died gmetric.foo@${SENDER}`])
    expect([...sensor.metrics()].map(({ name }) => name)).toEqual(['gmetric.lasting'])
    sensor.packet(text('', 'foo', '2'), SENDER)
    expect(hub.news()).toEqual([`born gmetric.foo@${SENDER}`, `gmetric.foo@${SENDER} = 2`])
  })

  test('goes with its host after a day', () => {
    const { hub, clock, sensor, send } = make()
    send('gmetric 133 temp')
    send('gmetric 133 foo')
    hub.news()
    clock.advance(86_400_001)
    finish(sensor.sweep())
    expect(hub.news()).toEqual(['died gmetric.temp@spoofed.example', `died gmetric.foo@${SENDER}`])
    expect([...sensor.series()]).toEqual([])
    expect(sensor.status().counters).toMatchObject({ hosts: 0, metrics: 0, bytes: 0 })
  })
})

describe('a host that gets another name', () => {
  test('ends under the old one and begins under the new one, last values and all', () => {
    const { hub, sensor } = make()
    sensor.packet(text('', 'own', '1'), '192.0.2.9')
    hub.news()
    sensor.packet(text('192.0.2.9:web1', 'foo', '2'), SENDER)
    expect(hub.news()).toEqual([
      'died gmetric.own@192.0.2.9',
      'born gmetric.own@web1',
      'born gmetric.foo@web1',
      'gmetric.foo@web1 = 2',
    ])
    const [own] = sensor.series('gmetric.own')
    expect(sensor.last(own!)).toEqual({ value: { type: STRING, value: '1' }, time: START_US })
    expect([...sensor.series()].map(nameOf)).toEqual(['gmetric.foo@web1', 'gmetric.own@web1'])
  })

  test('takes it from the one that had it', () => {
    const { hub, sensor } = make()
    sensor.packet(text('192.0.2.9:web1', 'foo', '1'), SENDER)
    hub.news()
    sensor.packet(text('192.0.2.10:web1', 'foo', '2'), SENDER)
    expect(hub.news()).toEqual([
      'died gmetric.foo@web1',
      'born gmetric.foo@192.0.2.9',
      'born gmetric.foo@web1',
      'gmetric.foo@web1 = 2',
    ])
  })

  test('stays whom it is if only the sender calls itself otherwise', () => {
    const { hub, sensor } = make()
    for (const label of ['web1', 'web2', '']) sensor.packet(xdr(133, label, 'foo', 0, '%s', '1'), SENDER)
    const [born, ...values] = hub.news()
    expect([born, new Set(values)]).toEqual([`born gmetric.foo@${SENDER}`, new Set([`gmetric.foo@${SENDER} = 1`])])
  })
})

describe('the status', () => {
  test('says whether anything listens, where, and what the kernel threw away', () => {
    const { sensor } = make({ allow: networks() })
    expect(sensor.status()).toMatchObject({ name: 'gmetric', state: 'off', detail: '' })
    expect(sensor.status().counters).not.toHaveProperty('kernelDrops')
    sensor.listens('udp 127.0.0.1:8649', () => 7)
    expect(sensor.status()).toMatchObject({
      state: 'listening',
      detail: 'udp 127.0.0.1:8649',
      counters: { kernelDrops: 7 },
    })
    sensor.failed('gone')
    expect(sensor.status()).toMatchObject({ state: 'failed', detail: 'gone' })
  })
})
