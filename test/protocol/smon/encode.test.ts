import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { SmonValue } from '../../../protocol/smon/encode.ts'
import { SmonEncoder } from '../../../protocol/smon/encode.ts'
import { toHex } from '../../support/bytes.ts'
import type { Event } from './vectors.ts'
import { limits, listen, say } from './vectors.ts'

const abc = Buffer.from('abc')

/** What a change of the value from one to the other is written as, without the token. */
function change(from: number | bigint, to: number | bigint): string {
  const encoder = new SmonEncoder()
  encoder.define(abc, from)
  encoder.take()
  encoder.value(1, to)
  return toHex(encoder.take()).slice(2)
}

describe('a number', () => {
  test.each([
    [0, 223, 'df'],
    [0, 224, 'e000'],
    [0, 479, 'e0ff'],
    [0, 480, 'e10100'],
    [0, 2 ** 32, 'e3ffffff20'],
    [0, 2n ** 64n - 1n, 'e7ffffffffffffff1f'],
    [300, 45, 'e8ff'],
    [5000, 4744, 'e90100'],
    [1000, 1000, '00'],
    [1000, 7, 'f007'],
    [2n ** 64n - 1n, 0, 'f000'],
    [2n ** 64n - 2n, 2n ** 64n - 1n, '01'],
    [2 ** 53 - 1, 2n ** 53n, '01'],
    [2n ** 53n, 2 ** 53 - 1, 'e801'],
    [255, 735, 'e10100'],
    [40, 65535, 'e1fef7'],
    [1, 65535, 'e1ff1e'],
  ])('%d and then %d', (from, to, bytes) => {
    expect(change(from, to)).toBe(bytes)
  })

  test('of a token is a step, in its shortest form', () => {
    const encoder = new SmonEncoder()
    for (let i = 0; i < 300; i++) encoder.define(abc, 0)
    encoder.take()
    for (const token of [300, 1, 2, 240, 15]) encoder.value(token, 0)
    expect(toHex(encoder.take())).toBe('0000 f00100 0100 e00e00 e8e100'.replaceAll(' ', ''))
  })
})

test.each([
  [[], [1, 2], 'fa01fa02'],
  [[1, 2], [1, 2], ''],
  [[1, 2], [1, 3], 'fb03'],
  [[1, 2], [3, 2], 'fc03'],
  [[1, 2], [3, 4], 'fc03fb04'],
  [[1, 2], [1, 2, 3], 'fa03'],
  [[1, 2], [5, 6, 7], 'fc05fb06fa07'],
  [[1, 2, 3], [4, 2, 3], 'fdfa04fa02fa03'],
  [[1, 2], [1], 'fdfa01'],
  [[1], [300], 'fbe04c'],
  [[1], [], 'fd'],
] as const)('indexes %j and then %j', (from, to, bytes) => {
  const encoder = new SmonEncoder()
  encoder.index(from)
  encoder.take()
  encoder.index(to)
  expect(toHex(encoder.take())).toBe(bytes)
})

describe('what cannot be written', () => {
  const encoder = new SmonEncoder()
  encoder.define(abc, 5)
  encoder.take()

  test.each([
    ['a token that is not defined', () => encoder.value(2, 5), 'token 2 is not defined; the last token is 1'],
    ['token 0', () => encoder.value(0, 5), 'token 0 is not defined; the last token is 1'],
    ['a string for a number', () => encoder.value(1, abc), 'token 1 is of type u'],
    ['a copy of another type', () => encoder.defineCopy(1, [], abc), 'token 1 is of type u'],
    ['a number below 0', () => encoder.value(1, -1), '-1 is not an integer from 0 to 2^64-1'],
    ['a fraction', () => encoder.define(abc, 0.5), '0.5 is not an integer from 0 to 2^64-1'],
    ['a number from 2^53 on', () => encoder.value(1, 2 ** 53), 'must be a bigint'],
    ['more than 64 bits', () => encoder.value(1, 2n ** 64n), '18446744073709551616 is not an integer'],
    [
      'a name of 2 bytes',
      () => encoder.defineIndexed([], abc.subarray(1), 1),
      'a name of 2 bytes; it must have at least 3',
    ],
    ['an index below 0', () => encoder.index([1, -1]), '-1 is not an index'],
    ['an index above 32 bits', () => encoder.defineCopy(1, [2 ** 32], 1), '4294967296 is not an index'],
  ])('%s is refused, and nothing of it written', (_name, act, message) => {
    expect(act).toThrow(message)
    expect(encoder.take()).toHaveLength(0)
  })
})

test.each([Uint8Array.from(abc), Buffer.from(abc)])('a value is copied, whatever class it has', (bytes) => {
  const encoder = new SmonEncoder()
  encoder.define(abc, bytes)
  encoder.take()
  bytes[0] = 0x78
  encoder.value(1, bytes)
  expect(toHex(encoder.take())).toBe('00f003786263')
})

test('what is written is what is read, cut anywhere', () => {
  const index = fc.array(fc.oneof(fc.nat(5), fc.constantFrom(223, 224, 2 ** 32 - 1)), { maxLength: 4 })
  const number = fc.oneof(fc.nat(1000), fc.maxSafeNat(), fc.bigInt(0n, 2n ** 64n - 1n))
  const bytes = fc.oneof(
    fc.uint8Array({ maxLength: 300 }),
    fc.nat(40).map((count) => new Uint8Array(count).fill(0xff)),
  )
  const name = fc.oneof(fc.uint8Array({ minLength: 3, maxLength: 40 }), fc.constant(abc))
  const step = fc.record({
    kind: fc.constantFrom('define', 'prefix', 'copy', 'value', 'value', 'value', 'value', 'index', 'reset'),
    token: fc.nat(),
    text: fc.boolean(),
    number,
    bytes,
    name,
    index,
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), fc.array(fc.nat(), { maxLength: 5 }), (steps, cuts) => {
      const encoder = new SmonEncoder()
      const expected: Event[] = []
      let tokens: { text: boolean; name: Uint8Array; prefix: readonly number[] }[] = []
      let list: readonly number[] = []
      const define = (text: boolean, label: Uint8Array, prefix: readonly number[]) => {
        tokens.push({ text, name: label, prefix })
        expected.push(['defined', tokens.length, text ? 's' : 'u', Buffer.from(label).toString('latin1'), prefix])
      }
      const valued = (token: number, value: SmonValue) => {
        const prefix = tokens[token - 1]?.prefix ?? []
        const effective = [...prefix, ...list.slice(prefix.length)]
        if (value instanceof Uint8Array) expected.push(['text', token, effective, toHex(value)])
        else expected.push(['number', token, effective, String(value)])
      }
      for (const each of steps) {
        const source = tokens.length > 0 ? (each.token % tokens.length) + 1 : 0
        const known = tokens[source - 1]
        const text = known && (each.kind === 'copy' || each.kind === 'value') ? known.text : each.text
        const value = text ? each.bytes : each.number
        if (each.kind === 'reset') {
          encoder.reset()
          tokens = []
          list = []
          expected.push(['reset'])
        } else if (each.kind === 'index') {
          encoder.index(each.index)
          list = each.index
        } else if (each.kind === 'prefix') {
          define(text, each.name, each.index)
          list = each.index
          valued(encoder.defineIndexed(each.index, each.name, value), value)
        } else if (known && each.kind === 'copy') {
          define(text, known.name, each.index)
          list = each.index
          valued(encoder.defineCopy(source, each.index, value), value)
        } else if (known && each.kind === 'value') {
          encoder.value(source, value)
          valued(source, value)
        } else {
          define(text, each.name, [])
          valued(encoder.define(each.name, value), value)
        }
      }
      const stream = encoder.take()
      const sorted = cuts.map((cut) => cut % (stream.length + 1)).sort((a, b) => a - b)
      expect(say(stream, sorted, limits)).toEqual(expected)
      const { decoder } = listen()
      decoder.decode(stream)
      expect(decoder).toMatchObject({ valid: true, complete: true, shortNames: 0, skipped: 0 })
    }),
    { numRuns: 500 },
  )
})
