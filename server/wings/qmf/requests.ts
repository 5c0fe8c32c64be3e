/**
 * The requests to a broker that have no answer yet, calls of methods among them. A newcomer expects an answer to every
 * request: a broker silently drops what it does not like, and an agent may be gone, so each request has a timeout. Only
 * a few requests are sent to each address at once and the others wait, so that a silent agent delays nobody else.
 */
import { ProtocolError } from '../../../protocol/errors.ts'
import { BodyPacker, MAX_BODY_BYTES } from '../../../protocol/qmf/messages.ts'
import {
  type ClassKey,
  type ObjectId,
  type QmfMessage,
  QmfStatus,
  type QmfValue,
  type Schema,
  type SchemaMethod,
} from '../../../protocol/qmf/types.ts'
import { agentOf } from './addresses.ts'
import { type CallResult, consoleLimits, type QmfCounters } from './console-events.ts'
import type { QmfWire, WireRequest } from './wire.ts'

/** `incomplete`: part of the answer could not be read; `refused`: an error; `closed`: the connection ended. */
export type RequestOutcome = 'done' | 'incomplete' | 'refused' | 'timeout' | 'closed'

export interface QmfRequest {
  /** `broker`, or the address of an agent: see `QmfWire`. */
  readonly to: string
  message(sequence: number): QmfMessage
  /** Called for every answer but z. */
  answered?(answer: QmfMessage): void
  /** Called once, last. */
  ended(outcome: RequestOutcome): void
  /** Counted from the time it is sent, or of the last part of its answer. */
  readonly timeoutMs?: number
  /** An urgent request is sent at once, however many wait. */
  readonly isUrgent?: boolean
}

export interface MethodCall {
  readonly id: ObjectId
  readonly key: ClassKey
  readonly method: string
  /** The arguments with direction I and IO. */
  readonly arguments: readonly QmfValue[]
  readonly timeoutMs: number
}

interface Pending {
  readonly request: QmfRequest
  readonly message: QmfMessage
  /** Undefined until it is sent. */
  encoded: WireRequest | undefined
  deadlineMs: number
  isIncomplete: boolean
}
interface AddressQueue {
  readonly waiting: Pending[]
  sent: number
}

export interface RequestsOptions {
  readonly wire: Pick<QmfWire, 'encode'>
  readonly send: (request: Pick<WireRequest, 'transfer' | 'body'>) => void
  readonly counters: QmfCounters
  readonly maxCalls?: number
}

export const REQUEST_TIMEOUT_MS = 10_000
/** The limit for requests that are sent to one address. */
const MAX_SENT = 32
const MAX_WAITING = 10_000

const answersTo: Partial<Record<QmfMessage['op'], string>> = { B: 'b', P: 'pz', Q: 'qz', S: 'sz', G: 'gz', M: 'mz' }
/** These are followed by more answers to the same request. */
const partialAnswers = 'pqg'

export class QmfRequests {
  readonly #wire: Pick<QmfWire, 'encode'>
  readonly #send: RequestsOptions['send']
  readonly #counters: QmfCounters
  readonly #maxCalls: number
  readonly #queues = new Map<string, AddressQueue>()
  readonly #sent = new Map<number, Pending>()
  #waiting = 0
  #calls = 0
  #sequence = 0

  constructor({ wire, send, counters, maxCalls = consoleLimits.calls }: RequestsOptions) {
    this.#wire = wire
    this.#send = send
    this.#counters = counters
    this.#maxCalls = maxCalls
  }

  /**
   * Queues a request for the next `flush`. Returns the reason, for people, if it cannot; `ended` is not called then. Only
   * an urgent one is encoded at once, so that very many cost little before they are sent.
   */
  ask(request: QmfRequest): string | undefined {
    if (this.#waiting >= MAX_WAITING && !request.isUrgent) {
      this.#counters.requestsFull++
      return 'too many requests are waiting to be sent'
    }
    // 0 is the sequence of unsolicited messages.
    this.#sequence = (this.#sequence % 0xffff_ffff) + 1
    const message = request.message(this.#sequence)
    const encoded = request.isUrgent ? this.#encoded(message, request.to) : undefined
    // The caller of a method is informed.
    if (typeof encoded === 'string') return encoded
    const { waiting } = this.#queueOf(request.to)
    const pending: Pending = { request, message, encoded, deadlineMs: 0, isIncomplete: false }
    if (request.isUrgent) waiting.unshift(pending)
    else waiting.push(pending)
    this.#waiting++
    return undefined
  }

  /** Queues a call for the next `flush`. Never rejects. A call that does not fit the method is not sent at all. */
  call({ id, key, method, arguments: values, timeoutMs }: MethodCall): Promise<CallResult> {
    if (this.#calls >= this.#maxCalls) return Promise.resolve('full')
    return new Promise((resolve) => {
      let reply: CallResult = 'unreadable'
      const refusal = this.ask({
        to: agentOf(id),
        isUrgent: true,
        timeoutMs,
        message: (sequence) => ({ op: 'M', sequence, id, key, method, arguments: values }),
        answered: (answer) => {
          if (answer.op === 'm') reply = { status: answer.status, text: answer.text, arguments: answer.arguments }
        },
        ended: (outcome) => {
          this.#calls--
          resolve(outcome === 'timeout' ? 'timeout' : outcome === 'closed' ? undefined : reply)
        },
      })
      if (refusal === undefined) this.#calls++
      else resolve({ status: QmfStatus.INVALID_PARAMETER, text: refusal, arguments: [] })
    })
  }

  /** The method that the pending request of that sequence calls. */
  calledMethod(sequence: number, schemaOf: (key: ClassKey) => Schema | undefined): SchemaMethod | undefined {
    const message = this.#sent.get(sequence)?.message
    if (message?.op !== 'M') return undefined
    const schema = schemaOf(message.key)
    return schema?.kind === 'table' ? schema.methods.find(({ name }) => name === message.method) : undefined
  }

  flush(nowMs: number): void {
    for (const [address, queue] of this.#queues) {
      const sent: WireRequest[] = []
      while (queue.waiting[0]?.request.isUrgent || queue.sent < MAX_SENT) {
        const pending = queue.waiting.shift()
        if (pending === undefined) break
        this.#waiting--
        const encoded = pending.encoded ?? this.#encoded(pending.message, address)
        if (typeof encoded === 'string') {
          // It consists of names that the broker itself gave.
          this.#counters.malformed++
          pending.request.ended('refused')
          continue
        }
        this.#extend(pending, nowMs)
        this.#sent.set(pending.message.sequence, pending)
        queue.sent++
        sent.push(encoded)
      }
      for (const request of joined(sent)) this.#send(request)
      if (queue.sent === 0 && queue.waiting.length === 0) this.#queues.delete(address)
    }
  }

  /** Refuses the requests to an address that were not sent yet. */
  drop(address: string): void {
    const queue = this.#queues.get(address)
    if (queue === undefined) return
    const dropped = queue.waiting.splice(0)
    this.#waiting -= dropped.length
    if (queue.sent === 0) this.#queues.delete(address)
    for (const { request } of dropped) request.ended('refused')
  }

  /** Returns false if the message answers no pending request. */
  answer(answer: QmfMessage, nowMs: number): boolean {
    const pending = this.#answered(answer.sequence, answer.op)
    if (pending === undefined) {
      this.#counters.unexpected++
      return false
    }
    const { request } = pending
    if (partialAnswers.includes(answer.op)) {
      this.#extend(pending, nowMs)
      request.answered?.(answer)
      return true
    }
    this.#remove(pending)
    if (answer.op !== 'z') request.answered?.(answer)
    if (answer.op === 'z' && answer.code !== 0) request.ended('refused')
    else request.ended(pending.isIncomplete ? 'incomplete' : 'done')
    return true
  }

  /** Takes note of an answer that could not be read. */
  answerUnreadable(sequence: number, op: string): void {
    const pending = this.#answered(sequence, op)
    if (pending === undefined) return
    pending.isIncomplete = true
    if (partialAnswers.includes(op)) return
    this.#remove(pending)
    pending.request.ended('incomplete')
  }

  /** Call it about every second. */
  tick(nowMs: number): void {
    const late = [...this.#sent.values()].filter(({ deadlineMs }) => nowMs >= deadlineMs)
    for (const pending of late) this.#remove(pending)
    this.#counters.unanswered += late.length
    for (const { request } of late) request.ended('timeout')
  }

  close(): void {
    const all = [...this.#sent.values(), ...[...this.#queues.values()].flatMap(({ waiting }) => waiting)]
    this.#sent.clear()
    this.#queues.clear()
    this.#waiting = 0
    for (const { request } of all) request.ended('closed')
  }

  #answered(sequence: number, op: string): Pending | undefined {
    const pending = this.#sent.get(sequence)
    return pending !== undefined && answersTo[pending.message.op]?.includes(op) ? pending : undefined
  }

  #extend(pending: Pending, nowMs: number): void {
    pending.deadlineMs = nowMs + (pending.request.timeoutMs ?? REQUEST_TIMEOUT_MS)
  }

  /** Why a call cannot be sent, for people; undefined if it can. */
  problemOf({ id, key, method, arguments: values }: Omit<MethodCall, 'timeoutMs'>): string | undefined {
    const message = { op: 'M', sequence: 0, id, key, method, arguments: values } as const
    const encoded = this.#encoded(message, agentOf(id))
    return typeof encoded === 'string' ? encoded : undefined
  }

  #encoded(message: QmfMessage, to: string): WireRequest | string {
    try {
      const encoded = this.#wire.encode(message, to)
      const { length } = encoded.body
      return length > MAX_BODY_BYTES ? `a request of ${length} bytes, where a broker takes ${MAX_BODY_BYTES}` : encoded
    } catch (error) {
      if (error instanceof ProtocolError) return error.message
      throw error
    }
  }

  #queueOf(to: string): AddressQueue {
    const queue = this.#queues.get(to) ?? { waiting: [], sent: 0 }
    this.#queues.set(to, queue)
    return queue
  }

  #remove({ message, request }: Pending): void {
    this.#sent.delete(message.sequence)
    const queue = this.#queueOf(request.to)
    queue.sent--
    if (queue.sent === 0 && queue.waiting.length === 0) this.#queues.delete(request.to)
  }
}

/** Puts requests to one address into as few bodies as it can read. */
function joined(encoded: readonly WireRequest[]): readonly Pick<WireRequest, 'transfer' | 'body'>[] {
  const packer = new BodyPacker()
  const requests: Pick<WireRequest, 'transfer' | 'body'>[] = []
  let joinable: WireRequest | undefined
  const push = (body: Uint8Array | undefined): void => {
    if (body !== undefined && joinable !== undefined) requests.push({ transfer: joinable.transfer, body })
  }
  for (const request of encoded) {
    if (request.isJoinable) {
      push(packer.add(request.body))
      joinable = request
    } else requests.push(request)
  }
  push(packer.rest())
  return requests
}
