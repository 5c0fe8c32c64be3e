import { expect, test } from 'vitest'
import { RowSum } from '../../../../storage/sqlite/damage/checksum.ts'

test('it is that of the numbers as 64-bit floats, big-endian', () => {
  // zlib.crc32(struct.pack('>d', 1.0)) and ('>ddd', 7, 2**53 - 1, 0.5) of Python
  expect(new RowSum(1).of([1])).toBe(1_571_923_041)
  expect(new RowSum(3).of([7, 2 ** 53 - 1, 0.5])).toBe(3_256_012_425)
  expect(new RowSum(3).of(Float64Array.of(0, 7, 2 ** 53 - 1, 0.5), 1)).toBe(3_256_012_425)
})

test('a row of zeros has one too, and negative zero, which SQLite does not keep, is zero', () => {
  expect(new RowSum(2).isRight([0, 0, 0])).toBe(false)
  expect(new RowSum(2).of([0, -0])).toBe(new RowSum(2).of([0, 0]))
})

test('every flipped bit changes it, also the 20 bits of it that a block has', () => {
  const sum = new RowSum(9)
  const row = Float64Array.of(5, 1, 40, 2 ** 51 + 1, 300, 12.5, 1.7e15, 1.7e15 + 1, 7)
  const right = sum.of(row)
  const bytes = new Uint8Array(row.buffer)
  let [wrong, wrongInBlock] = [0, 0]
  for (let bit = 0; bit < bytes.length * 8; bit++) {
    bytes[bit >> 3]! ^= 1 << (bit & 7)
    if (sum.of(row) === right) wrong++
    if (sum.of(row) % 2 ** 20 === right % 2 ** 20) wrongInBlock++
    bytes[bit >> 3]! ^= 1 << (bit & 7)
  }
  expect([wrong, wrongInBlock]).toEqual([0, 0])
})

test('what is no number is never right, and no error', () => {
  const odd = ['text', null, Buffer.of(1)] as unknown as number[]
  expect(new RowSum(2).isRight(odd)).toBe(false)
})
