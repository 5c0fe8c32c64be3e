/** XdrReader and XdrWriter against RFC 4506; the bytes are written out by hand from its sections. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { XdrReader } from '../../../protocol/bytes/reader.ts'
import { XdrWriter } from '../../../protocol/bytes/writer.ts'
import { ProtocolError } from '../../../protocol/errors.ts'

const fromHex = (hex: string) => new Uint8Array(Buffer.from(hex.replaceAll(' ', ''), 'hex'))
const read = (hex: string) => new XdrReader(fromHex(hex))
const utf8 = (text: string) => new TextEncoder().encode(text)

type Kind = 'int32' | 'uint32' | 'int64' | 'uint64' | 'uint53' | 'float' | 'double' | 'boolean' | 'string' | 'opaque'
const write = (kind: Kind, value: unknown): Uint8Array => {
  const writer = new XdrWriter(1)
  ;(writer[kind] as (given: unknown) => XdrWriter)(value)
  return writer.copy()
}

const cases: [Kind, string, unknown][] = [
  ['int32', '80000000', -0x80000000], // RFC 4506 4.1
  ['int32', 'fffffffe', -2],
  ['uint32', 'fffffffe', 0xfffffffe], // 4.2
  ['boolean', '00000000', false], // 4.4
  ['boolean', '00000001', true],
  ['int64', '80000000 00000000', -(2n ** 63n)], // 4.5
  ['uint64', 'ffffffff ffffffff', 2n ** 64n - 1n],
  ['uint53', '001fffff ffffffff', Number.MAX_SAFE_INTEGER],
  ['uint53', '00000001 00000000', 0x100000000],
  ['uint53', '00000000 ffffffff', 0xffffffff],
  ['float', '3e200000', 0.15625], // 4.6
  ['float', 'ff800000', Number.NEGATIVE_INFINITY],
  ['double', '3fe00000 00000000', 0.5], // 4.7
  ['double', '80000000 00000000', -0],
  ['double', '7ff80000 00000000', Number.NaN],
  ['opaque', '00000000', new Uint8Array(0)], // 4.10
  ['opaque', '00000001 ff000000', fromHex('ff')],
  ['opaque', '00000004 01020304', fromHex('01020304')],
  ['opaque', '00000005 01020304 05000000', fromHex('0102030405')],
  ['string', '00000009 73696c6c 7970726f 67000000', 'sillyprog'], // 4.11, and the example of 7
  ['string', '00000002 c3a90000', 'é'],
  ['string', '00000003 efbbbf00', '\ufeff'],
]

describe.each(cases)('%s %s', (kind, hex, value) => {
  it('is read', () => {
    const reader = read(hex)
    expect(reader[kind]()).toEqual(value)
    reader.finish()
  })

  it('is written', () => expect(write(kind, value)).toEqual(fromHex(hex)))

  it('is refused where its last four bytes are missing', () => {
    const reader = new XdrReader(fromHex(hex).subarray(0, -4))
    expect(() => reader[kind]()).toThrow(expect.objectContaining({ code: 'TRUNCATED' }))
  })
})

describe('the reader', () => {
  it.each([
    ['00000002', 'BAD_BOOLEAN', 0, (reader: XdrReader) => reader.boolean()],
    ['ffffffff', 'BAD_BOOLEAN', 0, (reader: XdrReader) => reader.boolean()],
    ['00000001 ff000001', 'BAD_PADDING', 7, (reader: XdrReader) => reader.opaque()],
    ['00000001 ff010000', 'BAD_PADDING', 5, (reader: XdrReader) => reader.opaque()],
    ['00000003 61626300', 'TOO_LONG', 0, (reader: XdrReader) => reader.string(2)],
    ['00000002 c3280000', 'BAD_UTF8', 0, (reader: XdrReader) => reader.string()],
    ['00000003 eda08000', 'BAD_UTF8', 0, (reader: XdrReader) => reader.string()],
    ['00000001 61', 'TRUNCATED', 5, (reader: XdrReader) => reader.opaque()],
    ['ffffffff 00000000', 'TRUNCATED', 4, (reader: XdrReader) => reader.opaque()],
    ['80000000 00000000', 'TRUNCATED', 4, (reader: XdrReader) => reader.string()],
    ['00000000', 'TRAILING_BYTES', 0, (reader: XdrReader) => reader.finish()],
  ])('refuses %s with %s at byte %i', (hex, code, offset, take) => {
    expect(() => take(read(hex))).toThrow(ProtocolError)
    expect(() => take(read(hex))).toThrow(expect.objectContaining({ code, offset }))
  })

  it('reads a string after one that was refused', () => {
    expect(() => read('00000001 c3000000').string()).toThrow(ProtocolError)
    expect(read('00000001 61000000').string()).toBe('a')
  })

  it('reads only the window it is pointed at', () => {
    const bytes = fromHex('eeeeeeee 00000001 00000002 eeeeeeee')
    const reader = new XdrReader().reset(bytes, 4, 12)
    expect([reader.uint32(), reader.uint32(), reader.remaining]).toEqual([1, 2, 0])
    expect(() => reader.uint32()).toThrow(expect.objectContaining({ code: 'TRUNCATED', offset: 12 }))
  })

  it('reads from a window of a larger buffer', () => {
    const larger = fromHex('eeeeeeee 00000001 61000000 eeeeeeee')
    expect(new XdrReader(larger.subarray(4, 12)).string()).toBe('a')
  })

  it('gives an opaque that outlives its frame, also when the frame is a Buffer, whose slice() is a view', () => {
    for (const frame of [fromHex('00000002 01020000'), Buffer.from('0000000201020000', 'hex')]) {
      const opaque = new XdrReader(frame).opaque()
      frame.fill(0xee)
      expect([...opaque]).toEqual([1, 2])
    }
  })

  it('gives a view of the frame where that is asked for', () => {
    const frame = fromHex('00000002 01020000')
    const view = new XdrReader(frame).opaqueView()
    frame[4] = 9
    expect([...view]).toEqual([9, 2])
  })
})

describe('the writer', () => {
  it('fills in the length of a frame after its end is written', () => {
    const writer = new XdrWriter(4)
    const outer = writer.beginFrame()
    writer.uint32(1).uint32(2).endFrame(outer)
    const next = writer.beginFrame()
    writer.endFrame(next)
    expect(writer.copy()).toEqual(fromHex('00000008 00000001 00000002 00000000'))
  })

  it('writes zeros as padding where a longer text stood before', () => {
    const writer = new XdrWriter(32).opaque(new Uint8Array(24).fill(0xff)).clear().string('a').string('é')
    expect(writer.opaque(Uint8Array.of(0x62)).copy()).toEqual(
      fromHex('00000001 61000000 00000002 c3a90000 00000001 62000000'),
    )
  })

  it('gives views that go stale and copies that do not', () => {
    const writer = new XdrWriter(16).uint32(1)
    const copy = writer.copy()
    writer.clear().uint32(2)
    expect(copy).toEqual(fromHex('00000001'))
    expect(writer.bytes()).toEqual(fromHex('00000002'))
  })

  it('appends bytes that are XDR already', () => {
    expect(new XdrWriter(2).uint32(1).raw(fromHex('00000002')).copy()).toEqual(fromHex('00000001 00000002'))
  })
})

describe('any sequence of fields', () => {
  const field = fc.oneof(
    fc.tuple(fc.constant<Kind>('int32'), fc.integer()),
    fc.tuple(fc.constant<Kind>('uint32'), fc.nat(0xffffffff)),
    fc.tuple(fc.constant<Kind>('int64'), fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })),
    fc.tuple(fc.constant<Kind>('uint64'), fc.bigInt({ min: 0n, max: 2n ** 64n - 1n })),
    fc.tuple(fc.constant<Kind>('uint53'), fc.maxSafeNat()),
    fc.tuple(fc.constant<Kind>('float'), fc.float()),
    fc.tuple(fc.constant<Kind>('double'), fc.double()),
    fc.tuple(fc.constant<Kind>('boolean'), fc.boolean()),
    fc.tuple(fc.constant<Kind>('string'), fc.string({ unit: 'binary' })),
    fc.tuple(fc.constant<Kind>('opaque'), fc.uint8Array()),
  )

  it('is read as it was written, in units of four bytes', () => {
    fc.assert(
      fc.property(fc.array(field), (fields) => {
        const writer = new XdrWriter(1)
        for (const [kind, value] of fields) writer.raw(write(kind, value))
        expect(writer.length % 4).toBe(0)
        const reader = new XdrReader(writer.bytes())
        expect(fields.map(([kind]) => reader[kind]())).toEqual(fields.map(([, value]) => value))
        reader.finish()
      }),
    )
  })

  it('of random bytes gives values or a ProtocolError', () => {
    const kinds = fc.array(fc.constantFrom<Kind>('string', 'opaque', 'boolean', 'double', 'uint32', 'int64'))
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 80 }), kinds, (bytes, list) => {
        const reader = new XdrReader(bytes)
        try {
          for (const kind of list) reader[kind]()
        } catch (error) {
          expect(error).toBeInstanceOf(ProtocolError)
        }
        expect(reader.offset).toBeLessThanOrEqual(bytes.length)
      }),
      { numRuns: 1000 },
    )
  })

  it('takes a text as it stands in UTF-8', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(write('string', text)).toEqual(write('opaque', utf8(text)))
      }),
    )
  })
})
