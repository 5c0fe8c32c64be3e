/** Remote read as a reader: what Debian's Prometheus answers to requests, and answers written by the library of the format. */
import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire'
import { snappyCompress } from 'hysnappy'
import { describe, expect, it } from 'vitest'
import { StaleMarkers } from '../../../promql/series-source.ts'
import { ProtocolError } from '../../../protocol/errors.ts'
import { decodeReadRequest } from '../../../protocol/prometheus/remote-read.ts'
import { decodeReadResponse, encodeReadRequest } from '../../../protocol/prometheus/remote-reader.ts'
import { decompress } from '../../../protocol/prometheus/remote-write.ts'
import { hasPrometheus, RealPrometheus, STALE_BITS } from '../../support/real-prometheus.ts'
import { READ_HEADERS } from '../../support/remote-read.ts'

const LIMITS = { bytes: 1 << 20 }
const QUERY = {
  fromMs: 1_700_000_000_123,
  toMs: 1_700_000_600_000,
  matchers: [
    { label: '__name__', operator: '=', text: 'up' },
    { label: 'job', operator: '!=', text: '' },
    { label: 'ä', operator: '=~', text: 'a|b' },
    { label: 'c', operator: '!~', text: '.+' },
  ],
} as const

/** A sample whose value is given by its bits; a zero is left out, as Prometheus does. */
type Sample = readonly [timeMs: number, bits: bigint]

function answer(...series: readonly { labels: Record<string, string>; samples: readonly Sample[] }[]): Uint8Array {
  const writer = new BinaryWriter().tag(1, WireType.LengthDelimited).fork()
  for (const { labels, samples } of series) {
    writer.tag(1, WireType.LengthDelimited).fork()
    for (const [name, text] of Object.entries(labels)) {
      writer.tag(1, WireType.LengthDelimited).fork().tag(1, WireType.LengthDelimited).string(name)
      writer.tag(2, WireType.LengthDelimited).string(text).join()
    }
    for (const [timeMs, bits] of samples) {
      writer.tag(2, WireType.LengthDelimited).fork()
      if (bits !== 0n) writer.tag(1, WireType.Bit64).fixed64(bits)
      writer.tag(2, WireType.Varint).int64(timeMs).join()
    }
    writer.join()
  }
  return writer.join().finish()
}

const bitsOf = (value: number): bigint => new BigUint64Array(new Float64Array([value]).buffer)[0] as bigint

it('asks for what the server reads', () => {
  expect(decodeReadRequest(decompress(encodeReadRequest(QUERY), LIMITS), { elements: 100 })).toEqual({
    queries: [QUERY],
    takesSamples: true,
  })
})

describe('an answer', () => {
  const bytes = answer(
    {
      labels: { __name__: 'up', job: 'a' },
      samples: [
        [1_000, bitsOf(1.5)],
        [2_000, 0n],
        [3_000, STALE_BITS],
      ],
    },
    { labels: { __name__: 'up', job: 'ä' }, samples: [] },
    { labels: {}, samples: Array.from({ length: 40_000 }, (_, n): Sample => [n, bitsOf(n)]) },
  )

  it('has series with every bit of their values', () => {
    const [first, second, third] = decodeReadResponse(snappyCompress(bytes), { bytes: 1 << 21 })
    expect([...(first?.labels ?? [])]).toEqual([
      ['__name__', 'up'],
      ['job', 'a'],
    ])
    expect([...(first?.times ?? [])]).toEqual([1_000, 2_000, 3_000])
    expect([...(first?.values ?? [])].slice(0, 2)).toEqual([1.5, 0])
    expect(new StaleMarkers(first?.values ?? new Float64Array(0)).has(2)).toBe(true)
    expect([[...(second?.labels ?? [])][1], second?.times.length]).toEqual([['job', 'ä'], 0])
    expect([third?.times.length, third?.values[39_999]]).toEqual([40_000, 39_999])
  })

  it('of nothing has no series', () => {
    expect(decodeReadResponse(snappyCompress(answer()), LIMITS)).toEqual([])
  })

  it('that is cut, or is larger than it may be, is refused', () => {
    expect(() => decodeReadResponse(snappyCompress(bytes), { bytes: 1_000 })).toThrow(ProtocolError)
    const short = answer({ labels: { a: 'b' }, samples: [[1, bitsOf(2)]] })
    for (let end = 1; end < short.length; end++)
      expect(() => decodeReadResponse(snappyCompress(short.subarray(0, end)), LIMITS), `${end}`).toThrow(ProtocolError)
  })
})

// Skipped where Debian's Prometheus is missing; the name says what to do.
it.skipIf(!hasPrometheus)(
  `reads what Prometheus has${hasPrometheus ? '' : ' (apt-get install prometheus)'}`,
  { timeout: 60_000 },
  async () => {
    const prometheus = await RealPrometheus.start({
      global: { scrape_interval: '100ms', scrape_timeout: '100ms' },
      scrape_configs: [{ job_name: 'nobody', static_configs: [{ targets: ['127.0.0.1:1'] }] }],
    })
    try {
      const request = encodeReadRequest({
        fromMs: 0,
        toMs: Date.now() + 60_000,
        matchers: [{ label: '__name__', operator: '=', text: 'up' }],
      })
      for (;;) {
        const response = await fetch(`${prometheus.url}/api/v1/read`, {
          method: 'POST',
          headers: READ_HEADERS,
          body: Uint8Array.from(request),
        })
        expect(response.status).toBe(200)
        const series = decodeReadResponse(new Uint8Array(await response.arrayBuffer()), LIMITS)
        if ((series[0]?.times.length ?? 0) < 2) continue
        expect(series.map(({ labels }) => [...labels])).toEqual([
          [
            ['__name__', 'up'],
            ['instance', '127.0.0.1:1'],
            ['job', 'nobody'],
          ],
        ])
        expect([...(series[0]?.values ?? [])].every((value) => value === 0)).toBe(true)
        return
      }
    } finally {
      await prometheus.stop()
    }
  },
)
