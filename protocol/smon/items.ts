/**
 * Interprets the numbers, index operations and strings of a stream. The decoder finds where each begins and ends. Errors are
 * reported to `refuse`; afterwards nothing may be called until `restart`.
 *
 *   pair        token value
 *   definition  0 defstring new value
 *               0 FD index... source [defstring] new value      the defstring only if source is 0
 */
import type { ProtocolError, ProtocolErrorCode } from '../errors.ts'
import * as code from './codes.ts'
import { ByteString, IndexList, NO_INDEX, type SmonToken, TokenTable } from './stream-state.ts'

/** The role of the next number. Up to SOURCE_ROLE it is a step from the current token, and index operations may precede it. */
const TOKEN = 0
const NEW = 1
const SOURCE_ROLE = 2
/** The length of a defstring, or FD in its place. */
const DEFINITION = 3
const NAME = 4
const VALUE = 5
const TEXT = 6
const INDEX = 7

/** The names of the roles in errors. */
const ROLES = [
  'a token',
  'the number of a new token',
  'the token to copy',
  'the length of a definition',
  'the length of a definition',
  'a value',
  'the length of a string',
  'an index',
] as const

const TYPES: Readonly<Record<number, 'u' | 's'>> = { 117: 'u', 115: 's' }
const MIN_DEFSTRING_BYTES = 4
const MAX_INDEX = 0xffff_ffff
const SPACE = 0x20

export type Refuse = (reason: ProtocolErrorCode, message: string, offset: number) => void

export class Items {
  readonly table = new TokenTable()
  readonly list = new IndexList()
  /** The token to which the next token number is relative. */
  current = 0
  /** The number of bytes of a string that must follow. */
  stringBytes = 0
  /** See SmonDecoder. */
  shortNames = 0
  readonly #sink: SmonSink
  readonly #limits: SmonLimits
  readonly #refuse: Refuse
  /** The number of bytes of names and strings, some of which may still be expected. */
  #bytes = 0
  /** The number of bytes that were taken of those that streams share: names, and the buffers of strings. */
  #shared = 0
  #role = TOKEN
  /** The index operation whose number is next, and the role after it. */
  #operation = 0
  #resume = TOKEN
  readonly #defstring = new ByteString()
  /** The buffer for the bytes of a string. */
  #string = this.#defstring
  #stringAt = 0
  /** The type of the token that is being defined. */
  #type: 'u' | 's' = 'u'
  /** The name of the token to copy; undefined if the defstring has the name. */
  #name: Uint8Array | undefined
  #prefix = NO_INDEX
  /** Whether a defstring has just ended: the next byte may still belong to it, see #isName. */
  #fresh = false
  /** The offset of the byte that #isName added; -1 if none. */
  #addedAt = -1

  constructor(sink: SmonSink, limits: SmonLimits, refuse: Refuse) {
    this.#sink = sink
    this.#limits = limits
    this.#refuse = refuse
  }

  /** Whether the stream is between two items. */
  get complete(): boolean {
    return this.#role === TOKEN
  }

  /** Forgets the stream, and gives back what it took of what streams share. */
  restart(): void {
    this.#limits.shared?.tokens.take(-this.table.count)
    this.#limits.shared?.bytes.take(-this.#shared)
    this.#shared = 0
    this.table.clear()
    this.list.clear()
    this.#defstring.clear()
    this.#defstring.trim()
    this.#string = this.#defstring
    this.current = 0
    this.stringBytes = 0
    this.#bytes = 0
    this.#role = TOKEN
  }

  /** The name of the role of the next number. */
  get expected(): string {
    return ROLES[this.#role] as string
  }

  /** Whether a step down is allowed: not for lengths and indexes, which are not relative to anything. */
  get mayStepDown(): boolean {
    return this.#role <= SOURCE_ROLE || this.#role === VALUE
  }

  /** Takes a byte that does not begin a number; returns whether it is an index operation in a valid place. */
  operate(byte: number, offset: number): boolean {
    const role = this.#role
    this.#fresh = false
    if (byte === code.INDEX_CLEAR && role <= DEFINITION) {
      this.list.clear()
      if (role === DEFINITION) this.#role = SOURCE_ROLE
      return true
    }
    if (byte < code.INDEX_PUSH || byte >= code.INDEX_CLEAR || role > SOURCE_ROLE) return false
    const { maxIndexDepth } = this.#limits
    const { depth } = this.list
    if (byte === code.INDEX_PUSH && depth >= maxIndexDepth) {
      this.#refuse('TOO_DEEP', `more than ${maxIndexDepth} indexes`, offset)
    } else if (byte !== code.INDEX_PUSH && depth < (byte === code.INDEX_LAST ? 1 : 2)) {
      const message = `index operation ${byte.toString(16).toUpperCase()} with ${depth} indexes: there is none to replace`
      this.#refuse('BAD_COUNT', message, offset)
    } else {
      this.#operation = byte
      this.#resume = role
      this.#role = INDEX
    }
    return true
  }

  /** Takes a complete number: its lead, the halves of its payload, and the offsets of the lead and of the byte after it. */
  number(lead: number, high: number, low: number, offset: number, end: number): void {
    const role = this.#role
    const number = code.apply(lead, role <= SOURCE_ROLE ? this.current : 0, high * 0x1_0000_0000 + low)
    this.#stringAt = end
    if (role === VALUE) this.#value(lead, high, low, offset)
    else if (role === TEXT) this.#text(number, lead >= code.ABSOLUTE, offset)
    else if (role === TOKEN) this.#token(number, offset)
    else if (role === INDEX) this.#index(number, offset)
    else if (role === SOURCE_ROLE) this.#source(number, offset)
    else if (role !== NEW) this.#definition(number, offset)
    else if (number === this.table.count + 1) this.#define(offset)
    else if (!this.#isName(lead, offset)) this.#refuseNew(number, offset)
  }

  /** Takes a byte of a string. Returns false if there is no room for it, which is an error. */
  put(byte: number): boolean {
    const { growth } = this.#string
    if (growth > 0 && !this.#share(growth, this.#stringAt)) return false
    this.#string.push(byte)
    this.stringBytes--
    return true
  }

  endString(): void {
    if (this.#role === TEXT) {
      this.#role = TOKEN
      this.#share(-this.#string.trim(), this.#stringAt)
      const token = this.table.tokens[this.current] as SmonToken
      this.#sink.text(token, this.list.under(token.prefix), this.#string.view())
      return
    }
    const byte = this.#string.view()[0] as number
    const type = TYPES[byte]
    if (type) {
      this.#type = type
      this.#fresh = true
      this.#role = NEW
    } else {
      const message = `a definition of type 0x${byte.toString(16)}; the types are 0x75 (u) and 0x73 (s)`
      this.#refuse('BAD_TYPE', message, this.#stringAt)
    }
  }

  #token(number: number, offset: number): void {
    if (number === 0) {
      this.current = 0
      this.#prefix = NO_INDEX
      this.#name = undefined
      this.#fresh = false
      this.#addedAt = -1
      this.#role = DEFINITION
    } else if (this.#select(number, offset)) {
      this.#expectValue()
    }
  }

  /** Makes the token with this number the current one, if there is one. */
  #select(number: number, offset: number): SmonToken | undefined {
    const token = this.table.tokens[number]
    if (token) this.current = number
    else this.#refuse('BAD_NUMBER', `token ${number} is not defined; the last token is ${this.table.count}`, offset)
    return token
  }

  #source(number: number, offset: number): void {
    this.#prefix = this.list.copy()
    if (number === 0) {
      this.current = 0
      this.#role = NAME
      return
    }
    const source = this.#select(number, offset)
    if (!source) return
    this.#type = source.type
    this.#name = source.name
    this.#role = NEW
  }

  #definition(length: number, offset: number): void {
    const { maxNameBytes } = this.#limits
    if (length < MIN_DEFSTRING_BYTES) {
      this.#refuse('BAD_NAME', `a definition of ${length} bytes; a type and a name have at least 4`, offset)
    } else if (length > maxNameBytes + 1) {
      this.#refuse('TOO_LONG', `a name of ${length - 1} bytes; the limit is ${maxNameBytes}`, offset)
    } else {
      this.#string = this.#defstring
      this.#string.clear()
      this.stringBytes = length
    }
  }

  /**
   * If the length of a defstring did not count the type byte, the last byte of the name is in the place of the new number.
   * It is added to the name if it cannot be the number; then the number must follow, or it was an error.
   */
  #isName(lead: number, offset: number): boolean {
    const fresh = this.#fresh
    this.#fresh = false
    if (!fresh || lead < SPACE || lead >= code.STEP_UP) return false
    if (this.#defstring.length > this.#limits.maxNameBytes) return false
    this.#defstring.push(lead)
    this.#addedAt = offset
    return true
  }

  #define(offset: number): void {
    const { maxTokens } = this.#limits
    if (this.table.count >= maxTokens) {
      this.#refuse('BAD_COUNT', `more than ${maxTokens} tokens`, offset)
      return
    }
    const name = this.#name ?? this.#defstring.view().slice(1)
    if (!this.#hasRoom(name.length, offset) || !this.#share(name.length, offset)) return
    const tokens = this.#limits.shared?.tokens
    if (tokens?.take(1) === false) {
      this.#refuse('BAD_COUNT', `more than ${tokens.limit} tokens of all streams together`, offset)
      return
    }
    if (this.#addedAt >= 0) this.shortNames++
    const token = this.table.add(this.#type, name, this.#prefix)
    this.current = token.number
    this.#expectValue()
    this.#sink.defined(token)
  }

  /** Books bytes of names and strings, and refuses them beyond the limit. */
  #hasRoom(bytes: number, offset: number): boolean {
    this.#bytes += bytes
    if (bytes <= 0 || this.#bytes <= this.#limits.maxBytes) return true
    const message = `names and strings exceed ${this.#limits.maxBytes} bytes together`
    this.#refuse('TOO_LONG', message, offset)
    return false
  }

  /** Takes bytes of those that streams share, or gives them back; refuses the stream if there are not enough. */
  #share(bytes: number, offset: number): boolean {
    const { shared } = this.#limits
    if (shared === undefined) return true
    if (!shared.bytes.take(bytes)) {
      this.#refuse('TOO_LONG', `names and strings of all streams exceed ${shared.bytes.limit} bytes together`, offset)
      return false
    }
    this.#shared += bytes
    return true
  }

  #refuseNew(number: number, offset: number): void {
    const added = this.#addedAt >= 0
    const found = added ? this.#defstring.view().at(-1) : number
    const message = `${found} instead of the number of the new token, ${this.table.count + 1}`
    this.#refuse('BAD_NUMBER', message, added ? this.#addedAt : offset)
  }

  #expectValue(): void {
    this.#role = this.table.tokens[this.current]?.type === 'u' ? VALUE : TEXT
  }

  #value(lead: number, high: number, low: number, offset: number): void {
    const value = code.applyExactly(lead, this.table.last(this.current), high, low)
    if (value === undefined) {
      this.#refuse('BAD_NUMBER', `the value of token ${this.current} is outside the range of 0 to 2^64-1`, offset)
      return
    }
    this.table.setLast(this.current, value)
    this.#role = TOKEN
    const token = this.table.tokens[this.current] as SmonToken
    this.#sink.number(token, this.list.under(token.prefix), value)
  }

  #text(length: number, replace: boolean, offset: number): void {
    const string = this.table.string(this.current)
    const kept = replace ? 0 : string.length
    if (kept + length > this.#limits.maxStringBytes) {
      const message = `the string of token ${this.current} exceeds ${this.#limits.maxStringBytes} bytes`
      this.#refuse('TOO_LONG', message, offset)
      return
    }
    if (!this.#hasRoom(kept + length - string.length, offset)) return
    if (replace) string.clear()
    this.#string = string
    this.stringBytes = length
    if (length === 0) this.endString()
  }

  #index(value: number, offset: number): void {
    this.#role = this.#resume
    if (value > MAX_INDEX) this.#refuse('BAD_NUMBER', `an index above ${MAX_INDEX}`, offset)
    else if (this.#operation === code.INDEX_PUSH) this.list.push(value)
    else this.list.replace(this.#operation === code.INDEX_LAST ? 1 : 2, value)
  }
}

/** Called while bytes are decoded; must not call the decoder, except to pause it. */
export interface SmonSink {
  defined(token: SmonToken): void
  /**
   * `index` is valid only during the call; NO_INDEX if there is none. `value` is a number below 2^53, a bigint
   * from there to 2^64-1.
   */
  number(token: SmonToken, index: readonly number[], value: number | bigint): void
  /** `index` and the view `value` are valid only during the call. */
  text(token: SmonToken, index: readonly number[], value: Uint8Array): void
  /** The stream restarted (17 FF, FE): all earlier tokens are invalid. */
  reset(): void
  /** Everything until the next `reset` is skipped. The offset counts from the start of the stream. */
  invalid(error: ProtocolError): void
}

/** An amount that several streams may hold together, such as tokens. */
export interface SmonShare {
  readonly limit: number
  /** Takes so much more, or gives it back if it is negative. Returns false, and takes nothing, if not so much is left. */
  take(amount: number): boolean
}

/** A stream that exceeds these limits becomes invalid. */
export interface SmonLimits {
  readonly maxTokens: number
  /** The limit for a name without the type byte. */
  readonly maxNameBytes: number
  /** The limit for the complete value of an `s`, in however many parts it came. */
  readonly maxStringBytes: number
  /** The limit for all names and strings of the stream together. */
  readonly maxBytes: number
  /** The limit for the index list of the stream, and so for the prefix of a token. */
  readonly maxIndexDepth: number
  /** For tokens, and for bytes of names and strings. Undefined if the stream shares nothing with others. */
  readonly shared?: { readonly tokens: SmonShare; readonly bytes: SmonShare } | undefined
}
