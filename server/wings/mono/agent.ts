/**
 * An agent, which is one connection or file: its samples become values, and the counters that consumers bind are requested
 * from it. Values stay valid, because an agent sends a counter only when it changes, and a constant once.
 */
import { ProtocolError } from '../../../protocol/errors.ts'
import type { Value } from '../../../protocol/monitor/value.ts'
import {
  MonoDecoder,
  type MonoLimits,
  type MonoSink,
  microsecondsOf,
  readSample,
} from '../../../protocol/mono/decode.ts'
import {
  encodeAdd,
  encodeGoodBye,
  encodeList,
  encodeRemove,
  type MonoDialect,
  type MonoHeader,
  type MonoName,
  MonoStatus,
} from '../../../protocol/mono/messages.ts'
import type { StreamReply } from '../../kit/io/tcp.ts'
import { AgentCounters, basicType, counterName, type MonoReceiver, type MonoSeries } from './counters.ts'

export interface MonoAgentOptions {
  readonly name: string
  readonly dialect: MonoDialect
  readonly limits: MonoLimits
  readonly receiver: MonoReceiver
  /** The way back to the agent; undefined for a file, which cannot be sent requests. */
  readonly back: StreamReply | undefined
}

/** Called with the status of the response, or with undefined if the connection ended before it. */
export type Answered = (status: MonoStatus | undefined) => void

/** The number of Add and Remove that may be in flight: a peer that does not read must not fill memory. */
const MAX_IN_FLIGHT = 64
const MAX_REQUESTS = 256
/** The time allowed from the connection to Hello, and from Good Bye to the end. */
const TIMEOUT_MS = 10_000

export class MonoAgent implements MonoSink {
  #name: string
  readonly #dialect: MonoDialect
  readonly #receiver: MonoReceiver
  readonly #back: StreamReply | undefined
  readonly #decoder: MonoDecoder
  readonly #counters: AgentCounters
  readonly #requests = new MonoRequests()
  /** Series that need a request as soon as earlier requests are answered. */
  readonly #pending = new Set<MonoSeries>()
  #listed: MonoName[] = []
  /** Whether the first response to List is complete. */
  #isListComplete = false
  #isGreeted = false
  /** When it must have sent Hello, or have closed the connection; monotonic ms. */
  #deadlineMs: number
  #isOver = false
  #time = 0

  constructor({ name, dialect, limits, receiver, back }: MonoAgentOptions) {
    this.#name = name
    this.#dialect = dialect
    this.#receiver = receiver
    this.#back = back
    this.#counters = new AgentCounters(name, receiver, (series) => this.#requestChange(series))
    this.#decoder = new MonoDecoder(this, dialect, limits)
    this.#deadlineMs = receiver.clock.monotonicMs() + TIMEOUT_MS
  }

  /** Takes the next bytes. If it throws ProtocolError, the agent must be ended. */
  push(bytes: Uint8Array): void {
    this.#decoder.decode(bytes)
  }

  /** Whether the stream is between two messages. */
  get complete(): boolean {
    return this.#decoder.complete
  }

  get name(): string {
    return this.#name
  }

  rename(name: string): void {
    this.#name = name
    this.#counters.rename(name)
  }

  get isFile(): boolean {
    return this.#back === undefined
  }

  get isLate(): boolean {
    return this.#requests.isLate
  }

  /** Call this about once a second. Returns true if the deadline has passed and the agent must be ended. */
  sweep(nowMs: number): boolean {
    this.#receiver.counters.unanswered += this.#requests.late(nowMs)
    return this.#back !== undefined && nowMs > this.#deadlineMs
  }

  /** Whether it accepts requests now. */
  get isOpen(): boolean {
    return this.#back !== undefined && this.#isGreeted && !this.#isOver && this.#requests.count < MAX_REQUESTS
  }

  /** Ends all series and requests, after the connection has ended. */
  end(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#requests.end()
    this.#counters.end()
  }

  list(answered: (counters: readonly MonoName[] | undefined) => void): void {
    this.#requests.ask('list', this.#receiver.clock.monotonicMs(), answered)
    this.#back?.write(encodeList(this.#dialect))
  }

  /** The series of a counter, if there is one. */
  find(counter: MonoName): MonoSeries | undefined {
    return this.#counters.find(counter)
  }

  /** Makes the agent send a counter, whether or not a consumer wants it. Must not be called while a request for it is in flight. */
  add(counter: MonoName, answered: Answered): void {
    const series = this.#counters.findOrCreate(counter)
    if (series === undefined) {
      answered(MonoStatus.NOK)
      return
    }
    series.isRequired = true
    if (series.header !== undefined) answered(MonoStatus.EXISTING)
    else this.#request(series, answered)
  }

  /** Makes the agent send a counter only while a consumer wants it. Must not be called while a request for it is in flight. */
  remove(series: MonoSeries, answered: Answered): void {
    series.isRequired = false
    if (series.header === undefined) answered(MonoStatus.NOTFOUND)
    else this.#request(series, answered)
  }

  goodBye(): void {
    this.#deadlineMs = this.#receiver.clock.monotonicMs() + TIMEOUT_MS
    this.#back?.write(encodeGoodBye())
  }

  hello(): void {}

  counter(header: MonoHeader): void {
    const series = this.#counters.findOrCreate(counterName(header))
    if (series === undefined) return
    if (series.header !== undefined) {
      this.#receiver.counters.badName++
      return
    }
    series.isRequired = true
    this.#counters.started(series, header)
  }

  greeted(): void {
    this.#isGreeted = true
    this.#deadlineMs = Number.POSITIVE_INFINITY
    if (this.#back === undefined) return
    this.list(() => {
      this.#isListComplete = true
    })
  }

  listed(counter: MonoName): void {
    this.#requests.expect('list')
    this.#counters.addListed(counter)
    // Later lists are requested by a control, which shows the counters.
    if (this.#isListComplete) this.#listed.push(counter)
  }

  listEnd(): void {
    const listed = this.#listed
    this.#listed = []
    this.#requests.answer('list', listed)
    this.#continue()
  }

  added(status: MonoStatus, header: MonoHeader | undefined): MonoName | undefined {
    const asked = this.#requests.answer('add', { status, header })
    this.#continue()
    return asked
  }

  removed(status: MonoStatus): void {
    this.#requests.answer('remove', { status })
    this.#continue()
  }

  sampling(ticks: bigint): void {
    const { counters, clock } = this.#receiver
    const time = microsecondsOf(ticks)
    if (time === undefined) counters.badTime++
    this.#time = time ?? clock.microseconds()
    counters.samplings++
  }

  sample(index: number, bytes: Uint8Array): void {
    const series = this.#counters.at(index)
    const header = series?.header
    if (series === undefined || header === undefined) {
      this.#receiver.counters.unserved++
      return
    }
    const value = readSample(header.type, bytes)
    if (value === undefined) {
      throw new ProtocolError(
        'BAD_TYPE',
        `a sample of ${bytes.length} bytes for ${header.name}, which is of type ${header.type}`,
      )
    }
    this.#receiver.received(series, { type: basicType(header), value } as Value, this.#time)
  }

  /** Requests a change if a series is sent but not needed, or needed but not sent. */
  #requestChange(series: MonoSeries): void {
    if (this.#back === undefined || this.#isOver || series.isAsked || series.isRefused) return
    const shouldBeSent = series.isWanted || series.isRequired
    if (shouldBeSent === (series.header !== undefined)) return
    if (!this.#isGreeted || this.#requests.count >= MAX_IN_FLIGHT || this.#requests.isLate) this.#pending.add(series)
    else this.#request(series, () => {})
  }

  #continue(): void {
    for (const series of this.#pending) {
      if (this.#requests.count >= MAX_IN_FLIGHT || this.#requests.isLate) return
      this.#pending.delete(series)
      this.#requestChange(series)
    }
  }

  /** Removes a series that only a control ever named. */
  #forgetIfUnknown(series: MonoSeries): void {
    series.isRequired = false
    if (!series.isListed && !series.isWanted) this.#counters.forget(series)
  }

  /** Sends Add if the counter is not sent, Remove if it is. */
  #request(series: MonoSeries, answered: Answered): void {
    const { counters, clock } = this.#receiver
    const { header } = series
    series.isAsked = true
    const done = (status: MonoStatus, isDone: boolean): void => {
      series.isAsked = false
      series.isRefused = !isDone
      if (!isDone) counters.refused++
      answered(status)
      this.#requestChange(series)
    }
    if (header === undefined) {
      const added = (answer: MonoResponses['add'] | undefined) => {
        if (answer === undefined) return answered(undefined)
        if (answer.header !== undefined) {
          this.#counters.started(series, answer.header)
          counters.added++
        }
        done(answer.status, answer.header !== undefined)
        if (answer.header === undefined) this.#forgetIfUnknown(series)
      }
      this.#requests.ask('add', clock.monotonicMs(), added, series.counter)
      this.#back?.write(encodeAdd(this.#dialect, series.counter))
    } else {
      this.#requests.ask('remove', clock.monotonicMs(), (answer) => {
        if (answer === undefined) return answered(undefined)
        const isGone = answer.status === MonoStatus.OK || answer.status === MonoStatus.NOTFOUND
        if (isGone) {
          this.#counters.stopped(series, header)
          counters.removed++
        }
        done(answer.status, isGone)
      })
      this.#back?.write(encodeRemove(this.#dialect, header.index))
    }
  }
}

interface MonoResponses {
  readonly list: readonly MonoName[]
  readonly add: { readonly status: MonoStatus; readonly header: MonoHeader | undefined }
  readonly remove: { readonly status: MonoStatus }
}
type MonoRequestKind = keyof MonoResponses

interface Request<K extends MonoRequestKind> {
  readonly askedMs: number
  readonly answered: (answer: MonoResponses[K] | undefined) => void
  /** What an Add asked for. */
  readonly counter: MonoName | undefined
  isLate: boolean
}

/** An agent answers within milliseconds; an agent of the other dialect never does. */
const LATE_MS = 10_000

/**
 * The requests that an agent has not answered. A response has a kind but no id: it belongs to the oldest request of that
 * kind. A late response is still waited for, because otherwise all later ones would be assigned to the wrong requests.
 */
class MonoRequests {
  readonly #asked: { readonly [K in MonoRequestKind]: Request<K>[] } = { list: [], add: [], remove: [] }

  get count(): number {
    return this.#all().length
  }

  /** Whether a request was not answered in time. */
  get isLate(): boolean {
    return this.#all().some(({ isLate }) => isLate)
  }

  /** Calls `answered` with the response, or with undefined if the connection ends before. */
  ask<K extends MonoRequestKind>(
    kind: K,
    nowMs: number,
    answered: (answer: MonoResponses[K] | undefined) => void,
    counter?: MonoName,
  ): void {
    this.#asked[kind].push({ askedMs: nowMs, answered, counter, isLate: false })
  }

  /** A response of this kind begins. Throws ProtocolError if there is no request of this kind. */
  expect(kind: MonoRequestKind): void {
    if (this.#asked[kind].length > 0) return
    throw new ProtocolError('UNKNOWN_MESSAGE', `a response to ${kind} without a request`)
  }

  /** Completes the oldest request of a kind; returns the counter that it was about. Throws ProtocolError like `expect`. */
  answer<K extends MonoRequestKind>(kind: K, answer: MonoResponses[K]): MonoName | undefined {
    this.expect(kind)
    const asked = this.#asked[kind]
    const request = asked.shift() as Request<K>
    try {
      request.answered(answer)
    } catch (error) {
      // The answer breaks the protocol: the request ends with the connection, as one without an answer.
      asked.unshift(request)
      throw error
    }
    return request.counter
  }

  /** Completes all requests with undefined, after the connection has ended. */
  end(): void {
    for (const { answered } of this.#all()) answered(undefined)
  }

  /** Returns how many requests became late since the last call. */
  late(nowMs: number): number {
    const late = this.#all().filter(({ askedMs, isLate }) => !isLate && nowMs - askedMs > LATE_MS)
    for (const request of late) request.isLate = true
    return late.length
  }

  #all(): { readonly askedMs: number; readonly answered: (answer: undefined) => void; isLate: boolean }[] {
    const { list, add, remove } = this.#asked
    return [...list, ...add, ...remove]
  }
}
