/**
 * One agent, which is one connection (or file): what it sends becomes values, and what consumers want of it is asked for.
 * A newcomer asks why values stay: an agent sends a counter only when it changed, and a constant once.
 */
import { ProtocolError } from '../../../protocol/errors.ts'
import type { Value } from '../../../protocol/monitor/value.ts'
import { type MonoDialect, type MonoHeader, type MonoName, MonoStatus } from '../../../protocol/mono/constants.ts'
import {
  MonoDecoder,
  type MonoLimits,
  type MonoSink,
  microsecondsOf,
  readSample,
} from '../../../protocol/mono/decode.ts'
import { encodeAdd, encodeGoodBye, encodeList, encodeRemove } from '../../../protocol/mono/encode.ts'
import type { StreamReply } from '../io/tcp.ts'
import { AgentCounters, type MonoReceiver, type MonoSeries } from './counters.ts'
import { basicType, counterName } from './names.ts'
import { MonoRequests } from './requests.ts'

export interface MonoAgentOptions {
  readonly name: string
  readonly dialect: MonoDialect
  readonly limits: MonoLimits
  readonly receiver: MonoReceiver
  /** undefined if nothing can be asked, as of a file. */
  readonly back: StreamReply | undefined
}

/** With the status; with undefined if the connection ended before. */
type Answered = (status: MonoStatus | undefined) => void

/** Add and Remove that may be under way; a connection that is not read must not fill memory. */
const MOST_UNDER_WAY = 64
const MOST_ASKED = 256
/** From the connect to Hello, and from Good Bye to the end. */
const PATIENCE_MS = 10_000

export class MonoAgent implements MonoSink {
  #name: string
  readonly #dialect: MonoDialect
  readonly #receiver: MonoReceiver
  readonly #back: StreamReply | undefined
  readonly #decoder: MonoDecoder
  readonly #known: AgentCounters
  readonly #requests = new MonoRequests()
  /** Series about which something has to be asked when earlier requests are answered. */
  readonly #pending = new Set<MonoSeries>()
  #listed: MonoName[] = []
  /** The first response to List was taken. */
  #isOffered = false
  #isGreeted = false
  /** When it has to have said Hello, or to be gone; monotonic ms. */
  #deadlineMs: number
  #isOver = false
  #time = 0

  constructor({ name, dialect, limits, receiver, back }: MonoAgentOptions) {
    this.#name = name
    this.#dialect = dialect
    this.#receiver = receiver
    this.#back = back
    this.#known = new AgentCounters(name, receiver, (series) => this.#settle(series))
    this.#decoder = new MonoDecoder(this, dialect, limits)
    this.#deadlineMs = receiver.clock.monotonicMs() + PATIENCE_MS
  }

  /** Takes bytes as they come. Throws ProtocolError: then it has to be ended. */
  push(bytes: Uint8Array): void {
    this.#decoder.decode(bytes)
  }

  /** False if it stopped in the middle of a message. */
  get complete(): boolean {
    return this.#decoder.complete
  }

  get name(): string {
    return this.#name
  }

  rename(name: string): void {
    this.#name = name
    this.#known.rename(name)
  }

  get isFile(): boolean {
    return this.#back === undefined
  }

  get isLate(): boolean {
    return this.#requests.isLate
  }

  /** To be called every second or so. True: it has had its time, and must be ended. */
  sweep(nowMs: number): boolean {
    this.#receiver.counters.unanswered += this.#requests.late(nowMs)
    return this.#back !== undefined && nowMs > this.#deadlineMs
  }

  /** Whether it may be asked something now. */
  get isOpen(): boolean {
    return this.#back !== undefined && this.#isGreeted && !this.#isOver && this.#requests.count < MOST_ASKED
  }

  /** The connection is over: its series end, and nothing is answered any more. */
  end(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#requests.end()
    this.#known.end()
  }

  list(answered: (counters: readonly MonoName[] | undefined) => void): void {
    this.#requests.ask('list', this.#receiver.clock.monotonicMs(), answered)
    this.#back?.write(encodeList(this.#dialect))
  }

  /** Its series of a counter, if it has one. */
  find(called: MonoName): MonoSeries | undefined {
    return this.#known.find(called)
  }

  /** Makes the agent send it, whether anybody wants it or not. `answered` as by `list`; not to be called while the series is asked for. */
  add(called: MonoName, answered: Answered): void {
    const series = this.#known.findOrCreate(called)
    if (series === undefined) {
      answered(MonoStatus.NOK)
      return
    }
    series.isRequired = true
    if (series.header !== undefined) answered(MonoStatus.EXISTING)
    else this.#ask(series, answered)
  }

  /** It is sent only as long as somebody wants it. The same of `answered`. */
  remove(series: MonoSeries, answered: Answered): void {
    series.isRequired = false
    if (series.header === undefined) answered(MonoStatus.NOTFOUND)
    else this.#ask(series, answered)
  }

  goodBye(): void {
    this.#deadlineMs = this.#receiver.clock.monotonicMs() + PATIENCE_MS
    this.#back?.write(encodeGoodBye())
  }

  hello(): void {}

  counter(header: MonoHeader): void {
    const series = this.#known.findOrCreate(counterName(header))
    if (series === undefined) return
    if (series.header !== undefined) {
      this.#receiver.counters.badName++
      return
    }
    series.isRequired = true
    this.#known.started(series, header)
  }

  greeted(): void {
    this.#isGreeted = true
    this.#deadlineMs = Number.POSITIVE_INFINITY
    if (this.#back === undefined) return
    this.list(() => {
      this.#isOffered = true
    })
  }

  listed(counter: MonoName): void {
    this.#requests.expect('list')
    this.#known.addListed(counter)
    // Only a control asks for it again, and wants to see it.
    if (this.#isOffered) this.#listed.push(counter)
  }

  listEnd(): void {
    const listed = this.#listed
    this.#listed = []
    this.#requests.answer('list', listed)
    this.#goOn()
  }

  added(status: MonoStatus, header: MonoHeader | undefined): void {
    this.#requests.answer('add', { status, header })
    this.#goOn()
  }

  removed(status: MonoStatus): void {
    this.#requests.answer('remove', { status })
    this.#goOn()
  }

  sampling(ticks: bigint): void {
    const { counters, clock } = this.#receiver
    const time = microsecondsOf(ticks)
    if (time === undefined) counters.badTime++
    this.#time = time ?? clock.microseconds()
    counters.samplings++
  }

  sample(index: number, bytes: Uint8Array): void {
    const series = this.#known.at(index)
    const header = series?.header
    if (series === undefined || header === undefined) {
      this.#receiver.counters.unserved++
      return
    }
    const value = readSample(header.type, bytes)
    if (value === undefined) {
      throw new ProtocolError(
        'BAD_TYPE',
        `a sample of ${bytes.length} bytes for ${header.name}, of type ${header.type}`,
      )
    }
    this.#receiver.received(series, { type: basicType(header), value } as Value, this.#time)
  }

  /** Asks for what a series should be and is not. */
  #settle(series: MonoSeries): void {
    if (this.#back === undefined || this.#isOver || series.isAsked || series.isRefused) return
    const shouldBeSent = series.isWanted || series.isRequired
    if (shouldBeSent === (series.header !== undefined)) return
    if (!this.#isGreeted || this.#requests.count >= MOST_UNDER_WAY || this.#requests.isLate) this.#pending.add(series)
    else this.#ask(series, () => {})
  }

  #goOn(): void {
    for (const series of this.#pending) {
      if (this.#requests.count >= MOST_UNDER_WAY || this.#requests.isLate) return
      this.#pending.delete(series)
      this.#settle(series)
    }
  }

  /** Forgets a series that nothing but a control has ever known. */
  #notAdded(series: MonoSeries): void {
    series.isRequired = false
    if (!series.isListed && !series.isWanted) this.#known.forget(series)
  }

  /** Add if it is not sent, Remove if it is. */
  #ask(series: MonoSeries, answered: Answered): void {
    const { counters, clock } = this.#receiver
    const { header } = series
    series.isAsked = true
    const done = (status: MonoStatus, isDone: boolean): void => {
      series.isAsked = false
      series.isRefused = !isDone
      if (!isDone) counters.refused++
      answered(status)
      this.#settle(series)
    }
    if (header === undefined) {
      this.#requests.ask('add', clock.monotonicMs(), (answer) => {
        if (answer === undefined) return answered(undefined)
        if (answer.header !== undefined) {
          this.#known.started(series, answer.header)
          counters.added++
        }
        done(answer.status, answer.header !== undefined)
        if (answer.header === undefined) this.#notAdded(series)
      })
      this.#back?.write(encodeAdd(this.#dialect, series.counter))
    } else {
      this.#requests.ask('remove', clock.monotonicMs(), (answer) => {
        if (answer === undefined) return answered(undefined)
        const isGone = answer.status === MonoStatus.OK || answer.status === MonoStatus.NOTFOUND
        if (isGone) {
          this.#known.stopped(series, header)
          counters.removed++
        }
        done(answer.status, isGone)
      })
      this.#back?.write(encodeRemove(this.#dialect, header.index))
    }
  }
}
