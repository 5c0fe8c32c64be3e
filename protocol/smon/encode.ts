/**
 * Encodes a stream of smon. It writes each number in its shortest form, and prefers a step to an absolute number of the same
 * length; a definition always returns to token 0 by F0 00. Note that FF are counted over the raw stream here too: the first
 * FF of a string may be the third in a row, after its length.
 */

import * as code from './codes.ts'
import { ByteString } from './stream-state.ts'

const RESYNC_FILL = code.LONGEST_RUN + 1
const MAX_UINT64 = 0xffff_ffff_ffff_ffffn
const MAX_INDEX = 0xffff_ffff
const MIN_NAME_BYTES = 3
const NO_BYTES = new Uint8Array(0)
const TYPES = { u: 0x75, s: 0x73 } as const

/** A number of 0 to 2^64-1 for `u`, bytes for `s`. */
export type SmonValue = number | bigint | Uint8Array

export class SmonEncoder {
  readonly #out = new ByteString()
  /** The last values by number; 0 is not a token. */
  #values: SmonValue[] = [0]
  #current = 0
  #list: readonly number[] = []
  #run = 0

  /** Defines a token with the type of its first value, and returns its number. `name` has at least 3 bytes. */
  define(name: Uint8Array, value: SmonValue): number {
    checkName(name)
    checkValue(value)
    this.#toZero()
    this.#defstring(name, value)
    return this.#new(value)
  }

  /** Defines a token with a prefix, which also becomes the index list of the stream. */
  defineIndexed(prefix: readonly number[], name: Uint8Array, value: SmonValue): number {
    checkName(name)
    checkValue(value)
    checkIndex(prefix)
    this.#toZero()
    this.#indexed(prefix)
    this.#token(0)
    this.#defstring(name, value)
    return this.#new(value)
  }

  /** Defines a token with the name and type of another and a prefix, which also becomes the index list of the stream. */
  defineCopy(source: number, prefix: readonly number[], value: SmonValue): number {
    this.#check(source, value)
    checkIndex(prefix)
    this.#toZero()
    this.#indexed(prefix)
    this.#token(source)
    return this.#new(value)
  }

  /** Writes a value. Its index is the list of the stream, with the first positions replaced by the prefix of the token. */
  value(token: number, value: SmonValue): void {
    this.#check(token, value)
    this.#token(token)
    this.#value(value)
  }

  /** Sets the index list of the stream. */
  index(list: readonly number[]): void {
    checkIndex(list)
    const { length } = this.#list
    const kept = this.#list.slice(0, -2).every((value, i) => value === list[i])
    if (kept && list.length >= length) {
      const [beforeLast, last] = [length - 2, length - 1]
      if (length > 1 && list[beforeLast] !== this.#list[beforeLast]) {
        this.#operate(code.INDEX_BEFORE_LAST, list[beforeLast] as number)
      }
      if (length > 0 && list[last] !== this.#list[last]) this.#operate(code.INDEX_LAST, list[last] as number)
      for (const value of list.slice(length)) this.#operate(code.INDEX_PUSH, value)
    } else {
      this.#clear(list)
    }
    this.#list = list.slice()
  }

  /** Writes the resynchronisation: the stream restarts without tokens and indexes. */
  reset(): void {
    for (let i = 0; i < RESYNC_FILL; i++) this.#byte(code.FILL)
    this.#byte(code.BREAK)
    this.#values = [0]
    this.#current = 0
    this.#list = []
  }

  /** Returns a copy of the bytes written since the last call. The stream continues. */
  take(): Uint8Array {
    const bytes = this.#out.view().slice()
    this.#out.clear()
    return bytes
  }

  #check(token: number, value: SmonValue): void {
    const last = token === 0 ? undefined : this.#values[token]
    if (last === undefined)
      throw new RangeError(`token ${token} is not defined; the last token is ${this.#values.length - 1}`)
    if (typeOf(last) !== typeOf(value)) throw new TypeError(`token ${token} is of type ${typeOf(last)}`)
    checkValue(value)
  }

  #toZero(): void {
    if (this.#current > 0) this.#byte(code.ABSOLUTE)
    this.#byte(0)
    this.#current = 0
  }

  #indexed(prefix: readonly number[]): void {
    this.#clear(prefix)
    this.#list = prefix.slice()
  }

  #clear(list: readonly number[]): void {
    this.#byte(code.INDEX_CLEAR)
    for (const value of list) this.#operate(code.INDEX_PUSH, value)
  }

  #operate(operation: number, value: number): void {
    this.#byte(operation)
    this.#number(0, value)
  }

  #defstring(name: Uint8Array, value: SmonValue): void {
    this.#number(0, name.length + 1)
    this.#byte(TYPES[typeOf(value)])
    this.#string(name)
  }

  #new(value: SmonValue): number {
    const number = this.#values.length
    this.#values.push(value instanceof Uint8Array ? NO_BYTES : 0)
    this.#token(number)
    this.#value(value)
    return number
  }

  #token(number: number): void {
    this.#number(this.#current, number)
    this.#current = number
  }

  #value(value: SmonValue): void {
    const last = this.#values[this.#current] as SmonValue
    if (!(value instanceof Uint8Array)) {
      this.#number(last as number | bigint, value)
      this.#values[this.#current] = value
      return
    }
    const old = last as Uint8Array
    const appended = old.length <= value.length && old.every((byte, i) => byte === value[i])
    const rest = appended ? value.subarray(old.length) : value
    if (appended) this.#number(0, rest.length)
    else this.#coded(code.ABSOLUTE, BigInt(rest.length))
    this.#string(rest)
    this.#values[this.#current] = new Uint8Array(value) // not slice, which shares a Buffer's bytes
  }

  #string(bytes: Uint8Array): void {
    for (const byte of bytes) {
      this.#byte(byte)
      if (this.#run === code.LONGEST_RUN) this.#byte(code.BREAK)
    }
  }

  #number(base: number | bigint, number: number | bigint): void {
    const step = BigInt(number) - BigInt(base)
    const magnitude = step < 0n ? -step : step - BigInt(code.STEP_UP)
    if (step >= 0n && magnitude < 0n) this.#byte(Number(step))
    else if (payloadSize(BigInt(number)) < payloadSize(magnitude)) this.#coded(code.ABSOLUTE, BigInt(number))
    else this.#coded(step < 0n ? code.STEP_DOWN : code.STEP_UP, magnitude)
  }

  /** Writes a number in the form of this lead. */
  #coded(form: number, payload: bigint): void {
    const size = payloadSize(payload)
    this.#byte(form + size - 1)
    for (let shift = 8 * (size - 1); shift >= 0; shift -= 8) this.#byte(Number((payload >> BigInt(shift)) & 0xffn))
  }

  #byte(byte: number): void {
    this.#run = byte === code.FILL ? this.#run + 1 : 0
    this.#out.push(byte)
  }
}

function typeOf(value: SmonValue): 'u' | 's' {
  return value instanceof Uint8Array ? 's' : 'u'
}

function payloadSize(payload: bigint): number {
  let size = 1
  while (payload >> BigInt(8 * size) > 0n) size++
  return size
}

function checkValue(value: SmonValue): void {
  if (value instanceof Uint8Array) return
  const whole = typeof value === 'bigint' || Number.isSafeInteger(value)
  if (!whole || value < 0 || value > MAX_UINT64) {
    throw new RangeError(`${value} is not an integer from 0 to 2^64-1, or must be a bigint`)
  }
}

function checkName(name: Uint8Array): void {
  if (name.length < MIN_NAME_BYTES)
    throw new RangeError(`a name of ${name.length} bytes; it must have at least ${MIN_NAME_BYTES}`)
}

function checkIndex(list: readonly number[]): void {
  const wrong = list.find((value) => !Number.isInteger(value) || value < 0 || value > MAX_INDEX)
  if (wrong !== undefined) throw new RangeError(`${wrong} is not an index: indexes are integers from 0 to ${MAX_INDEX}`)
}
