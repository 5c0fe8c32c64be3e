/** What the vectors cannot say of values: who owns their bytes, and what is counted over a whole frame. */
import { describe, expect, it } from 'vitest'
import { XdrReader } from '../../../protocol/bytes/reader.ts'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import { nameProblem, readTyped } from '../../../protocol/monitor/value.ts'
import { fromHex } from './vectors.ts'

describe('a value outlives its frame', () => {
  it.each([
    ['OPAQUE', BasicType.OPAQUE, '00000008 00000002 ff010000'],
    ['STRING that is no UTF-8', BasicType.STRING, '00000007 00000002 ff010000'],
  ])('%s', (_, type, hex) => {
    for (const frame of [fromHex(hex), Buffer.from(fromHex(hex))]) {
      const value = readTyped(new XdrReader(frame))
      frame.fill(0xee)
      expect(value).toEqual({ type, value: fromHex('ff01') })
    }
  })
})

describe('VOIDs in arrays', () => {
  it('are at most 65,536 in one frame, and as many in the next', () => {
    const frame = fromHex('0000000a 0000000b 00010000')
    const reader = new XdrReader()
    for (let i = 0; i < 3; i++) {
      const { value } = readTyped(reader.reset(frame))
      expect(value).toMatchObject({ element: BasicType.VOID, items: { length: 65_536 } })
    }
  })
})

describe('a name', () => {
  it.each(['a', ' ', '\x7f', 'é'.repeat(127), '*.?', '\ufeff', '👍'])('may be %j', (name) => {
    expect(nameProblem(name)).toBeUndefined()
  })

  it.each([
    ['', /empty/],
    ['a'.repeat(256), /more than 255 bytes/],
    ['é'.repeat(128), /more than 255 bytes/],
    ['a\x1fb', /control character/],
    ['\n', /control character/],
    ['a\ud800', /not Unicode/],
    ['\udc00a', /not Unicode/],
  ])('is not %j', (name, problem) => {
    expect(nameProblem(name)).toMatch(problem)
  })

  it('may be longer where the field says so', () => {
    expect(nameProblem('u'.repeat(2048), 2048)).toBeUndefined()
    expect(nameProblem('u'.repeat(2049), 2048)).toMatch(/more than 2048 bytes/)
  })
})
