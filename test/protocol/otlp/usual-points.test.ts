/** Points that are read where they stand say, and cost, what they do when they are read field by field. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ByteMemory } from '../../../protocol/bytes/byte-memory.ts'
import { ProtocolError } from '../../../protocol/errors.ts'
import type { MetricData, ReadAttributes } from '../../../protocol/otlp/metrics.ts'
import { decodeMetrics } from '../../../protocol/otlp/protobuf.ts'
import { UsualHistogram } from '../../../protocol/otlp/usual-points.ts'
import { finish } from '../../../server/kernel/core/fair-work.ts'
import { times } from '../../support/long.ts'

type Memory = ByteMemory<ReadAttributes>
const MOST = 1_000_000

function varint(number: number): Buffer {
  const bytes: number[] = []
  for (; number > 0x7f; number = Math.floor(number / 128)) bytes.push((number & 0x7f) | 0x80)
  return Buffer.from([...bytes, number])
}

/** A field with a length. */
function field(number: number, ...parts: readonly (Uint8Array | string)[]): Buffer {
  const content = Buffer.concat(parts.map((part) => Buffer.from(part as Uint8Array)))
  return Buffer.concat([varint(number * 8 + 2), varint(content.length), content])
}

function wide(number: number, bytes: string): Buffer {
  return Buffer.concat([varint(number * 8 + 1), Buffer.from(bytes, 'hex')])
}

const attribute = (number: number, key: string, text: string) => field(number, field(1, key), field(2, field(1, text)))
const packed = (number: number, count: number) => field(number, Buffer.alloc(8 * count, '0102030405060708', 'hex'))
/** 1.5, and the largest number of 64 bits. */
const [HALF, LARGEST] = ['000000000000f83f', 'ffffffffffffffff']
const KINDS = { gauge: 5, sum: 7, histogram: 9 } as const
const ATTRIBUTES = { gauge: 7, sum: 7, histogram: 9 } as const

const request = (kind: keyof typeof KINDS, ...points: readonly (readonly Uint8Array[])[]) =>
  field(1, field(2, field(2, field(1, 'm'), field(KINDS[kind], ...points.map((point) => field(1, ...point))))))

/** A memory of the attributes that points of a kind have here. */
function memoryFor(kind: keyof typeof KINDS): Memory {
  const memory: Memory = new ByteMemory(1 << 20)
  const number = ATTRIBUTES[kind]
  const [x, y] = [attribute(number, 'to', 'x'), attribute(number, 'to', 'y'.repeat(200))]
  dataIn(request(kind, [x], [y], [x, y], [y, x]), memory)
  return memory
}

function dataIn(bytes: Uint8Array, memory?: Memory, elements = MOST): MetricData | undefined {
  const [resource] = finish(decodeMetrics(bytes, { elements }, memory))
  return resource?.scopes[0]?.metrics[0]?.data
}

/** What the points of a request say; the error if it has none. */
function said(bytes: Uint8Array, memory?: Memory, elements = MOST): unknown {
  try {
    const [resource] = finish(decodeMetrics(bytes, { elements }, memory))
    return resource?.scopes[0]?.metrics.map(({ data, unread }) => ({
      ...data,
      unread,
      points: data?.points.map((point) => {
        const { attributes, start, time, isEnd } = point
        const { count, sum, min, max, counts, bounds } = point as UsualHistogram
        const { value } = point as { value?: unknown }
        return { attributes, start, time, isEnd, value, count, sum, min, max, counts, bounds }
      }),
    }))
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error
    return [error.code, error.offset]
  }
}

function fieldsOf(kind: keyof typeof KINDS): Buffer[] {
  const number = ATTRIBUTES[kind]
  const own =
    kind === 'histogram'
      ? [wide(4, LARGEST), wide(5, HALF), wide(11, HALF), wide(12, LARGEST), packed(6, 3), packed(6, 0), packed(7, 20)]
      : [wide(4, HALF), wide(6, LARGEST), wide(6, HALF)]
  const odd =
    kind === 'histogram'
      ? [wide(6, HALF), wide(7, HALF), field(6, 'seven b'), field(8, 'exemplar'), field(4, 'x'), wide(10, HALF)]
      : [field(5, 'exemplar'), field(4, 'x'), Buffer.from('2501020304', 'hex'), Buffer.from('3005', 'hex')]
  const flags = varint((kind === 'histogram' ? 10 : 8) * 8)
  return [
    attribute(number, 'to', 'x'),
    attribute(number, 'to', 'y'.repeat(200)),
    attribute(number, 'to', 'new'),
    wide(2, '0068e5cf8b010000'),
    wide(3, LARGEST),
    ...own,
    ...odd,
    Buffer.concat([flags, varint(1)]),
    Buffer.concat([flags, varint(2)]),
    Buffer.concat([flags, varint(129)]),
    field(20, 'unknown'),
    varint(200),
    // Cut off, longer than its point, and with a length of three bytes.
    wide(3, LARGEST).subarray(0, 5),
    Buffer.from([number * 8 + 2, 100]),
    Buffer.from([number * 8 + 2, 0x84, 0x80, 0x00, 0x0a, 0x02, 0x74, 0x6f]),
    field(number),
    Buffer.alloc(0),
  ]
}

describe.each(['gauge', 'sum', 'histogram'] as const)('points of a %s', (kind) => {
  it('with fields of any kind, in any order, are read as without a memory', () => {
    const fields = fieldsOf(kind)
    const point = fc.array(fc.integer({ min: 0, max: fields.length - 1 }), { maxLength: 6 })
    fc.assert(
      fc.property(fc.array(point, { maxLength: 3 }), fc.nat(200), (points, cut) => {
        const whole = request(kind, ...points.map((places) => places.map((place) => fields[place] as Buffer)))
        for (const bytes of [whole, whole.subarray(0, whole.length - cut)]) {
          expect(said(bytes, memoryFor(kind))).toEqual(said(bytes))
        }
      }),
      { numRuns: times({ short: 200, long: 10_000 }) },
    )
  })

  it('count as they do without a memory', () => {
    const number = ATTRIBUTES[kind]
    const own = kind === 'histogram' ? [wide(4, LARGEST), packed(6, 3), packed(7, 2), field(8, 'e')] : [wide(4, HALF)]
    const given = request(kind, [attribute(number, 'to', 'x'), attribute(number, 'to', 'y'.repeat(200)), ...own])
    const least = Array.from({ length: 200 }, (_, elements) => elements).find((most) => {
      const found = said(given, undefined, most)
      return Array.isArray(found) && typeof found[0] !== 'string'
    }) as number
    for (const most of [least, least - 1])
      expect(said(given, memoryFor(kind), most)).toEqual(said(given, undefined, most))
  })
})

describe('a histogram as SDKs write it', () => {
  const given = (counts: number, ...more: readonly Buffer[]) =>
    request('histogram', [attribute(9, 'to', 'x'), wide(3, HALF), wide(4, HALF), packed(6, counts), ...more])
  const isUsual = (bytes: Uint8Array) => dataIn(bytes, memoryFor('histogram'))?.points[0] instanceof UsualHistogram

  it('stays where it stands', () => {
    expect(isUsual(given(10))).toBe(true)
    expect(isUsual(given(10, wide(5, HALF), packed(7, 9), wide(11, HALF), wide(12, HALF), field(8, 'exemplar')))).toBe(
      true,
    )
    expect(isUsual(given(10, wide(20, HALF)))).toBe(false)
  })

  it('and has no more numbers than others', () => {
    expect(said(given(1_000), memoryFor('histogram'))).toEqual(said(given(1_000)))
    // A length of three bytes is read field by field; with so many numbers it is left out in either way.
    expect(said(given(9_000), memoryFor('histogram'))).toEqual(said(given(9_000)))
    expect(said(given(9_000))).toMatchObject([{ unread: { points: 1 } }])
  })
})
