/**
 * Compares a JSON message with the frame that a script expects [MON 13]: both are walked together, field by field. What
 * JSON does not carry (lengths, the types inside a REC) is not compared.
 */

import { scalarToJson } from './json-command.ts'
import { type Bindings, bind, Mismatch } from './match.ts'
import type { Hole, HoleKind, Resolved, Variables } from './pattern.ts'
import { gapReasons, messages, noticeCodes, statuses, types, wordOf } from './words.ts'
import { double, inside, opaque, opaqueEnd, string, uint32, uint64, valueEnd } from './xdr.ts'

/** Keys that not every message of its kind has: `generation`, `producer` and `below` come after AUTH. */
const OPTIONAL: ReadonlySet<string> = new Set(['detail', 'generation', 'producer', 'below'])

/** What the holes of `parts` take of a message. Throws Mismatch. */
export function matchJson(parts: readonly Resolved[], json: unknown, variables: Variables): Bindings {
  const walk = new Walk(parts, variables)
  walk.message(json)
  return walk.bindings
}

type Taken = Hole | Buffer

class Walk {
  readonly bindings: Bindings = new Map()
  readonly #parts: Resolved[]
  readonly #variables: Variables
  /** A `rest` was reached: whatever else there is may be there. */
  #open = false

  constructor(parts: readonly Resolved[], variables: Variables) {
    this.#parts = [...parts]
    this.#variables = variables
  }

  message(json: unknown): void {
    const object = objectOf(json, 'the message')
    const length = this.#parts[0]
    if (length?.is === 'length') this.#parts.shift()
    else this.#take(4, 'u32')
    const left = new Map(Object.entries(object))
    const mid = this.#take(4, 'u32')
    const number = Buffer.isBuffer(mid) ? mid.readUInt32BE(0) : undefined
    const name = number === undefined ? undefined : wordOf(messages, number)
    const type = name === undefined ? 'value' : name === 'PRODUCER_CAPS' ? 'caps' : name.toLowerCase()
    if (left.get('type') !== type) throw new Mismatch(`"type" is ${JSON.stringify(left.get('type'))}, not "${type}"`, 0)
    left.delete('type')
    const take = (key: string): unknown => {
      const value = left.get(key)
      if (!left.delete(key) && !this.#open && !OPTIONAL.has(key)) throw new Mismatch(`no key "${key}"`)
      return value
    }
    if (type === 'value') this.#value(mid, take)
    else this.#other(type, take)
    if (this.#open) return
    if (this.#parts.length > 0) throw new Error('the script expects fields that no such message has')
    if (left.size > 0) throw new Mismatch(`a key "${[...left.keys()][0]}" that does not belong there`)
  }

  #other(type: string, take: (key: string) => unknown): void {
    switch (type) {
      case 'response': {
        this.#uint32(take('seq'), 'seq')
        const status = this.#word(take('status'), 'status', (number) => wordOf(statuses, number))
        this.#uint32(take('result'), 'result')
        if (status !== 'OK' && status !== 'AUTH_NEEDED') this.#text(take('detail') ?? '', 'detail')
        return
      }
      case 'caps': {
        this.#uint32(take('major'), 'major')
        this.#uint32(take('minor'), 'minor')
        for (const key of ['auth', 'layer', 'extension'])
          if (!Array.isArray(take(key))) throw new Mismatch(`"${key}" is no array`)
        if (typeof take('software') !== 'string') throw new Mismatch('"software" is no string')
        if (typeof take('max_frame') !== 'number') throw new Mismatch('"max_frame" is no number')
        for (const key of ['generation', 'producer']) {
          if (typeof (take(key) ?? '') !== 'string') throw new Mismatch(`"${key}" is no string`)
        }
        if (!Array.isArray(take('below') ?? [])) throw new Mismatch('"below" is no array')
        const list = this.#take(0, 'arglist')
        if (Buffer.isBuffer(list)) throw new Error('capabilities are written {_:arglist}')
        return
      }
      case 'auth':
        this.#opaque(take('data'), 'data')
        return
      case 'gap':
        this.#uint64(take('transaction'), 'transaction')
        this.#uint32(take('metric'), 'metric')
        for (const key of ['count', 'from', 'to']) this.#uint64(take(key), key)
        this.#word(take('reason'), 'reason', (number) => gapReasons[number])
        return
      case 'notice':
        this.#word(take('code'), 'code', (number) => noticeCodes[number])
        this.#uint32(take('channel'), 'channel')
        this.#text(take('detail'), 'detail')
    }
  }

  #value(mid: Taken, take: (key: string) => unknown): void {
    this.#number(mid, take('metric'), 'metric')
    this.#uint64(take('transaction'), 'transaction')
    this.#uint64(take('time'), 'time')
    this.#typed(take('value'), take('valueType'), 'value')
  }

  /** A type and a value. `word`: what the message says of the type; undefined inside a REC, where it says nothing. */
  #typed(json: unknown, word: unknown, path: string): void {
    const type = this.#take(4, 'value')
    if (!Buffer.isBuffer(type)) {
      if (type.name !== '_') throw new Error('JSON does not tell types: a value cannot be kept')
      return
    }
    const number = type.readUInt32BE(0)
    if (word !== undefined) same(word, wordOf(types, number)?.toLowerCase(), 'valueType')
    this.#plain(number, json, path)
  }

  #plain(type: number, json: unknown, path: string): void {
    if (this.#open) return
    if (type === types.REC) this.#rec(json, path)
    else if (type === types.ARRAY) this.#array(json, path)
    else if (this.#parts[0]?.is === 'hole') this.#scalarHole(type, json, path)
    else {
      const bytes = this.#parts[0]?.is === 'bytes' ? this.#parts[0].bytes : Buffer.alloc(0)
      same(json, scalarToJson(type, this.#literal(valueEnd(bytes, 0, type))), path)
    }
  }

  #array(json: unknown, path: string): void {
    if (!Array.isArray(json)) throw new Mismatch(`${path} is no array`)
    if (this.#reachesRest()) return
    const element = this.#literal(4).readUInt32BE(0)
    const count = this.#literal(4).readUInt32BE(0)
    if (json.length !== count) throw new Mismatch(`${path} has ${json.length} elements, not ${count}`)
    for (const [index, item] of json.entries()) this.#plain(element, item, `${path}[${index}]`)
  }

  #scalarHole(type: number, json: unknown, path: string): void {
    if (type === types.STRING) this.#text(json, path)
    else if (type === types.OPAQUE) this.#opaque(json, path)
    else if (type === types.UINT64) this.#uint64(json, path)
    else if (type === types.DOUBLE) this.#double(json, path)
    else this.#uint32(typeof json === 'boolean' ? Number(json) : json, path)
  }

  #rec(json: unknown, path: string): void {
    const object = objectOf(json, path)
    const count = this.#literal(4).readUInt32BE(0)
    const names: string[] = []
    for (let index = 0; index < count && !this.#open; index++) {
      const taken = this.#take(-1, 'str')
      if (this.#open) return
      if (!Buffer.isBuffer(taken)) throw new Error('the names of a REC are written out')
      const name = inside(taken).toString('utf8')
      names.push(name)
      if (!Object.hasOwn(object, name)) throw new Mismatch(`${path} has no field "${name}"`)
      this.#typed(object[name], undefined, `${path}.${name}`)
    }
    const other = Object.keys(object).find((name) => !names.includes(name))
    if (other !== undefined && !this.#open) throw new Mismatch(`${path} has a field "${other}" too many`)
  }

  #uint32(json: unknown, key: string): void {
    this.#number(this.#take(4, 'u32'), json, key)
  }

  #number(taken: Taken, json: unknown, key: string): void {
    if (this.#open) return
    if (typeof json !== 'number' || !Number.isInteger(json) || json < 0 || json > 0xffffffff) {
      throw new Mismatch(`"${key}" is no uint32: ${JSON.stringify(json)}`)
    }
    this.#compare(taken, uint32(json), key)
  }

  #uint64(json: unknown, key: string): void {
    const taken = this.#take(8, 'u64')
    if (this.#open) return
    const isDigits = typeof json === 'string' && /^\d{16,20}$/.test(json) && !Number.isSafeInteger(Number(json))
    if (!isDigits && !(Number.isSafeInteger(json) && (json as number) >= 0)) {
      throw new Mismatch(`"${key}" is no uint64: ${JSON.stringify(json)}`)
    }
    this.#compare(taken, uint64(BigInt(json as number | string)), key)
  }

  #double(json: unknown, key: string): void {
    const taken = this.#take(8, 'f64')
    if (typeof json !== 'number' && !/^(NaN|-?Infinity)$/.test(String(json)))
      throw new Mismatch(`"${key}" is no double`)
    this.#compare(taken, double(Number(json)), key)
  }

  #text(json: unknown, key: string): void {
    const taken = this.#take(-1, 'str')
    if (this.#open) return
    if (typeof json !== 'string') throw new Mismatch(`"${key}" is no string: ${JSON.stringify(json)}`)
    this.#compare(taken, string(json), key)
  }

  #opaque(json: unknown, key: string): void {
    const taken = this.#take(-1, 'opaque')
    if (this.#open) return
    const data = typeof json === 'string' ? Buffer.from(json, 'base64') : undefined
    if (data?.toString('base64') !== json) throw new Mismatch(`"${key}" is no base64: ${JSON.stringify(json)}`)
    this.#compare(taken, opaque(data as Buffer), key)
  }

  /** A number that JSON says as a word. Gives the word that came. */
  #word(json: unknown, key: string, wordFor: (number: number) => string | undefined): unknown {
    const taken = this.#take(4, 'u32')
    if (Buffer.isBuffer(taken)) same(json, wordFor(taken.readUInt32BE(0)), key)
    else if (typeof json !== 'string') throw new Mismatch(`"${key}" is no word: ${JSON.stringify(json)}`)
    else if (taken.name !== '_') throw new Error(`a word of JSON cannot be kept: {${taken.name}}`)
    return json
  }

  #compare(taken: Taken, bytes: Buffer, key: string): void {
    if (!Buffer.isBuffer(taken)) bind(taken, bytes, this.#variables, this.bindings)
    else if (!taken.equals(bytes))
      throw new Mismatch(`"${key}" is ${bytes.toString('hex')}, not ${taken.toString('hex')}`)
  }

  #literal(length: number): Buffer {
    const taken = this.#take(length, 'u32')
    if (Buffer.isBuffer(taken)) return taken
    throw new Error(`{${taken.name}:${taken.kind}}: JSON needs bytes here`)
  }

  #reachesRest(): boolean {
    const part = this.#parts[0]
    if (part?.is === 'hole' && part.hole.kind === 'rest') {
      this.#open = true
      this.#parts.length = 0
    }
    return this.#open
  }

  /** The next field: its bytes, or the hole that stands there. `length`: -1 for an opaque or string. */
  #take(length: number, kind: HoleKind): Taken {
    const part = this.#parts[0]
    if (this.#reachesRest()) return { name: '_', kind: 'rest' }
    if (part === undefined) {
      if (length === 0) return Buffer.alloc(0)
      throw new Error(`the script ends where a ${kind} is to come`)
    }
    if (part.is === 'hole') {
      this.#parts.shift()
      return part.hole
    }
    if (part.is === 'length') throw new Error('LEN inside a frame')
    const end = length < 0 ? opaqueEnd(part.bytes, 0) : length
    if (end > part.bytes.length) throw new Error('a hole inside a field')
    if (end === part.bytes.length) this.#parts.shift()
    else this.#parts[0] = { is: 'bytes', bytes: part.bytes.subarray(end) }
    return part.bytes.subarray(0, end)
  }
}

function same(came: unknown, expected: unknown, key: string): void {
  if (!Object.is(came, expected))
    throw new Mismatch(`"${key}" is ${JSON.stringify(came)}, not ${JSON.stringify(expected)}`)
}

function objectOf(json: unknown, what: string): Record<string, unknown> {
  if (typeof json === 'object' && json !== null && !Array.isArray(json)) return json as Record<string, unknown>
  throw new Mismatch(`${what} is no object: ${JSON.stringify(json)}`)
}
