/** Requests of remote write 1.0 as they are written: their bytes by the definitions, and what Prometheus has written, again. */
import { readFileSync } from 'node:fs'
import { snappyUncompress } from 'hysnappy'
import { expect, test } from 'vitest'
import { decodeWriteRequest, decompress } from '../../../protocol/prometheus/remote-write.ts'
import { encodeWriteRequest, type OutgoingSeries } from '../../../protocol/prometheus/write-request.ts'
import { finish } from '../../../server/kernel/core/fair-work.ts'

const LIMITS = { bytes: 1 << 20, elements: 100_000 }

const encode = (...series: OutgoingSeries[]): Uint8Array => finish(encodeWriteRequest(series))
const decode = (body: Uint8Array) => finish(decodeWriteRequest(decompress(body, LIMITS), LIMITS))

test('a series has its name among its labels, in the order of their names, then its samples', () => {
  const samples = [
    { value: 1.5, timeMs: 1 },
    { value: undefined, timeMs: 2 },
  ]
  const body = encode({
    name: 'up',
    labels: [
      ['job', 'a'],
      ['Z', 'b'],
    ],
    samples,
  })
  // prompb: WriteRequest.timeseries = 1, TimeSeries.labels = 1 and .samples = 2, Label.name = 1 and .value = 2,
  // Sample.value = 1 and .timestamp = 2. The stale marker is 0x7ff0000000000002.
  const expected = `0a 3c
    0a 06  0a 01 5a  12 01 62
    0a 0e  0a 08 5f5f6e616d655f5f  12 02 7570
    0a 08  0a 03 6a6f62  12 01 61
    12 0b  09 000000000000f83f  10 01
    12 0b  09 020000000000f07f  10 02`
  const hex = Buffer.from(snappyUncompress(body, 62)).toString('hex')
  expect(hex).toBe(expected.replaceAll(/\s/g, ''))
})

test('nothing is a request too', () => {
  expect(decode(encode())).toEqual({ series: [], families: new Map() })
})

test('what Prometheus has written says the same when it is written again', () => {
  const captured = new Uint8Array(
    readFileSync(new URL('../../vectors/prometheus/write-samples.snappy', import.meta.url)),
  )
  const { series } = decode(captured)
  expect(series.length).toBeGreaterThan(20)
  const again = series.map(({ name, labels, samples }) => {
    return { name, labels, samples: samples.map(({ value, time }) => ({ value, timeMs: time / 1_000 })) }
  })
  expect(decode(encode(...again)).series).toEqual(series)
})

test('what is known of families stands after the series', () => {
  const family = { name: 'up', type: 'gauge', help: 'It is.', unit: '' } as const
  const body = finish(encodeWriteRequest([], [family, { name: 'a', type: 'unknown', help: '', unit: 's' }]))
  // prompb: WriteRequest.metadata = 3, MetricMetadata.type = 1, .metric_family_name = 2, .help = 4, .unit = 5; GAUGE is 2.
  const expected = `1a 0e  08 02  12 02 7570  22 06 49742069732e
    1a 08  08 00  12 01 61  2a 01 73`
  expect(Buffer.from(snappyUncompress(body, 26)).toString('hex')).toBe(expected.replaceAll(/\s/g, ''))
})

test('what Prometheus has written of families says the same when it is written again', () => {
  const captured = readFileSync(new URL('../../vectors/prometheus/write-metadata.snappy', import.meta.url))
  const { families } = decode(new Uint8Array(captured))
  const types = ['unknown', 'counter', 'gauge', 'histogram', 'unknown', 'summary'] as const
  const again = [...families].map(([name, { type, ...texts }]) => ({ name, type: types[type] ?? 'unknown', ...texts }))
  expect(new Set(again.map(({ type }) => type))).toEqual(new Set(['counter', 'gauge', 'histogram', 'summary']))
  expect(decode(finish(encodeWriteRequest([], again))).families).toEqual(families)
})
