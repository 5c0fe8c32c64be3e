/** gmetric behind the real hub: what consumers find, measure and are sent, down to the bytes of a frame. */
import { describe, expect, test } from 'vitest'
import type { Identity } from '../../../../auth/permissions.ts'
import type { ArgumentList } from '../../../../protocol/monitor/arguments.ts'
import { BasicType } from '../../../../protocol/monitor/constants.ts'
import { type Field, VOID } from '../../../../protocol/monitor/value.ts'
import { finish } from '../../../../server/kernel/core/fair-work.ts'
import { Hub } from '../../../../server/kernel/metrics/hub.ts'
import { MetricInstance } from '../../../../server/kernel/metrics/instance.ts'
import { type Measured, measure } from '../../../../server/kernel/metrics/measure.ts'
import { Selection } from '../../../../server/kernel/metrics/selection.ts'
import { FakeClock } from '../../../support/fake-clock.ts'
import { rights } from '../../kernel/metrics/fixture.ts'
import { makeSensor, metadata, SENDER, text, xdr } from './fixture.ts'

const { STRING, UINT32, REC, VOID: VOID_TYPE } = BasicType
const USER: Identity = { userId: 2, tenant: 'default', name: 'u', role: 'user' }
const START_US = 1_700_000_000_000_000
const ID = 7

function make() {
  const made = makeSensor(new Hub(new FakeClock()))
  made.hub.add(made.sensor)
  const select = (name: string, host?: string, identity = USER) => {
    const args: ArgumentList = host === undefined ? [] : [{ name: 'host', type: STRING, value: host }]
    return finish(Selection.of(made.hub.sensors, identity, name, args, { intervalMs: 1000, rights }))
  }
  const now = () => made.clock.microseconds()
  const answer = (name: string, host?: string) => finish(measure(select(name, host), now, made.hub))
  /** The frames of a tap from now on, without the 24 bytes of length, id, transaction and time. */
  const tap = (name: string, host?: string) => {
    const frames: string[] = []
    const { end } = made.hub.bind(new MetricInstance(ID, select(name, host)), {
      append: (head, tail) => frames.push(Buffer.concat([head, tail]).subarray(24).toString('hex')),
    })
    return { frames, end }
  }
  return { ...made, select, answer, tap }
}

const value = (number: number) => xdr(UINT32, number).toString('hex')
const record = (...fields: readonly (number | string)[]) => xdr(REC, fields.length / 3, ...fields).toString('hex')
const NOTHING = xdr(VOID_TYPE).toString('hex')

function feed({ sensor }: ReturnType<typeof make>) {
  for (const [host, load] of [
    ['10.0.0.9:web1', '1'],
    ['10.0.0.10:web2', '2'],
    ['', '3'],
  ] as const) {
    sensor.packet(metadata(host, 'load', 'uint32'), SENDER)
    sensor.packet(text(host, 'load', load), SENDER)
  }
  sensor.packet(metadata('10.0.0.9:web1', 'mem', 'uint32'), SENDER)
  sensor.packet(text('10.0.0.9:web1', 'mem', '4'), SENDER)
}

/** The RECs of an ARRAY, each as its bare values; the time right before the value is that of `feed`. */
function rows(measured: Measured): unknown[][] {
  if (measured instanceof Promise || measured.value.type !== BasicType.ARRAY) throw new Error('not an array')
  return measured.value.value.items.map((item) => {
    const fields = item as readonly Field[]
    expect(fields.at(-2)).toEqual({ name: 'time', type: BasicType.UINT64, value: BigInt(START_US) })
    return fields.filter(({ name }) => name !== 'time').map(({ value }) => value)
  })
}

describe('an answer', () => {
  test('of one host is its last value, by address and, spoofed, by name', () => {
    const gmetric = make()
    feed(gmetric)
    gmetric.clock.advance(1000)
    for (const host of ['web1', '10.0.0.9']) {
      expect(gmetric.answer('gmetric.load', host)).toEqual({ value: { type: UINT32, value: 1 }, time: START_US })
    }
    expect(gmetric.answer('gmetric.load', SENDER)).toMatchObject({ value: { value: 3 } })
  })

  test('of all hosts, or of some, is one record for each', () => {
    const gmetric = make()
    feed(gmetric)
    const all = [
      ['web1', 1],
      ['web2', 2],
      [SENDER, 3],
    ]
    expect(rows(gmetric.answer('gmetric.load'))).toEqual(all)
    expect(rows(gmetric.answer('gmetric.load', '*'))).toEqual(all)
    expect(rows(gmetric.answer('gmetric.load', '10.*'))).toEqual(all.slice(0, 2))
    expect(rows(gmetric.answer('gmetric.load', 'web*'))).toEqual(all.slice(0, 2))
    expect(rows(gmetric.answer('gmetric.load', 'db*'))).toEqual([])
  })

  test('of a pattern names the metric, and the host where it is open', () => {
    const gmetric = make()
    feed(gmetric)
    expect(rows(gmetric.answer('gmetric.*'))).toEqual([
      ['gmetric.load', 'web1', 1],
      ['gmetric.load', 'web2', 2],
      ['gmetric.load', SENDER, 3],
      ['gmetric.mem', 'web1', 4],
    ])
    expect(rows(gmetric.answer('gmetric.*', '10.0.0.9'))).toEqual([
      ['gmetric.load', 1],
      ['gmetric.mem', 4],
    ])
  })

  test('is VOID for what nobody sent, and for what is silent for longer than its dmax', () => {
    const gmetric = make()
    expect(gmetric.answer('gmetric.load', 'web1')).toEqual({ value: VOID, time: START_US })
    gmetric.sensor.packet(metadata('', 'load', 'uint32', { dmax: 10 }), SENDER)
    gmetric.sensor.packet(text('', 'load', '1'), SENDER)
    gmetric.clock.advance(10_000)
    expect(gmetric.answer('gmetric.load', SENDER)).toMatchObject({ value: { value: 1 } })
    gmetric.clock.advance(1)
    expect(gmetric.answer('gmetric.load', SENDER)).toMatchObject({ value: VOID })
    finish(gmetric.sensor.sweep())
    expect(gmetric.answer('gmetric.load', SENDER)).toMatchObject({ value: VOID })
  })

  test('is for its tenant only', () => {
    const gmetric = make()
    feed(gmetric)
    const stranger = { ...USER, tenant: 'other' }
    expect(() => gmetric.select('gmetric.load', undefined, stranger)).toThrow(
      expect.objectContaining({ status: 'NO_SUCH_METRIC' }),
    )
  })
})

describe('a tap', () => {
  test('on one host is sent bare values, also of a metric that comes later', () => {
    const gmetric = make()
    const byName = gmetric.tap('gmetric.load', 'web1')
    const byAddress = gmetric.tap('gmetric.load', '10.0.0.9')
    feed(gmetric)
    feed(gmetric)
    expect(byName.frames).toEqual([value(1), value(1)])
    expect(byAddress.frames).toEqual([value(1), value(1)])
  })

  test('on a pattern is sent records of all hosts', () => {
    const gmetric = make()
    const { frames, end } = gmetric.tap('gmetric.lo*')
    feed(gmetric)
    const sent = (host: string, load: number) =>
      record('name', STRING, 'gmetric.load', 'host', STRING, host, 'value', UINT32, load)
    expect(frames).toEqual([sent('web1', 1), sent('web2', 2), sent(SENDER, 3)])
    end()
    feed(gmetric)
    expect(frames).toHaveLength(3)
  })

  test('is sent a frame with the id and the time of arrival', () => {
    const gmetric = make()
    const times: number[] = []
    const heads: string[] = []
    const sink = {
      append: (head: Uint8Array, _tail: Uint8Array, time: number) => {
        heads.push(Buffer.from(head).toString('hex'))
        times.push(time)
      },
    }
    gmetric.hub.bind(new MetricInstance(ID, gmetric.select('gmetric.load', 'web1')), sink)
    gmetric.clock.advance(250)
    feed(gmetric)
    expect(heads).toEqual([xdr(0, ID, 0, 0, 0, 0).toString('hex')])
    expect(times).toEqual([START_US + 250_000])
  })

  test('is sent one VOID when a metric dies of silence', () => {
    const gmetric = make()
    const { frames } = gmetric.tap('gmetric.load', SENDER)
    gmetric.sensor.packet(metadata('', 'load', 'uint32', { dmax: 10 }), SENDER)
    gmetric.sensor.packet(text('', 'load', '1'), SENDER)
    gmetric.clock.advance(10_001)
    finish(gmetric.sensor.sweep())
    finish(gmetric.sensor.sweep())
    expect(frames).toEqual([value(1), NOTHING])
  })

  test('follows a host to its new name', () => {
    const gmetric = make()
    const all = gmetric.tap('gmetric.load')
    const old = gmetric.tap('gmetric.load', 'old')
    const fresh = gmetric.tap('gmetric.load', 'new')
    gmetric.sensor.packet(text('10.0.0.9:old', 'load', '1'), SENDER)
    gmetric.sensor.packet(text('10.0.0.9:new', 'load', '2'), SENDER)
    const text1 = xdr(STRING, '1').toString('hex')
    const text2 = xdr(STRING, '2').toString('hex')
    expect(old.frames).toEqual([text1, NOTHING])
    expect(fresh.frames).toEqual([text2])
    expect(all.frames).toEqual([
      record('host', STRING, 'old', 'value', STRING, '1'),
      xdr(REC, 2, 'host', STRING, 'old', 'value', VOID_TYPE).toString('hex'),
      record('host', STRING, 'new', 'value', STRING, '2'),
    ])
  })
})
