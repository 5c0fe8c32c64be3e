/**
 * The numbers of the Mono counters protocol in the agent of 2014, and the requests to an agent as bytes. Note that
 * `mono-counters.h` of later Monos numbers types, units and variances differently; those numbers belong to its log profiler.
 */

/** `gist` is the protocol as it was documented, `mono-2014` as the programs of its time implemented it. */
export type MonoDialect = 'gist' | 'mono-2014'

/** The first byte of a message from an agent. */
export const MessageKind = { HELLO: 0, LIST: 1, ADD: 2, REMOVE: 3, SAMPLING: 4 } as const

export const GOOD_BYE = 0x7f
export const VERSION = 1

export const MonoStatus = { OK: 0, NOK: 1, NOTFOUND: 2, EXISTING: 3 } as const
export type MonoStatus = (typeof MonoStatus)[keyof typeof MonoStatus]

/** The names of categories in List and Add, by number. */
export const CATEGORY_NAMES = [
  'Mono JIT',
  'Mono GC',
  'Mono Metadata',
  'Mono Generics',
  'Mono Security',
  'Mono Thread',
  'Mono ThreadPool',
  'Mono System',
  'Mono Custom',
] as const
/** The name in the header of such a counter is `Category:Name`. */
export const CUSTOM = 8

/** WORD is as long as a pointer on the agent's machine: 4 or 8 bytes, as stated by the size before it. */
export const MonoType = { INT: 0, LONG: 1, WORD: 2, DOUBLE: 3 } as const
export type MonoType = (typeof MonoType)[keyof typeof MonoType]

/** TIME is in 100 ns. */
export const MonoUnit = { NONE: 0, BYTES: 1, TIME: 2, EVENTS: 3, CONFIG: 4, PERCENTAGE: 5 } as const

/** The numbers begin at 1. */
export const MonoVariance = { CONSTANT: 1, MONOTONIC: 2, VARIABLE: 3 } as const

/** The description of a counter, from Hello or the response to Add. */
export interface MonoHeader {
  readonly category: number
  /** Bytes that are not UTF-8 are replaced by U+FFFD. */
  readonly name: string
  readonly type: MonoType
  /** Any number; unknown numbers have no meaning. */
  readonly unit: number
  readonly variance: number
  /** A number from 0 on that is never used twice in a connection. */
  readonly index: number
}

/** The name by which a counter is requested and listed. */
export interface MonoName {
  readonly category: string
  readonly name: string
}

const utf8 = new TextEncoder()
/**
 * The first byte of List. The dialects differ in it and in the order of the two strings of Add. Nothing that an agent sends
 * identifies its dialect, and the wrong one makes it hang. Those of Add and Remove are the next two numbers.
 */
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
