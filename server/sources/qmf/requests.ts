/**
 * What a broker was asked and has not answered. A newcomer expects every request to be answered: a broker drops what it
 * does not like without a word, and an agent may be gone, so each has its time. A few are under way to each
 * address; the rest waits, so that a silent agent holds up nobody else.
 */
import { ProtocolError } from '../../../protocol/errors.ts'
import { Bodies, MAX_BODY_BYTES } from '../../../protocol/qmf/bodies.ts'
import type { QmfMessage } from '../../../protocol/qmf/types.ts'
import type { QmfCounters } from './counters.ts'

/** `spoilt`: part of the answer could not be read; `refused`: an error; `late`: not in time; `ended`: the connection is over. */
export type Ending = 'done' | 'spoilt' | 'refused' | 'late' | 'ended'

export interface Question {
  /** The routing key: `broker`, or `agent.<brokerBank>.<agentBank>`. */
  readonly to: string
  message(sequence: number): QmfMessage
  /** Called for every answer but z. */
  answered?(answer: QmfMessage): void
  /** Called once, last. */
  ended(ending: Ending): void
  /** From when it is sent. */
  readonly timeoutMs?: number
  /** Sent at once, however many wait. */
  readonly isUrgent?: boolean
}

interface Request {
  readonly question: Question
  readonly message: QmfMessage
  readonly bytes: Uint8Array
  deadlineMs: number
  isSpoilt: boolean
}
interface Line {
  readonly waiting: Request[]
  underWay: number
}

export interface RequestsOptions {
  readonly encode: (message: QmfMessage) => Uint8Array
  readonly send: (routingKey: string, body: Uint8Array) => void
  readonly counters: QmfCounters
}

export const TIMEOUT_MS = 10_000
/** To one address. */
const MOST_UNDER_WAY = 32
const MOST_WAITING = 10_000

const answersTo: Partial<Record<QmfMessage['op'], string>> = { B: 'b', P: 'pz', Q: 'qz', S: 'sz', G: 'gz', M: 'mz' }
/** More answers follow these. */
const notLast = 'pqg'

export class Requests {
  readonly #encode: (message: QmfMessage) => Uint8Array
  readonly #send: (routingKey: string, body: Uint8Array) => void
  readonly #counters: QmfCounters
  readonly #lines = new Map<string, Line>()
  readonly #underWay = new Map<number, Request>()
  #waiting = 0
  #sequence = 0

  constructor({ encode, send, counters }: RequestsOptions) {
    this.#encode = encode
    this.#send = send
    this.#counters = counters
  }

  /** Sent by the next `flush`. Otherwise it says why not, for people, and `ended` is not called. */
  ask(question: Question): string | undefined {
    // 0 is for what comes unasked.
    this.#sequence = (this.#sequence % 0xffff_ffff) + 1
    const message = question.message(this.#sequence)
    const bytes = this.#bytesOf(message)
    if (typeof bytes === 'string') {
      // Whoever calls is told; the rest are names that the broker itself gave.
      if (!question.isUrgent) this.#counters.malformed++
      return bytes
    }
    if (this.#waiting >= MOST_WAITING && !question.isUrgent) {
      this.#counters.requestsFull++
      return 'too many requests wait to be sent'
    }
    const line = this.#line(question.to)
    const request: Request = { question, message, bytes, deadlineMs: 0, isSpoilt: false }
    if (question.isUrgent) line.waiting.unshift(request)
    else line.waiting.push(request)
    this.#waiting++
    return undefined
  }

  flush(nowMs: number): void {
    for (const [to, line] of this.#lines) {
      const sent: Request[] = []
      while (line.waiting[0]?.question.isUrgent || line.underWay + sent.length < MOST_UNDER_WAY) {
        const request = line.waiting.shift()
        if (request === undefined) break
        this.#waiting--
        request.deadlineMs = nowMs + (request.question.timeoutMs ?? TIMEOUT_MS)
        this.#underWay.set(request.message.sequence, request)
        sent.push(request)
      }
      line.underWay += sent.length
      for (const body of bodiesOf(to, sent)) this.#send(to, body)
    }
  }

  /** What the request of that sequence was, while it is under way. */
  asked(sequence: number): QmfMessage | undefined {
    return this.#underWay.get(sequence)?.message
  }

  /** False if it answers nothing that was asked. */
  answer(answer: QmfMessage, nowMs: number): boolean {
    const request = this.#underWay.get(answer.sequence)
    if (request === undefined || !answersTo[request.message.op]?.includes(answer.op)) {
      this.#counters.unexpected++
      return false
    }
    const { question } = request
    if (notLast.includes(answer.op)) {
      request.deadlineMs = nowMs + (question.timeoutMs ?? TIMEOUT_MS)
      question.answered?.(answer)
      return true
    }
    this.#settle(request)
    if (answer.op !== 'z') question.answered?.(answer)
    if (answer.op === 'z' && answer.code !== 0) question.ended('refused')
    else question.ended(request.isSpoilt ? 'spoilt' : 'done')
    return true
  }

  /** Something of an answer could not be read. */
  spoil(sequence: number, op: string): void {
    const request = this.#underWay.get(sequence)
    if (request === undefined || !answersTo[request.message.op]?.includes(op)) return
    request.isSpoilt = true
    if (notLast.includes(op)) return
    this.#settle(request)
    request.question.ended('spoilt')
  }

  /** To be called every second or so. */
  sweep(nowMs: number): void {
    const late = [...this.#underWay.values()].filter(({ deadlineMs }) => nowMs >= deadlineMs)
    for (const request of late) this.#settle(request)
    this.#counters.unanswered += late.length
    for (const { question } of late) question.ended('late')
  }

  end(): void {
    const all = [...this.#underWay.values(), ...[...this.#lines.values()].flatMap(({ waiting }) => waiting)]
    this.#underWay.clear()
    this.#lines.clear()
    this.#waiting = 0
    for (const { question } of all) question.ended('ended')
  }

  #bytesOf(message: QmfMessage): Uint8Array | string {
    try {
      const bytes = this.#encode(message)
      return bytes.length > MAX_BODY_BYTES ? `${bytes.length} bytes, where a broker takes ${MAX_BODY_BYTES}` : bytes
    } catch (error) {
      if (error instanceof ProtocolError) return error.message
      throw error
    }
  }

  #line(to: string): Line {
    const line = this.#lines.get(to) ?? { waiting: [], underWay: 0 }
    this.#lines.set(to, line)
    return line
  }

  #settle({ message, question }: Request): void {
    this.#underWay.delete(message.sequence)
    const line = this.#line(question.to)
    line.underWay--
    if (line.underWay === 0 && line.waiting.length === 0) this.#lines.delete(question.to)
  }
}

/**
 * A broker reads many requests in one body; other agents are not known to. A call stands alone: qpidd takes whatever
 * follows it for its arguments.
 */
function bodiesOf(to: string, requests: readonly Request[]): readonly Uint8Array[] {
  const isBroker = to === 'broker' || to.endsWith('.0')
  const together = new Bodies()
  const all = requests.map(({ bytes, message }) => (isBroker && message.op !== 'M' ? together.add(bytes) : bytes))
  return [...all, together.rest()].filter((body) => body !== undefined)
}
