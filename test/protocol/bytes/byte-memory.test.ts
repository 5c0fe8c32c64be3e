/** Bytes that are recognised, as long as they are kept. */
import { describe, expect, it } from 'vitest'
import { ByteMemory } from '../../../protocol/bytes/byte-memory.ts'
import { Random } from '../../support/random.ts'

const viewOf = (bytes: Uint8Array): DataView => new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
const of = (text: string): DataView => viewOf(new TextEncoder().encode(text))

describe('a memory of bytes', () => {
  it('knows the same bytes again, wherever they stand, and no others', () => {
    const memory = new ByteMemory<number>(1 << 20)
    memory.add(of('xxabcdefyy'), 2, 8, 7)
    expect(memory.find(of('abcdef'), 0, 6)).toBe(7)
    expect(memory.find(of('..abcdef.'), 2, 8)).toBe(7)
    for (const other of ['abcdeg', 'Abcdef', 'abcde', 'abcdefg', 'abcxef']) {
      expect(memory.find(of(other), 0, other.length), other).toBeUndefined()
    }
  })

  it('keeps a copy', () => {
    const memory = new ByteMemory<number>(1 << 20)
    const given = new TextEncoder().encode('abcdef')
    memory.add(viewOf(given), 0, 6, 7)
    given.fill(0)
    expect(memory.find(of('abcdef'), 0, 6)).toBe(7)
  })

  it('tells random bytes apart', () => {
    const random = new Random(5)
    const memory = new ByteMemory<string>(64 << 20)
    const all = new Map<string, Uint8Array>()
    for (let count = 0; count < 5_000; count++) {
      // Of few values, so that many are alike.
      const bytes = Uint8Array.from({ length: random.below(12) }, () => random.below(3))
      all.set(bytes.join(), bytes)
    }
    for (const [name, bytes] of all) memory.add(viewOf(bytes), 0, bytes.length, name)
    let known = 0
    for (const [name, bytes] of all) {
      const found = memory.find(viewOf(bytes), 0, bytes.length)
      if (found !== undefined) known++
      expect([name, undefined]).toContain(found)
    }
    expect(known).toBeGreaterThan(all.size * 0.99)
  })

  it('has a bound, and forgets what was not seen for long', () => {
    const memory = new ByteMemory<number>(100_000)
    const kept = of('seen again and again')
    memory.add(kept, 0, kept.byteLength, -1)
    for (let count = 0; count < 10_000; count++) {
      const text = of(`entry ${count}`)
      memory.add(text, 0, text.byteLength, count)
      expect(memory.find(kept, 0, kept.byteLength)).toBe(-1)
    }
    const known = Array.from({ length: 10_000 }, (_, count) => of(`entry ${count}`)).filter(
      (text) => memory.find(text, 0, text.byteLength) !== undefined,
    ).length
    expect(known).toBeGreaterThan(50)
    expect(known).toBeLessThan(100_000 / 300)
  })
})
