/**
 * Encodes the requests to an agent. The two dialects differ in the first byte and in the order of the two strings of Add.
 * Nothing that an agent sends identifies its dialect, and the wrong one makes it hang.
 */
import type { MonoDialect, MonoName } from './constants.ts'
import { GOOD_BYE } from './constants.ts'

const utf8 = new TextEncoder()
/** The first byte of List; those of Add and Remove are the next two numbers. */
const FIRST: Readonly<Record<MonoDialect, number>> = { gist: 1, 'mono-2014': 0 }

export function encodeList(dialect: MonoDialect): Uint8Array {
  return Uint8Array.of(FIRST[dialect])
}

export function encodeAdd(dialect: MonoDialect, { category, name }: MonoName): Uint8Array {
  const texts = dialect === 'gist' ? [name, category] : [category, name]
  const strings = texts.map((text) => utf8.encode(text))
  const bytes = new Uint8Array(strings.reduce((sum, { length }) => sum + 4 + length, 1))
  const view = new DataView(bytes.buffer)
  bytes[0] = FIRST[dialect] + 1
  let at = 1
  for (const string of strings) {
    view.setInt32(at, string.length, true)
    bytes.set(string, at + 4)
    at += 4 + string.length
  }
  return bytes
}

/** A negative index removes all counters. */
export function encodeRemove(dialect: MonoDialect, index: number): Uint8Array {
  const bytes = new Uint8Array(3)
  bytes[0] = FIRST[dialect] + 2
  new DataView(bytes.buffer).setInt16(1, index, true)
  return bytes
}

export function encodeGoodBye(): Uint8Array {
  return Uint8Array.of(GOOD_BYE)
}
