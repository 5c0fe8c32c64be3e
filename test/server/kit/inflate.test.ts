/** Bodies are inflated up to a bound, which is judged before there is room for more. */
import { gzipSync } from 'node:zlib'
import { snappyCompress } from 'hysnappy'
import { describe, expect, it } from 'vitest'
import { inflated } from '../../../server/kit/inflate.ts'

const MOST = 1 << 16

/** The length before compression, 2^32 - 1, and nothing after it. */
const BOASTFUL = Uint8Array.of(0xff, 0xff, 0xff, 0xff, 0x0f)

describe.each([
  ['gzip', gzipSync],
  ['snappy', snappyCompress],
] as const)('a body in %s', (encoding, compress) => {
  it('is as it was, up to the most bytes that it may have', () => {
    const bytes = new Uint8Array(MOST).fill(7)
    expect(Buffer.compare(inflated(compress(bytes), encoding, MOST), bytes)).toBe(0)
  })

  it('of a byte more is refused', () => {
    expect(() => inflated(compress(new Uint8Array(MOST + 1)), encoding, MOST)).toThrow(
      expect.objectContaining({ code: 'TOO_LONG' }),
    )
  })
})

it('what Snappy says of its length is judged before the rest is looked at', () => {
  expect(() => inflated(BOASTFUL, 'snappy', MOST)).toThrow(expect.objectContaining({ code: 'TOO_LONG' }))
})

it('a body that is not compressed stays as it is, and what is not gzip is refused', () => {
  const bytes = Uint8Array.of(1, 2, 3)
  expect(inflated(bytes, 'identity', MOST)).toBe(bytes)
  expect(() => inflated(bytes, 'gzip', MOST)).toThrow(expect.objectContaining({ code: 'BAD_COMPRESSION' }))
})
