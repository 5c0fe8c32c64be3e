/** Remote read: requests as the protocol buffers have them, and answers read by the library of the format. */
import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire'
import { describe, expect, it } from 'vitest'
import { StaleMarkers } from '../../../promql/series-source.ts'
import { decodeReadRequest, ReadResponseWriter, type ReadSeries } from '../../../protocol/prometheus/remote-read.ts'
import { decompress } from '../../../protocol/prometheus/remote-write.ts'
import { readRequest, readResponse } from '../../support/remote-read.ts'

const decoded = (body: Uint8Array, elements = 1_000) =>
  decodeReadRequest(decompress(body, { bytes: 1 << 20 }), { elements })

/** The pieces of an answer in one. */
function written(...results: readonly (readonly ReadSeries[])[]): { body: Uint8Array; steps: number } {
  const writer = new ReadResponseWriter()
  let steps = 0
  for (const series of results) {
    for (const each of series) for (const _ of writer.series(each)) steps++
    writer.endResult()
  }
  return { body: Buffer.concat([...writer.body()]), steps }
}

describe('a request', () => {
  it('has queries with their times and matchers', () => {
    const matchers = [
      ['__name__', '=', 'up'],
      ['job', '!=', ''],
      ['ä', '=~', 'a|b'],
      ['c', '!~', '.+'],
    ] as const
    const range = { fromMs: 1_700_000_000_123, toMs: 1_700_000_060_000 }
    expect(
      decoded(
        readRequest([
          { ...range, matchers },
          { fromMs: 0, toMs: 1, matchers: [] },
        ]),
      ),
    ).toEqual({
      queries: [
        { ...range, matchers: matchers.map(([label, operator, text]) => ({ label, operator, text })) },
        { fromMs: 0, toMs: 1, matchers: [] },
      ],
      takesSamples: true,
    })
  })

  it('says which answers are taken', () => {
    const takes = (...forms: number[]) => decoded(readRequest([], forms)).takesSamples
    expect([takes(), takes(0), takes(1), takes(1, 0)]).toEqual([true, true, false, true])
    const packed = new BinaryWriter().tag(2, WireType.LengthDelimited).fork().int32(1).int32(0).join().finish()
    expect(decodeReadRequest(packed, { elements: 10 }).takesSamples).toBe(true)
  })

  it('is refused if it cannot be read or has too much', () => {
    const query = { fromMs: 0, toMs: 1 }
    const odd = readRequest([{ ...query, matchers: [['a', 'like', 'b']] }])
    expect(() => decoded(odd)).toThrow('a matcher of the type 4, which does not exist')
    const many = readRequest([{ ...query, matchers: Array.from({ length: 400 }, () => ['a', '=', 'b'] as const) }])
    expect(() => decoded(many)).toThrow('too many elements')
    expect(() => decodeReadRequest(Uint8Array.of(0x0a, 0x7f), { elements: 10 })).toThrow('longer than what is left')
  })
})

describe('an answer', () => {
  it('has each bit of the values, and labels in the order of their names', () => {
    const values = Float64Array.of(0, -0, 1.5, Number.POSITIVE_INFINITY, Number.NaN, 0)
    new StaleMarkers(values).set(5)
    const times = Float64Array.of(0, 127, 128, 16_384, 1_700_000_000_123, 8.64e15)
    const labels = [
      ['job', 'ü'],
      ['__name__', 'up'],
    ] as const
    const [[series] = [], second, third] = readResponse(written([{ labels, times, values }], [], []).body)
    expect([...(series?.labels ?? [])]).toEqual([
      ['__name__', 'up'],
      ['job', 'ü'],
    ])
    const bits = new BigUint64Array(values.buffer)
    expect(series?.samples).toEqual([...times].map((timeMs, at) => ({ timeMs, bits: bits[at] })))
    expect([second, third]).toEqual([[], []])
  })

  it('of much is made in steps, and is one block', () => {
    const count = 100_000
    const times = Float64Array.from({ length: count }, (_, at) => 1_700_000_000_000 + at * 1_000)
    const series = ['a', 'b'].map((text) => ({
      labels: [['l', text]] as const,
      times,
      values: times.map((ms) => ms % 7),
    }))
    const { body, steps } = written(series)
    expect(steps).toBeGreaterThan(10)
    const [found = []] = readResponse(body)
    expect(found.map(({ samples }) => samples.length)).toEqual([count, count])
    expect(found[1]?.samples.every(({ timeMs }, at) => timeMs === times[at])).toBe(true)
    expect(body.length).toBeLessThan(count * 18)
  })

  it('of nothing is an empty message', () => {
    expect(readResponse(written().body)).toEqual([])
    expect(readResponse(written([]).body)).toEqual([[]])
  })
})
