/**
 * A consumer's connection at a limit server: every command is OK. COMMITs are walked by their lengths, and their seqs go into
 * OKs, which are held until the next transaction is on the disk. It speaks as much of the protocol as the consumers of the
 * benchmarks ask for.
 */
import type { Socket } from 'node:net'
import { frame, join, str, u32, u64 } from '../../support/bytes.ts'
import { FrameRun } from './frame-run.ts'
import { SEQ_AT } from './job.ts'

const [SUBSCRIBE, SET_CHANNEL, COMMIT, QUERY] = [3, 8, 10, 12]
const RESULT = 1
/** Of a QUERY: the name, and the arguments after it. */
const NAME_AT = 12
const caps = frame(u32(0xfffffffe), u32(1), u32(1), u32(0))
const [UINT64, REC, ARRAY] = [4, 9, 10]

export function okFrame(seq: number): Uint8Array {
  return frame(u32(0xffffffff), u32(seq), u32(0), u32(RESULT))
}

export interface ConsumerEvents {
  /** It wants values. */
  subscribed(consumer: LimitConsumer): void
  /** COMMITs have come. */
  committed(consumer: LimitConsumer, count: number): void
  /** How many values are on the disk. */
  stored(): number
  /** Undefined: a QUERY asks for what is stored. Otherwise it is answered by these frames, which have the seq in this place. */
  readonly answer: Uint8Array | undefined
}

export class LimitConsumer {
  readonly socket: Socket
  readonly #events: ConsumerEvents
  readonly #oks = new FrameRun(okFrame(0), SEQ_AT)
  /** By what is asked for. A benchmark asks for one thing at a time, so their order among each other does not matter. */
  readonly #answers = new Map<string, FrameRun>()
  #rest: Buffer | undefined
  /** OKs of the COMMITs that the transaction under way stands for. */
  #sealed: readonly Uint8Array[] = []

  constructor(socket: Socket, events: ConsumerEvents) {
    this.socket = socket
    this.#events = events
    socket.setNoDelay(true)
    socket.on('data', (chunk) => this.#read(chunk))
    socket.on('error', () => {})
    socket.write(caps)
  }

  /** Chunks leave in one system call. */
  write(chunks: readonly Uint8Array[]): void {
    this.socket.cork()
    for (const chunk of chunks) this.socket.write(chunk)
    this.socket.uncork()
  }

  /** What has been committed by now is part of the next transaction. */
  seal(): void {
    this.#sealed = this.#oks.take()
  }

  /** That transaction is on the disk. */
  release(): void {
    this.write(this.#sealed)
    this.#sealed = []
  }

  #read(chunk: Buffer): void {
    const bytes = this.#rest === undefined ? chunk : Buffer.concat([this.#rest, chunk])
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
    let commits = 0
    let at = 0
    while (bytes.length - at >= 4) {
      const next = at + 4 + view.getUint32(at)
      if (next > bytes.length) break
      const command = bytes[at + 7]
      const seq = view.getUint32(at + SEQ_AT)
      if (command === COMMIT) {
        commits++
        this.#oks.add(seq)
      } else if (command === QUERY && this.#events.answer !== undefined) {
        this.#answerOf(bytes.toString('latin1', at + NAME_AT, next), this.#events.answer).add(seq)
      } else this.#handle(command, seq)
      at = next
    }
    this.#rest = at < bytes.length ? bytes.subarray(at) : undefined
    for (const answers of this.#answers.values()) this.write(answers.take())
    if (commits > 0) this.#events.committed(this, commits)
  }

  /** The least is to find what is asked for by its name and arguments. */
  #answerOf(key: string, answer: Uint8Array): FrameRun {
    const known = this.#answers.get(key)
    if (known !== undefined) return known
    const answers = new FrameRun(answer, SEQ_AT)
    this.#answers.set(key, answers)
    return answers
  }

  #handle(command: number | undefined, seq: number): void {
    this.socket.write(okFrame(seq))
    if (command === SUBSCRIBE || command === SET_CHANNEL) this.#events.subscribed(this)
    if (command === QUERY) this.socket.write(storedFrame(this.#events.stored()))
  }
}

/** The one field of `producer.channels` that is asked for: `stored`. */
function storedFrame(stored: number): Uint8Array {
  const record = join(u32(1), str('stored'), u32(UINT64), u64(stored))
  return frame(u32(RESULT), u64(0), u64(0), u32(ARRAY), u32(REC), u32(1), record)
}
