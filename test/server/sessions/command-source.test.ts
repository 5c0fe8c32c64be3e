import { describe, expect, it } from 'vitest'
import { DecodedQueries } from '../../../server/sessions/command-source.ts'

describe('DecodedQueries', () => {
  const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text)

  /** What is decoded is the text itself, in a new object each time. */
  function asked(queries: DecodedQueries, text: string): Record<string, unknown> {
    const around = bytesOf(`before ${text} after`)
    return queries.get(around, 7, 7 + bytesOf(text).length, () => ({ text }))
  }

  it('gives the same object for the same bytes', () => {
    const queries = new DecodedQueries()
    const first = asked(queries, 'host.load.one')
    expect(first).toEqual({ text: 'host.load.one' })
    expect(asked(queries, 'host.load.one')).toBe(first)
    expect(asked(queries, 'host.load.two')).toEqual({ text: 'host.load.two' })
  })

  it('gives each what it asked for, however many share a place', () => {
    const queries = new DecodedQueries()
    for (let round = 0; round < 2; round++) {
      for (let index = 0; index < 1_000; index++) expect(asked(queries, `m${index}`)).toEqual({ text: `m${index}` })
    }
  })

  it('keeps nothing of long ones', () => {
    const queries = new DecodedQueries()
    const long = 'x'.repeat(257)
    expect(asked(queries, long)).not.toBe(asked(queries, long))
  })

  it('keeps its own copy of the bytes', () => {
    const queries = new DecodedQueries()
    const buffer = bytesOf('host.load.one')
    queries.get(buffer, 0, buffer.length, () => ({ text: 'one' }))
    buffer.set(bytesOf('two'), 10)
    expect(queries.get(buffer, 0, buffer.length, () => ({ text: 'two' }))).toEqual({ text: 'two' })
  })
})
