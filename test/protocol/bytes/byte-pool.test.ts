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

it('has many of them in one buffer, and long ones in one of their own', () => {
  const pool = new BytePool()
  const buffers = new Set(Array.from({ length: 600 }, () => pool.keep(new DataView(new ArrayBuffer(100)), 0, 100).view))
  expect(buffers.size).toBe(1)
  const long = pool.keep(new DataView(new ArrayBuffer(1 << 20)), 0, 1 << 20)
  expect([long.at, long.view.byteLength]).toEqual([0, 1 << 20])
})
