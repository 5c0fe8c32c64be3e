/** Bytes that are kept together: each stays as it was given. */
import { expect, it } from 'vitest'
import { BytePool } from '../../../protocol/bytes/byte-pool.ts'
import { Random } from '../../support/random.ts'

it('keeps bytes of any length as they were given', () => {
  const random = new Random(11)
  const pool = new BytePool()
  const kept = Array.from({ length: 500 }, () => {
    const bytes = Uint8Array.from({ length: random.below(2) === 0 ? random.below(300) : random.below(40_000) }, () =>
      random.below(256),
    )
    const framed = new Uint8Array(bytes.length + 7)
    framed.set(bytes, 5)
    const found = pool.keep(new DataView(framed.buffer, 2), 3, bytes.length)
    framed.fill(0)
    return { bytes, ...found }
  })
  for (const { bytes, view, at } of kept) {
    expect(Buffer.from(view.buffer, view.byteOffset + at, bytes.length).equals(bytes)).toBe(true)
  }
})

it('has many of them in one buffer, the more the larger it has become, and long ones in one of their own', () => {
  const pool = new BytePool()
  const buffers = new Set(Array.from({ length: 3_000 }, () => pool.keepBytes(new Uint8Array(100)).buffer))
  const sizes = [1, 2, 4, 8, 16, 32, 64, 64, 64, 64, 64].map((kib) => kib << 10)
  expect([...buffers].map(({ byteLength }) => byteLength)).toEqual(sizes.slice(0, buffers.size))
  expect(buffers.size).toBeLessThan(12)
  const small = new BytePool(4 << 10)
  const few = Array.from({ length: 300 }, () => small.keepBytes(new Uint8Array(100)).buffer.byteLength)
  expect(Math.max(...few)).toBe(4 << 10)
  expect(small.keepBytes(new Uint8Array(2_000)).buffer.byteLength).toBe(2_000)
  const long = pool.keep(new DataView(new ArrayBuffer(1 << 20)), 0, 1 << 20)
  expect([long.at, long.view.byteLength]).toEqual([0, 1 << 20])
})
