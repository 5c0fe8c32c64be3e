/** gmond's XML of what was received, requests for metadata, and the budget of each source. */

import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { decodePacket } from '../../../../protocol/gmetric/decode.ts'
import { finish } from '../../../../server/kernel/core/fair-work.ts'
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

describe('the document, whatever was sent,', () => {
  const double = (name: string, format: string, value: number) => {
    const bytes = Buffer.alloc(8)
    bytes.writeDoubleBE(value)
    return Buffer.concat([xdr(135, '', name, 0, format), bytes])
  }

  test('is made for every format', () => {
    const { sensor, xml } = make()
    sensor.packet(double('small', '%.99g', 0.0001), SENDER)
    sensor.packet(double('long', '%99.99f', 1e20), SENDER)
    const shown = metricsOf(xml(), SENDER)
    expect(shown?.get('small')?.attributes['VAL']).toMatch(/^0\.0001000/)
    // gmetad has 128 bytes for it.
    expect(shown?.get('long')?.attributes['VAL']).toBe('100000000000000000000')
  })

  test('has no number whose sum over all hosts gmetad cannot hold, or that would spoil it', () => {
    const { sensor, xml } = make()
    const values = [1e90, 1e91, -1e308, Number.NaN, Number.NEGATIVE_INFINITY]
    for (const [index, value] of values.entries()) sensor.packet(double(`m${index}`, '%f', value), SENDER)
    const shown = [...(metricsOf(xml(), SENDER)?.values() ?? [])].map(({ attributes: { VAL, TYPE } }) => [VAL, TYPE])
    expect(shown).toEqual([
      ['1e+90', 'double'],
      ['1e+91', 'string'],
      ['-1e+308', 'string'],
      ['nan', 'string'],
      ['-inf', 'string'],
    ])
  })

  test('has a number for when gmond was started', () => {
    const { sensor, xml } = make()
    const started = () => hostsOf(xml())[0]?.attributes['GMOND_STARTED']
    for (const [type, value, shown] of [
      ['string', 'x', '0'],
      ['double', '1e300', '0'],
      ['int32', '-5', '0'],
      ['double', '7.5', '7'],
    ] as const) {
      sensor.packet(metadata('', 'heartbeat', type), SENDER)
      sensor.packet(text('', 'heartbeat', value), SENDER)
      expect(started()).toBe(shown)
    }
  })

  test('has no age below 0 and no metric twice where packets come while it is read', () => {
    const { sensor, clock } = make()
    sensor.packet(metadata('', 'short', 'uint8', { dmax: 1 }), SENDER)
    for (const name of ['short', 'a', 'b']) sensor.packet(text('', name, '1'), SENDER)
    const pieces: string[] = []
    for (const piece of sensor.document('c')) {
      pieces.push(piece)
      // It could go on for ever.
      if (pieces.length === 100) break
      clock.advance(2000)
      finish(sensor.sweep())
      for (const name of ['short', 'b']) sensor.packet(text('', name, '2'), SENDER)
      sensor.packet(metadata('', 'short', 'uint8', { dmax: 1 }), SENDER)
    }
    expect(metricsOf(pieces.join(''), SENDER)?.get('b')?.attributes['TN']).toBe('0')
    const names = hostsOf(pieces.join(''))[0]?.children.map(({ attributes }) => attributes['NAME'])
    expect(names).toEqual(['a', 'b', 'short'])
  })

  test('ends, however fast metrics come and go while it is read', () => {
    const { sensor, clock } = make()
    sensor.packet(text('', 'first', '1'), SENDER)
    let pieces = 0
    for (const _ of sensor.document('c')) {
      clock.advance(2000)
      finish(sensor.sweep())
      sensor.packet(metadata('', `new${pieces}`, 'uint8', { dmax: 1 }), SENDER)
      sensor.packet(text('', `new${pieces}`, '1'), SENDER)
      if (++pieces === 100) break
    }
    expect(pieces).toBeLessThan(100)
  })

  test('has only so many different extra elements for a name as gmetad can keep, over all hosts and polls', () => {
    const { sensor, xml } = make()
    const shown = () => hostsOf(xml()).flatMap(({ children }) => children[0]?.children[0]?.children ?? [])
    for (let i = 0; i < 40; i++) {
      const extra = ['GROUP', 'all', 'SPOOF_HOST', `10.0.0.${i}:h${i}`, 'DESC', `of host ${i}`]
      sensor.packet(metadata(`10.0.0.${i}:h${i}`, 'foo', 'uint8', { extra }), SENDER)
      sensor.packet(text(`10.0.0.${i}:h${i}`, 'foo', '1'), SENDER)
    }
    const count = (key: string) => shown().filter(({ attributes }) => attributes['NAME'] === key).length
    expect([count('GROUP'), count('SPOOF_HOST'), count('DESC')]).toEqual([40, 40, 15])
    for (let i = 0; i < 40; i++) {
      sensor.packet(metadata(`10.0.0.${i}:h${i}`, 'foo', 'uint8', { extra: ['DESC', `otherwise ${i}`] }), SENDER)
    }
    expect(count('DESC')).toBe(0)
  })

  test('has no more bytes of them for a name than gmetad can keep', () => {
    const { sensor, xml } = make()
    for (let i = 0; i < 5; i++) {
      sensor.packet(metadata(`10.0.0.${i}:h${i}`, 'foo', 'uint8', { extra: ['DESC', String(i).repeat(300)] }), SENDER)
      sensor.packet(text(`10.0.0.${i}:h${i}`, 'foo', '1'), SENDER)
    }
    expect(xml().match(/<EXTRA_ELEMENT/g)).toHaveLength(3)
  })
})

describe('a request for metadata', () => {
  function asking() {
    const made = make()
    const asked: string[] = []
    made.sensor.sendRequestsBy((request, source) => {
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

  test('is not made for what older senders call by number, and so many times a second for a source and for all', () => {
    const { sensor, clock, asked } = asking()
    sensor.packet(xdr(26, 5), SENDER)
    sensor.packet(xdr(4097, 'host.xy', '10.0.0.9'), SENDER)
    expect(asked).toEqual([])
    for (const [sender, asks] of [
      [SENDER, 50],
      ['192.0.2.8', 100],
      ['192.0.2.9', 100],
    ] as const) {
      for (let i = 0; i < 150; i++) sensor.packet(text('', `m${i}`, '1'), sender)
      expect(asked).toHaveLength(asks)
    }
    clock.advance(1000)
    sensor.packet(text('', 'm149', '1'), SENDER)
    expect(asked).toHaveLength(101)
  })

  test('is encoded as gmond encodes its own', () => {
    const { sensor } = make()
    const sent: Uint8Array[] = []
    sensor.sendRequestsBy((request) => sent.push(request))
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
