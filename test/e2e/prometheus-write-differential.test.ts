/**
 * The same random requests of remote write into Debian's Prometheus and into this server: whoever consumes has every series, time and
 * value that Prometheus has stored, and GET /metrics shows the last one of each. Where a request is drawn for version 2.0, which
 * this Prometheus does not know, it gets the same in version 1.0.
 *
 * TEST_SEED=n runs one seed.
 */
import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire'
import { snappyCompress } from 'hysnappy'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { readSeries } from '../../protocol/prometheus/text-line.ts'
import { command } from '../support/bytes.ts'
import { seeds } from '../support/long.ts'
import { PublishingProducer, tokenFor } from '../support/publisher.ts'
import { Random } from '../support/random.ts'
import { hasPrometheus, RealPrometheus, STALE_BITS } from '../support/real-prometheus.ts'
import { TextReader } from '../support/text-samples.ts'
import { byBytes, keyOf, ofConsumer, ofPrometheus, type Shown, shownNumber, sorted } from './prometheus-samples.ts'

const BASE_MS = 1_700_000_000_000
/** Samples of one series in all requests of a seed: what comes again is known among the last eight. */
const MOST_SAMPLES = 8

const NAMES = ['a', 'a_b', 'a:b', '_x', 'A9', 'up', 'x_total', 'h_bucket', 'h_count', 'h_sum', ':', 'n'.repeat(200)]
const LABELS = [
  'A',
  '_',
  '__meta',
  'a_1',
  'cinnabar_name',
  'exported_name',
  'exported_exported_time',
  'host',
  'instance',
  'job',
  'le',
  'name',
  'node',
  'producer',
  'quantile',
  'time',
  'value',
]
const TEXTS = [
  '',
  ' ',
  '0.5',
  '+Inf',
  'NaN',
  'x',
  'a"b',
  '\\',
  '\\n',
  '\n',
  '\r\na_b 7',
  '\0',
  '\u007f',
  '\u2028',
  '\ufeff',
  '\u200b',
  'größe',
  'e\u0301',
  '\u{1f600}',
  '{}*,=#',
  '\ufffd',
  '\uffff',
  'l'.repeat(1_024),
  'ü'.repeat(512),
]
const VALUES = [
  0,
  -0,
  1,
  -1,
  0.1,
  1 / 3,
  5e-324,
  2.2250738585072009e-308,
  Number.MAX_VALUE,
  -Number.MAX_VALUE,
  2 ** 53,
  2 ** 53 + 2,
  2 ** 63,
  -(2 ** 63),
  2 ** 64,
  1e21,
  123456789012345680000,
  Number.NaN,
  Number.POSITIVE_INFINITY,
  Number.NEGATIVE_INFINITY,
].map(bitsOf)
/** NaN with other bits, one of them of another program's "no value". */
const NANS = [0x7ff8000000000001n, 0xfff8000000000000n, 0x7ff0000000000001n, 0x7ff0000000000003n]

interface Sample {
  readonly timeMs: number
  readonly bits: bigint
}

interface Series {
  readonly name: string
  readonly labels: readonly (readonly [string, string])[]
  readonly samples: readonly Sample[]
}

function bitsOf(value: number): bigint {
  const view = new DataView(new ArrayBuffer(8))
  view.setFloat64(0, value)
  return view.getBigUint64(0)
}

function bits(random: Random): bigint {
  switch (random.below(6)) {
    case 0:
      return STALE_BITS
    case 1:
      return random.pick(NANS)
    case 2:
      return (BigInt(Math.floor(random.next() * 2 ** 32)) << 32n) | BigInt(Math.floor(random.next() * 2 ** 32))
    default:
      return random.pick(VALUES)
  }
}

/** Series, each with the samples of all requests, no two of which have one time. */
function seriesOf(random: Random): Series[] {
  const seen = new Set<string>()
  const all: Series[] = []
  while (all.length < 30) {
    const given = Array.from({ length: random.below(5) }, () => [random.pick(LABELS), random.pick(TEXTS)] as const)
    const labels = [...new Map(given)].sort(byBytes)
    const name = random.pick(NAMES)
    const key = keyOf(name, labels)
    if (seen.has(key)) continue
    seen.add(key)
    const times = new Set(Array.from({ length: 1 + random.below(MOST_SAMPLES) }, () => random.below(600_000)))
    const samples = [...times].map((at) => ({ timeMs: BASE_MS - at, bits: bits(random) }))
    all.push({ name, labels, samples: random.below(2) === 0 ? samples : samples.sort((a, b) => a.timeMs - b.timeMs) })
  }
  return all
}

/** The requests that bring them; some come again. */
function requestsOf(random: Random, all: readonly Series[]): (readonly Series[])[] {
  const requests: Series[][] = [[], [], []]
  for (const { samples, ...series } of all) {
    const parts: Sample[][] = requests.map(() => [])
    let part = 0
    for (const sample of samples) {
      part = Math.min(parts.length - 1, part + random.below(2))
      parts[part]?.push(sample)
      // The same again, in the same series.
      if (random.below(6) === 0) parts[part]?.push(sample)
    }
    for (const [index, some] of parts.entries())
      if (some.length > 0) requests[index]?.push({ ...series, samples: some })
  }
  return requests.flatMap((request) => (random.below(3) === 0 ? [request, request] : [request]))
}

function version1(all: readonly Series[]): Uint8Array {
  const writer = new BinaryWriter()
  for (const { name, labels, samples } of all) {
    writer.tag(1, WireType.LengthDelimited).fork()
    for (const [label, text] of [['__name__', name] as const, ...labels].sort(byBytes)) {
      writer.tag(1, WireType.LengthDelimited).fork()
      writer.tag(1, WireType.LengthDelimited).string(label).tag(2, WireType.LengthDelimited).string(text).join()
    }
    writeSamples(writer, samples)
    writer.join()
  }
  return snappyCompress(writer.finish())
}

function version2(all: readonly Series[]): Uint8Array {
  const symbols = new Map([['', 0]])
  const reference = (text: string): number => {
    if (!symbols.has(text)) symbols.set(text, symbols.size)
    return symbols.get(text) as number
  }
  const writer = new BinaryWriter()
  for (const { name, labels, samples } of all) {
    writer.tag(5, WireType.LengthDelimited).fork().tag(1, WireType.LengthDelimited).fork()
    for (const text of [['__name__', name] as const, ...labels].sort(byBytes).flat()) writer.uint32(reference(text))
    writer.join()
    writeSamples(writer, samples)
    writer.join()
  }
  for (const text of symbols.keys()) writer.tag(4, WireType.LengthDelimited).string(text)
  return snappyCompress(writer.finish())
}

function writeSamples(writer: BinaryWriter, samples: readonly Sample[]): void {
  for (const { timeMs, bits } of samples) {
    writer.tag(2, WireType.LengthDelimited).fork()
    writer.tag(1, WireType.Bit64).fixed64(bits).tag(2, WireType.Varint).int64(timeMs).join()
  }
}

/** The last value of each series that has not ended, with labels as GET /metrics has them (docs/prometheus.md). */
function current(all: Shown): Map<string, string> {
  const last = Array.from(all, ([key, samples]) => {
    const [name = '', ...labels] = JSON.parse(key) as [string, ...[string, string][]]
    const own = labels.map(([label, text]) => [label.replace(/^__/, '_'), text.replaceAll('\0', '\ufffd')] as const)
    return [keyOf(name, own), samples.at(-1)?.split(' ')[1] ?? ''] as const
  })
  return sorted(new Map(last.filter(([, value]) => value !== 'stale')))
}

function ofText(text: string): Map<string, string> {
  const { samples } = new TextReader().read(text)
  return sorted(
    new Map(
      samples.map(({ series, value }) => {
        const { name, labels } = readSeries(series)
        return [keyOf(name, labels), shownNumber(value)]
      }),
    ),
  )
}

let server: PublishingProducer
let prometheus: RealPrometheus
beforeEach(async (context) => {
  if (!hasPrometheus) context.skip('needs Prometheus: apt-get install prometheus')
  server = await PublishingProducer.start()
  prometheus = await RealPrometheus.start({ storage: { tsdb: { out_of_order_time_window: '1h' } } })
})
afterEach(async () => {
  await prometheus.stop()
  await server.stop()
})

const HEADERS = { 'content-type': 'application/x-protobuf', 'content-encoding': 'snappy' }
const VERSION_2 = { ...HEADERS, 'content-type': 'application/x-protobuf;proto=io.prometheus.write.v2.Request' }

it.each(seeds({ short: 2, long: 12 }))('seed %i', async (seed) => {
  const random = new Random(seed)
  const seat = await server.producer.seat()
  const id = await seat.collect('prometheus.*')
  await seat.ok((seq) => command.subscribe(seq, id))
  for (const request of requestsOf(random, seriesOf(random))) {
    const first = version1(request)
    const theirs = await fetch(`${prometheus.url}/api/v1/write`, {
      method: 'POST',
      headers: HEADERS,
      body: Uint8Array.from(first),
    })
    expect([theirs.status, await theirs.text()]).toEqual([204, ''])
    const isSecond = random.below(2) === 0
    const body = isSecond ? version2(request) : first
    const ours = await server.post('/api/v1/write', body, isSecond ? VERSION_2 : HEADERS)
    expect([ours.status, await ours.text()]).toEqual([204, ''])
  }
  const expected = ofPrometheus(await prometheus.read())
  const count = [...expected.values()].flat().length
  const got = ofConsumer(await seat.values(count))
  expect(got).toEqual(expected)
  await server.producer.settle()
  expect(seat.rest()).toEqual([])
  const token = await tokenFor(server.root, 'root', 'COLLECT prometheus.*')
  const scraped = await fetch(`${server.url}/metrics?metric=prometheus.*`, {
    headers: { authorization: `Bearer ${token}` },
  })
  expect(ofText(await scraped.text())).toEqual(current(expected))
})
