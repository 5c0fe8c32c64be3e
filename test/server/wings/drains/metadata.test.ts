/** What drains know of metrics, and what those by remote write say of them: types, texts and units, and how often. */
import { expect, test } from 'vitest'
import type { Owner } from '../../../../auth/permissions.ts'
import { BasicType } from '../../../../protocol/monitor/constants.ts'
import { type Value, VOID } from '../../../../protocol/monitor/value.ts'
import { decodeWriteRequest, decompress } from '../../../../protocol/prometheus/remote-write.ts'
import { finish } from '../../../../server/kernel/core/fair-work.ts'
import type { Sensor } from '../../../../server/kernel/metrics/metric.ts'
import { isOfServer, metricsOf } from '../../../../server/wings/drains/metrics.ts'
import type { OutgoingValue } from '../../../../server/wings/drains/outgoing.ts'
import { remoteWrite } from '../../../../server/wings/drains/prometheus.ts'

const LIMITS = { bytes: 4 << 20, elements: 1_000_000 }
const [COUNTER, GAUGE, HISTOGRAM, SUMMARY] = [1, 2, 3, 5]

type Known = NonNullable<ReturnType<Parameters<typeof remoteWrite>[0]>>

const text = (description: string, unit = ''): Known => ({ description, unit })
const METRICS: Readonly<Record<string, Known>> = {
  'host.load.one': { ...text('Load.', '1'), isCounter: false },
  'host.net.bytes': { ...text('Bytes.', 'B'), isCounter: true },
  'statsd.t': text('Times.', 'ms'),
  'open.x': text(''),
  'open.y': text('Anything.'),
  'prometheus.req_total': { ...text('Requests.'), isCounter: true },
  'prometheus.took_bucket': { ...text('Seconds.'), isCounter: true, distribution: 'histogram' },
  'prometheus.took_sum': { ...text('Seconds.'), isCounter: true, distribution: 'histogram' },
  'prometheus.gc': { ...text('Pauses.'), isCounter: false, distribution: 'summary' },
}

const one: Value = { type: BasicType.DOUBLE, value: 1 }
const of = (name: string, value: Value = one, labels: OutgoingValue['labels'] = []): OutgoingValue => {
  return { transaction: 1, name, labels, value, time: 1_700_000_000_000_000 }
}

let nowMs = 0
/** What a request says, which its destination takes or not. */
function familiesOf(wire: ReturnType<typeof remoteWrite>, ...values: readonly OutgoingValue[]) {
  return sent(wire, values, true)
}

function sent(wire: ReturnType<typeof remoteWrite>, values: readonly OutgoingValue[], isTaken: boolean) {
  const { request, accepted } = finish(wire.encode(values))
  if (isTaken) accepted?.()
  const { families } = finish(decodeWriteRequest(decompress(request?.body as Uint8Array, LIMITS), LIMITS))
  return Object.fromEntries(families)
}
const wireOf = () =>
  remoteWrite(
    (name) => METRICS[name],
    () => nowMs,
  )

test('numbers are gauges or counters, or of a type that nobody knows', () => {
  const names = ['host.load.one', 'host.net.bytes', 'open.x', 'open.y', 'prometheus.req_total', 'gone.z']
  expect(familiesOf(wireOf(), ...names.map((name) => of(name)))).toEqual({
    host_load_one: { type: GAUGE, help: 'Load.', unit: '1' },
    host_net_bytes: { type: COUNTER, help: 'Bytes.', unit: 'B' },
    open_y: { type: 0, help: 'Anything.', unit: '' },
    req_total: { type: COUNTER, help: 'Requests.', unit: '' },
  })
})

test('what came from Prometheus sample by sample has the family of its histogram or summary', () => {
  const values = [
    of('prometheus.took_bucket', one, [['le', '+Inf']]),
    of('prometheus.took_sum'),
    of('prometheus.gc', one, [['quantile', '0.5']]),
  ]
  expect(familiesOf(wireOf(), ...values)).toEqual({
    took: { type: HISTOGRAM, help: 'Seconds.', unit: '' },
    gc: { type: SUMMARY, help: 'Pauses.', unit: '' },
  })
})

test('a record that is a histogram is one; fields of another record have nothing to be said of', () => {
  const doubles = (items: readonly number[]) =>
    ({ type: BasicType.ARRAY, value: { element: BasicType.DOUBLE, items } }) as const
  const counts = { type: BasicType.ARRAY, value: { element: BasicType.UINT64, items: [1n, 2n] } } as const
  const histogram: Value = {
    type: BasicType.REC,
    value: [
      { name: 'count', type: BasicType.UINT64, value: 3n },
      { name: 'sum', type: BasicType.DOUBLE, value: 4 },
      { name: 'bounds', ...doubles([1]) },
      { name: 'counts', ...counts },
    ],
  }
  const record: Value = { type: BasicType.REC, value: [{ name: 'free', type: BasicType.DOUBLE, value: 1 }] }
  expect(familiesOf(wireOf(), of('statsd.t', histogram), of('open.y', record))).toEqual({
    statsd_t: { type: HISTOGRAM, help: 'Times.', unit: 'ms' },
  })
})

test('losses are a counter', () => {
  expect(familiesOf(wireOf(), of('cinnabar_lost_values_total'))).toEqual({
    cinnabar_lost_values_total: { type: COUNTER, help: 'Values that were lost before they could be sent.', unit: '' },
  })
})

test('they are sent with the first value, and again after a minute', () => {
  const wire = wireOf()
  nowMs = 1_000
  const value = of('host.load.one')
  expect(Object.keys(familiesOf(wire, value))).toEqual(['host_load_one'])
  nowMs += 59_999
  expect(familiesOf(wire, value)).toEqual({})
  expect(Object.keys(familiesOf(wire, value, of('open.y')))).toEqual(['open_y'])
  nowMs += 1
  expect(Object.keys(familiesOf(wire, value))).toEqual(['host_load_one'])
  expect(familiesOf(wire, value)).toEqual({})
})

test('what a refused request said is said again', () => {
  const wire = wireOf()
  const value = of('host.load.one')
  expect(Object.keys(sent(wire, [value, value], false))).toEqual(['host_load_one'])
  expect(Object.keys(sent(wire, [value], true))).toEqual(['host_load_one'])
  expect(sent(wire, [value], true)).toEqual({})
})

test('the end of a series says nothing of its metric, which the next value does', () => {
  const wire = wireOf()
  expect(familiesOf(wire, of('host.load.one', VOID))).toEqual({})
  expect(Object.keys(familiesOf(wire, of('host.load.one')))).toEqual(['host_load_one'])
})

test('of very many metrics, those that were described longest ago are described again', () => {
  const wire = remoteWrite(
    () => text('Open.'),
    () => nowMs,
  )
  const names = Array.from({ length: 10_000 }, (_, index) => `open.x${index}`)
  familiesOf(wire, ...names.map((name) => of(name)))
  expect(Object.keys(familiesOf(wire, of('open.more')))).toEqual(['open_more'])
  expect(familiesOf(wire, ...names.slice(1).map((name) => of(name)))).toEqual({})
  expect(Object.keys(familiesOf(wire, of('open.x0')))).toEqual(['open_x0'])
})

test("of a family that the server and a tenant have, the metrics are the server's that only the server knows", () => {
  const sensor = (owner: Owner, ...known: readonly string[]) => {
    return { family: 'p.', owner, metric: (name: string) => (known.includes(name) ? { name } : undefined) } as Sensor
  }
  const sensors = [sensor('producer', 'p.server', 'p.both'), sensor({ tenant: 'a' }, 'p.tenant', 'p.both')]
  const names = ['p.server', 'p.both', 'p.tenant', 'p.gone', 'q.x']
  expect(names.filter(isOfServer({ sensors }, 'a'))).toEqual(['p.server'])
  expect(names.filter(isOfServer({ sensors }, 'b'))).toEqual(['p.server', 'p.both', 'p.tenant', 'p.gone'])
  const metricOf = metricsOf(sensors, 'a')
  expect(names.map((name) => metricOf(name)?.name)).toEqual(['p.server', 'p.both', 'p.tenant', undefined, undefined])
})
