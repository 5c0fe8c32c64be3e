/**
 * A stream of smon, cut anywhere -> definitions and values. docs/protocol/smon.md draws the bytes.
 *
 * Two ways lead through: `#pairs` takes pairs that lie whole in the chunk, `#step` takes everything, byte by byte, and
 * alone finds errors. What a newcomer gets wrong: FF in a row are counted over the raw stream, whatever they mean at
 * that moment, because the sender of a resynchronisation does not know what was cut off before it.
 */
import { ProtocolError, type ProtocolErrorCode } from '../errors.ts'
import * as code from './codes.ts'
import { Items, type SmonLimits, type SmonSink } from './items.ts'
import type { SmonToken } from './stream-state.ts'

export type { SmonLimits, SmonSink } from './items.ts'

/** The role of the next byte. */
const LEAD = 0
const PAYLOAD = 1
const STRING = 2
/** The FE after 16 FF of a string. */
const STUFFING = 3
/** FF stood where a number should begin: the start of a resynchronisation, or an error. */
const STRAY = 4
/** Behind 17 FF: FE is the resynchronisation, anything else an error. */
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
  /** FF in a row that end at the last byte, whatever they are. */
  #run = 0
  #lead = 0
  #leadAt = 0
  #high = 0
  #low = 0
  /** Bytes of the payload that must follow. */
  #left = 0
  #skipped = 0

  constructor(sink: SmonSink, limits: SmonLimits) {
    this.#sink = sink
    this.#items = new Items(sink, limits, (reason, message, at) => this.#fail(reason, message, at))
  }

  /** Takes the next bytes. Never throws whatever they are; keeps no view of them. */
  decode(bytes: Uint8Array): void {
    const start = this.#at
    const end = bytes.length
    let at = 0
    while (at < end) {
      if (this.#state === LEAD && this.#items.complete) {
        at = this.#pairs(bytes, at)
        if (at === end) break
      }
      this.#at = start + at
      this.#step(bytes[at++] as number)
    }
    this.#at = start + end
  }

  /** False from an error, or a 17th FF, until the resynchronisation is complete. */
  get valid(): boolean {
    return this.#state < RESYNC
  }

  /** False inside an item: a stream that ends now was cut. True after an error: there it is inside nothing. */
  get complete(): boolean {
    return this.#state === INVALID || (this.#state === LEAD && this.#items.complete)
  }

  /** Bytes after errors, with the resynchronisations that ended them. */
  get skipped(): number {
    return this.#skipped
  }

  /** Definitions whose length left out the type byte and that were understood all the same. */
  get shortNames(): number {
    return this.#items.shortNames
  }

  /** Begins another stream, a datagram for example. The sink is not called; the two counters continue. */
  reset(): void {
    this.#at = 0
    this.#restart()
  }

  /** Takes pairs of plain `u` values and returns where something else stands. */
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
        this.#items.put(byte)
        if (this.#run === code.LONGEST_RUN) this.#state = STUFFING
        else this.#string()
        return
      case STUFFING:
        if (byte === code.BREAK) this.#string()
        else if (byte === code.FILL) this.#state = RESYNC
        else this.#fail('BAD_PADDING', `${hex(byte)} after 16 FF in a string, where FE must stand`)
        return
      case STRAY:
        if (this.#run > code.LONGEST_RUN) this.#state = RESYNC
        else if (byte !== code.FILL)
          this.#fail('BAD_NUMBER', `FF where ${this.#items.expected} should begin`, this.#leadAt)
        return
      case RESYNC:
        if (byte === code.BREAK) this.#resynchronised()
        else if (byte !== code.FILL) this.#fail('BAD_PADDING', `${hex(byte)} after ${run} FF, where FE must stand`)
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
      this.#fail('BAD_NUMBER', `${hex(byte)}, a step down, where ${this.#items.expected} stands`)
    } else if (byte < code.NO_NUMBER) {
      this.#left = code.payloadBytes(byte)
      this.#state = PAYLOAD
    } else if (byte === code.FILL) {
      this.#state = STRAY
    } else if (!this.#items.operate(byte, this.#at)) {
      this.#fail('BAD_NUMBER', `${hex(byte)} where ${this.#items.expected} should begin`)
    }
  }

  #number(): void {
    this.#state = LEAD
    this.#items.number(this.#lead, this.#high, this.#low, this.#leadAt, this.#at + 1)
    if (this.#items.stringBytes > 0) this.#state = STRING
  }

  /** Goes on in a string, or ends it. */
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

  #resynchronised(): void {
    this.#restart()
    this.#sink.reset()
  }

  #fail(reason: ProtocolErrorCode, message: string, at = this.#at): void {
    this.#state = INVALID
    this.#sink.invalid(new ProtocolError(reason, message, at))
  }
}

/** Exact below 2^53; a larger one is inexact and stays 2^53 or more. */
function payloadAt(bytes: Uint8Array, at: number, size: number): number {
  let payload = 0
  for (let i = at; i < at + size; i++) payload = payload * 256 + (bytes[i] as number)
  return payload
}

function hex(byte: number): string {
  return byte.toString(16).toUpperCase().padStart(2, '0')
}
