import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { ProtocolError } from '../../../protocol/errors.ts'
import { microsecondsOf, readSample } from '../../../protocol/mono/decode.ts'
import { hex, join, toHex } from '../../support/bytes.ts'
import {
  type Event,
  HELLO,
  type Header,
  header,
  hello,
  i16,
  le32,
  le64,
  listen,
  samplingAt,
  say,
  text,
} from './vectors.ts'

/** The code and offset of the error that a stream ends with. */
function refused(stream: Uint8Array): [string, number] | undefined {
  try {
    say(stream)
  } catch (error) {
    if (error instanceof ProtocolError) return [error.code, error.offset]
    throw error
  }
  return undefined
}
const behind = (bytes: string | Uint8Array): Uint8Array => join(HELLO, typeof bytes === 'string' ? hex(bytes) : bytes)

describe('a stream that is no stream of an agent', () => {
  test.each<[string, Uint8Array, [string, number]]>([
    ['begins with another message', hex('04'), ['UNKNOWN_MESSAGE', 0]],
    ['has a second Hello', behind('00'), ['UNKNOWN_MESSAGE', 5]],
    ['has a message that there is not', behind('05'), ['UNKNOWN_MESSAGE', 5]],
    ['is of another version', hex('00 0200 0000'), ['BAD_NUMBER', 1]],
    ['announces fewer than no counters', hex('00 0100 ffff'), ['BAD_COUNT', 3]],
    ['announces more counters than allowed', hex('00 0100 6500'), ['BAD_COUNT', 3]],
    ['names a counter null', join(hex('00 0100 0100'), le32(1), le32(-1)), ['BAD_NAME', 9]],
    ['names a counter at too great length', join(hex('00 0100 0100'), le32(1), le32(41)), ['TOO_LONG', 9]],
    ['has a counter of a type that there is not', hello({ name: 'a', type: 4, index: 0 }), ['BAD_TYPE', 14]],
    ['has a counter with a negative index', hello({ name: 'a', index: -1 }), ['BAD_NUMBER', 26]],
    ['has a status that there is not', behind('02 04'), ['BAD_NUMBER', 6]],
    ['has a negative status', behind('03 ff'), ['BAD_NUMBER', 6]],
    ['lists a null behind a name', behind(join(hex('01'), text('a'), le32(-1))), ['BAD_NAME', 11]],
    ['lists a name of 2 GiB', behind(join(hex('01'), le32(0x7fffffff))), ['TOO_LONG', 6]],
    ['samples a negative index', behind(join(hex('04'), le64(1n), i16(-2))), ['BAD_NUMBER', 14]],
    ['samples more than 8 bytes', behind(join(hex('04'), le64(1n), i16(1), i16(9))), ['TOO_LONG', 16]],
    ['samples fewer than 0 bytes', behind(join(hex('04'), le64(1n), i16(1), i16(-1))), ['TOO_LONG', 16]],
  ])('%s: is refused where it is wrong', (_, stream, expected) => {
    expect(refused(stream)).toEqual(expected)
  })

  test('lists more counters than allowed: is refused at the first that is too many', () => {
    const pair = join(text('a'), text('b'))
    const stream = behind(join(hex('01'), ...Array.from({ length: 101 }, () => pair)))
    expect(refused(stream)).toEqual(['BAD_COUNT', 6 + 100 * pair.length])
  })
})

test('names that are no UTF-8 have U+FFFD in them; the rest of the stream is understood', () => {
  const counter = join(le32(1), le32(2), hex('c328'), le32(0), le32(0), le32(9), i16(7))
  expect(say(join(hex('00 0100 0100'), counter, hex('03 00')))).toEqual([
    ['hello', 1],
    ['counter', 1, '\ufffd(', 0, 0, 9, 7],
    ['greeted'],
    ['removed', 0],
  ])
})

const name = fc.string({ unit: 'binary', maxLength: 10 }).filter((text) => text.isWellFormed())
const int32 = fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 })
const counter: fc.Arbitrary<Required<Header>> = fc.record({
  category: int32,
  name,
  type: fc.nat(3),
  unit: int32,
  variance: int32,
  index: fc.nat(0x7fff),
})
const words = ({ category, name, type, unit, variance, index }: Required<Header>) =>
  [category, name, type, unit, variance, index] as const
/** A message after Hello, with what it says. */
const message: fc.Arbitrary<[Uint8Array, Event[]]> = fc.oneof(
  counter.map((one): [Uint8Array, Event[]] => [join(hex('0200'), header(one)), [['added', 0, ...words(one)]]]),
  fc
    .integer({ min: 1, max: 3 })
    .map((status): [Uint8Array, Event[]] => [Uint8Array.of(2, status), [['added', status]]]),
  fc.nat(3).map((status): [Uint8Array, Event[]] => [Uint8Array.of(3, status), [['removed', status]]]),
  fc
    .array(fc.tuple(name, name), { maxLength: 5 })
    .map((pairs): [Uint8Array, Event[]] => [
      join(Uint8Array.of(1), ...pairs.flatMap((pair) => pair.map(text)), le32(-1)),
      [...pairs.map(([counter, category]): Event => ['listed', category, counter]), ['listEnd']],
    ]),
  fc
    .tuple(
      fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
      fc.array(fc.tuple(fc.nat(0x7fff), fc.uint8Array({ maxLength: 8 })), { maxLength: 5 }),
    )
    .map(([ticks, samples]): [Uint8Array, Event[]] => [
      samplingAt(ticks, ...samples),
      [['sampling', String(ticks)], ...samples.map(([index, bytes]): Event => ['sample', index, toHex(bytes)])],
    ]),
)

describe('any stream', () => {
  test('of messages says what was put in, however it is cut', () => {
    fc.assert(
      fc.property(
        fc.array(counter, { maxLength: 4 }),
        fc.array(message, { maxLength: 6 }),
        fc.array(fc.nat()),
        (counters, messages, marks) => {
          const stream = join(hello(...counters), ...messages.map(([bytes]) => bytes))
          const cuts = marks.map((mark) => mark % stream.length).sort((a, b) => a - b)
          expect(say(stream, cuts)).toEqual([
            ['hello', counters.length],
            ...counters.map((one) => ['counter', ...words(one)]),
            ['greeted'],
            ...messages.flatMap(([, events]) => events),
          ])
        },
      ),
    )
  })

  test('of any bytes gives events or a ProtocolError, the same ones however it is cut', () => {
    const outcome = (stream: Uint8Array, cuts: readonly number[]): unknown => {
      const { decoder, events } = listen()
      try {
        let start = 0
        for (const cut of [...cuts, stream.length]) {
          decoder.decode(stream.slice(start, cut))
          start = cut
        }
      } catch (error) {
        if (!(error instanceof ProtocolError)) throw error
        return [...events, error.code, error.offset]
      }
      return events
    }
    const bytes = fc.uint8Array({ maxLength: 200 })
    const small = fc.array(fc.nat(4), { maxLength: 200 }).map((list) => Uint8Array.from(list))
    fc.assert(
      fc.property(fc.oneof(bytes, small), fc.boolean(), (tail, isGreeted) => {
        const stream = isGreeted ? join(HELLO, tail) : tail
        const all = Array.from(stream, (_, index) => index)
        expect(outcome(stream, all)).toEqual(outcome(stream, []))
      }),
    )
  })
})

describe('a sample', () => {
  test.each([
    [0, 'ffffffff', -1],
    [1, '00c0ed0000000000', 15_581_184n],
    [2, 'feffffff', -2n],
    [2, 'feffffffffffffff', -2n],
    [3, '000000000000e03f', 0.5],
  ] as const)('of type %i in %s is %s', (type, bytes, value) => {
    expect(readSample(type, hex(bytes))).toBe(value)
  })

  test.each([
    [0, 8],
    [0, 0],
    [1, 4],
    [2, 2],
    [3, 4],
  ] as const)('of type %i has not %i bytes', (type, size) => {
    expect(readSample(type, new Uint8Array(size))).toBeUndefined()
  })
})

describe('a timestamp', () => {
  test('counts from the year 1, or from 1601', () => {
    const time = Date.UTC(2014, 2, 31, 19, 52) * 1000
    expect(microsecondsOf(635_318_923_200_000_000n)).toBe(time)
    expect(microsecondsOf(130_407_691_200_000_000n)).toBe(time)
  })

  test('that is before 1970, or where microseconds are not exact any more, is none', () => {
    for (const ticks of [0n, -1n, 2n ** 63n - 1n, -(2n ** 63n), 116_444_736_000_000_000n, 621_355_968_000_000_000n]) {
      expect(microsecondsOf(ticks)).toBeUndefined()
    }
  })
})
