/**
 * A frame as a script writes it: bytes, names for numbers, holes. The grammar stands in docs/conformance.md. Parsing turns
 * text into parts; what a captured name holds and how long the frame is is known only when the step is taken.
 */

import type { Words } from './words.ts'
import { opaque, string, uint32 } from './xdr.ts'

export type HoleKind = 'u32' | 'id' | 'channel' | 'u64' | 'f64' | 'str' | 'opaque' | 'value' | 'arglist' | 'rest'

export interface Hole {
  /** `_`: not kept. */
  readonly name: string
  readonly kind: HoleKind
  /** The name of what it has to be above. */
  readonly above?: string
  /** The name of what it must not be. */
  readonly not?: string
}

export type Part =
  | { readonly is: 'bytes'; readonly bytes: Buffer }
  | { readonly is: 'hole'; readonly hole: Hole }
  | { readonly is: 'name'; readonly name: string }
  | { readonly is: 'length' }
  | { readonly is: 'opaque'; readonly parts: readonly Part[] }

export interface Variable {
  readonly kind: HoleKind
  /** As it stands in a frame. */
  readonly bytes: Buffer
}

export type Variables = ReadonlyMap<string, Variable>

/** What is left once names are replaced: `length` stands for the length of the whole frame. */
export type Resolved = Extract<Part, { is: 'bytes' | 'hole' | 'length' }>

export const MAX_ID = 0x7fffffff
const kinds: readonly string[] = [
  ...['u32', 'id', 'channel', 'u64', 'f64', 'str', 'opaque', 'value', 'arglist', 'rest'],
] satisfies HoleKind[] | string[]

const TOKEN = /\s*(?:("(?:[^"\\]|\\.)*")|('[^']*')|(\{[^}]*\})|(\[|\])|([^\s[\]]+))/y

/** Parts of a line of tokens. Throws Error with what is wrong. */
export function parsePattern(text: string, words: Words): Part[] {
  const stack: Part[][] = [[]]
  TOKEN.lastIndex = 0
  while (TOKEN.lastIndex < text.trimEnd().length) {
    const match = TOKEN.exec(text)
    if (match === null) throw new Error(`a string or hole that does not end: ${text.trim()}`)
    const [, quoted, plain, hole, bracket, word] = match
    const top = stack.at(-1) as Part[]
    if (quoted !== undefined) top.push(bytes(string(unquoted(quoted))))
    else if (plain !== undefined) top.push(bytes(Buffer.from(plain.slice(1, -1))))
    else if (hole !== undefined) top.push(holeOf(hole.slice(1, -1)))
    else if (bracket === '[') stack.push([])
    else if (bracket === ']') {
      const parts = stack.pop() as Part[]
      if (stack.length === 0) throw new Error('a ] without its [')
      stack.at(-1)?.push({ is: 'opaque', parts })
    } else top.push(wordPart(word as string, words))
  }
  if (stack.length > 1) throw new Error('a [ without its ]')
  return stack[0] as Part[]
}

function bytes(value: Buffer): Part {
  return { is: 'bytes', bytes: value }
}

function unquoted(token: string): string {
  try {
    return JSON.parse(token) as string
  } catch {
    throw new Error(`${token} is no string; escapes are those of JSON`)
  }
}

function wordPart(word: string, words: Words): Part {
  if (word === 'LEN') return { is: 'length' }
  const number = words.get(word)
  if (number !== undefined) return bytes(uint32(number))
  if (/^(?:[0-9a-f]{2})+$/.test(word)) return bytes(Buffer.from(word, 'hex'))
  const decimal = /^#(\d{1,10})$/.exec(word)
  if (decimal !== null && Number(decimal[1]) <= 0xffffffff) return bytes(uint32(Number(decimal[1])))
  const filled = /^(zeros|string)\((\d{1,8})\)$/.exec(word)
  if (filled !== null) {
    const count = Number(filled[2])
    return bytes(filled[1] === 'zeros' ? Buffer.alloc(count) : string('n'.repeat(count)))
  }
  throw new Error(`${word} is neither bytes in hexadecimal nor a word of the protocol`)
}

function holeOf(text: string): Part {
  if (/^[A-Za-z][\w-]*$/.test(text)) return { is: 'name', name: text }
  const match = /^(_|[A-Za-z][\w-]*):([a-z0-9]+)(?:([>!])([A-Za-z][\w-]*))?$/.exec(text)
  const [, name, kind, sign, other] = match ?? []
  if (name === undefined || kind === undefined || !kinds.includes(kind)) {
    throw new Error(`{${text}} is no hole: {name}, {name:kind}, {_:kind>other} or {_:kind!other}`)
  }
  if (sign === '>' && kind !== 'u32' && kind !== 'u64')
    throw new Error(`{${text}}: only u32 and u64 can be above another`)
  const hole: Hole = {
    name,
    kind: kind as HoleKind,
    ...(sign === '>' ? { above: other as string } : sign === '!' ? { not: other as string } : {}),
  }
  return { is: 'hole', hole }
}

/** Replaces names by what they hold, brackets by opaques, and joins what is literal. Throws Error for a name that holds nothing. */
export function resolve(parts: readonly Part[], variables: Variables): Resolved[] {
  const resolved: Resolved[] = []
  const add = (more: Buffer): void => {
    const last = resolved.at(-1)
    if (last?.is === 'bytes') resolved[resolved.length - 1] = { is: 'bytes', bytes: Buffer.concat([last.bytes, more]) }
    else resolved.push({ is: 'bytes', bytes: more })
  }
  for (const part of parts) {
    if (part.is === 'bytes') add(part.bytes)
    else if (part.is === 'name') {
      const variable = variables.get(part.name)
      if (variable === undefined) throw new Error(`{${part.name}} holds nothing yet`)
      add(variable.bytes)
    } else if (part.is === 'opaque') add(opaque(concrete(part.parts, variables)))
    else resolved.push(part)
  }
  return resolved
}

/** The bytes of a frame to be sent, LEN replaced by what follows it. */
export function concrete(parts: readonly Part[], variables: Variables): Buffer {
  const all = resolve(parts, variables).map((part) => {
    if (part.is === 'hole') throw new Error(`a hole {${part.hole.name}:${part.hole.kind}} cannot be sent`)
    return part.is === 'bytes' ? part.bytes : undefined
  })
  const length = all.reduce((sum, piece) => sum + (piece?.length ?? 0), 0)
  return Buffer.concat(all.map((piece) => piece ?? uint32(length)))
}
