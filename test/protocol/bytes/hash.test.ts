/** Hashes as MurmurHash3 has them, by values of its reference implementation. */
import { expect, it } from 'vitest'
import { murmurOf } from '../../../protocol/bytes/hash.ts'

it.each([
  ['', 0, 0x00000000],
  ['', 1, 0x514e28b7],
  ['ffffffff', 0, 0x76293b50],
  ['21436587', 0, 0xf55b516b],
  ['21436587', 0x5082edee, 0x2362f9de],
  ['00000000', 0, 0x2362f9de],
])('of %s with the seed %d', (bytes, seed, hash) => {
  expect(murmurOf(Buffer.from(bytes, 'hex'), seed) >>> 0).toBe(hash)
})
