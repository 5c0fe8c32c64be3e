/** gmond's XML of what was received, requests for metadata, and the budget of each source. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { decodePacket } from '../../../../protocol/gmetric/decode.ts'
import { captured, vector } from '../../../protocol/gmetric/vectors.ts'
import { hostsOf, metricsOf } from '../../../support/ganglia-xml.ts'
import { FakeHub, makeSensor, metadata, SENDER, text, xdr } from './fixture.ts'

const make = (config: Parameters<typeof makeSensor>[1] = {}) => {
  const made = makeSensor(new FakeHub(), config)
  return { ...made, xml: () => [...made.sensor.document('c')].join('') }
}

describe('the document', () => {
  test('shows values as their format wants them, heartbeat and location at the host', () => {
    const { sensor, clock, xml } = make()
    for (const { bytes } of captured) sensor.packet(bytes, SENDER)
    clock.advance(5900)
    const host = hostsOf(xml()).find(({ attributes }) => attributes['IP'] === SENDER)
    expect(host?.attributes).toEqual({
      NAME: SENDER,
      IP: SENDER,
      TAGS: '',
      REPORTED: '1700000000',
      TN: '5',
      TMAX: '20',
      DMAX: '86400',
      LOCATION: '1,2,3',
      GMOND_STARTED: String(0x6b00d65c),
    })
    const shown = metricsOf(xml(), SENDER)
    expect(shown?.has('heartbeat')).toBe(false)
    expect(shown?.has('location')).toBe(false)
    expect(shown?.get('cpu_num')?.attributes).toMatchObject({ VAL: '2', TYPE: 'uint16', UNITS: 'CPUs', TN: '5' })
    expect(shown?.get('load_one')?.attributes).toMatchObject({ VAL: '1.59', TYPE: 'float' })
    expect(shown?.get('disk_total')?.attributes).toMatchObject({ VAL: '270.553', TYPE: 'double' })
  })

  test('holds a value whose metadata never came, and no metadata whose value never came', () => {
    const { sensor, xml } = make()
    sensor.packet(text('', 'alone', 'v'), SENDER)
    sensor.packet(metadata('', 'about', 'uint8'), SENDER)
    const shown = [...(metricsOf(xml(), SENDER)?.values() ?? [])].map(({ attributes }) => attributes)
    expect(shown).toEqual([expect.objectContaining({ NAME: 'alone', VAL: 'v', TYPE: 'string', TMAX: '60' })])
  })

  test('has no name twice: the real one goes before one that had to be altered', () => {
    const { sensor, xml } = make()
    for (const name of ['a/b', 'a_b', 'x/y_z', 'x_y/z']) sensor.packet(text('', name, name), SENDER)
    for (const host of ['10.0.0.1:H', '10.0.0.2:h']) sensor.packet(text(host, 'foo', '1'), SENDER)
    const [here, ...others] = hostsOf(xml())
    expect(here?.children.map(({ attributes }) => attributes['VAL'])).toEqual(['a_b', 'x/y_z'])
    expect(others.map(({ attributes }) => attributes['NAME'])).toEqual(['H', '10.0.0.2'])
  })

  test('is whole after any packets, and none takes another from it', () => {
    const strings = fc.string({ unit: 'binary', minLength: 1, maxLength: 30 })
    const packets = fc.oneof(
      fc.tuple(strings, strings, strings).map(([host, name, value]) => text(`10.0.0.9:${host}`, name, value)),
      fc.tuple(strings, strings).map(([name, units]) => metadata('', name, 'string', { units, extra: [name, units] })),
      fc.uint8Array({ maxLength: 200 }),
    )
    fc.assert(
      fc.property(fc.array(packets, { maxLength: 20 }), (all) => {
        const { sensor, xml } = make()
        sensor.packet(text('', 'good', '1'), SENDER)
        for (const bytes of all) sensor.packet(bytes, SENDER)
        expect(metricsOf(xml(), SENDER)?.get('good')?.attributes['VAL']).toBe('1')
      }),
    )
  })
})

describe('a request for metadata', () => {
  function asking() {
    const made = make()
    const asked: string[] = []
    made.sensor.asks((request, source) => {
      const { kind, metric, host } = decodePacket(request)
      asked.push(`${kind} ${metric} ${host.spoofed ? host.name : host.label} to ${source}`)
    })
    return { ...made, asked }
  }

  test('goes to who sent a value without, once a minute', () => {
    const { sensor, clock, asked } = asking()
    const value = xdr(132, 'vm', 'foo', 0, '%u', 1)
    for (let i = 0; i < 3; i++) sensor.packet(value, SENDER)
    expect(asked).toEqual([`request foo vm to ${SENDER}`])
    clock.advance(60_000)
    sensor.packet(value, SENDER)
    expect(asked).toHaveLength(2)
    sensor.packet(metadata('', 'foo', 'uint32'), SENDER)
    clock.advance(60_000)
    sensor.packet(value, SENDER)
    expect(asked).toHaveLength(2)
    expect(sensor.status().counters['asked']).toBe(2)
  })

  test('is not made for what older senders call by number, and by all metrics together a hundred times a second', () => {
    const { sensor, clock, asked } = asking()
    sensor.packet(xdr(26, 5), SENDER)
    sensor.packet(xdr(4097, 'host.xy', '10.0.0.9'), SENDER)
    expect(asked).toEqual([])
    for (let i = 0; i < 150; i++) sensor.packet(text('', `m${i}`, '1'), SENDER)
    expect(asked).toHaveLength(100)
    clock.advance(1000)
    sensor.packet(text('', 'm149', '1'), SENDER)
    expect(asked).toHaveLength(101)
  })

  test('is encoded as gmond encodes its own', () => {
    const { sensor } = make()
    const sent: Uint8Array[] = []
    sensor.asks((request) => sent.push(request))
    sensor.packet(text('', 'novalmeta', '1').fill(0), SENDER)
    sensor.packet(xdr(133, 'localhost', 'novalmeta', 0, '%s', '1'), SENDER)
    expect(sent.map((bytes) => Buffer.from(bytes).toString('hex'))).toEqual([
      '00000088000000096c6f63616c686f7374000000000000096e6f76616c6d65746100000000000000',
    ])
  })
})

describe('packets_per_second', () => {
  test('bounds each source by itself, for as long as a second', () => {
    const { sensor, clock, hub } = make({ packetsPerSecond: 3 })
    for (let i = 0; i < 5; i++) sensor.packet(text('', 'foo', String(i)), SENDER)
    sensor.packet(vector('gmetric 133 foo').bytes, '192.0.2.8')
    expect(sensor.status().counters).toMatchObject({ packets: 6, values: 4, rateLimited: 2 })
    expect(sensor.status().detail).toContain(`${SENDER}: 2`)
    clock.advance(1000)
    hub.news()
    sensor.packet(text('', 'foo', '9'), SENDER)
    expect(hub.news()).toEqual([`gmetric.foo@${SENDER} = 9`])
  })
})
