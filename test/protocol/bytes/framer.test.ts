/** The framer [MON 1]: frames out of a stream that is cut anywhere, and lengths that are refused. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Framer, MAX_FRAME_BYTES, MAX_FRAME_BYTES_BEFORE_AUTH } from '../../../protocol/bytes/framer.ts'
import { ProtocolError } from '../../../protocol/errors.ts'
import { toHex } from '../../support/bytes.ts'

/** A frame whose payload is `length` times the same byte. */
function frame(length: number, fill = 0): Uint8Array {
  const bytes = new Uint8Array(4 + length).fill(fill, 4)
  new DataView(bytes.buffer).setUint32(0, length)
  return bytes
}

function lengthField(length: number): Uint8Array {
  const bytes = new Uint8Array(4)
  new DataView(bytes.buffer).setUint32(0, length)
  return bytes
}

/** All frames that are whole now, as copies. */
function take(framer: Framer): Uint8Array[] {
  const payloads: Uint8Array[] = []
  while (framer.next()) payloads.push(new Uint8Array(framer.bytes.subarray(framer.start, framer.end)))
  return payloads
}

const pushed = (framer: Framer, ...chunks: Uint8Array[]): Framer => {
  for (const chunk of chunks) framer.push(chunk)
  return framer
}

describe('a length', () => {
  it.each([
    [0, 'FRAME_TOO_SHORT'],
    [4, 'FRAME_TOO_SHORT'],
    [7, 'FRAME_TOO_SHORT'],
    [9, 'FRAME_UNALIGNED'],
    [0xfffe, 'FRAME_UNALIGNED'],
    [0x10004, 'FRAME_TOO_LONG'],
    [0x10001, 'FRAME_TOO_LONG'],
    [0x80000000, 'FRAME_TOO_LONG'],
    [0xffffffff, 'FRAME_TOO_LONG'],
  ])('of %i is refused with %s from the length field alone', (length, code) => {
    const framer = pushed(new Framer(MAX_FRAME_BYTES_BEFORE_AUTH), lengthField(length))
    expect(() => framer.next()).toThrow(ProtocolError)
    expect(() => framer.next()).toThrow(expect.objectContaining({ code, offset: 0 }))
    expect(framer.bytes.length).toBe(4)
  })

  it.each([8, 12, 0xfffc, 0x10000])('of %i is taken', (length) => {
    const framer = pushed(new Framer(MAX_FRAME_BYTES_BEFORE_AUTH), frame(length, 7))
    expect(take(framer)).toEqual([new Uint8Array(length).fill(7)])
  })

  it('that is allowed reserves nothing before its bytes arrive', () => {
    const framer = pushed(new Framer(MAX_FRAME_BYTES), lengthField(MAX_FRAME_BYTES))
    expect(framer.next()).toBe(false)
    framer.settle()
    expect(framer.bytes.length).toBe(4)
    framer.push(new Uint8Array(1))
    expect(framer.bytes.length).toBeLessThan(16)
  })

  it('is judged by the limit in force when the frame is asked for', () => {
    const framer = pushed(new Framer(MAX_FRAME_BYTES_BEFORE_AUTH), frame(8), frame(0x10004))
    expect(framer.next()).toBe(true)
    framer.maxFrameBytes = MAX_FRAME_BYTES
    expect(framer.next()).toBe(true)
    expect(framer.end - framer.start).toBe(0x10004)
  })

  it('that is refused says where in the buffer it stands', () => {
    const framer = pushed(new Framer(MAX_FRAME_BYTES), frame(8), frame(12), lengthField(4))
    expect(framer.next()).toBe(true)
    expect(framer.next()).toBe(true)
    expect(() => framer.next()).toThrow(expect.objectContaining({ code: 'FRAME_TOO_SHORT', offset: 28 }))
  })
})

describe('a piece of the stream', () => {
  it('may be empty', () => {
    const framer = pushed(new Framer(MAX_FRAME_BYTES), new Uint8Array(0))
    expect(framer.next()).toBe(false)
    pushed(framer, frame(8).subarray(0, 6), new Uint8Array(0), frame(8).subarray(6))
    expect(take(framer)).toHaveLength(1)
  })

  it('with whole frames is not copied', () => {
    const chunk = frame(8)
    const framer = pushed(new Framer(MAX_FRAME_BYTES), chunk)
    framer.next()
    expect(framer.bytes).toBe(chunk)
  })

  it.each([
    ['a Uint8Array', (bytes: Uint8Array) => new Uint8Array(bytes)],
    ['a Buffer, whose slice() is a view', (bytes: Uint8Array) => Buffer.from(bytes)],
  ])('that is %s may be overwritten after settle', (_, receive) => {
    const whole = frame(12, 5)
    const framer = new Framer(MAX_FRAME_BYTES)
    const received = receive(whole.subarray(0, 10))
    framer.push(received)
    expect(framer.next()).toBe(false)
    framer.settle()
    received.fill(0xee)
    framer.push(receive(whole.subarray(10)))
    expect(take(framer)).toEqual([new Uint8Array(12).fill(5)])
  })

  it('that is a window of a larger buffer is read from where it begins', () => {
    const larger = new Uint8Array(64).fill(0xee)
    larger.set(frame(8, 3), 20)
    expect(take(pushed(new Framer(MAX_FRAME_BYTES), larger.subarray(20, 32)))).toEqual([new Uint8Array(8).fill(3)])
  })

  it('leaves nothing held after settle when all of it was taken', () => {
    const framer = pushed(new Framer(MAX_FRAME_BYTES), frame(8).subarray(0, 3), frame(8).subarray(3))
    expect(framer.next()).toBe(true)
    framer.settle()
    expect(framer.pending).toBe(0)
    expect(framer.bytes.length).toBe(0)
  })
})

describe('a stream of frames', () => {
  const payloads = fc.array(fc.tuple(fc.integer({ min: 2, max: 40 }), fc.nat(255)), { minLength: 1, maxLength: 8 })
  const cuts = fc.array(fc.tuple(fc.integer({ min: 0, max: 60 }), fc.boolean(), fc.boolean()), { minLength: 1 })

  it('cut anywhere, settled or not, gives the same frames', () => {
    fc.assert(
      fc.property(payloads, cuts, fc.boolean(), (list, pieces, asBuffer) => {
        const frames = list.map(([units, fill]) => frame(4 * units, fill))
        const stream = Buffer.concat(frames)
        const framer = new Framer(MAX_FRAME_BYTES)
        const got: Uint8Array[] = []
        for (let at = 0, i = 0; at < stream.length; i++) {
          const [size, takes, settles] = pieces[i % pieces.length]!
          // A piece of 0 bytes is a piece, but the stream has to come to its end.
          const end = at + (i < 1000 ? size : 60)
          const received = asBuffer ? Buffer.from(stream.subarray(at, end)) : new Uint8Array(stream.subarray(at, end))
          at = end
          framer.push(received)
          if (takes) got.push(...take(framer))
          if (settles) {
            framer.settle()
            received.fill(0xee)
          }
        }
        got.push(...take(framer))
        expect(got.map(toHex)).toEqual(frames.map((one) => toHex(one.subarray(4))))
        expect(framer.pending).toBe(0)
      }),
      { numRuns: 500 },
    )
  })

  it('followed by any bytes gives frames or a ProtocolError, and keeps no more than it was given', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 64 }), { maxLength: 12 }), (chunks) => {
        const framer = new Framer(256)
        let given = 0
        for (const chunk of chunks) {
          framer.push(chunk)
          given += chunk.length
          try {
            take(framer)
          } catch (error) {
            return error instanceof ProtocolError
          }
          framer.settle()
          if (framer.pending > Math.min(given, 259)) return false
        }
        return true
      }),
      { numRuns: 1000 },
    )
  })
})
