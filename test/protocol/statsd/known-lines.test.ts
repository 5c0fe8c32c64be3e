import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { KnownLines } from '../../../protocol/statsd/known-lines.ts'
import { parseLine } from '../../../protocol/statsd/lines.ts'

const MEMORY = 1 << 20

function viewOf(text: string): DataView {
  // Not at the beginning of its buffer, as in a batch of datagrams.
  const bytes = Buffer.from(`#${text}`)
  return new DataView(bytes.buffer, bytes.byteOffset + 1, bytes.length - 1)
}

function findAfter(kept: string, found: string): { readonly meaning: string | undefined; readonly number: number } {
  const lines = new KnownLines<string>(MEMORY)
  const [one, other] = [viewOf(kept), viewOf(found)]
  lines.keep(one, 0, one.byteLength, kept)
  return { meaning: lines.find(other, 0, other.byteLength), number: lines.number }
}

describe('a line that differs in its number only', () => {
  it.each([
    ['a:1|c', 'a:27|c', 27],
    ['a:1|c', 'a:0.1|c', 0.1],
    ['a:1.5|ms|@0.1', 'a:12.|ms|@0.1', 12],
    ['a;host=x:1|g', 'a;host=x:999999999999999|g', 999_999_999_999_999],
    ['a:1|c|#k:v,w:\u00e4', 'a:0.00000000000001|c|#k:v,w:\u00e4', 1e-14],
    ['a:1|c\r', 'a:2|c\r', 2],
  ])('%j is known, then %j is', (kept, found, number) => {
    expect(findAfter(kept, found)).toEqual({ meaning: kept, number })
  })
})

describe('is not known', () => {
  it.each([
    ['another name', 'a:1|c', 'b:1|c'],
    ['a longer name', 'a:1|c', 'aa:1|c'],
    ['another type', 'a:1|c', 'a:1|g'],
    ['another rate', 'a:1|c|@0.1', 'a:1|c|@0.2'],
    ['another end', 'a:1|c', 'a:1|c\r'],
    ['a sign', 'a:1|g', 'a:+1|g'],
    ['an exponent', 'a:1|c', 'a:1e2|c'],
    ['several values', 'a:1|ms', 'a:1:2|ms'],
    ['two points', 'a:1|c', 'a:1.2.3|c'],
    ['a point before all digits', 'a:1|c', 'a:.5|c'],
    ['a point alone', 'a:1|c', 'a:.|c'],
    ['more digits than are exact', 'a:1|c', 'a:1234567890123456|c'],
    ['no number', 'a:1|c', 'a:|c'],
    ['no bar', 'a:1|c', 'a:1'],
    ['no colon', 'a:1|c', 'a1|c'],
    ['nothing', 'a:1|c', ''],
  ])('what has %s', (_, kept, found) => {
    expect(findAfter(kept, found).meaning).toBeUndefined()
  })

  it('what was kept of a line with another kind of value', () => {
    expect(findAfter('a:+1|g', 'a:1|g').meaning).toBeUndefined()
  })
})

it('reads the same number as the line says, whatever comes', () => {
  const digits = fc.stringMatching(/^[0-9]{1,9}(\.[0-9]{0,8})?$/)
  fc.assert(
    fc.property(fc.oneof(digits, fc.double({ min: 0, noNaN: true }).map(String), fc.string()), (value) => {
      const { meaning, number } = findAfter('a:1|c', `a:${value}|c`)
      if (meaning === undefined) return
      const line = parseLine(`a:${value}|c`)
      expect(line).toMatchObject({ kind: 'counter', name: 'a', tags: [], values: [number], weight: 1 })
    }),
  )
})
