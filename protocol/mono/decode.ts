/**
 * Decodes the stream of a Mono agent, in chunks of any size, into counters, samples and responses. docs/protocol/mono.md
 * shows the bytes.
 *
 * Messages have no length: a reader that misreads one cannot recover, so the first error ends the stream. The stream is read
 * element by element (a header, a pair of strings, a sample), and the size of each is checked before the decoder waits for it.
 */
import { ProtocolError, type ProtocolErrorCode } from '../errors.ts'
import {
  CATEGORY_NAMES,
  CUSTOM,
  MessageKind,
  type MonoDialect,
  type MonoHeader,
  type MonoName,
  MonoStatus,
  MonoType,
  VERSION,
} from './messages.ts'

/** Called while bytes are decoded. An exception leaves `decode`, and ends the stream. */
export interface MonoSink {
  /** Hello begins; `count` calls of `counter` follow, then `greeted`. */
  hello(count: number): void
  counter(header: MonoHeader): void
  greeted(): void
  /** One entry of a response to List; `listEnd` ends it. */
  listed(counter: MonoName): void
  listEnd(): void
  /** The response to Add; it has a header only if the status is OK. Returns the counter that was asked for, if that is known. */
  added(status: MonoStatus, header: MonoHeader | undefined): MonoName | undefined
  removed(status: MonoStatus): void
  /** A Sampling begins, taken at `ticks` of 100 ns; `sample` follows for each counter that changed. */
  sampling(ticks: bigint): void
  /** `bytes` is a view, valid only during the call; at most 8. */
  sample(index: number, bytes: Uint8Array): void
}

export interface MonoLimits {
  /** The limit for the counters in a Hello, and in a response to List. */
  readonly maxCounters: number
  /** The limit for the bytes of each string. */
  readonly maxNameBytes: number
}

const NO_BYTES = new Uint8Array(0)
const utf8 = new TextDecoder('utf-8', { ignoreBOM: true })
const utf8Bytes = new TextEncoder()
const MAX_SAMPLE_BYTES = 8
/** The bytes of a header without its name: category, length, and after the name type, unit, variance and index. */
const HEADER_BYTES = 22

/** The kind of the next element. */
const MESSAGE = 0
const HEADERS = 1
const PAIRS = 2
const SAMPLES = 3

export class MonoDecoder {
  readonly #sink: MonoSink
  readonly #isCategoryFirst: boolean
  readonly #limits: MonoLimits
  /** The rest of earlier chunks: less than one element. */
  #rest: Uint8Array = NO_BYTES
  #bytes: Uint8Array = NO_BYTES
  #view: DataView = new DataView(NO_BYTES.buffer)
  /** The offset in the stream at which `#bytes` begins. */
  #start = 0
  #state = MESSAGE
  #hasGreeted = false
  /** The counter of an Add that was just refused: its header may follow all the same. */
  #refused: MonoName | undefined
  /** The number of headers that must follow, or of entries that were listed. */
  #count = 0

  constructor(sink: MonoSink, dialect: MonoDialect, limits: MonoLimits) {
    this.#sink = sink
    this.#isCategoryFirst = dialect === 'mono-2014'
    this.#limits = limits
  }

  /** Takes the next bytes; keeps no view of them. After it threw ProtocolError, it must not be called again. */
  decode(chunk: Uint8Array): void {
    const bytes = this.#rest.length === 0 ? chunk : joined(this.#rest, chunk)
    this.#bytes = bytes
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    let at = 0
    for (let next = this.#element(at); next !== undefined; next = this.#element(at)) at = next
    // The constructor copies, while slice() of a Node Buffer makes a view.
    this.#rest = at === bytes.length ? NO_BYTES : new Uint8Array(bytes.subarray(at))
    this.#start += at
    this.#bytes = NO_BYTES
  }

  /** False inside a message: a stream that ends there was truncated. */
  get complete(): boolean {
    return this.#state === MESSAGE && this.#rest.length === 0
  }

  /** Reads one element; returns the offset after it, undefined if it is incomplete. */
  #element(at: number): number | undefined {
    switch (this.#state) {
      case HEADERS:
        return this.#header(at, (header) => {
          this.#sink.counter(header)
          this.#headersLeft(this.#count - 1)
        })
      case PAIRS:
        return this.#pair(at)
      case SAMPLES:
        return this.#sample(at)
      default:
        return this.#refused === undefined ? this.#nextMessage(at) : this.#refusedHeader(at, this.#refused)
    }
  }

  /**
   * The text of the protocol has a header in every response to Add, its programs only where the status is OK. After a refusal,
   * what begins like the header of the counter that was asked for is skipped as such, and anything else is a message.
   */
  #refusedHeader(at: number, asked: MonoName): number | undefined {
    const end = this.#endOfHeader(at, asked)
    if (end === undefined) return undefined
    this.#refused = undefined
    return end === at ? this.#nextMessage(at) : end
  }

  /** The offset after the header of a counter; `at` if there is something else, undefined if that is not known yet. */
  #endOfHeader(at: number, { category, name }: MonoName): number | undefined {
    if (!this.#has(at, 1)) return undefined
    const number = CATEGORY_NAMES.findIndex((one) => one.toLowerCase() === category.toLowerCase())
    const categories = [number < 0 ? CUSTOM : number, 0]
    for (let index = 0; index < 4 && this.#has(at, index + 1); index++) {
      const byte = this.#bytes[at + index] as number
      if (index === 0 ? !categories.includes(byte) : byte !== 0) return at
    }
    if (!this.#has(at, 8)) return undefined
    const length = this.#view.getInt32(at + 4, true)
    const names = [name, `${category}:${name}`].filter((one) => utf8Bytes.encode(one).length === length)
    if (names.length === 0) return at
    if (!this.#has(at + 8, length)) return undefined
    const text = this.#text(at + 8, length).toLowerCase()
    if (!names.some((one) => one.toLowerCase() === text)) return at
    return this.#has(at, HEADER_BYTES + length) ? at + HEADER_BYTES + length : undefined
  }

  #nextMessage(at: number): number | undefined {
    return this.#has(at, 1) ? this.#message(at) : undefined
  }

  #message(at: number): number | undefined {
    const kind = this.#bytes[at] as number
    if (!this.#hasGreeted && kind !== MessageKind.HELLO) {
      this.#fail('UNKNOWN_MESSAGE', `the stream begins with ${kind} instead of Hello (0)`, at)
    }
    switch (kind) {
      case MessageKind.HELLO:
        return this.#hello(at)
      case MessageKind.LIST:
        this.#state = PAIRS
        this.#count = 0
        return at + 1
      case MessageKind.ADD:
        return this.#added(at)
      case MessageKind.REMOVE:
        if (!this.#has(at, 2)) return undefined
        this.#sink.removed(this.#status(at + 1))
        return at + 2
      case MessageKind.SAMPLING:
        if (!this.#has(at, 9)) return undefined
        this.#state = SAMPLES
        this.#sink.sampling(this.#view.getBigInt64(at + 1, true))
        return at + 9
      default:
        return this.#fail('UNKNOWN_MESSAGE', `no message begins with ${kind}`, at)
    }
  }

  #hello(at: number): number | undefined {
    if (this.#hasGreeted) this.#fail('UNKNOWN_MESSAGE', 'a second Hello', at)
    if (!this.#has(at, 5)) return undefined
    const version = this.#view.getInt16(at + 1, true)
    const count = this.#view.getInt16(at + 3, true)
    if (version !== VERSION) this.#fail('BAD_NUMBER', `version ${version} is not supported, only ${VERSION}`, at + 1)
    const { maxCounters } = this.#limits
    if (count < 0 || count > maxCounters) {
      this.#fail('BAD_COUNT', `Hello with ${count} counters; the limit is ${maxCounters}`, at + 3)
    }
    this.#hasGreeted = true
    this.#state = HEADERS
    this.#sink.hello(count)
    this.#headersLeft(count)
    return at + 5
  }

  #headersLeft(count: number): void {
    this.#count = count
    if (count > 0) return
    this.#state = MESSAGE
    this.#sink.greeted()
  }

  #added(at: number): number | undefined {
    if (!this.#has(at, 2)) return undefined
    const status = this.#status(at + 1)
    if (status === MonoStatus.OK) return this.#header(at + 2, (header) => void this.#sink.added(status, header))
    this.#refused = this.#sink.added(status, undefined)
    return at + 2
  }

  #header(at: number, found: (header: MonoHeader) => void): number | undefined {
    if (!this.#has(at, 8)) return undefined
    const length = this.#length(at + 4)
    if (!this.#has(at, HEADER_BYTES + length)) return undefined
    const end = at + 8 + length
    const type = this.#view.getInt32(end, true)
    if (type < 0 || type > 3) this.#fail('BAD_TYPE', `a counter of type ${type}; the types are 0 to 3`, end)
    const index = this.#view.getInt16(end + 12, true)
    if (index < 0) this.#fail('BAD_NUMBER', `a counter with the index ${index}`, end + 12)
    found({
      category: this.#view.getInt32(at, true),
      name: this.#text(at + 8, length),
      type: type as MonoType,
      unit: this.#view.getInt32(end + 4, true),
      variance: this.#view.getInt32(end + 8, true),
      index,
    })
    return end + 14
  }

  #pair(at: number): number | undefined {
    if (!this.#has(at, 4)) return undefined
    if (this.#view.getInt32(at, true) < 0) {
      this.#state = MESSAGE
      this.#sink.listEnd()
      return at + 4
    }
    const { maxCounters } = this.#limits
    if (this.#count >= maxCounters) this.#fail('BAD_COUNT', `a list of more than ${maxCounters} counters`, at)
    const firstLength = this.#length(at)
    const second = at + 4 + firstLength
    if (!this.#has(second, 4)) return undefined
    const secondLength = this.#length(second)
    if (!this.#has(second, 4 + secondLength)) return undefined
    this.#count++
    const [first, last] = [this.#text(at + 4, firstLength), this.#text(second + 4, secondLength)]
    this.#sink.listed(this.#isCategoryFirst ? { category: first, name: last } : { category: last, name: first })
    return second + 4 + secondLength
  }

  #sample(at: number): number | undefined {
    if (!this.#has(at, 2)) return undefined
    const index = this.#view.getInt16(at, true)
    if (index === -1) {
      this.#state = MESSAGE
      return at + 2
    }
    if (index < 0) this.#fail('BAD_NUMBER', `a sample with the index ${index}`, at)
    if (!this.#has(at, 4)) return undefined
    const size = this.#view.getInt16(at + 2, true)
    if (size < 0 || size > MAX_SAMPLE_BYTES) {
      this.#fail('TOO_LONG', `a sample of ${size} bytes; the limit is ${MAX_SAMPLE_BYTES}`, at + 2)
    }
    if (!this.#has(at, 4 + size)) return undefined
    this.#sink.sample(index, this.#bytes.subarray(at + 4, at + 4 + size))
    return at + 4 + size
  }

  #status(at: number): MonoStatus {
    const status = this.#bytes[at] as number
    if (status > MonoStatus.EXISTING) this.#fail('BAD_NUMBER', `the status ${status}; statuses are 0 to 3`, at)
    return status as MonoStatus
  }

  /** The length of a string that must not be null. */
  #length(at: number): number {
    const length = this.#view.getInt32(at, true)
    const { maxNameBytes } = this.#limits
    if (length < 0) this.#fail('BAD_NAME', 'null instead of a name', at)
    if (length > maxNameBytes) this.#fail('TOO_LONG', `a name of ${length} bytes; the limit is ${maxNameBytes}`, at)
    return length
  }

  #text(at: number, length: number): string {
    return utf8.decode(this.#bytes.subarray(at, at + length))
  }

  #has(at: number, count: number): boolean {
    return this.#bytes.length - at >= count
  }

  #fail(code: ProtocolErrorCode, message: string, at: number): never {
    throw new ProtocolError(code, message, this.#start + at)
  }
}

function joined(first: Uint8Array, second: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(first.length + second.length)
  bytes.set(first)
  bytes.set(second, first.length)
  return bytes
}

const TICKS_PER_MICROSECOND = 10n
/** 1970-01-01 in ticks of 100 ns since 0001-01-01 (.NET, and Mono until 2014), and since 1601-01-01 (Mono since). */
const UNIX_SINCE_1 = 621_355_968_000_000_000n
const UNIX_SINCE_1601 = 116_444_736_000_000_000n
/** From here on, ticks count from the year 1: the number means the year 1268 in that count, and 2868 in the other. */
const LEAST_SINCE_1 = 400_000_000_000_000_000n

/** A number for INT and DOUBLE, a bigint for LONG and WORD; undefined if the bytes do not fit the type. */
export function readSample(type: MonoType, bytes: Uint8Array): number | bigint | undefined {
  const { length } = bytes
  const view = new DataView(bytes.buffer, bytes.byteOffset, length)
  switch (type) {
    case MonoType.INT:
      return length === 4 ? view.getInt32(0, true) : undefined
    case MonoType.DOUBLE:
      return length === 8 ? view.getFloat64(0, true) : undefined
    case MonoType.WORD:
      if (length === 4) return BigInt(view.getInt32(0, true))
      return length === 8 ? view.getBigInt64(0, true) : undefined
    default:
      return length === 8 ? view.getBigInt64(0, true) : undefined
  }
}

/** The timestamp of a Sampling in microseconds since 1970, from whichever year it counts; undefined if it is not after 1970. */
export function microsecondsOf(ticks: bigint): number | undefined {
  const since = ticks >= LEAST_SINCE_1 ? UNIX_SINCE_1 : UNIX_SINCE_1601
  const microseconds = (ticks - since) / TICKS_PER_MICROSECOND
  return microseconds > 0n && microseconds <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(microseconds) : undefined
}
