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
