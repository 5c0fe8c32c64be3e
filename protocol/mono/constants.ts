/**
 * The numbers of the Mono counters protocol, as the agent of 2014 has them. What a newcomer gets wrong: the public
 * `mono-counters.h` of later Monos numbers types, units and variances differently; those belong to its log profiler.
 */

/** `gist`: the protocol as it was written down; `mono-2014`: as the programs of its time really spoke. */
export type MonoDialect = 'gist' | 'mono-2014'

/** The first byte of what an agent sends. */
export const MessageKind = { HELLO: 0, LIST: 1, ADD: 2, REMOVE: 3, SAMPLING: 4 } as const

export const GOOD_BYE = 0x7f
export const VERSION = 1

export const MonoStatus = { OK: 0, NOK: 1, NOTFOUND: 2, EXISTING: 3 } as const
export type MonoStatus = (typeof MonoStatus)[keyof typeof MonoStatus]

/** By number: what categories are called in List and Add. */
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
/** The header of such a counter is called `Category:Name`. */
export const CUSTOM = 8

/** WORD is as long as a pointer of the agent's machine: 4 or 8 bytes, which the size in front of it tells. */
export const MonoType = { INT: 0, LONG: 1, WORD: 2, DOUBLE: 3 } as const
export type MonoType = (typeof MonoType)[keyof typeof MonoType]

/** TIME is in 100 ns. */
export const MonoUnit = { NONE: 0, BYTES: 1, TIME: 2, EVENTS: 3, CONFIG: 4, PERCENTAGE: 5 } as const

/** They begin at 1. */
export const MonoVariance = { CONSTANT: 1, MONOTONIC: 2, VARIABLE: 3 } as const

/** The description of a counter, from Hello or the response to Add. */
export interface MonoHeader {
  readonly category: number
  /** Bytes that are not UTF-8 are U+FFFD. */
  readonly name: string
  readonly type: MonoType
  /** Any number: one that is not known says nothing. */
  readonly unit: number
  readonly variance: number
  /** From 0 on, never given twice in a connection. */
  readonly index: number
}

/** The name by which a counter is asked for and listed. */
export interface MonoName {
  readonly category: string
  readonly name: string
}
