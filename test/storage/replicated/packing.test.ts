import { randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { checkFormat, packRecord, unpackRecord } from '../../../storage/replicated/packing.ts'

const AS_IT_IS = 1
const DEFLATED = 2

describe('a record', () => {
  test.each([
    ['short', Buffer.alloc(4_095, 'value'), AS_IT_IS],
    ['long', Buffer.alloc(4_096, 'value'), DEFLATED],
    ['of several parts', Buffer.alloc(5_000_000, 'another value'), DEFLATED],
    ['that nothing makes shorter', randomBytes(10_000), AS_IT_IS],
  ])('is packed if that makes it shorter: %s', (_, bytes, format) => {
    const packed = packRecord(bytes)
    expect(packed.format).toBe(format)
    expect(() => checkFormat(packed.format, 'n1')).not.toThrow()
    expect(packed.bytes.length < bytes.length).toBe(format === DEFLATED)
    expect(Buffer.compare(unpackRecord(packed, 1), bytes)).toBe(0)
  })

  test('is packed in the same way each time', () => {
    const bytes = Buffer.alloc(100_000, 'value 1, value 2')
    expect(packRecord(bytes)).toEqual(packRecord(bytes))
  })
})
