/** The streams of test/vectors/smon, and what our decoder says about a stream in the words of the vectors. */
import { readFileSync } from 'node:fs'
import { SmonDecoder, type SmonLimits } from '../../../protocol/smon/decode.ts'
import type { SmonEncoder, SmonValue } from '../../../protocol/smon/encode.ts'
import type { SmonToken } from '../../../protocol/smon/stream-state.ts'
import { hex, toHex } from '../../support/bytes.ts'

export type Event =
  | readonly ['defined', number: number, type: string, name: string, prefix: readonly number[]]
  | readonly ['number' | 'text', token: number, index: readonly number[], value: string]
  | readonly ['reset']
  | readonly ['invalid', code: string, offset: number]

type Written = number | { readonly bytes: string }
export type Call =
  | readonly ['define', name: string, value: Written]
  | readonly ['defineIndexed', prefix: readonly number[], name: string, value: Written]
  | readonly ['defineCopy', source: number, prefix: readonly number[], value: Written]
  | readonly ['value', token: number, value: Written]
  | readonly ['index', list: readonly number[]]
  | readonly ['reset']

export interface Vector {
  readonly name: string
  readonly hex: string
  readonly events: readonly Event[]
  readonly calls?: readonly Call[]
  readonly shortNames?: number
}

const url = new URL('../../vectors/smon/derived.json', import.meta.url)
export const vectors = JSON.parse(readFileSync(url, 'utf8')) as readonly Vector[]

export const limits: SmonLimits = {
  maxTokens: 300,
  maxNameBytes: 100,
  maxStringBytes: 1000,
  maxBytes: 10_000,
  maxIndexDepth: 4,
}

/**
 * A decoder with the list of what it said. Tokens are told apart as objects: each must have been defined before. `said` is
 * called for each definition and value.
 */
export function listen(
  bounds: SmonLimits = limits,
  said: (decoder: SmonDecoder) => void = () => {},
): { decoder: SmonDecoder; events: Event[]; messages: string[] } {
  const events: Event[] = []
  const messages: string[] = []
  let alive = new Set<SmonToken>()
  const known = (token: SmonToken) => {
    if (!alive.has(token)) throw new Error(`token ${token.number} was used and never defined`)
    return token.number
  }
  const decoder: SmonDecoder = new SmonDecoder(
    {
      defined: (token) => {
        alive.add(token)
        events.push(['defined', token.number, token.type, Buffer.from(token.name).toString('latin1'), token.prefix])
        said(decoder)
      },
      number: (token, index, value) => {
        if ((typeof value === 'bigint') !== value > Number.MAX_SAFE_INTEGER)
          throw new Error(`${value} as ${typeof value}`)
        events.push(['number', known(token), index.slice(), String(value)])
        said(decoder)
      },
      text: (token, index, value) => {
        events.push(['text', known(token), index.slice(), toHex(value)])
        said(decoder)
      },
      reset: () => {
        alive = new Set()
        events.push(['reset'])
      },
      invalid: (error) => {
        events.push(['invalid', error.code, error.offset])
        messages.push(error.message)
      },
    },
    bounds,
  )
  return { decoder, events, messages }
}

/** What a stream says, handed over in chunks that end at `cuts`. */
export function say(stream: Uint8Array | string, cuts: readonly number[] = [], bounds = limits): Event[] {
  const bytes = typeof stream === 'string' ? hex(stream) : stream
  const { decoder, events } = listen(bounds)
  let start = 0
  for (const cut of [...cuts, bytes.length]) {
    const chunk = bytes.slice(start, cut)
    decoder.decode(chunk)
    chunk.fill(0xee)
    start = cut
  }
  return events
}

/** The same, byte by byte: the way without the fast path. */
export function sayByteByByte(stream: Uint8Array | string, bounds = limits): Event[] {
  const { length } = typeof stream === 'string' ? hex(stream) : stream
  return say(
    stream,
    Array.from({ length }, (_, i) => i),
    bounds,
  )
}

export function write(encoder: SmonEncoder, calls: readonly Call[]): Uint8Array {
  for (const call of calls) {
    switch (call[0]) {
      case 'define':
        encoder.define(Buffer.from(call[1], 'latin1'), value(call[2]))
        break
      case 'defineIndexed':
        encoder.defineIndexed(call[1], Buffer.from(call[2], 'latin1'), value(call[3]))
        break
      case 'defineCopy':
        encoder.defineCopy(call[1], call[2], value(call[3]))
        break
      case 'value':
        encoder.value(call[1], value(call[2]))
        break
      case 'index':
        encoder.index(call[1])
        break
      default:
        encoder.reset()
    }
  }
  return encoder.take()
}

function value(written: Written): SmonValue {
  return typeof written === 'number' ? written : hex(written.bytes)
}
