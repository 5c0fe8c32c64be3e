/** Frames and JSON against patterns: the examples of the specification match their own patterns, and nothing else does. */
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { commandToJson } from './json-command.ts'
import { matchJson } from './json-match.ts'
import { Mismatch, matchFrame } from './match.ts'
import { concrete, parsePattern, resolve, type Variable } from './pattern.ts'
import { hexWithMark } from './report.ts'
import { readScripts } from './script.ts'
import { matchText } from './text-match.ts'
import { expectedWords, sentWords } from './words.ts'

const none = new Map<string, Variable>()
const bytes = (text: string) => Buffer.from(text.replaceAll(' ', ''), 'hex')
const frameOf = (text: string) => concrete(parsePattern(text, sentWords), none)
const pattern = (text: string) => resolve(parsePattern(text, expectedWords), none)

/** A pattern, the frame of section 16 and the JSON of section 13 that say the same. */
const messages: readonly (readonly [string, string, object])[] = [
  [
    'LEN RESPONSE 00000001 OK {r:id}',
    '00000010 ffffffff 00000001 00000000 00000007',
    { type: 'response', seq: 1, status: 'OK', result: 7 },
  ],
  [
    'LEN RESPONSE 00000009 NO_SUCH_ID 00000000 "no such id"',
    '00000020 ffffffff 00000009 00000008 00000000 0000000a 6e6f2073 75636820 69640000',
    { type: 'response', seq: 9, status: 'NO_SUCH_ID', result: 0, detail: 'no such id' },
  ],
  [
    'LEN GAP 000000000000000d {m:id} {_:u64} 00060a24181e4000 00060a24181e4000 #1',
    '0000002c fffffffc 00000000 0000000d 00000007 00000000 00000005 00060a24 181e4000 00060a24 181e4000 00000001',
    { type: 'gap', transaction: 13, metric: 7, count: 5, from: 1.7e15, to: 1.7e15, reason: 'overflow' },
  ],
  [
    'LEN GAP {t:u64} {m:id} 0000000000000000 0000000000000000 0000000000000000 #9',
    '0000002c fffffffc 00000000 0000000d 00000007 00000000 00000000 00000000 00000000 00000000 00000000 00000009',
    { type: 'gap', transaction: 13, metric: 7, count: 0, from: 0, to: 0, reason: 'replaced' },
  ],
  [
    'LEN {m:id} 0000000000000000 {t:u64} UINT32 00000002',
    '0000001c 00000007 00000000 00000000 00060a24 181e4000 00000002 00000002',
    { type: 'value', metric: 7, transaction: 0, time: 1.7e15, valueType: 'uint32', value: 2 },
  ],
  [
    'LEN {m:id} {t:u64} 00060a24181e4000 DOUBLE 3fe0000000000000',
    '00000020 00000007 00000000 0000000c 00060a24 181e4000 00000005 3fe00000 00000000',
    { type: 'value', metric: 7, transaction: 12, time: 1.7e15, valueType: 'double', value: 0.5 },
  ],
]

describe('the messages of the specification', () => {
  it.each(messages)('%s', (text, frame, json) => {
    const taken = matchFrame(pattern(text), bytes(frame), none)
    expect(matchJson(pattern(text), json, none)).toEqual(taken)
  })

  it.each(messages)('and no other: %s', (text, frame, json) => {
    const whole = bytes(frame)
    // Every byte of what is written out makes a difference; those in holes do not.
    let noticed = 0
    for (let at = 0; at < whole.length; at++) {
      const changed = Buffer.from(whole)
      changed[at] = (changed[at] as number) ^ 0x80
      try {
        matchFrame(pattern(text), changed, none)
      } catch (error) {
        expect(error).toBeInstanceOf(Mismatch)
        noticed++
      }
    }
    expect(noticed).toBeGreaterThanOrEqual(whole.length - 20)
    for (const length of [whole.length - 4, whole.length + 4]) {
      const resized = Buffer.concat([whole, Buffer.alloc(4)]).subarray(0, length)
      expect(() => matchFrame(pattern(text), resized, none)).toThrow(Mismatch)
    }
    for (const key of Object.keys(json)) {
      const { [key as keyof typeof json]: _, ...less } = json
      expect(() => matchJson(pattern(text), less, none), key).toThrow(Mismatch)
    }
    expect(() => matchJson(pattern(text), { ...json, more: 1 }, none)).toThrow(Mismatch)
  })
})

describe('JSON', () => {
  const rec = pattern(
    'LEN {_:id} {_:u64} {_:u64} REC 00000002 "a" UINT64 8000000000000000 "b" ARRAY BOOLEAN 00000001 00000001',
  )
  const value = { type: 'value', metric: 7, transaction: 0, time: 0, valueType: 'rec' }

  it('shows 64-bit integers as digits where a number does not reach, RECs as objects, ARRAYs as arrays', () => {
    expect(matchJson(rec, { ...value, value: { a: '9223372036854775808', b: [true] } }, none).size).toBe(0)
  })

  it.each<[string, unknown]>([
    ['a number that is not exact', { a: 2 ** 63, b: [true] }],
    ['another length', { a: '9223372036854775808', b: [true, true] }],
    ['another type', { a: '9223372036854775808', b: [1] }],
    ['a field too many', { a: '9223372036854775808', b: [true], c: 1 }],
    ['a field too few', { a: '9223372036854775808' }],
    ['no object', []],
  ])('is not matched by %s', (_, other) => {
    expect(() => matchJson(rec, { ...value, value: other }, none)).toThrow(Mismatch)
  })

  it.each<[string, object]>([
    ['LEN NOP 00000006', { cmd: 'NOP', seq: 6 }],
    [
      'LEN COLLECT 00000001 "host.load.one" 00000001 "host" STRING "n1"',
      { cmd: 'COLLECT', seq: 1, metric: 'host.load.one', args: { host: 'n1' } },
    ],
    ['LEN SUBSCRIBE 00000002 00000007 CURRENT', { cmd: 'SUBSCRIBE', seq: 2, metric: 7, channel: 0 }],
    ['LEN AUTH 00000003 "token" [ 010203 ]', { cmd: 'AUTH', seq: 3, method: 'token', data: 'AQID' }],
    ['LEN COMMIT 00000004 000000000000000c 00000001', { cmd: 'COMMIT', seq: 4, transaction: 12, through: true }],
    [
      'LEN EXECUTE 00000005 "channel.configure" 00000002 "channel" UINT32 00000009 "durable" BOOLEAN 00000000',
      { cmd: 'EXECUTE', seq: 5, control: 'channel.configure', args: { channel: 9, durable: false } },
    ],
    ['LEN DEF_CHANNEL 00000006 "" 00000000', { cmd: 'DEF_CHANNEL', seq: 6, url: '', args: {} }],
    ['LEN SET_CHANNEL 00000007 00000009', { cmd: 'SET_CHANNEL', seq: 7, channel: 9 }],
  ])('says %s', (text, json) => {
    expect(commandToJson(frameOf(text))).toEqual(json)
  })

  it('cannot say what does not decode', () => {
    for (const text of ['LEN NOP 00000001 00000000', 'LEN 0000000e 00000001', 'LEN STOP 00000001 00000007']) {
      expect(() => commandToJson(frameOf(text)), text).toThrow()
    }
  })
})

describe('patterns of JSON', () => {
  it('keep, compare, and let pass', () => {
    const kept = new Map<string, unknown>([['x', 5]])
    expect(matchText({ a: '$x', b: '$y:', $rest: 1 }, { a: 5, b: 'new', c: 1 }, kept)).toEqual(new Map([['y', 'new']]))
    expect(() => matchText({ a: '$x' }, { a: 6 }, kept)).toThrow(Mismatch)
    expect(() => matchText({ a: '$_' }, { a: 6, b: 1 }, kept)).toThrow(Mismatch)
    expect(() => matchText([1], [1, 2], kept)).toThrow(Mismatch)
  })
})

describe('holes', () => {
  const variables = new Map<string, Variable>([['t', { kind: 'u64', bytes: Buffer.alloc(8, 1) }]])
  it.each<[string, string, boolean]>([
    ['{_:id}', '00000000', false],
    ['{_:id}', '7fffffff', true],
    ['{_:id}', '80000000', false],
    ['{_:u64>t}', '0101010101010101', false],
    ['{_:u64>t}', '0101010101010102', true],
    ['{_:u64!t}', '0101010101010101', false],
    ['{_:str}', '00000001 61000000', true],
    ['{_:str}', '00000001 61000001', false],
    ['{_:str}', '00000005 61000000', false],
    ['{_:value}', '00000009 00000001 00000001 61000000 0000000b', true],
    ['{_:value}', '0000000c', false],
    ['{_:value}', '00000006 00000002', false],
    ['{_:arglist}', '00000001 00000001 61000000 00000002 00000007', true],
    ['{_:rest}', '01', true],
  ])('%s of %s: %s', (hole, hex, isTaken) => {
    const match = () => matchFrame(resolve(parsePattern(hole, expectedWords), variables), bytes(hex), variables)
    if (isTaken) expect(match).not.toThrow()
    else expect(match).toThrow(Mismatch)
  })
})

describe('the report', () => {
  it('marks the first word that differs', () => {
    expect(hexWithMark(bytes('00000008 00000000 00000006'), 6)).toBe('00000008 >00000000< 00000006')
    expect(hexWithMark(bytes('00000008'), 4)).toBe('00000008 >end<')
  })
})

describe('the scripts', () => {
  it('hold every example of section 16.1', () => {
    const document = readFileSync(new URL('../../docs/protocol/monitoring.md', import.meta.url), 'utf8')
    const [section = ''] = /^### 16\.1 [\s\S]*?(?=^### )/m.exec(document) ?? []
    const examples = [...section.matchAll(/^ {2}([0-9a-f]{8}(?: [0-9a-f]{8})+)$/gm)].map((match) =>
      match[1]?.replaceAll(' ', ''),
    )
    expect(examples).toHaveLength(12)
    const directory = new URL('scripts/', import.meta.url)
    const texts = readScripts(directory).map(({ name }) => readFileSync(new URL(`${name}.txt`, directory), 'utf8'))
    const all = texts.join('\n').replaceAll(' ', '')
    for (const example of examples) expect(all).toContain(example)
  })
})
