import { describe, expect, test } from 'vitest'
import { encodeAdd, encodeGoodBye, encodeList, encodeRemove } from '../../../protocol/mono/messages.ts'
import { hex, join, toHex } from '../../support/bytes.ts'
import { HELLO, listen, say, vectors } from './vectors.ts'

const dialects = ['gist', 'mono-2014'] as const
const messages = vectors.messages.flatMap((vector) =>
  (vector.dialect ? [vector.dialect] : dialects).map((dialect) => ({
    ...vector,
    dialect,
    stream: vector.greeted ? join(HELLO, hex(vector.hex)) : hex(vector.hex),
    said: vector.greeted ? [['hello', 0], ['greeted'], ...vector.events] : vector.events,
  })),
)

describe('every message', () => {
  test.each(messages)('$name ($dialect) decodes', ({ stream, said, dialect }) => {
    const { decoder, events } = listen(dialect)
    decoder.decode(stream)
    expect(events).toEqual(said)
    expect(decoder.complete).toBe(true)
  })

  test.each(messages)('$name ($dialect) decodes byte by byte, and cut anywhere', ({ stream, said, dialect }) => {
    const all = Array.from(stream, (_, index) => index)
    expect(say(stream, all, dialect)).toEqual(said)
    for (const cut of all) expect(say(stream, [cut], dialect)).toEqual(said)
  })

  test.each(messages)('$name ($dialect) that is cut says no more than the whole', ({ stream, said, dialect }) => {
    for (let end = 0; end < stream.length; end++) {
      const { decoder, events } = listen(dialect)
      decoder.decode(stream.subarray(0, end))
      expect(said.slice(0, events.length)).toEqual(events)
    }
  })
})

describe('every request', () => {
  test.each(vectors.requests)('$name ($dialect) encodes', ({ dialect, call, hex: expected }) => {
    const bytes =
      call[0] === 'list'
        ? encodeList(dialect)
        : call[0] === 'add'
          ? encodeAdd(dialect, { category: call[1], name: call[2] })
          : encodeRemove(dialect, call[1])
    expect(toHex(bytes)).toBe(expected.replaceAll(' ', ''))
  })

  test('Good Bye is one byte, and text is UTF-8 with its length in bytes', () => {
    expect(toHex(encodeGoodBye())).toBe('7f')
    expect(toHex(encodeAdd('gist', { category: '', name: 'é' }))).toBe('0202000000c3a900000000')
  })
})
