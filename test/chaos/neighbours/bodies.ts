/**
 * Bodies that cost a server more than their senders: of each a mebibyte or less, in the worst shapes that are known, compressed
 * where that makes them smaller. Some are answered with an error, which is as good as any answer if it comes at little cost.
 */
import { randomBytes } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import { snappyCompress } from 'hysnappy'

export interface CostlyBody {
  readonly name: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
}

const MIB = 1 << 20
const JSON_TYPE = { 'content-type': 'application/json' }
const PROTOBUF = { 'content-type': 'application/x-protobuf' }

/** `wire` of protocol buffers: a field with bytes. */
function field(number: number, ...parts: readonly Uint8Array[]): Buffer {
  const bytes = Buffer.concat(parts)
  const length: number[] = []
  for (let left = bytes.length; ; left >>>= 7) {
    length.push(left > 0x7f ? (left & 0x7f) | 0x80 : left)
    if (left <= 0x7f) break
  }
  return Buffer.concat([Buffer.from([(number << 3) | 2, ...length]), bytes])
}

function repeated(bytes: Uint8Array, total = MIB): Buffer {
  return Buffer.alloc(total - (total % bytes.length), bytes)
}

/** A metric of OTLP whose points are in this field of its. */
const otlpMetric = (kind: number, points: Uint8Array): Buffer =>
  field(1, field(2, field(2, field(1, Buffer.from('m')), field(kind, points))))

/** JSON with as many of these in the middle as fit. */
function json(before: string, one: string, after: string): Buffer {
  const times = Math.floor((MIB - before.length - after.length) / (one.length + 1))
  return Buffer.from(`${before}${`${one},`.repeat(times - 1)}${one}${after}`)
}
const BEFORE_POINTS = '{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"name":"m",'
const AFTER_POINTS = ']}}]}]}]}'
const points = (kind: string): Buffer => json(`${BEFORE_POINTS}"${kind}":{"dataPoints":[`, '{}', AFTER_POINTS)

/** Labels of a series of remote write, each of two texts. */
const label = (name: string, text: Uint8Array): Buffer => field(1, field(1, Buffer.from(name)), field(2, text))
const sample = field(2, Buffer.from([0x10, 0x07]))

function bodies(): readonly (readonly [name: string, isJson: boolean, body: Buffer])[] {
  return [
    ['points', true, points('gauge')],
    ['exponential', true, points('exponentialHistogram')],
    ['resources', true, json('{"resourceMetrics":[', '{}', ']}')],
    ['deep', true, Buffer.alloc(MIB, '[')],
    ['attributes', true, json('{"resourceMetrics":[{"resource":{"attributes":[', '{"key":"a"}', ']}}]}')],
    ['points', false, otlpMetric(5, repeated(field(1)))],
    ['exponential', false, otlpMetric(10, repeated(field(1)))],
    ['name', false, field(1, field(2, field(2, field(1, Buffer.alloc(MIB, 'n')), field(5, field(1)))))],
    ['buckets', false, otlpMetric(9, field(1, field(6, repeated(Buffer.alloc(8, 1)))))],
    ['series', false, otlpMetric(5, Buffer.concat(manyLabels()))],
    ['attributes of a point', false, otlpMetric(5, field(1, repeated(field(7), 32_000)))],
    ['counts of a point', false, otlpMetric(10, field(1, packedCounts(32_000)))],
    ['counts of points', false, otlpMetric(10, repeated(field(1, packedCounts(32_000)), 25 * 32_017))],
    [
      'counts of a point',
      true,
      json(`${BEFORE_POINTS}"histogram":{"dataPoints":[{"bucketCounts":[`, '1', `]}${AFTER_POINTS}`),
    ],
  ]
}

/** Positive buckets of an exponential histogram: counts of a byte each become numbers of 64 bits. */
const packedCounts = (count: number): Buffer => field(8, field(2, Buffer.alloc(count, 1)))

/** Points that differ. */
function manyLabels(): Buffer[] {
  return Array.from({ length: 15_000 }, (_, index) =>
    field(1, field(7, field(1, Buffer.from('i')), field(2, field(1, Buffer.from(`${index % 500} ${'x'.repeat(40)}`))))),
  )
}

function writes(): readonly (readonly [name: string, body: Buffer])[] {
  const families = Array.from({ length: 200 }, () =>
    field(
      3,
      Buffer.from([8, 1]),
      field(2, Buffer.from(randomBytes(8).toString('hex'))),
      field(4, Buffer.alloc(5_000, 'h')),
    ),
  )
  return [
    ['families', Buffer.concat(families)],
    ['long name', field(1, label('__name__', Buffer.alloc(MIB, 'n')), sample)],
    ['labels', field(1, ...Array.from({ length: 30_000 }, (_, index) => label(`l${index}`, Buffer.from('t'))), sample)],
    ['samples', field(1, label('__name__', Buffer.from('m')), repeated(sample))],
    ['series', repeated(field(1, label('__name__', Buffer.from('m')), sample))],
  ]
}

/** All of them, as they are sent. */
export function costlyBodies(): readonly CostlyBody[] {
  const otlp = bodies().flatMap(([name, isJson, body]) => {
    const one = { path: '/v1/metrics', headers: isJson ? JSON_TYPE : PROTOBUF }
    const shown = `OTLP ${isJson ? 'JSON' : 'protobuf'}, ${name}`
    return [
      { ...one, name: shown, body },
      {
        ...one,
        name: `${shown}, gzip`,
        headers: { ...one.headers, 'content-encoding': 'gzip' },
        body: gzipSync(body),
      },
    ]
  })
  const written = writes().map(([name, body]) => {
    return {
      name: `remote write, ${name}, Snappy`,
      path: '/api/v1/write',
      headers: PROTOBUF,
      body: snappyCompress(body),
    }
  })
  return [...otlp, ...written]
}
