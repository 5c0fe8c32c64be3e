import { expect, test } from 'vitest'
import { gap, response, value } from './wire.ts'

test('the frames that the tests put together are those of the specification', () => {
  const hex = (bytes: Buffer) => bytes.toString('hex')
  expect(hex(response(1, 0, 7))).toBe('00000010ffffffff000000010000000000000007')
  expect(hex(response(9, 8, 0, 'no such id'))).toBe(
    '00000020ffffffff0000000900000008000000000000000a6e6f20737563682069640000',
  )
  expect(hex(value(7, 0, 2))).toBe('0000001c00000007000000000000000000060a24181e40000000000200000002')
  expect(hex(gap(13, 7))).toBe(
    '0000002cfffffffc000000000000000d00000007000000000000000500060a24181e400000060a24181e400000000001',
  )
})
