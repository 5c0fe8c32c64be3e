/** The messages of test/vectors/mono, what our decoder says in their words, and messages built by hand. */
import { readFileSync } from 'node:fs'
import { MonoDecoder, type MonoLimits, type MonoSink } from '../../../protocol/mono/decode.ts'
import type { MonoDialect } from '../../../protocol/mono/messages.ts'
import { hex, join, toHex } from '../../support/bytes.ts'

export type Event = readonly [kind: string, ...said: (string | number)[]]

interface MessageVector {
  readonly name: string
  readonly hex: string
  readonly events: readonly Event[]
  /** Both, where it is left out. */
  readonly dialect?: MonoDialect
  /** It stands after a Hello. */
  readonly greeted?: boolean
}
interface RequestVector {
  readonly name: string
  readonly hex: string
  readonly dialect: MonoDialect
  readonly call: readonly ['list'] | readonly ['add', string, string] | readonly ['remove', number]
}

const url = new URL('../../vectors/mono/derived.json', import.meta.url)
export const vectors = JSON.parse(readFileSync(url, 'utf8')) as {
  readonly messages: readonly MessageVector[]
  readonly requests: readonly RequestVector[]
}

export const limits: MonoLimits = { maxCounters: 100, maxNameBytes: 40 }
export const HELLO = hex('00 0100 0000')

/** A decoder with the list of what it said. */
export function listen(dialect: MonoDialect = 'gist', bounds = limits): { decoder: MonoDecoder; events: Event[] } {
  const events: Event[] = []
  const sink: MonoSink = {
    hello: (count) => events.push(['hello', count]),
    counter: ({ category, name, type, unit, variance, index }) =>
      events.push(['counter', category, name, type, unit, variance, index]),
    greeted: () => events.push(['greeted']),
    listed: ({ category, name }) => events.push(['listed', category, name]),
    listEnd: () => events.push(['listEnd']),
    added: (status, header) => {
      const { category, name, type, unit, variance, index } = header ?? {}
      events.push(header ? ['added', status, category!, name!, type!, unit!, variance!, index!] : ['added', status])
    },
    removed: (status) => events.push(['removed', status]),
    sampling: (ticks) => events.push(['sampling', String(ticks)]),
    sample: (index, bytes) => events.push(['sample', index, toHex(bytes)]),
  }
  return { decoder: new MonoDecoder(sink, dialect, bounds), events }
}

/** What a stream says, handed over in chunks that end at `cuts`; each is spoilt once it was taken. */
export function say(stream: Uint8Array, cuts: readonly number[] = [], dialect: MonoDialect = 'gist'): Event[] {
  const { decoder, events } = listen(dialect)
  let start = 0
  for (const cut of [...cuts, stream.length]) {
    const chunk = stream.slice(start, cut)
    decoder.decode(chunk)
    chunk.fill(0xee)
    start = cut
  }
  return events
}

export function i16(value: number): Uint8Array {
  const bytes = new Uint8Array(2)
  new DataView(bytes.buffer).setInt16(0, value, true)
  return bytes
}

export function le32(value: number): Uint8Array {
  const bytes = new Uint8Array(4)
  new DataView(bytes.buffer).setInt32(0, value, true)
  return bytes
}

export function le64(value: bigint): Uint8Array {
  const bytes = new Uint8Array(8)
  new DataView(bytes.buffer).setBigInt64(0, value, true)
  return bytes
}

export function text(value: string): Uint8Array {
  const bytes = Buffer.from(value)
  return join(le32(bytes.length), bytes)
}

export interface Header {
  readonly category?: number
  readonly name: string
  readonly type?: number
  readonly unit?: number
  readonly variance?: number
  readonly index: number
}

/** A header; of the garbage collector, INT, EVENTS, MONOTONIC where nothing else is said. */
export function header({ category = 1, name, type = 0, unit = 3, variance = 2, index }: Header): Uint8Array {
  return join(le32(category), text(name), le32(type), le32(unit), le32(variance), i16(index))
}

export function hello(...counters: readonly Header[]): Uint8Array {
  return join(Uint8Array.of(0), i16(1), i16(counters.length), ...counters.map(header))
}

/** 2014-03-31T19:52:00Z. */
export const TICKS = 635_318_923_200_000_000n

export function sampling(...samples: readonly (readonly [index: number, bytes: Uint8Array])[]): Uint8Array {
  return samplingAt(TICKS, ...samples)
}

export function samplingAt(ticks: bigint, ...samples: readonly (readonly [number, Uint8Array])[]): Uint8Array {
  const parts = samples.flatMap(([index, bytes]) => [i16(index), i16(bytes.length), bytes])
  return join(Uint8Array.of(4), le64(ticks), ...parts, i16(-1))
}
