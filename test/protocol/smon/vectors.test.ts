import { describe, expect, test } from 'vitest'
import { SmonEncoder } from '../../../protocol/smon/encode.ts'
import { hex, toHex } from '../../support/bytes.ts'
import type { Vector } from './vectors.ts'
import { listen, say, sayByteByByte, vectors, write } from './vectors.ts'

const encoded = vectors.flatMap((vector) => (vector.calls ? [{ ...vector, calls: vector.calls }] : []))

describe('every vector', () => {
  test.each(vectors)('$name decodes', (vector: Vector) => {
    const { decoder, events } = listen()
    decoder.decode(hex(vector.hex))
    expect(events).toEqual(vector.events)
    expect(decoder).toMatchObject({ valid: true, complete: true, skipped: 0, shortNames: vector.shortNames ?? 0 })
  })

  test.each(vectors)('$name decodes byte by byte', (vector: Vector) => {
    expect(sayByteByByte(vector.hex)).toEqual(vector.events)
  })

  test.each(vectors)('$name decodes with a cut anywhere', (vector: Vector) => {
    for (let cut = 0; cut < vector.hex.length / 2; cut++) expect(say(vector.hex, [cut])).toEqual(vector.events)
  })

  test.each(vectors)('$name never turns invalid by ending early, and says no more than the whole', (vector: Vector) => {
    for (let end = 0; end < vector.hex.length / 2; end++) {
      const said = say(hex(vector.hex).subarray(0, end))
      expect(vector.events.slice(0, said.length)).toEqual(said)
    }
  })

  test.each(encoded)('$name encodes', (vector) => {
    expect(toHex(write(new SmonEncoder(), vector.calls))).toBe(vector.hex)
  })
})
