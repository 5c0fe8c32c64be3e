/** Runs of FF: stuffed strings, and the resynchronisation, which must be found wherever the decoder is. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { SmonEncoder } from '../../../protocol/smon/encode.ts'
import { hex, join, toHex } from '../../support/bytes.ts'
import { times } from '../../support/long.ts'
import type { Event } from './vectors.ts'
import { limits, listen, say, sayByteByByte, vectors } from './vectors.ts'

const FILL = 'ff'.repeat(17)
const RESYNC = `${FILL}fe`
const valid = '00 04 75616263 01 05 0001'
const said: readonly Event[] = [
  ['defined', 1, 'u', 'abc', []],
  ['number', 1, [], '5'],
  ['number', 1, [], '6'],
]

const afterReset = (events: readonly Event[]) => events.slice(events.findLastIndex(([kind]) => kind === 'reset') + 1)

describe('a resynchronisation', () => {
  test.each([
    ['at the start', ''],
    ['after an item', `${valid} 0001`],
    ['after token 0', '00'],
    ['inside the payload of a length', '00 e1'],
    ['inside a name', '00 0a 7561'],
    ['where a new number should be', '00 04 75616263'],
    ['inside the payload of a new number', '00 04 75616263 f200'],
    ['where a value should be', '00 04 75616263 01'],
    ['inside the payload of a value', '00 04 75616263 01 f7'],
    ['inside the last byte of a payload', '00 04 75616263 01 f00001 00 f1ff'],
    ['where the length of a string should be', '00 04 73616263 01'],
    ['inside a string', '00 04 73616263 01 7f 4141'],
    ['inside a string that ends within the run', '00 04 73616263 01 05 4141'],
    ['where the FE of a string should be', `00 04 73616263 01 7f ${'ff'.repeat(16)}`],
    ['where the FE at the end of a string should be', `00 04 73616263 01 10 ${'ff'.repeat(16)}`],
    ['after a stuffed string', `00 04 73616263 01 10 ${'ff'.repeat(16)}fe`],
    ['after an index operation', 'fa'],
    ['inside the payload of an index', 'fae2'],
    ['where the token to copy should be', '00 fd fa01'],
    ['after an error', 'fe'],
    ['after FF that begin nothing', 'ffff01'],
    ['after more FF', FILL],
    ['after 17 FF and no FE', `${FILL}00`],
    ['after another', RESYNC],
  ])('is found %s', (_name, before) => {
    for (const stream of [`${before}${RESYNC}${valid}`, `${before}${RESYNC}${valid}${RESYNC}${valid}`]) {
      for (const events of [say(stream), sayByteByByte(stream)]) {
        expect(events).toContainEqual(['reset'])
        expect(afterReset(events)).toEqual(said)
      }
    }
  })

  test('is no error in itself', () => {
    for (const before of ['', valid, '00 04 75616263', '00 04 73616263 01 7f 4141']) {
      const { decoder, events } = listen()
      decoder.decode(hex(before + FILL))
      expect(decoder).toMatchObject({ valid: false, complete: false })
      decoder.decode(hex('ffff fe'))
      expect(decoder).toMatchObject({ valid: true, complete: true, skipped: 0 })
      expect(events.at(-1)).toEqual(['reset'])
      expect(events.some(([kind]) => kind === 'invalid')).toBe(false)
    }
  })

  test.each(['ff'.repeat(16), `${'ff'.repeat(16)}00ff`, ''])(
    'needs 17 FF in a row: %j and FE are not enough',
    (run) => {
      const events = say(`fe ${run}fe ${valid}`)
      expect(events).toEqual([['invalid', 'BAD_NUMBER', 0]])
    },
  )

  test('forgets tokens, the current token and indexes; offsets go on', () => {
    expect(say(`${valid} fa01 0001 ${RESYNC} 01`).slice(-2)).toEqual([['reset'], ['invalid', 'BAD_NUMBER', 32]])
    expect(say(`${valid} fa01 0001 ${RESYNC} ${valid}`).at(-1)).toEqual(['number', 1, [], '6'])
  })

  test('counts the FF of the error before it, and the bytes up to its FE as skipped', () => {
    const { decoder, events } = listen()
    decoder.decode(hex(`00 04 75616263 01 e7 ${'ff'.repeat(8)}`))
    expect(events.at(-1)).toEqual(['invalid', 'BAD_NUMBER', 7])
    decoder.decode(hex(`${'ff'.repeat(9)}fe`))
    expect(events.at(-1)).toEqual(['reset'])
    expect(decoder.skipped).toBe(10)
  })

  test('counts the FF of a value before it, whichever way that was read', () => {
    const stream = `00 04 75616263 01 00 00f5${'ff'.repeat(6)} ${'ff'.repeat(11)}fe ${valid}`
    for (const events of [say(stream), sayByteByByte(stream)]) {
      expect(events.slice(1, 4)).toEqual([['number', 1, [], '0'], ['number', 1, [], '281474976710655'], ['reset']])
      expect(afterReset(events)).toEqual(said)
    }
    expect(say(stream.replace(`${'ff'.repeat(11)}fe`, `${'ff'.repeat(10)}fe`)).at(-1)).toEqual([
      'invalid',
      'BAD_NUMBER',
      16,
    ])
  })

  test('is found after any garbage', () => {
    const piece = fc.oneof(
      fc.uint8Array({ maxLength: 40 }),
      fc
        .tuple(fc.constantFrom(...vectors), fc.nat())
        .map(([{ hex: text }, end]) => hex(text).subarray(0, end % text.length)),
      fc.nat(40).map((count) => new Uint8Array(count).fill(0xff)),
    )
    const good = fc.constantFrom(...vectors.filter(({ events }) => events[0]?.[0] !== 'reset'))
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 5 }), good, fc.nat(200), (pieces, vector, cut) => {
        const stream = join(...pieces, hex(RESYNC), hex(vector.hex))
        const events = say(stream, [cut % stream.length])
        expect(events).toContainEqual(['reset'])
        expect(afterReset(events)).toEqual(vector.events)
      }),
      { numRuns: times({ short: 250, long: 1_000 }) },
    )
  })
})

describe('FF in strings', () => {
  /** By the rule, run by run: FE after every 16th FF in a row, counted from `before` on. */
  function stuffed(bytes: Uint8Array, before = 0): string {
    let text = 'ff'.repeat(before) + toHex(bytes)
    text = text.replaceAll(/(..)/g, '$1 ').replaceAll(/(?:ff ){16}/g, (run) => `${run}fe `)
    return text.replaceAll(' ', '').slice(2 * before)
  }

  const lengthOf = (count: number) =>
    count < 0xe0
      ? Buffer.of(count).toString('hex')
      : count < 0x1e0
        ? `e0${Buffer.of(count - 0xe0).toString('hex')}`
        : ''

  test.each([15, 16, 17, 31, 32, 33, 48, 223, 224, 400])(
    '%i of them survive, at the start, middle and end',
    (count) => {
      for (const text of ['ff'.repeat(count), `41${'ff'.repeat(count)}`, `${'ff'.repeat(count)}41`]) {
        const bytes = hex(text)
        const stream = `00 04 73616263 01 ${lengthOf(bytes.length)} ${stuffed(bytes)} 00 00`
        const expected = [
          ['defined', 1, 's', 'abc', []],
          ['text', 1, [], text],
          ['text', 1, [], text],
        ]
        expect(say(stream)).toEqual(expected)
        expect(sayByteByByte(stream)).toEqual(expected)
        const encoder = new SmonEncoder()
        const token = encoder.define(Buffer.from('abc'), bytes)
        encoder.value(token, bytes)
        expect(toHex(encoder.take())).toBe(toHex(hex(stream)))
      }
    },
  )

  test('are counted from the payload of the length on', () => {
    // 0xe0 + 0xff = 479 bytes: the payload is the first FF of the run.
    const bytes = new Uint8Array(479).fill(0xff, 0, 40)
    const stream = `00 04 73616263 01 e0ff ${stuffed(bytes, 1)}`
    expect(stream).toContain(`e0ff ${'ff'.repeat(15)}fe${'ff'.repeat(16)}fe${'ff'.repeat(9)}00`)
    expect(say(stream).at(-1)).toEqual(['text', 1, [], toHex(bytes)])
    const encoder = new SmonEncoder()
    encoder.define(Buffer.from('abc'), bytes)
    expect(toHex(encoder.take())).toBe(toHex(hex(stream)))
  })

  test('are not counted across the lead of a number', () => {
    const fifteen = 'ff'.repeat(15)
    const stream = `00 04 73616263 01 0f ${fifteen} 00 0f ${fifteen}`
    expect(say(stream).at(-1)).toEqual(['text', 1, [], fifteen + fifteen])
  })

  test('are stuffed in names too', () => {
    const name = 'ff'.repeat(16)
    expect(say(`00 11 73 ${name}fe 01 00`)[0]).toEqual([
      'defined',
      1,
      's',
      Buffer.from(name, 'hex').toString('latin1'),
      [],
    ])
  })

  test('survive our encoder and decoder, wherever they stand', () => {
    const part = fc.tuple(fc.nat(40), fc.boolean()).map(([count, fill]) => Buffer.alloc(count, fill ? 0xff : 0x41))
    const text = fc.array(part, { maxLength: 5 }).map((parts) => join(...parts))
    fc.assert(
      fc.property(fc.array(text, { minLength: 1, maxLength: 6 }), (texts) => {
        const encoder = new SmonEncoder()
        encoder.define(Buffer.from('abc'), new Uint8Array(0))
        for (const each of texts) encoder.value(1, each)
        const events = say(encoder.take(), [], { ...limits, maxStringBytes: 10_000 })
        expect(events.slice(2)).toEqual(texts.map((each) => ['text', 1, [], toHex(each)]))
      }),
    )
  })
})
