/**
 * Decodes a stream of smon, in chunks of any size, into definitions and values. docs/protocol/smon.md shows the bytes.
 *
 * There are two paths: `#pairs` handles pairs that are complete in the chunk, and `#step` handles everything, byte by byte;
 * only `#step` finds errors. Note that consecutive FF are counted over the raw stream, whatever they mean in their place,
 * because the sender of a resynchronisation does not know where the stream was truncated before it.
 */
import { ProtocolError, type ProtocolErrorCode } from '../errors.ts'
import * as code from './codes.ts'
import { Items, type SmonLimits, type SmonSink } from './items.ts'
import type { SmonToken } from './stream-state.ts'

export type { SmonLimits, SmonShare, SmonSink } from './items.ts'

/** The role of the next byte. */
const LEAD = 0
const PAYLOAD = 1
const STRING = 2
/** The FE that must follow 16 FF in a string. */
const STUFFING = 3
/** FF in place of a number: the start of a resynchronisation, or an error. */
const STRAY = 4
/** After 17 FF, FE completes the resynchronisation; anything else is an error. */
const RESYNC = 5
const INVALID = 6

/** Two leads, each with 8 bytes of payload. */
const LONGEST_PAIR_BYTES = 18

export class SmonDecoder {
  readonly #sink: SmonSink
  readonly #items: Items
  #state = LEAD
  /** Offset in the stream of the byte that #step looks at; between chunks, of the next chunk. */
  #at = 0
  /** The number of consecutive FF up to the last byte, whatever they mean. */
  #run = 0
  #lead = 0
  #leadAt = 0
  #high = 0
  #low = 0
  /** The number of payload bytes that must follow. */
  #left = 0
  #skipped = 0
  #isPaused = false

  constructor(sink: SmonSink, limits: SmonLimits) {
    this.#sink = sink
    this.#items = new Items(sink, limits, (reason, message, at) => this.#fail(reason, message, at))
  }

  /**
   * Takes the next bytes; returns how many: all, or fewer if the sink has paused it. Never throws, whatever the bytes, and keeps
   * no view of them.
   */
  decode(bytes: Uint8Array): number {
    const start = this.#at
    const end = bytes.length
    let at = 0
    this.#isPaused = false
    while (at < end && !this.#isPaused) {
      if (this.#state === LEAD && this.#items.complete) {
        at = this.#pairs(bytes, at)
        if (at === end || this.#isPaused) break
      }
      this.#at = start + at
      this.#step(bytes[at++] as number)
    }
    this.#at = start + at
    return at
  }

  /** Ends `decode` after the item that the sink is called for; the only call that it may make. */
  pause(): void {
    this.#isPaused = true
  }

  /** False from an error, or a 17th FF, until the resynchronisation is complete. */
  get valid(): boolean {
    return this.#state < RESYNC
  }

  /** False inside an item: a stream that ends there was truncated. True after an error, which is inside no item. */
  get complete(): boolean {
    return this.#state === INVALID || (this.#state === LEAD && this.#items.complete)
  }

  /** The number of bytes after errors, including the resynchronisations that ended them. */
  get skipped(): number {
    return this.#skipped
  }

  /** The number of definitions whose length did not count the type byte, but which could be decoded. */
  get shortNames(): number {
    return this.#items.shortNames
  }

  /** Forgets the stream, and begins another one. The sink is not called; the two counters continue. */
  reset(): void {
    this.#at = 0
    this.#restart()
  }

  /** Decodes pairs of plain `u` values, and returns the offset of the first other byte. */
  #pairs(bytes: Uint8Array, start: number): number {
    const lastPair = bytes.length - 2
    const lastLongPair = bytes.length - LONGEST_PAIR_BYTES
    const items = this.#items
    const { list } = items
    const { numbers, tokens } = items.table
    const sink = this.#sink
    let at = start
    while (at <= lastPair) {
      const first = bytes[at] as number
      let last = bytes[at + 1] as number
      let next = at + 2
      let number = items.current + first
      let payload = 0
      if (first >= code.STEP_UP || last >= code.STEP_UP) {
        if (at > lastLongPair || first >= code.NO_NUMBER) break
        if (first >= code.STEP_UP) {
          const size = code.payloadBytes(first)
          number = code.apply(first, items.current, payloadAt(bytes, at + 1, size))
          last = bytes[at + 1 + size] as number
          next += size
        }
        if (last >= code.NO_NUMBER) break
        if (last >= code.STEP_UP) {
          const size = code.payloadBytes(last)
          payload = payloadAt(bytes, next, size)
          next += size
        }
      }
      const base = numbers[number] as number
      if (!(base >= 0)) break
      const value = code.apply(last, base, payload)
      if (value < 0 || value > Number.MAX_SAFE_INTEGER) break
      numbers[number] = value
      items.current = number
      at = next
      const token = tokens[number] as SmonToken
      sink.number(token, list.under(token.prefix), value)
      if (this.#isPaused) break
    }
    if (at > start) {
      this.#run = 0
      while (bytes[at - 1 - this.#run] === code.FILL) this.#run++
    }
    return at
  }

  #step(byte: number): void {
    const run = this.#run
    this.#run = byte === code.FILL ? run + 1 : 0
    switch (this.#state) {
      case LEAD:
        this.#begin(byte)
        return
      case PAYLOAD:
        this.#high = ((this.#high << 8) | (this.#low >>> 24)) >>> 0
        this.#low = ((this.#low << 8) | byte) >>> 0
        if (--this.#left === 0) this.#number()
        return
      case STRING:
        if (!this.#items.put(byte)) return
        if (this.#run === code.LONGEST_RUN) this.#state = STUFFING
        else this.#string()
        return
      case STUFFING:
        if (byte === code.BREAK) this.#string()
        else if (byte === code.FILL) this.#beginResync()
        else this.#fail('BAD_PADDING', `${hex(byte)} after 16 FF in a string instead of FE`)
        return
      case STRAY:
        if (this.#run > code.LONGEST_RUN) this.#beginResync()
        else if (byte !== code.FILL) this.#fail('BAD_NUMBER', `FF instead of ${this.#items.expected}`, this.#leadAt)
        return
      case RESYNC:
        if (byte === code.BREAK) this.#resynchronised()
        else if (byte !== code.FILL) this.#fail('BAD_PADDING', `${hex(byte)} after ${run} FF instead of FE`)
        return
      default:
        this.#skipped++
        if (byte === code.BREAK && run > code.LONGEST_RUN) this.#resynchronised()
    }
  }

  #begin(byte: number): void {
    this.#lead = byte
    this.#leadAt = this.#at
    this.#high = 0
    this.#low = 0
    if (byte < code.STEP_UP) {
      this.#number()
    } else if (byte >= code.STEP_DOWN && byte < code.ABSOLUTE && !this.#items.mayStepDown) {
      this.#fail('BAD_NUMBER', `${hex(byte)}, a step down, which is not allowed for ${this.#items.expected}`)
    } else if (byte < code.NO_NUMBER) {
      this.#left = code.payloadBytes(byte)
      this.#state = PAYLOAD
    } else if (byte === code.FILL) {
      this.#state = STRAY
    } else if (!this.#items.operate(byte, this.#at)) {
      this.#fail('BAD_NUMBER', `${hex(byte)} instead of ${this.#items.expected}`)
    }
  }

  #number(): void {
    this.#state = LEAD
    this.#items.number(this.#lead, this.#high, this.#low, this.#leadAt, this.#at + 1)
    if (this.#items.stringBytes > 0) this.#state = STRING
  }

  /** Continues a string, or ends it. */
  #string(): void {
    const over = this.#items.stringBytes === 0
    this.#state = over ? LEAD : STRING
    if (over) this.#items.endString()
  }

  #restart(): void {
    this.#items.restart()
    this.#run = 0
    this.#state = LEAD
  }

  /** Whatever comes next, nothing of the stream is valid any more. */
  #beginResync(): void {
    this.#state = RESYNC
    this.#items.restart()
  }

  #resynchronised(): void {
    this.#restart()
    this.#sink.reset()
  }

  #fail(reason: ProtocolErrorCode, message: string, at = this.#at): void {
    this.#state = INVALID
    this.#items.restart()
    this.#sink.invalid(new ProtocolError(reason, message, at))
  }
}

/** The payload: exact below 2^53; larger ones are inexact but still 2^53 or more. */
function payloadAt(bytes: Uint8Array, at: number, size: number): number {
  let payload = 0
  for (let i = at; i < at + size; i++) payload = payload * 256 + (bytes[i] as number)
  return payload
}

function hex(byte: number): string {
  return byte.toString(16).toUpperCase().padStart(2, '0')
}
