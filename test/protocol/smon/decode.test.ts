import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { SmonDecoder } from '../../../protocol/smon/decode.ts'
import { NO_INDEX } from '../../../protocol/smon/stream-state.ts'
import { hex } from '../../support/bytes.ts'
import { times } from '../../support/long.ts'
import { type Event, limits, listen, say, sayByteByByte, vectors } from './vectors.ts'

/** A `u` called "abc", token 1, of value 0, and an `s` called "abc". */
const u = '00 04 75616263 01'
const s = '00 04 73616263 01'
const uEvent: Event = ['defined', 1, 'u', 'abc', []]
const sEvent: Event = ['defined', 1, 's', 'abc', []]
/** Pairs after what is tested: enough that nothing of it is at the end of the chunk, so the fast path may take it. */
const pairs = '0000'.repeat(20)

const values = (stream: string): string[] =>
  say(stream).flatMap((event) => (event[0] === 'number' ? [event[3]] : event[0] === 'invalid' ? ['invalid'] : []))

const error = (stream: string, bounds = limits) => say(stream, [], bounds).at(-1)

class Share {
  used = 0
  readonly limit: number

  constructor(limit: number) {
    this.limit = limit
  }

  take(amount: number): boolean {
    if (amount > 0 && this.used + amount > this.limit) return false
    this.used += amount
    return true
  }
}

describe('a number', () => {
  test.each([
    ['00', '0'],
    ['df', '223'],
    ['e000', '224'],
    ['e0ff', '479'],
    ['e10100', '480'],
    ['e2010000', '65760'],
    ['e3ffffff20', '4294967296'],
    ['e40100000000', '4294967520'],
    ['e5010000000000', '1099511628000'],
    ['e61fffffffffff1f', '9007199254740991'],
    ['e61fffffffffff20', '9007199254740992'],
    ['e7ffffffffffffff1f', '18446744073709551615'],
    ['f000', '0'],
    ['f0ff', '255'],
    ['f11234', '4660'],
    ['f2123456', '1193046'],
    ['f312345678', '305419896'],
    ['f41234567890', '78187493520'],
    ['f5123456789012', '20015998341138'],
    ['f61fffffffffffff', '9007199254740991'],
    ['f620000000000000', '9007199254740992'],
    ['f7ffffffffffffffff', '18446744073709551615'],
    ['e800', '0'],
    ['f70000000000000007', '7'],
  ])('%s from 0 is %s', (bytes, value) => {
    const events = [uEvent, ['number', 1, [], value]]
    expect(say(u + bytes)).toEqual(events)
    expect(sayByteByByte(u + bytes)).toEqual(events)
    expect(values(`${u}00 00${bytes}${pairs}`).slice(0, 2)).toEqual(['0', value])
  })

  test.each([
    ['f1012c', 'e8ff', '45'],
    ['f11388', 'e90100', '4744'],
    ['f11388', 'e91388', '0'],
    ['f3ffffffff', 'eb00000001', '4294967294'],
    ['f61fffffffffffff', '01', '9007199254740992'],
    ['f72000000000000000', 'e801', '2305843009213693951'],
    ['f620000000000000', 'e801', '9007199254740991'],
    ['f7ffffffffffffffff', 'efffffffffffffffff', '0'],
    ['f7ffffffffffffffff', 'f005', '5'],
    ['f7fffffffffffffffe', '01', '18446744073709551615'],
    ['f7ffffffffffffff1f', 'e000', '18446744073709551615'],
  ])('%s and then %s is %s', (first, second, value) => {
    expect(values(`${u}${first} 00${second}`)[1]).toBe(value)
    expect(values(`${u}00 00${first} 00${second}${pairs}`)[2]).toBe(value)
  })

  test('goes on from its last value after it was large', () => {
    expect(values(`${u}f620000000000000 00e801 0001 0001 00f003 0001 ${pairs}`).slice(0, 6)).toEqual([
      '9007199254740992',
      '9007199254740991',
      '9007199254740992',
      '9007199254740993',
      '3',
      '4',
    ])
  })

  test.each(['e801', 'efffffffffffffffff', 'e7ffffffffffffff20', 'e7ffffffffffffffff'])(
    '%s from 0 leaves the range',
    (bytes) => {
      expect(error(`${u}05 00f000 00${bytes}`)).toEqual(['invalid', 'BAD_NUMBER', 12])
      expect(error(`${u}05 00f000 00${bytes}${pairs}`)).toEqual(['invalid', 'BAD_NUMBER', 12])
    },
  )

  test('belongs to its token, whatever the index', () => {
    expect(say(`${u}64 fa07 0001 fb08 0001`).slice(1)).toEqual([
      ['number', 1, [], '100'],
      ['number', 1, [7], '101'],
      ['number', 1, [8], '102'],
    ])
  })

  test('of a token is a step from the current token, in every form', () => {
    const three = `${u}0a f000 04 75646566 02 14 e802 04 75676869 03 1e`
    const tokens = (stream: string) =>
      say(stream).flatMap((event) => (event[0] === 'number' ? [[event[1], event[3]]] : []))
    const expected = [
      [1, '10'],
      [2, '20'],
      [3, '30'],
      [1, '11'],
      [2, '21'],
      [2, '22'],
      [3, '31'],
      [3, '32'],
    ]
    const rest = 'e80201 0101 f00201 f200000301 e80001'
    expect(tokens(three + rest)).toEqual(expected)
    expect(tokens(three + rest + pairs).slice(0, 8)).toEqual(expected)
  })
})

describe('an index', () => {
  test.each([
    ['fa03 fa00', [3, 0]],
    ['fa03 fa00 fc08', [8, 0]],
    ['fa03 fa00 fb09', [3, 9]],
    ['fa03 fa00 fd', []],
    ['fa03 fd fae000', [224]],
    ['faf3ffffffff', [4294967295]],
    ['fae3ffffff1f', [4294967295]],
    ['fa01 fa02 fa03 fa04', [1, 2, 3, 4]],
  ])('after %s is %j', (operations, index) => {
    expect(say(`${u}00 ${operations} 0005`).at(-1)).toEqual(['number', 1, index, '5'])
    expect(say(`${u}00 ${operations} 0005 ${pairs}`)[2]).toEqual(['number', 1, index, '5'])
  })

  test('applies to strings too', () => {
    expect(say(`${s}00 fa05 000141`).at(-1)).toEqual(['text', 1, [5], '41'])
  })

  test('that is empty is one frozen list', () => {
    const seen: (readonly number[])[] = []
    new SmonDecoder(
      {
        defined: (token) => seen.push(token.prefix),
        number: (_token, index) => seen.push(index),
        text: (_token, index) => seen.push(index),
        reset: () => {},
        invalid: () => {},
      },
      limits,
    ).decode(hex(`${u}00 0001 fa01 fd 0001 0001`))
    expect(seen).toHaveLength(5)
    for (const index of seen) expect(index).toBe(NO_INDEX)
    expect(Object.isFrozen(NO_INDEX)).toBe(true)
  })
})

describe('an error', () => {
  test.each([
    ['a first token that is no 0', '01', 'BAD_NUMBER', 0],
    ['a token that is not defined', `${u}05 0105`, 'BAD_NUMBER', 8],
    ['a token below 0', `${u}05 e802`, 'BAD_NUMBER', 8],
    ['a token of 64 bits', `${u}05 f7ffffffffffffffff`, 'BAD_NUMBER', 8],
    ['a definition of 3 bytes', '00 03 756162', 'BAD_NAME', 1],
    ['a definition of 0 bytes', '00 00', 'BAD_NAME', 1],
    ['a type that is neither u nor s', '00 04 78616263', 'BAD_TYPE', 2],
    ['a type after a longer length', '00 f10004 78616263', 'BAD_TYPE', 4],
    ['a number that is not the next', '00 04 75616263 02', 'BAD_NUMBER', 6],
    ['a token defined twice', `${u}05 f000 04 75616263 01`, 'BAD_NUMBER', 15],
    ['a new number 0', '00 04 75616263 00', 'BAD_NUMBER', 6],
    ['a copy of a token that is not defined', `${u}05 f000 fd fa01 02`, 'BAD_NUMBER', 13],
    ['a copy with the number of its source', `${u}05 f000 fd fa01 01 00`, 'BAD_NUMBER', 14],
    ['a wrong number of a copy, though the right one follows', `${u}05 f000 fd fa01 01 4001`, 'BAD_NUMBER', 14],
    ['an FD for the defstring of a prefixed token', `${u}05 f000 fd fa01 00 fd`, 'BAD_NUMBER', 14],
    ['an index right after token 0', '00 fa', 'BAD_NUMBER', 1],
    ['a length that steps down', '00 e8', 'BAD_NUMBER', 1],
    ['a length of 12 bytes', '00 f8', 'BAD_NUMBER', 1],
    ['a string that steps down', `${s}e8`, 'BAD_NUMBER', 7],
    ['an index that steps down', 'fae8', 'BAD_NUMBER', 1],
    ['an index above 32 bits', 'fae3ffffff20', 'BAD_NUMBER', 1],
    ['a last index of none', 'fb', 'BAD_COUNT', 0],
    ['an index before the last of one', 'fa01 fc', 'BAD_COUNT', 2],
    ['an index where a value stands', `${u}fa`, 'BAD_NUMBER', 7],
    ['a clearing where a value stands', `${u}fd`, 'BAD_NUMBER', 7],
    ['an index inside an index', 'fafa', 'BAD_NUMBER', 1],
    ['a token of 12 bytes', 'f8', 'BAD_NUMBER', 0],
    ['a token of 16 bytes', 'f9', 'BAD_NUMBER', 0],
    ['FE for a token', 'fe', 'BAD_NUMBER', 0],
    ['FE for a value', `${u}fe`, 'BAD_NUMBER', 7],
    ['FF for a token', 'ff00', 'BAD_NUMBER', 0],
    ['16 FF and FE for a token', `${'ff'.repeat(16)}fe`, 'BAD_NUMBER', 0],
    ['FF for a value', `${u}ffff01`, 'BAD_NUMBER', 7],
    ['16 FF of a string without FE after them', `${s}11${'ff'.repeat(16)}01`, 'BAD_PADDING', 24],
    ['16 FF at the end of a string without FE', `${s}10${'ff'.repeat(16)}00`, 'BAD_PADDING', 24],
    ['17 FF and no FE', `${'ff'.repeat(17)}00`, 'BAD_PADDING', 17],
  ])('is %s', (_name, stream, code, offset) => {
    const expected = ['invalid', code, offset]
    for (const events of [say(stream), sayByteByByte(stream), say(stream + pairs)])
      expect(events.at(-1)).toEqual(expected)
  })

  test('says what is wrong', () => {
    const { decoder, messages } = listen()
    decoder.decode(hex(`${u}05 0905`))
    expect(messages).toEqual(['token 10 is not defined; the last token is 1'])
  })

  test('is reported once; what follows is counted and not read', () => {
    const { decoder, events } = listen()
    decoder.decode(hex(`${u}05 fe 0001`))
    decoder.decode(hex(`fe 0001 ${u}`))
    expect(events).toEqual([uEvent, ['number', 1, [], '5'], ['invalid', 'BAD_NUMBER', 8]])
    expect(decoder).toMatchObject({ valid: false, complete: true, skipped: 12 })
  })

  test('has its offset in the stream, not in the chunk', () => {
    expect(say(`${u}05 0001 0001 fe`, [3, 9]).at(-1)).toEqual(['invalid', 'BAD_NUMBER', 12])
  })
})

describe('a limit', () => {
  const small = { maxTokens: 2, maxNameBytes: 5, maxStringBytes: 4, maxBytes: 100, maxIndexDepth: 2 }

  test.each([
    ['tokens', `${u}00 f000 04 75616263 02 00`, `f000 04 75616263 03`, 'BAD_COUNT', 24],
    ['tokens, copies included', `${u}00 f000 fd 01 01 00`, `f000 fd 01 02`, 'BAD_COUNT', 18],
    ['bytes of a name', '00 06 756162636465 01 00', 'f000 07', 'TOO_LONG', 12],
    ['bytes of a string', `${s}04 41414141`, '00 f005', 'TOO_LONG', 13],
    ['bytes of a string that grows', `${s}03 414141 00 01 41`, '00 01', 'TOO_LONG', 15],
    ['bytes of a string, announced with 64 bits', s, 'e7ffffffffffffffff', 'TOO_LONG', 7],
    ['indexes', 'fa01 fa02', 'fa', 'TOO_DEEP', 4],
    ['indexes of a prefix', `${u}00 f000 fd fa01 fa02`, 'fa', 'TOO_DEEP', 15],
  ])('of %s is reached without an error and not exceeded', (_name, allowed, more, code, offset) => {
    expect(say(allowed, [], small).some(([kind]) => kind === 'invalid')).toBe(false)
    expect(error(allowed + more, small)).toEqual(['invalid', code, offset])
  })

  test('of names and strings together is reached without an error and not exceeded; what was replaced is free again', () => {
    const together = { ...small, maxBytes: 8 }
    // A name of 4 and a string of 4, replaced by 3 and then by 4.
    const allowed = '00 05 7361616161 01 04 41414141 00 f003 414141 00 f004 41414141'
    expect(say(allowed, [], together).some(([kind]) => kind === 'invalid')).toBe(false)
    expect(error(allowed, { ...small, maxBytes: 7 })).toEqual(['invalid', 'TOO_LONG', 8])
    expect(error(`${allowed} f000 04 75616263 02`, together)).toEqual(['invalid', 'TOO_LONG', 33])
  })
})

describe('a length that left out the type byte', () => {
  test('is understood if the new number comes one byte later', () => {
    const { decoder, events } = listen()
    decoder.decode(hex('00 06 75616263646566 01 00'))
    expect(events).toEqual([
      ['defined', 1, 'u', 'abcdef', []],
      ['number', 1, [], '0'],
    ])
    expect(decoder.shortNames).toBe(1)
  })

  test('also if index operations stand before the number, or the number has another form', () => {
    const event = ['defined', 1, 'u', 'abcd', []]
    expect(say('00 04 7561626364 fa07 01 05')).toEqual([event, ['number', 1, [7], '5']])
    expect(say('00 04 7561626364 f001 05')).toEqual([event, ['number', 1, [], '5']])
  })

  test('is an error at the byte that is no number if none comes, however it goes on', () => {
    expect(error('00 04 75616263 64 65 01 00')).toEqual(['invalid', 'BAD_NUMBER', 6])
    expect(error('00 04 75616263 64 02 00')).toEqual(['invalid', 'BAD_NUMBER', 6])
  })

  test('is not counted where a resynchronisation cut its definition off', () => {
    const { decoder } = listen()
    decoder.decode(hex(`00 04 75616263 64 ${'ff'.repeat(17)}fe ${u}05 f000 04 75616263 01`))
    expect(decoder.shortNames).toBe(0)
  })

  test('cannot lead past the limit of names', () => {
    const bounds = { ...limits, maxNameBytes: 3 }
    expect(error('00 04 75616263 64 01 00', bounds)).toEqual(['invalid', 'BAD_NUMBER', 6])
  })

  test('is believed where the byte after it is the new number', () => {
    // 33 tokens; the 33rd has the number 0x21, which might also be the end of a name "abc!".
    const many = Array.from({ length: 32 }, (_, i) => `f000 04 75616263 ${Buffer.of(i + 1).toString('hex')} 00`).join(
      '',
    )
    expect(say(`${many} f000 04 75616263 21 00`).at(-2)).toEqual(['defined', 33, 'u', 'abc', []])
  })
})

describe('what streams share', () => {
  const share = (tokens: number, bytes: number) => ({ tokens: new Share(tokens), bytes: new Share(bytes) })

  test('is taken by each of them; the one that finds no token left is invalid, and holds nothing', () => {
    const shared = share(3, 1_000)
    const [first, second] = [listen({ ...limits, shared }), listen({ ...limits, shared })]
    first.decoder.decode(hex(`${u}00 f000 04 75616264 02 00`))
    second.decoder.decode(hex(`${u}00`))
    expect(shared.tokens.used).toBe(3)
    second.decoder.decode(hex('f000 04 75616264 02 00'))
    expect(second.events.at(-1)).toEqual(['invalid', 'BAD_COUNT', 15])
    expect(second.messages).toEqual(['more than 3 tokens of all streams together'])
    expect(shared.tokens.used).toBe(2)
    expect(shared.bytes.used).toBe(6 + 16)
    first.decoder.reset()
    expect([shared.tokens.used, shared.bytes.used]).toEqual([0, 0])
  })

  test.each([
    ['between items', u],
    ['in a string', `${s}20 ${'41'.repeat(4)}`],
  ])('is given back at the 17th FF, which ends the stream: %s', (_, stream) => {
    const shared = share(10, 1_000)
    const { decoder, events } = listen({ ...limits, shared })
    decoder.decode(hex(`${stream} ${'ff'.repeat(16)}`))
    expect([decoder.valid, shared.tokens.used]).toEqual([true, 1])
    decoder.decode(hex('ff'))
    expect([decoder.valid, shared.tokens.used, shared.bytes.used]).toEqual([false, 0, 0])
    decoder.decode(hex(`ff fe ${u}05`))
    expect(events.slice(-2)).toEqual([uEvent, ['number', 1, [], '5']])
  })

  test('has the buffers of strings, as far as bytes have come', () => {
    const shared = share(10, 100)
    const { decoder, events, messages } = listen({ ...limits, shared })
    // The definition needs 16 bytes to read the name, 3 for the name.
    decoder.decode(hex(`${s}e020`))
    expect(shared.bytes.used).toBe(19)
    decoder.decode(Buffer.alloc(64, 0x41))
    expect([decoder.valid, shared.bytes.used]).toEqual([true, 83])
    decoder.decode(Buffer.from('A'))
    expect([decoder.valid, shared.bytes.used]).toEqual([false, 0])
    expect(events.at(-1)?.slice(0, 2)).toEqual(['invalid', 'TOO_LONG'])
    expect(messages).toEqual(['names and strings of all streams exceed 100 bytes together'])
  })

  test('gets back the buffer of a long string that is replaced by a short one', () => {
    const shared = share(10, 10_000)
    const { decoder } = listen({ ...limits, shared })
    for (let number = 1; number <= 9; number++) {
      decoder.decode(hex(`f000 04 73616263 0${number} f1 0300`))
      decoder.decode(Buffer.alloc(0x300, 0x41))
      expect(shared.bytes.used).toBe(16 + 3 * number + 1024)
      decoder.decode(hex('00 f0 00'))
      expect(shared.bytes.used).toBe(16 + 3 * number)
    }
  })
})

describe('a decoder', () => {
  test('is complete between items only', () => {
    const stream = hex(`${u}05 fa01 f000 fd fa02 00 05 7361626364 02 02 4141 00 f00142`)
    const ends = new Set([0, 8, 10, 26])
    const { decoder } = listen()
    for (const [at, byte] of stream.entries()) {
      expect([at, decoder.complete]).toEqual([at, ends.has(at)])
      decoder.decode(Uint8Array.of(byte))
    }
    expect(decoder.complete).toBe(true)
  })

  test('begins another stream with reset, without a word', () => {
    const { decoder, events } = listen()
    decoder.decode(hex(`${u}05 fa01 00`))
    decoder.reset()
    decoder.decode(hex(`${s}0141 fe`))
    decoder.reset()
    expect(decoder.valid).toBe(true)
    decoder.decode(hex(`${u}05`))
    const defined = [sEvent, ['text', 1, [], '41'], ['invalid', 'BAD_NUMBER', 9], uEvent, ['number', 1, [], '5']]
    expect(events).toEqual([uEvent, ['number', 1, [], '5'], ...defined])
  })

  const vectorBytes = fc.constantFrom(...vectors).map((vector) => hex(vector.hex))
  const interesting = fc.constantFrom(0, 1, 4, 0x73, 0x75, 0xe0, 0xe8, 0xef, 0xf0, 0xfa, 0xfb, 0xfc, 0xfd, 0xfe, 0xff)
  const changed = fc
    .tuple(fc.array(vectorBytes, { minLength: 1, maxLength: 3 }), fc.array(fc.tuple(fc.nat(), interesting)))
    .map(([parts, changes]) => {
      const bytes = Uint8Array.from(Buffer.concat(parts))
      for (const [at, byte] of changes.slice(0, 3)) bytes[at % bytes.length] = byte
      return bytes
    })
  const anything = fc.oneof(
    fc.uint8Array({ maxLength: 300 }),
    changed,
    fc.array(interesting).map(Uint8Array.from.bind(Uint8Array)),
  )

  test('never throws, and says the same wherever the stream is cut', () => {
    fc.assert(
      fc.property(anything, fc.array(fc.nat(300)), (bytes, cuts) => {
        const whole = say(bytes)
        expect(sayByteByByte(bytes)).toEqual(whole)
        const sorted = cuts.map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b)
        expect(say(bytes, sorted)).toEqual(whole)
      }),
      { numRuns: times({ short: 250, long: 1_000 }) },
    )
  })

  test('says the same if it is paused after everything that it says', () => {
    fc.assert(
      fc.property(anything, (bytes) => {
        const { decoder, events } = listen(limits, (said) => said.pause())
        for (let taken = 0; taken < bytes.length; ) {
          const before = events.length
          const isPausing = ([kind]: Event) => kind !== 'invalid' && kind !== 'reset'
          const count = decoder.decode(bytes.subarray(taken))
          expect(count).toBeGreaterThan(0)
          expect(events.slice(before).filter(isPausing).length).toBeLessThanOrEqual(1)
          taken += count
        }
        expect(events).toEqual(say(bytes))
      }),
      { numRuns: times({ short: 250, long: 1_000 }) },
    )
  })

  test('gives back what it took of what streams share, whatever comes', () => {
    fc.assert(
      fc.property(anything, (bytes) => {
        const [tokens, ofBytes] = [new Share(2), new Share(40)]
        const { decoder } = listen({ ...limits, shared: { tokens, bytes: ofBytes } })
        decoder.decode(bytes)
        if (!decoder.valid) expect([tokens.used, ofBytes.used]).toEqual([0, 0])
        decoder.reset()
        expect([tokens.used, ofBytes.used]).toEqual([0, 0])
      }),
      { numRuns: times({ short: 250, long: 1_000 }) },
    )
  })

  test('keeps to its limits whatever comes', () => {
    const tight = { maxTokens: 2, maxNameBytes: 6, maxStringBytes: 5, maxBytes: 12, maxIndexDepth: 2 }
    fc.assert(
      fc.property(anything, (bytes) => {
        for (const event of say(bytes, [], tight)) {
          if (event[0] === 'defined') expect([event[1] <= 2, event[3].length <= 6]).toEqual([true, true])
          if (event[0] === 'number' || event[0] === 'text') expect(event[2].length).toBeLessThanOrEqual(2)
          if (event[0] === 'text') expect(event[3].length).toBeLessThanOrEqual(10)
        }
      }),
      { numRuns: times({ short: 250, long: 1_000 }) },
    )
  })
})
