/**
 * RESP by hand. The consumer reads on one connection and acknowledges on another: an XREADGROUP that waits for values would
 * make the XACKs after it wait too.
 */
import { type End, type Job, type Outcome, VALUE_BYTES } from '../processes/end.ts'
import { Moment, RawSocket } from '../processes/raw-socket.ts'
import { Pipeline } from './pipeline.ts'

const ENTRIES_PER_READ = 1000
/** The next values are on their way while these are acknowledged. */
const READS_AHEAD = 2
const UNCONFIRMED = 8192
const LF = 0x0a
const MINUS = 0x2d
const ARRAY = 0x2a
const BULK = 0x24

export function resp(...words: readonly string[]): Uint8Array {
  return Buffer.from(`*${words.length}\r\n${words.map((word) => `$${word.length}\r\n${word}\r\n`).join('')}`)
}

export async function openRedisPublisher(job: Job): Promise<End> {
  const bytes = resp('XADD', 's', '*', 'v', 'v'.repeat(VALUE_BYTES))
  const frame = { bytes, valueAt: bytes.length - VALUE_BYTES - 2 }
  const pipeline = new Pipeline({ frame, values: job.values, mostUnconfirmed: UNCONFIRMED })
  const replies = new Replies(job.port, 2, (count) => pipeline.confirm(count))
  const socket = await replies.socket.connected()
  return {
    async run() {
      await pipeline.run(socket)
      return { dropped: 0 }
    },
    close: () => socket.close(),
  }
}

export async function openRedisConsumer(job: Job): Promise<End> {
  const consumer = new Consumer(job)
  await consumer.open()
  return consumer
}

/** A connection whose replies are only counted: each has so many lines, and none may be an error. */
class Replies {
  readonly socket: RawSocket
  readonly #linesEach: number
  readonly #came: (count: number) => void
  #lines = 0
  #atStart = true

  constructor(port: number, linesEach: number, came: (count: number) => void) {
    this.#linesEach = linesEach
    this.#came = came
    this.socket = new RawSocket(port, (bytes, _view, end) => this.#read(bytes, end))
  }

  #read(bytes: Uint8Array, end: number): number {
    for (let at = 0; at < end; at++) {
      const byte = bytes[at]
      if (this.#atStart && byte === MINUS) throw new Error(`redis: ${Buffer.from(bytes.subarray(at, end)).toString()}`)
      this.#atStart = byte === LF
      if (this.#atStart) this.#lines++
    }
    const replies = Math.floor(this.#lines / this.#linesEach)
    this.#lines -= replies * this.#linesEach
    if (replies > 0) this.#came(replies)
    return end
  }
}

class Consumer implements End {
  readonly #values: number
  readonly #reader: RawSocket
  readonly #acks: Replies
  readonly #done = new Moment()
  readonly #grouped = new Moment()
  readonly #read = resp(
    'XREADGROUP',
    'GROUP',
    'g',
    'c',
    'COUNT',
    String(ENTRIES_PER_READ),
    'BLOCK',
    '0',
    'STREAMS',
    's',
    '>',
  )
  #parser = new EntryParser()
  #acked = 0

  constructor(job: Job) {
    this.#values = job.values
    this.#reader = new RawSocket(job.port, (bytes, _view, end) => this.#take(bytes, end))
    this.#acks = new Replies(job.port, 1, (count) => this.#answered(count))
  }

  async open(): Promise<void> {
    await this.#reader.connected()
    const acks = await this.#acks.socket.connected()
    acks.write(resp('XGROUP', 'CREATE', 's', 'g', '0', 'MKSTREAM'))
    await acks.until(this.#grouped.reached)
    for (let i = 0; i < READS_AHEAD; i++) this.#reader.write(this.#read)
  }

  async run(): Promise<Outcome> {
    await this.#acks.socket.until(this.#reader.until(this.#done.reached))
    return { dropped: 0 }
  }

  close(): void {
    this.#reader.close()
    this.#acks.socket.close()
  }

  #take(bytes: Uint8Array, end: number): number {
    const { used, acks, replies } = this.#parser.parse(bytes, end)
    if (acks.length > 0) this.#acks.socket.write(acks)
    for (let i = 0; i < replies; i++) this.#reader.write(this.#read)
    return used
  }

  /** The first answer is that of XGROUP. */
  #answered(count: number): void {
    this.#grouped.reach()
    this.#acked += count
    if (this.#acked === this.#values + 1) this.#done.reach()
  }
}

/**
 * Replies of XREADGROUP: *1 *2 $stream *entries, each entry *2 $id *2 $field $value. An XACK is laid out for every id.
 */
export class EntryParser {
  /** Entries of this reply that have not come yet; 0: a reply begins. */
  #left = 0

  parse(bytes: Uint8Array, end: number): { used: number; acks: Uint8Array; entries: number; replies: number } {
    const acks = new Acks(end)
    let used = 0
    let [entries, replies] = [0, 0]
    const cursor = new Cursor(bytes, end)
    for (;;) {
      if (this.#left === 0) {
        if (!(cursor.array() && cursor.array() && cursor.bulk() && cursor.array())) break
        this.#left = cursor.number
      } else {
        if (!(cursor.array() && cursor.bulk())) break
        const idAt = cursor.start
        const idLength = cursor.number
        if (!(cursor.array() && cursor.bulk() && cursor.bulk())) break
        acks.add(bytes, idAt, idLength)
        entries++
        if (--this.#left === 0) replies++
      }
      used = cursor.at
    }
    return { used, acks: acks.bytes(), entries, replies }
  }
}

/** Elements of RESP, one after the other; false when not all of one is there. */
class Cursor {
  readonly #bytes: Uint8Array
  readonly #end: number
  at = 0
  /** Of an array its length, of a bulk string its bytes, which begin at `start`. */
  number = 0
  start = 0

  constructor(bytes: Uint8Array, end: number) {
    this.#bytes = bytes
    this.#end = end
  }

  array(): boolean {
    return this.#head(ARRAY)
  }

  bulk(): boolean {
    if (!this.#head(BULK)) return false
    this.start = this.at
    this.at += this.number + 2
    return this.at <= this.#end
  }

  /** A type and a number up to the end of the line. */
  #head(type: number): boolean {
    if (this.at >= this.#end) return false
    if (this.#bytes[this.at] !== type) {
      throw new Error(`redis: ${Buffer.from(this.#bytes.subarray(this.at, this.#end)).toString().slice(0, 100)}`)
    }
    let number = 0
    for (let at = this.at + 1; at < this.#end; at++) {
      const byte = this.#bytes[at] as number
      if (byte === LF) {
        this.number = number
        this.at = at + 1
        return true
      }
      if (byte >= 0x30) number = number * 10 + byte - 0x30
    }
    return false
  }
}

class Acks {
  static readonly #head = Buffer.from('*4\r\n$4\r\nXACK\r\n$1\r\ns\r\n$1\r\ng\r\n$')
  readonly #bytes: Uint8Array
  #length = 0

  /** Room for the ids of `end` bytes: an XACK is shorter than the entry it answers. */
  constructor(end: number) {
    this.#bytes = new Uint8Array(end)
  }

  add(bytes: Uint8Array, idAt: number, idLength: number): void {
    const head = Acks.#head
    this.#bytes.set(head, this.#length)
    this.#length += head.length
    if (idLength > 9) this.#byte(0x30 + Math.floor(idLength / 10))
    this.#byte(0x30 + (idLength % 10))
    this.#lineEnd()
    for (let i = 0; i < idLength; i++) this.#byte(bytes[idAt + i] as number)
    this.#lineEnd()
  }

  bytes(): Uint8Array {
    return this.#bytes.subarray(0, this.#length)
  }

  #lineEnd(): void {
    this.#byte(0x0d)
    this.#byte(LF)
  }

  #byte(value: number): void {
    this.#bytes[this.#length++] = value
  }
}
