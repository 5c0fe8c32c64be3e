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

  it('knows them in their context alone', () => {
    const memory = new ByteMemory<number>(1 << 20)
    memory.add(of('abcdef'), 0, 6, 1)
    memory.add(of('abcdef'), 0, 6, 2, { context: memory.within('here') })
    expect(memory.find(of('abcdef'), 0, 6)).toBe(1)
    expect(memory.find(of('abcdef'), 0, 6, memory.within('here'))).toBe(2)
    expect(memory.find(of('abcdef'), 0, 6, memory.within('there'))).toBeUndefined()
    expect(memory.find(of('abcdef'), 0, 6, memory.within('here', memory.within('here')))).toBeUndefined()
  })

  it('forgets contexts that are too many, and takes none for another', () => {
    const memory = new ByteMemory<number>(1 << 16)
    for (let count = 0; count < 2_000; count++) {
      const context = memory.within(`context ${count}`)
      expect(memory.find(of('abcdef'), 0, 6, context)).toBeUndefined()
      memory.add(of('abcdef'), 0, 6, count, { context })
    }
    const found = Array.from({ length: 2_000 }, (_, count) =>
      memory.find(of('abcdef'), 0, 6, memory.within(`context ${count}`)),
    )
    for (const [count, meaning] of found.entries()) expect([undefined, count]).toContain(meaning)
    const large = 'x'.repeat(1 << 16)
    expect(memory.within(large)).not.toEqual(memory.within(large))
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

  it('has a bound', () => {
    const memory = new ByteMemory<number>(100_000, seeded(1))
    const all = Array.from({ length: 10_000 }, (_, count) => of(`entry ${count}`))
    for (const [count, text] of all.entries()) memory.add(text, 0, text.byteLength, count)
    const known = all.filter((text) => memory.find(text, 0, text.byteLength) !== undefined).length
    expect(known).toBeGreaterThan(200)
    expect(known).toBeLessThan(100_000 / 300)
    const large = new DataView(new ArrayBuffer(30_000))
    memory.add(large, 0, 30_000, -1)
    expect(memory.find(large, 0, 30_000)).toBeUndefined()
  })

  it('counts what it has no room for, until it is asked', () => {
    const memory = new ByteMemory<number>(100_000, seeded(1))
    const all = Array.from({ length: 1_000 }, (_, count) => of(`entry ${count}`))
    for (const [count, text] of all.entries()) {
      memory.add(text, 0, text.byteLength, count)
      if (count === 100) expect(memory.lost()).toBe(0)
    }
    const known = all.filter((text) => memory.find(text, 0, text.byteLength) !== undefined).length
    // What took the place of another is known, and the other one is not.
    expect(memory.lost()).toBe(1_000 - known)
    expect(memory.lost()).toBe(0)
    memory.add(new DataView(new ArrayBuffer(30_000)), 0, 30_000, -1)
    expect(memory.lost()).toBe(1)
    // An eighth is for contexts, of some 180 bytes each.
    for (let count = 0; count < 200; count++) memory.within(`context ${count}`)
    const lost = memory.lost()
    expect(lost).toBeGreaterThan(50)
    expect(lost).toBeLessThan(200)
    memory.within('x'.repeat(10_000))
    expect(memory.lost()).toBe(1)
  })

  it('weighs what it is told to', () => {
    const memory = new ByteMemory<number>(100_000, seeded(1))
    const all = Array.from({ length: 100 }, (_, count) => of(`entry ${count}`))
    for (const [count, text] of all.entries()) memory.add(text, 0, text.byteLength, count, { weight: 10_000 })
    expect(all.filter((text) => memory.find(text, 0, text.byteLength) !== undefined).length).toBeLessThan(10)
  })

  it('goes on knowing a part of those that come again and again, if they are too many', () => {
    const memory = new ByteMemory<number>(100_000, seeded(1))
    const all = Array.from({ length: 600 }, (_, count) => of(`entry ${count}`))
    let known = 0
    for (let round = 0; round < 50; round++) {
      for (const [count, text] of all.entries()) {
        if (memory.find(text, 0, text.byteLength) === undefined) memory.add(text, 0, text.byteLength, count)
        else known++
      }
    }
    // There is room for 290 of them.
    expect(known / (50 * 600)).toBeGreaterThan(0.3)
  })

  it('comes to know what is there from some time on', () => {
    const memory = new ByteMemory<number>(100_000, seeded(1))
    const early = Array.from({ length: 300 }, (_, count) => of(`early ${count}`))
    for (const [count, text] of early.entries()) memory.add(text, 0, text.byteLength, count)
    const late = Array.from({ length: 200 }, (_, count) => of(`late ${count}`))
    for (let round = 0; round < 100; round++) {
      for (const [count, text] of late.entries()) {
        if (memory.find(text, 0, text.byteLength) === undefined) memory.add(text, 0, text.byteLength, count)
      }
    }
    expect(late.every((text) => memory.find(text, 0, text.byteLength) !== undefined)).toBe(true)
  })
})

function seeded(seed: number): () => number {
  const random = new Random(seed)
  return () => random.next()
}
