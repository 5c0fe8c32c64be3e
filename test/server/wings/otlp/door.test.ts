/** OTLP/HTTP as its specification has it, with the exporters of OpenTelemetry itself. */
import { gzipSync } from 'node:zlib'
import {
  AggregationTemporalityPreference,
  OTLPMetricExporter as JsonExporter,
} from '@opentelemetry/exporter-metrics-otlp-http'
import { OTLPMetricExporter } from '@opentelemetry/exporter-metrics-otlp-proto'
import { resourceFromAttributes } from '@opentelemetry/resources'
import { AggregationType, MeterProvider, PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { hasZstd } from '../../../../server/kit/inflate.ts'
import { done } from '../../../support/administration.ts'
import { args, command, str, type } from '../../../support/bytes.ts'
import { PublishingProducer, tokenFor } from '../../../support/publisher.ts'
import { decoded } from '../../../support/records.ts'

const JSON_TYPE = { 'content-type': 'application/json' }
const PROTOBUF = { 'content-type': 'application/x-protobuf' }

let server: PublishingProducer
beforeEach(async () => {
  server = await PublishingProducer.start()
})
afterEach(() => server.stop())

async function query(name: string, given: Record<string, string> = {}, seat = server.root) {
  const list = Object.entries(given).map(([label, text]) => [label, type.string, str(text)] as const)
  return decoded(await seat.query(name, args(...list)))
}

/** A gauge in JSON. */
const gauge = (name: string, value: number, attributes: Record<string, string> = {}) =>
  JSON.stringify({
    resourceMetrics: [
      {
        scopeMetrics: [
          {
            metrics: [
              {
                name,
                gauge: {
                  dataPoints: [
                    {
                      asDouble: value,
                      timeUnixNano: '1700000000000000999',
                      attributes: Object.entries(attributes).map(([key, stringValue]) => ({
                        key,
                        value: { stringValue },
                      })),
                    },
                  ],
                },
              },
            ],
          },
        ],
      },
    ],
  })

describe('an exporter of OpenTelemetry', () => {
  /** Exports one collection of everything that `record` has recorded. */
  async function exported(
    exporter: OTLPMetricExporter | JsonExporter,
    record: (meter: ReturnType<MeterProvider['getMeter']>) => void,
  ): Promise<void> {
    const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 1e9 })
    const provider = new MeterProvider({
      resource: resourceFromAttributes({ 'service.name': 'shop', 'host.name': 'h1', shards: [1, 2] as never }),
      readers: [reader],
      views: [
        {
          instrumentName: 'sizes',
          aggregation: { type: AggregationType.EXPONENTIAL_HISTOGRAM, options: { maxSize: 20 } },
        },
      ],
    })
    record(provider.getMeter('shop.web', '1.2'))
    await provider.forceFlush()
    await provider.shutdown()
  }

  const options = () => ({ url: `${server.url}/v1/metrics`, headers: { authorization: `Bearer ${server.token}` } })

  it.each([
    ['protocol buffers', () => new OTLPMetricExporter(options())],
    ['JSON', () => new JsonExporter(options())],
    ['gzip', () => new OTLPMetricExporter({ ...options(), compression: 'gzip' as never })],
  ])('brings every kind of instrument, by %s', async (_, exporter) => {
    await exported(exporter(), (meter) => {
      meter.createCounter('requests', { unit: '{request}', description: 'Requests.' }).add(3, { route: '/a' })
      meter.createUpDownCounter('open').add(-2)
      meter.createObservableGauge('temperature').addCallback((result) => result.observe(21.5))
      const latency = meter.createHistogram('latency', { unit: 'ms', advice: { explicitBucketBoundaries: [10, 100] } })
      for (const value of [5, 50, 500]) latency.record(value)
      const sizes = meter.createHistogram('sizes')
      for (const value of [1, 2, 4, 1024]) sizes.record(value)
    })
    const labels = {
      'host.name': 'h1',
      'otel.scope.name': 'shop.web',
      'otel.scope.version': '1.2',
      'service.name': 'shop',
      shards: '[1,2]',
    }
    const [requests] = await query('otlp.requests')
    expect(requests).toMatchObject({ ...labels, route: '/a', value: 3 })
    expect((await query('otlp.open'))[0]).toMatchObject({ value: -2 })
    expect((await query('otlp.temperature'))[0]).toMatchObject({ value: 21.5 })
    expect((await query('otlp.latency'))[0].value).toMatchObject({
      delta: false,
      count: 3,
      sum: 555,
      min: 5,
      max: 500,
      bounds: [10, 100],
      counts: [1, 1, 1],
    })
    const [{ value: sizes }] = await query('otlp.sizes')
    expect(sizes).toMatchObject({ count: 4, sum: 1031, min: 1, max: 1024, zero_count: 0 })
    const counts: number[] = sizes.positive_counts
    expect(counts.reduce((sum, count) => sum + Number(count), 0)).toBe(4)
    const [shown] = decoded(
      await server.root.query('producer.metrics', args(['match', type.string, str('otlp.requests')])),
    )
    expect(shown).toMatchObject({
      unit: '{request}',
      description: 'Requests.',
      details: { labels: 'any', monotonic: true },
    })
  })

  it('sends differences too, which are marked', async () => {
    const temporalityPreference = AggregationTemporalityPreference.DELTA
    await exported(new OTLPMetricExporter({ ...options(), temporalityPreference }), (meter) => {
      meter.createHistogram('latency').record(5)
    })
    expect((await query('otlp.latency'))[0].value).toMatchObject({ delta: true, count: 1 })
  })
})

describe('what comes in', () => {
  it('is delivered to who has subscribed before, with its own time', async () => {
    const seat = await server.producer.seat()
    const id = await seat.collect('otlp.load', args(['job', type.string, str('api')]))
    await seat.ok((seq) => command.subscribe(seq, id))
    const answer = await server.post('/v1/metrics', gauge('load', 0.5, { job: 'api', name: 'n' }), JSON_TYPE)
    expect([answer.status, await answer.text()]).toEqual([200, '{}'])
    const value = await seat.value()
    expect(value.time).toBe(1_700_000_000_000_000)
    expect(decoded(value)).toEqual({ exported_name: 'n', value: 0.5 })
  })

  it('and comes again is passed over', async () => {
    const seat = await server.producer.seat()
    const id = await seat.collect('otlp.load')
    await seat.ok((seq) => command.subscribe(seq, id))
    for (let count = 0; count < 3; count++) {
      expect((await server.post('/v1/metrics', gauge('load', 1), JSON_TYPE)).status).toBe(200)
    }
    await server.post('/v1/metrics', gauge('load', 2), JSON_TYPE)
    expect((await seat.values(2)).map((value) => decoded(value).value)).toEqual([1, 2])
  })

  it('in JSON with numbers instead of texts, a scope with attributes, and keys that are not known', async () => {
    // The form of the examples that come with the definitions: times are numbers there, and lose what is below 256 ns.
    const point = { startTimeUnixNano: 1544712660300000000, timeUnixNano: 1544712660300000000, flags: 0, later: {} }
    const attributes = [{ key: 'my.attr', value: { stringValue: 'some value' } }]
    const metrics = [
      {
        name: 'my.counter',
        unit: '1',
        sum: { aggregationTemporality: 1, isMonotonic: true, dataPoints: [{ ...point, asDouble: 5, attributes }] },
      },
      {
        name: 'my.histogram',
        histogram: {
          aggregationTemporality: 1,
          dataPoints: [
            { ...point, count: 3, sum: 3, bucketCounts: [1, 1, 1], explicitBounds: [1], min: 1, max: 1, attributes },
          ],
        },
      },
      { name: 'my.later', laterKind: { dataPoints: [{}] } },
    ]
    const scope = { name: 'my.library', attributes: [{ key: 'of.scope', value: { boolValue: true } }] }
    const request = { resourceMetrics: [{ schemaUrl: 'x', scopeMetrics: [{ scope, metrics }] }], later: 1 }
    const answer = await server.post('/v1/metrics', JSON.stringify(request), JSON_TYPE)
    expect([answer.status, await answer.text()]).toEqual([200, '{}'])
    expect((await query('otlp.my.counter'))[0]).toMatchObject({
      'my.attr': 'some value',
      'otel.scope.name': 'my.library',
      'otel.scope.of.scope': 'true',
      value: 5,
    })
    expect((await query('otlp.my.histogram'))[0]).toMatchObject({
      time: 1_544_712_660_300_000,
      value: { delta: true, start: 1_544_712_660_300_000, count: 3, bounds: [1], counts: [1, 1, 1] },
    })
  })
})

describe('who may', () => {
  const post = (token: string) => server.post('/v1/metrics', gauge('load', 1), JSON_TYPE, token)

  it('nobody without a token, and the answer has the form of the request', async () => {
    const bare = await fetch(`${server.url}/v1/metrics`, { method: 'POST', body: gauge('load', 1), headers: JSON_TYPE })
    expect([bare.status, bare.headers.get('www-authenticate')]).toEqual([401, 'Bearer'])
    expect(await bare.json()).toEqual({ code: 16, message: 'a token is needed: Authorization: Bearer <token>' })
    const wrong = await server.post('/v1/metrics', new Uint8Array(0), PROTOBUF, `cnb_${'A'.repeat(43)}`)
    expect(wrong.status).toBe(401)
    // google.rpc.Status by hand: code 16, then the message.
    const text = 'the token is not valid'
    expect(Buffer.from(await wrong.arrayBuffer())).toEqual(
      Buffer.concat([Buffer.from([0x08, 16, 0x12, text.length]), Buffer.from(text)]),
    )
  })

  it.each([
    ['a token without a scope', ''],
    ['a scope that does not name PUBLISH', '* *'],
    ['a scope for others', 'PUBLISH prometheus.*'],
  ])('%s may not', async (_, scope) => {
    const answer = await post(await tokenFor(server.root, 'app', scope))
    expect(answer.status).toBe(403)
    expect(await answer.json()).toEqual({
      code: 7,
      message: 'nothing may be published here without a rule and a scope that allow PUBLISH of otlp.*',
    })
    expect(await query('otlp.load')).toEqual([])
  })

  it('a scope for other series may not: each point is rejected', async () => {
    const answer = await post(await tokenFor(server.root, 'app', 'PUBLISH otlp.other'))
    expect(answer.status).toBe(200)
    expect(await answer.json()).toEqual({
      partialSuccess: {
        rejectedDataPoints: '1',
        errorMessage: 'PUBLISH of otlp.load is not allowed with these labels',
      },
    })
    expect(await query('otlp.load')).toEqual([])
  })

  it('rules judge each series by its labels; the others are taken', async () => {
    await done(server.root, 'role.deny', {
      role: 'operator',
      command: 'PUBLISH',
      object: 'otlp.load',
      where: 'env=prod',
    })
    const request = JSON.parse(gauge('load', 1, { env: 'test' }))
    request.resourceMetrics.push(...JSON.parse(gauge('load', 2, { env: 'prod' })).resourceMetrics)
    const answer = await server.post('/v1/metrics', JSON.stringify(request), JSON_TYPE)
    expect(await answer.json()).toMatchObject({ partialSuccess: { rejectedDataPoints: '1' } })
    expect((await query('otlp.load')).map(({ env }: { env: string }) => env)).toEqual(['test'])
  })

  it('each tenant has its own, which others do not see', async () => {
    await done(server.root, 'tenant.add', { tenant: 'north' })
    await server.producer.addUser('app', { tenant: 'north', role: 'operator' })
    await post(await tokenFor(server.root, 'app', 'PUBLISH otlp.*', 'north'))
    await server.producer.addUser('eve', { tenant: 'south' })
    const [north, south] = [await server.producer.seat('app', 'north'), await server.producer.seat('eve', 'south')]
    expect(await query('otlp.load', {}, north)).toHaveLength(1)
    expect(await query('otlp.load', {}, south)).toEqual([])
    expect(await query('otlp.load', {}, await server.producer.seat())).toEqual([])
  })
})

it('a body under zstd is taken where this Node has it', async () => {
  // One frame with one raw block.
  const plain = gauge('load', 1)
  const block = Buffer.alloc(3)
  block.writeUIntLE((plain.length << 3) | 1, 0, 3)
  const start = Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0x20, plain.length])
  const frame = Buffer.concat([start, block, Buffer.from(plain)])
  const headers = { ...JSON_TYPE, 'content-encoding': 'zstd' }
  expect(plain.length).toBeLessThan(256)
  expect((await server.post('/v1/metrics', frame, headers)).status).toBe(hasZstd ? 200 : 415)
  // It wants 128 MiB for what it has.
  const large = Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0x00, 17 << 3, 0x01, 0x00, 0x00])
  expect((await server.post('/v1/metrics', large, headers)).status).toBe(hasZstd ? 400 : 415)
})

describe('what is refused', () => {
  const json = async (body: string | Uint8Array, headers: Record<string, string> = JSON_TYPE) => {
    const answer = await server.post('/v1/metrics', body, headers)
    return [answer.status, (await answer.json()).message]
  }

  it('what is no request', async () => {
    expect(await json('{')).toEqual([400, expect.stringMatching(/JSON/)])
    expect(await json('[]')).toEqual([400, 'the request: an object was expected'])
    expect(await json('{"resourceMetrics":[1]}')).toEqual([400, 'resourceMetrics: a list of objects was expected'])
    expect(await json(new Uint8Array([0xff]))).toEqual([400, 'the request is not UTF-8'])
    const cut = await server.post('/v1/metrics', new Uint8Array([0x0a, 0x05, 0x01]), PROTOBUF)
    expect(cut.status).toBe(400)
    const other = await server.post('/v1/metrics', 'a b 1', { 'content-type': 'text/plain' })
    expect(other.status).toBe(415)
  })

  it('what is too long, before and after decompression', async () => {
    const long = await server.post('/v1/metrics', new Uint8Array((16 << 20) + 1), PROTOBUF)
    expect(long.status).toBe(413)
    const bomb = gzipSync(Buffer.alloc(17 << 20))
    const inflated = await server.post('/v1/metrics', bomb, { ...PROTOBUF, 'content-encoding': 'gzip' })
    expect(inflated.status).toBe(413)
    expect(await json(' '.repeat((1 << 20) + 1))).toEqual([413, expect.stringContaining('send application/x-protobuf')])
  })

  it.each(['deflate', 'br', 'gzip, gzip', ...(hasZstd ? [] : ['zstd'])])(
    'the content encoding %s, by its name',
    async (encoding) => {
      expect(await json(gauge('load', 1), { ...JSON_TYPE, 'content-encoding': encoding })).toEqual([
        415,
        `the content encoding ${encoding} is not taken: ${hasZstd ? 'gzip and zstd are' : 'gzip is'}, or none`,
      ])
    },
  )

  it('what is no gzip, in the form of the request', async () => {
    for (const body of [Buffer.from('{}'), gzipSync(gauge('load', 1)).subarray(0, 20)]) {
      expect(await json(body, { ...JSON_TYPE, 'content-encoding': 'x-gzip' })).toEqual([400, 'the body is not gzip'])
    }
  })

  it('bytes that are no text, with the point that has them', async () => {
    // Two metrics, `a` with an attribute whose text is no UTF-8, and `b`.
    const a = '0a 01 61  2a 10  0a 0e  21 0000000000000040  3a 03 0a 01 ff'
    const b = '0a 01 62  2a 0b  0a 09  21 0000000000000040'
    const bytes = (hex: string): Buffer => Buffer.from(hex.replaceAll(/\s/g, ''), 'hex')
    const field = (number: number, ...parts: Buffer[]): Buffer => {
      const whole = Buffer.concat(parts)
      return Buffer.concat([Buffer.from([(number << 3) | 2, whole.length]), whole])
    }
    const request = field(1, field(2, field(2, bytes(a)), field(2, bytes(b))))
    const answer = await server.post('/v1/metrics', request, PROTOBUF)
    expect(answer.status).toBe(200)
    expect(Buffer.from(await answer.arrayBuffer()).toString()).toContain(
      'otlp.a: a label has a name that is not Unicode',
    )
    expect(await query('otlp.b')).toHaveLength(1)
  })

  it('names and labels beyond the bounds, point by point', async () => {
    for (const [name, attributes] of [
      ['x'.repeat(256), {}],
      ['a\nb', {}],
      ['load', { l: 'x'.repeat(1025) }],
    ] as const) {
      const answer = await server.post('/v1/metrics', gauge(name, 1, attributes), JSON_TYPE)
      expect(await answer.json()).toMatchObject({ partialSuccess: { rejectedDataPoints: '1' } })
    }
  })

  it('a point with an attribute that nests too deep, and not those beside it', async () => {
    const deep = `${'{"arrayValue":{"values":['.repeat(8)}{}${']}}'.repeat(8)}`
    const request = JSON.parse(gauge('load', 1))
    const attributes = [{ key: 'deep', value: JSON.parse(deep) }]
    const dataPoints = [{ asInt: 1, attributes }, { asInt: 2 }]
    request.resourceMetrics[0].scopeMetrics[0].metrics.push({ name: 'deep', gauge: { dataPoints } })
    const answer = await server.post('/v1/metrics', JSON.stringify(request), JSON_TYPE)
    expect([answer.status, await answer.json()]).toEqual([
      200,
      {
        partialSuccess: {
          rejectedDataPoints: '1',
          errorMessage: 'otlp.deep: values of attributes nest at most 8 deep',
        },
      },
    ])
    expect(await query('otlp.deep')).toMatchObject([{ value: 2 }])
    expect(await query('otlp.load')).toHaveLength(1)
  })

  it('a point with too many buckets, and not those beside it', async () => {
    const request = JSON.parse(gauge('load', 1))
    const dataPoints = [{ bucketCounts: new Array(8_193).fill('1') }, { bucketCounts: ['1'], explicitBounds: [] }]
    request.resourceMetrics[0].scopeMetrics[0].metrics.push({ name: 'sizes', histogram: { dataPoints } })
    const answer = await server.post('/v1/metrics', JSON.stringify(request), JSON_TYPE)
    expect(await answer.json()).toEqual({
      partialSuccess: {
        rejectedDataPoints: '1',
        errorMessage: 'otlp.sizes: a point has at most 8192 fields and numbers',
      },
    })
    expect(await query('otlp.sizes')).toMatchObject([{ value: { counts: [1] } }])
    expect(await query('otlp.load')).toHaveLength(1)
  })

  it.each([
    [{ asInt: '9223372036854775808' }, 'otlp.bad: asInt: an integer of 64 bits was expected'],
    [{ asDouble: null }, 'otlp.bad: a point has no value'],
  ])('points without a value that there is, and no others: %j', async (point, errorMessage) => {
    const seat = await server.producer.seat()
    const id = await seat.collect('otlp.bad')
    await seat.ok((seq) => command.subscribe(seq, id))
    const points = (name: string, dataPoints: object[]) => ({ name, gauge: { dataPoints } })
    const metrics = [points('bad', [{ asInt: 1 }, point, point, { asInt: 2 }]), points('good', [{ asInt: 7 }])]
    const answer = await server.post(
      '/v1/metrics',
      JSON.stringify({ resourceMetrics: [{ scopeMetrics: [{ metrics }] }] }),
      JSON_TYPE,
    )
    expect([answer.status, await answer.json()]).toEqual([
      200,
      { partialSuccess: { rejectedDataPoints: '2', errorMessage } },
    ])
    expect(await query('otlp.good')).toMatchObject([{ value: 7 }])
    // None of the two ends the series.
    expect((await seat.values(2)).map((value) => decoded(value).value)).toEqual([1, 2])
  })

  it('times that no clock has, value by value', async () => {
    const late = gauge('load', 1).replace('1700000000000000999', '18446744073709551615')
    const answer = await server.post('/v1/metrics', late, JSON_TYPE)
    expect(await answer.json()).toMatchObject({
      partialSuccess: { rejectedDataPoints: '1', errorMessage: expect.stringContaining('is not possible') },
    })
    expect(await query('otlp.load')).toEqual([])
  })

  it('everything while the disk is full, with the time for another try', async () => {
    server.producer.store.low = true
    await server.producer.settle()
    const answer = await server.post('/v1/metrics', gauge('load', 1), JSON_TYPE)
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '30'])
    expect((await answer.json()).message).toBe('the disk is full')
    server.producer.store.low = false
    await server.producer.settle()
    expect((await server.post('/v1/metrics', gauge('load', 1), JSON_TYPE)).status).toBe(200)
    expect(await query('otlp.load')).toHaveLength(1)
  })
})

it('a yes waits until a durable consumer has the value on the disk', async () => {
  const { store } = server.producer
  const seat = await server.producer.seat()
  const channel = await seat.defChannel()
  const id = await seat.collect('otlp.load')
  await seat.ok((seq) => command.subscribe(seq, id, channel))
  store.manual = true
  let status = 0
  const answered = server.post('/v1/metrics', gauge('load', 1), JSON_TYPE).then((answer) => {
    status = answer.status
  })
  while (server.producer.server.parts.producer.intake.waiting === 0) await server.producer.settle()
  await server.producer.settle()
  expect(status).toBe(0)
  store.manual = false
  store.complete()
  await answered
  expect(status).toBe(200)
})
