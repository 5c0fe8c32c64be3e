/** Bodies become the same columns in steps and in the thread, which is bounded, begun again, and given back. */
import { randomBytes } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import { snappyCompress } from 'hysnappy'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { FairWork, finish } from '../../../server/kernel/core/fair-work.ts'
import { type Columns, metadataFrom, NO_SERIES, split, textsIn, valueAt } from '../../../server/kit/columns.ts'
import { type Decoder, Decoding, type EncodedBody } from '../../../server/kit/decoding.ts'
import { seriesOfKey } from '../../../server/kit/series-key.ts'
import { decodeOtlp, otlpDecoder } from '../../../server/wings/otlp/decoder.ts'
import { writeDecoder } from '../../../server/wings/prometheus/decoder.ts'
import { eventually } from '../../support/eventually.ts'
import { FakeClock } from '../../support/fake-clock.ts'

const MIB = 1 << 20
/** A decoder that takes memory until there is none. */
const HOG = 'data:text/javascript,export function hog() { for (const all = []; ; ) all.push(new Array(1e6).fill(0.5)) }'
let clock: FakeClock
let decoding: Decoding
beforeEach(() => {
  clock = new FakeClock()
  const work = new FairWork(clock)
  decoding = new Decoding({ work: (party, steps) => work.run(party, steps), clock })
})
afterEach(() => decoding.close())

const body = (bytes: Uint8Array, more: Partial<EncodedBody> = {}): EncodedBody => ({
  tenant: 'acme',
  bytes,
  encoding: 'identity',
  most: 16 * MIB,
  isOver: () => false,
  ...more,
})
const json = { isJson: true, now: 5 }
const decode = <O>(given: EncodedBody, decoder: Decoder<O>, options: O): Promise<Columns | undefined> =>
  decoding.decode(given, decoder, options, (columns) => columns)

/** What columns say, by value. */
function shown(columns: Columns | undefined): unknown[] {
  if (columns === undefined) throw new Error('there are no columns')
  return Array.from(columns.of, (series, at) => {
    const { name, labels } = seriesOfKey(series === NO_SERIES ? '' : textsIn(columns.series)(series))
    const about = (columns.described[series] ?? 0) - 1
    const metadata = about < 0 ? {} : metadataFrom(columns.traits[about] ?? 0, split(textsIn(columns.metadata)(about)))
    return { name, labels: { ...labels }, metadata, time: columns.times[at], value: valueAt(columns, at) }
  })
}

/** Every kind of value, so often that it is long. */
const request = (times: number): Buffer => {
  const point = (index: number) => ({
    timeUnixNano: String(1_700_000_000_000_000_000n + BigInt(index) * 1_000n),
    attributes: [{ key: 'time', value: { stringValue: `é${index % 7}` } }],
  })
  const points = (more: object) => Array.from({ length: times }, (_, index) => ({ ...point(index), ...more }))
  const metrics = [
    {
      name: 'whole',
      unit: 's',
      sum: { aggregationTemporality: 2, isMonotonic: true, dataPoints: points({ asInt: '-1' }) },
    },
    { name: 'long', description: 'Long.', gauge: { dataPoints: points({ asInt: '9223372036854775807' }) } },
    { name: 'half', gauge: { dataPoints: points({ asDouble: 0.5 }) } },
    { name: 'ended', gauge: { dataPoints: points({ flags: 1 }) } },
    {
      name: 'spread',
      histogram: {
        aggregationTemporality: 2,
        dataPoints: points({ count: 3, bucketCounts: [1, 2], explicitBounds: [5] }),
      },
    },
    { name: 'x'.repeat(300), gauge: { dataPoints: points({ asInt: 1 }) } },
  ]
  return Buffer.from(JSON.stringify({ resourceMetrics: [{ scopeMetrics: [{ metrics }] }] }))
}

describe('a long body', () => {
  it('becomes the same in the thread as in steps, whatever its encoding', async () => {
    const bytes = request(100)
    const expected = finish(decodeOtlp(bytes, json))
    expect(shown(expected)).toHaveLength(600)
    expect(shown(expected)[0]).toEqual({
      name: 'otlp.whole',
      labels: { exported_time: 'é0' },
      metadata: { type: 3, unit: 's', description: '', isCounter: true },
      time: 1_700_000_000_000_000,
      value: { type: 3, value: -1n },
    })
    expect([expected.refusedSeries, expected.problem]).toEqual([100, `otlp.${'x'.repeat(95)}…: not a name of otlp.*`])
    for (const [given, encoding] of [
      [bytes, 'identity'],
      [gzipSync(bytes), 'gzip'],
      [snappyCompress(bytes), 'snappy'],
    ] as const) {
      const columns = await decode(body(given, { encoding }), otlpDecoder, json)
      expect(shown(columns)).toEqual(shown(expected))
      expect([columns?.refusedSeries, columns?.problem]).toEqual([expected.refusedSeries, expected.problem])
    }
  })

  it('that is wrong is refused as in steps, and the thread goes on', async () => {
    const bytes = Buffer.alloc(MIB, 0xff)
    await expect(decode(body(bytes), writeDecoder, { isVersion2: false })).rejects.toMatchObject({
      name: 'ProtocolError',
      code: 'BAD_PROTOBUF',
    })
    await expect(decode(body(randomBytes(MIB), { encoding: 'gzip' }), otlpDecoder, json)).rejects.toMatchObject({
      code: 'BAD_COMPRESSION',
    })
    expect(await decode(body(request(100)), otlpDecoder, json)).toBeDefined()
  })

  it('may have so many bytes when it is inflated, and so much memory', async () => {
    const bomb = gzipSync(Buffer.alloc(17 * MIB))
    await expect(decode(body(bomb, { encoding: 'gzip' }), otlpDecoder, json)).rejects.toMatchObject({
      code: 'TOO_LONG',
    })
    const hog = { ...otlpDecoder, module: HOG, name: 'hog' }
    await expect(decode(body(request(100)), hog, json)).rejects.toMatchObject({
      code: 'TOO_LONG',
      message: 'the request takes too much memory to be decoded: send less at a time',
    })
    expect(await decode(body(request(100)), otlpDecoder, json)).toBeDefined()
  })

  it('for which nobody waits is dropped', async () => {
    let isOver = false
    const [first, second] = [request(100), request(100)].map((bytes) =>
      decode(body(bytes, { isOver: () => isOver }), otlpDecoder, json),
    )
    isOver = true
    expect([await first, await second].filter((columns) => columns !== undefined).length).toBeLessThanOrEqual(1)
  })

  it('waits with few others', async () => {
    const all = Array.from({ length: 30 }, () => decode(body(request(100)), otlpDecoder, json))
    const columns = await Promise.all(all)
    expect(columns.filter((one) => one !== undefined)).toHaveLength(17)
  })

  it('is given up if it takes too long', async () => {
    const decoded = decode(body(request(100)), { ...otlpDecoder, module: HOG, name: 'hog' }, json)
    const refused = expect(decoded).rejects.toMatchObject({
      code: 'TOO_LONG',
      message: expect.stringContaining('time'),
    })
    await new Promise((resolve) => setImmediate(resolve))
    clock.advance(10_000)
    await refused
    expect(await decode(body(request(100)), otlpDecoder, json)).toBeDefined()
  })
})

/** Makes columns of 31 MiB, of which three find room for short bodies, and four for all. */
const LARGE = 'data:text/javascript,export function* large() { return { encoded: new Uint8Array(31 << 20) } }'
const large: Decoder<typeof json> = {
  module: LARGE,
  name: 'large',
  *decode(bytes, options) {
    return { ...(yield* decodeOtlp(bytes, options)), encoded: new Uint8Array(31 * MIB) }
  },
}

describe.each([
  ['short', () => Buffer.from('{"resourceMetrics":[]}'), 3],
  ['long', () => request(100), 4],
])('columns of %s bodies that are not published yet', (_, bytes, most) => {
  it('have room together, and tenants take turns at what becomes free', async () => {
    const begun: string[] = []
    const publish: (() => void)[] = []
    const all = ['a', 'a', 'a', 'a', 'a', 'a', 'b'].map((tenant) =>
      decoding.decode(body(bytes(), { tenant }), large, json, () => {
        begun.push(tenant)
        return new Promise<true>((resolve) => publish.push(() => resolve(true)))
      }),
    )
    for (let count = most; count <= all.length; count++) {
      await eventually(() => expect(begun).toHaveLength(count))
      await new Promise((resolve) => setImmediate(resolve))
      expect(begun).toHaveLength(count)
      publish.shift()?.()
    }
    expect(begun.indexOf('b')).toBeLessThanOrEqual(most + 1)
    for (const settle of publish) settle()
    expect(await Promise.all(all)).toEqual(all.map(() => true))
  })

  it('make others wait for five seconds at most, which may be sent again then', async () => {
    const publish: (() => void)[] = []
    const held = (): Promise<true | undefined> =>
      decoding.decode(
        body(bytes()),
        large,
        json,
        () => new Promise<true>((resolve) => publish.push(() => resolve(true))),
      )
    const first = Array.from({ length: most }, held)
    await eventually(() => expect(publish).toHaveLength(most))
    const late = held()
    await new Promise((resolve) => setImmediate(resolve))
    clock.advance(4_999)
    const next = held()
    await new Promise((resolve) => setImmediate(resolve))
    clock.advance(1)
    expect(await late).toBeUndefined()
    // It has left no gap in the line.
    publish.shift()?.()
    await eventually(() => expect(publish).toHaveLength(most))
    for (const settle of publish) settle()
    expect(await Promise.all([...first, next])).toEqual([...first.map(() => true), true])
  })

  it('that wait when the server stops, or for which nobody waits any more, may be sent again', async () => {
    let isOver = false
    const publish: (() => void)[] = []
    const held = Array.from({ length: most }, () =>
      decoding.decode(
        body(bytes()),
        large,
        json,
        () => new Promise<true>((resolve) => publish.push(() => resolve(true))),
      ),
    )
    await eventually(() => expect(publish).toHaveLength(most))
    const [gone, next, last] = [
      decode(body(bytes(), { isOver: () => isOver }), large, json),
      decoding.decode(
        body(bytes()),
        large,
        json,
        () => new Promise<true>((resolve) => publish.push(() => resolve(true))),
      ),
      decode(body(bytes()), large, json),
    ]
    isOver = true
    publish.shift()?.()
    expect(await gone).toBeUndefined()
    await eventually(() => expect(publish).toHaveLength(most))
    await decoding.close()
    expect(await last).toBeUndefined()
    for (const settle of publish) settle()
    expect(await Promise.all([...held, next])).toEqual([...held.map(() => true), true])
  })
})

it('what cannot be given to the thread costs that body, and none after it', async () => {
  const odd = { ...json, uncloneable: () => 1 }
  const [first, second] = [odd, json].map((options) => decode(body(request(100)), otlpDecoder, options))
  await expect(first).rejects.toThrow('the decoding thread cannot be used')
  expect(await second).toBeDefined()
})

it('what waits for the thread when the server stops may be sent again', async () => {
  const waiting = Array.from({ length: 3 }, () => decode(body(request(100)), otlpDecoder, json))
  await new Promise((resolve) => setImmediate(resolve))
  await decoding.close()
  expect(await Promise.all(waiting)).toEqual([undefined, undefined, undefined])
  expect(await decode(body(request(100)), otlpDecoder, json)).toBeUndefined()
})

it('a short body for which nobody waits any more is decoded no further', async () => {
  let steps = 0
  const endless = {
    ...otlpDecoder,
    *decode(): Generator<void, Columns, void> {
      for (;;) {
        // Without an end of its own the test could not fail.
        if (++steps > 1_000) throw new Error('nobody has ended it')
        yield
      }
    },
  }
  const isOver = (): boolean => steps === 3
  expect(await decode(body(Buffer.from('{}'), { isOver }), endless, json)).toBeUndefined()
  expect(steps).toBe(3)
})

it('the memory of a short body stays where it is', async () => {
  const bytes = Buffer.from('{"resourceMetrics":[]}')
  expect(shown(await decode(body(bytes), otlpDecoder, json))).toEqual([])
  expect(bytes.toString()).toBe('{"resourceMetrics":[]}')
})

it('what short bodies can become is bounded', async () => {
  const attributes = Array.from({ length: 30 }, (_, index) => ({
    key: `k${index}`,
    value: { stringValue: 'x'.repeat(100) },
  }))
  const points = Array.from({ length: 15_000 }, (_, index) => ({
    asInt: 1,
    attributes: [{ key: 'i', value: { intValue: index } }],
  }))
  const given = {
    resourceMetrics: [
      { resource: { attributes }, scopeMetrics: [{ metrics: [{ name: 'a', gauge: { dataPoints: points } }] }] },
    ],
  }
  await expect(decode(body(Buffer.from(JSON.stringify(given))), otlpDecoder, json)).rejects.toMatchObject({
    code: 'TOO_LONG',
    message: expect.stringContaining('send fewer at a time'),
  })
})
