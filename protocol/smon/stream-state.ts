/** The state of a stream: its tokens with their last values, and its index list. */

const NO_BYTES = new Uint8Array(0)
const MIN_BUFFER_BYTES = 16
/** A buffer may be this many times as large as its string. */
const MAX_SLACK = 4

/**
 * A string of bytes in a buffer that grows and shrinks with it. Announced lengths are never reserved: memory is allocated only
 * for bytes that have arrived.
 */
export class ByteString {
  #bytes = NO_BYTES
  #length = 0
  #view: Uint8Array | undefined

  get length(): number {
    return this.#length
  }

  /** The bytes by which the next `push` enlarges the buffer, 0 for most. */
  get growth(): number {
    return this.#length < this.#bytes.length ? 0 : Math.max(MIN_BUFFER_BYTES, this.#length)
  }

  clear(): void {
    this.#length = 0
    this.#view = undefined
  }

  /** Shrinks a buffer that is far too large for the string; returns by how many bytes. */
  trim(): number {
    const before = this.#bytes.length
    if (before <= MAX_SLACK * Math.max(MIN_BUFFER_BYTES, this.#length)) return 0
    this.#bytes = this.#bytes.slice(0, this.#length)
    this.#view = undefined
    return before - this.#length
  }

  push(byte: number): void {
    const { growth } = this
    if (growth > 0) {
      const grown = new Uint8Array(this.#length + growth)
      grown.set(this.#bytes)
      this.#bytes = grown
    }
    this.#bytes[this.#length++] = byte
    this.#view = undefined
  }

  /** A view, which is the same one until the next change. */
  view(): Uint8Array {
    this.#view ??= this.#bytes.subarray(0, this.#length)
    return this.#view
  }
}

/**
 * The index list of the stream. It applies to every pair until an index operation changes it. The prefix of a token
 * overwrites the first positions and never shifts the others.
 */
export class IndexList {
  readonly #values: number[] = []
  readonly #merged: number[] = []

  get depth(): number {
    return this.#values.length
  }

  clear(): void {
    this.#values.length = 0
  }

  push(value: number): void {
    this.#values.push(value)
  }

  /** `fromEnd` is 1 for the last element, 2 for the one before it. The caller must have checked the depth. */
  replace(fromEnd: 1 | 2, value: number): void {
    this.#values[this.#values.length - fromEnd] = value
  }

  /** An immutable copy of the list. */
  copy(): readonly number[] {
    return this.#values.length === 0 ? NO_INDEX : Object.freeze(this.#values.slice())
  }

  /** The list with its first positions replaced by `prefix`; valid until the next call or change. */
  under(prefix: readonly number[]): readonly number[] {
    const values = this.#values
    if (values.length <= prefix.length) return prefix
    if (prefix.length === 0) return values
    const merged = this.#merged
    merged.length = 0
    for (const value of prefix) merged.push(value)
    for (let i = prefix.length; i < values.length; i++) merged.push(values[i] as number)
    return merged
  }
}

/** One object per definition, which may be used as a key until the stream is reset. */
export interface SmonToken {
  /** A number from 1 on, in the order of definition. */
  readonly number: number
  readonly type: 'u' | 's'
  /** Any bytes, without the type byte. */
  readonly name: Uint8Array
  /** The indexes fixed by its definition; NO_INDEX for most tokens. */
  readonly prefix: readonly number[]
}

/** Tokens for which a table has room from the start. */
const MIN_TOKENS = 16

/** The only empty index list. */
export const NO_INDEX: readonly number[] = Object.freeze([])

/**
 * The tokens of a stream, with the last values that deltas are relative to. A last value belongs to the token, not to an
 * index: a value at [1] is a delta to the value before it at [0].
 */
export class TokenTable {
  /** The tokens by number; 0 is not a token. */
  readonly tokens: (SmonToken | undefined)[] = [undefined]
  /**
   * The last value of each `u` by number, while it is below 2^53. Everything else is NaN (no such token, a string, a larger
   * value), so that one comparison shows whether a plain addition is sufficient.
   */
  numbers: Float64Array = new Float64Array(MIN_TOKENS).fill(Number.NaN)
  readonly #large = new Map<number, bigint>()
  readonly #strings = new Map<number, ByteString>()

  get count(): number {
    return this.tokens.length - 1
  }

  add(type: 'u' | 's', name: Uint8Array, prefix: readonly number[]): SmonToken {
    const number = this.tokens.length
    const token: SmonToken = Object.freeze({ number, type, name, prefix })
    this.tokens.push(token)
    if (number === this.numbers.length) {
      const grown = new Float64Array(number * 2).fill(Number.NaN)
      grown.set(this.numbers)
      this.numbers = grown
    }
    if (type === 'u') this.numbers[number] = 0
    else this.#strings.set(number, new ByteString())
    return token
  }

  clear(): void {
    this.numbers = new Float64Array(MIN_TOKENS).fill(Number.NaN)
    this.tokens.length = 1
    this.#large.clear()
    this.#strings.clear()
  }

  /** The last value of a `u`. */
  last(number: number): number | bigint {
    const small = this.numbers[number] as number
    return small >= 0 ? small : (this.#large.get(number) ?? 0)
  }

  setLast(number: number, value: number | bigint): void {
    if (typeof value === 'number') {
      this.numbers[number] = value
    } else {
      this.numbers[number] = Number.NaN
      this.#large.set(number, value)
    }
  }

  /** The last value of an `s`, which is changed in place. */
  string(number: number): ByteString {
    const string = this.#strings.get(number)
    if (!string) throw new Error(`token ${number} is not a string`)
    return string
  }
}
