import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { decodeChanges, encodeChanges } from '../../../storage/replicated/changes.ts'
import { RecordReader } from '../../../storage/replicated/codec.ts'
import type { Change } from '../../../storage/store.ts'
import { hex, join, toHex, u32 } from '../../support/bytes.ts'
import { CHANGES, type ChangeVector, EARLIER_CHANGES } from './change-vectors.ts'

const VECTORS = Object.entries(CHANGES)
const TAGS = [...VECTORS.map(([, vector]) => vector), ...EARLIER_CHANGES].map(({ bytes }) =>
  Number.parseInt(bytes.slice(0, 2), 16),
)
const ONE = hex('01000000')

const decoded = (bytes: Uint8Array) => decodeChanges(new RecordReader(bytes))

test.each(VECTORS)('%s', (_, { change, bytes }) => {
  const record = join(ONE, hex(bytes))
  expect(toHex(encodeChanges([change]))).toBe(toHex(record))
  expect(decoded(record)).toEqual([change])
})

test.each(EARLIER_CHANGES)('$kind of an earlier version is read, and written as today', ({ kind, change, bytes }) => {
  const [found] = decoded(join(ONE, hex(bytes)))
  expect(found).toEqual(change)
  const { bytes: today } = CHANGES[kind]
  expect(toHex(encodeChanges([found!])).slice(8, 10)).toBe(today.slice(0, 2))
})

test('all of them in one list keep their order', () => {
  const all = VECTORS.map(([, { change }]) => change)
  const bytes = join(u32(all.length).reverse(), ...VECTORS.map(([, vector]) => hex(vector.bytes)))
  expect(decoded(bytes)).toEqual(all)
  expect(toHex(encodeChanges(all))).toBe(toHex(bytes))
})

test('every kind and every earlier form has a tag of its own', () => {
  expect(new Set(TAGS).size).toBe(TAGS.length)
})

test('no tag is given up: a follower that is upgraded reads what a leader of an earlier version writes', () => {
  const puts = TAGS.filter((tag) => tag < 128).toSorted((a, b) => a - b)
  expect(puts).toEqual(puts.map((_, index) => index + 1))
})

test('every kind and every earlier form is in the tables of the document, with its fields in their order', () => {
  const page = readFileSync(new URL('../../../docs/protocol/replicated-log.md', import.meta.url), 'utf8')
  const rows = [...page.matchAll(/^\| (\d+) \| ([a-z ]+) \| (.*)\|$/gm)].map(([, tag, name, fields = '']) => {
    const words = fields.replaceAll(/\(.*?\)/g, '').split(',')
    return [
      Number(tag),
      name,
      ...words.map((field) => field.trim().replace(/[ ?].*/, '')).filter((field) => field !== ''),
    ]
  })
  const today = VECTORS.map(([kind, vector]) => ({ kind, ...vector, lacks: [] as readonly string[] }))
  const coded = [...today, ...EARLIER_CHANGES].map(({ kind, change, bytes, lacks }) => {
    const { remove, ...removed } = 'remove' in change ? change : { remove: undefined }
    const fields = Object.keys('row' in change ? change.row : removed).filter((name) => !lacks.includes(name))
    return [Number.parseInt(bytes.slice(0, 2), 16), kind.replace('put ', ''), ...fields]
  })
  expect(rows).toEqual(coded)
})

describe('what may be missing', () => {
  const scram = { salt: hex('01'), iterations: 4096, storedKey: hex('02'), serverKey: hex('03') }
  const user = { id: 1, tenant: 'a', name: 'b', role: 'c', loopbackOnly: false, created: 0 }
  test.each<[string, Change]>([
    ['a user that has no password', { put: 'user', row: { ...user, bcrypt: undefined, scram: undefined } }],
    ['a token that does not expire', tokenThatExpires(undefined)],
    ['a token that has expired', tokenThatExpires(0)],
    ['a dial with a verifier', { put: 'dial', row: { channel: 1, scram, bearer: undefined } }],
    ['an execution with a result', executionWith(hex('0b'))],
    ['an execution with an empty result', executionWith(new Uint8Array(0))],
  ])('%s', (_, change) => {
    expect(decoded(encodeChanges([change]))).toEqual([change])
  })

  function tokenThatExpires(expires: number | undefined): Change {
    return { put: 'token', row: { id: 1, user: 1, name: '', hash: hex('00'), scope: '', made: 1, expires } }
  }

  function executionWith(result: Uint8Array): Change {
    return { put: 'execution', row: { user: 1, control: 'c', key: 'k', digest: hex('00'), at: 0, result } }
  }
})

describe('refused', () => {
  const malformed = (at?: number) =>
    expect.objectContaining({ name: 'RecordError', code: 'MALFORMED', ...(at !== undefined && { offset: at }) })

  const earlier = EARLIER_CHANGES.map((vector): [string, ChangeVector] => [
    `${vector.kind} of an earlier version`,
    vector,
  ])
  test.each([...VECTORS, ...earlier])('%s, cut anywhere', (_, { bytes }) => {
    const whole = join(ONE, hex(bytes))
    for (let length = 0; length < whole.length; length++)
      expect(() => decoded(whole.subarray(0, length))).toThrow(malformed())
  })

  test('a tag that this version does not know', () => {
    const tooNew = expect.objectContaining({ name: 'RecordError', code: 'TOO_NEW', offset: 4 })
    const known = new Set(TAGS)
    for (let tag = 0; tag < 256; tag++) {
      const bytes = join(ONE, Uint8Array.of(tag), new Uint8Array(999))
      if (!known.has(tag)) expect(() => decoded(bytes), `tag ${tag}`).toThrow(tooNew)
    }
  })

  test('a text that is not UTF-8, a word or flag that is none, and NaN', () => {
    expect(() => decoded(join(ONE, hex('10 02000000 c3c3')))).toThrow(malformed(5))
    expect(() => decoded(join(ONE, hex('04 0000000000001c40 01000000 6e 02')))).toThrow(malformed(18))
    expect(() => decoded(join(ONE, hex('0d 0000000000001440 02 00')))).toThrow(malformed(13))
    expect(() => decoded(join(ONE, hex('83 000000000000f87f')))).toThrow(malformed(5))
    expect(() => encodeChanges([{ remove: 'channel', id: Number.NaN }])).toThrow(malformed())
  })

  test('a word that no reader knows', () => {
    const change = { put: 'lost name', row: { user: 7, name: 'n', reason: 'forgotten' } } as unknown as Change
    expect(() => encodeChanges([change])).toThrow('"forgotten" is none of expired,purged')
  })

  test.each(['log', 'origin'])('a change of kind %s, which belongs to one node', (put) => {
    const change = { put, row: {} } as unknown as Change
    expect(() => encodeChanges([change])).toThrow(`a change "put ${put}" belongs into no record of the log`)
  })
})
