/**
 * The connection of a drain's channel. It has no session: values are committed when the destination has answered that it has
 * them. One request is under way at a time. What is refused is halved until the refused values stand alone, and only those are
 * committed as refused; everything else is sent again until it is taken (docs/drains.md).
 */
import { Backoff, TO_PEER } from '../../../protocol/kept/backoff.ts'
import { pause } from '../../../protocol/kept/pause.ts'
import { BasicType, gapReasonName } from '../../../protocol/monitor/constants.ts'
import type { Label } from '../../kit/delivered-values.ts'
import { type Receiver, type ReceiverAnswer, retryAfterMs } from '../../kit/io/post.ts'
import type { Poll } from '../../kit/poll.ts'
import type { ChannelConnection, DeliveredChannel } from '../../kit/push.ts'
import type { Clock, Timer } from '../../kit/running.ts'
import type { DrainTable } from './config.ts'
import type { DrainCounts } from './counts.ts'
import {
  type DrainRequest,
  type DrainWire,
  LOST_METRIC,
  labelled,
  type OutgoingLoss,
  type OutgoingValue,
  readFrames,
} from './outgoing.ts'
import { type DeliveryProblem, problemIn } from './problem.ts'

/** The same failure of the destination for so long may be that of one value. */
const SUSPECT_MS = 60_000
const MAX_DETAIL = 300

export interface DrainOptions {
  readonly table: Pick<DrainTable, 'name' | 'batchSize' | 'batchAgeMs'>
  readonly channel: DeliveredChannel
  readonly wire: DrainWire
  readonly destination: Receiver
  readonly clock: Pick<Clock, 'monotonicMs' | 'microseconds' | 'wallMs' | 'setTimeout' | 'clear'>
  readonly work: Poll['work']
  /** 0..1 */
  readonly random: () => number
  /** Whether values of a metric are delivered. */
  readonly isWanted: (name: string) => boolean
  /** The labels of this server's own metrics, which stand in no record, such as `host`. */
  readonly ownLabels: (name: string) => readonly Label[]
  /** It is added to everything, whatever labels that has; undefined if none is. */
  readonly tenantLabel?: Label | undefined
  /** They go on when the connection is made again. */
  readonly counts: DrainCounts
  readonly refused: (refusal: DeliveryProblem, value: OutgoingValue) => void
  /** What is wrong, for people; empty when the destination takes values again. */
  readonly state: (problem: string) => void
  /** Called when the channel must be left. */
  readonly ended: (drain: Drain) => void
}

/** What is left of a batch: from here to there. */
interface Range {
  readonly from: number
  readonly to: number
}

/** What is sent of a range, again and again with the same bytes until it is taken, or until some of it is purged. */
interface Prepared {
  /** undefined if nothing of it is sent. */
  readonly request: DrainRequest | undefined
  /** The values of the range that it is of, from the first on. */
  readonly taken: number
  readonly wanted: readonly OutgoingValue[]
  /** How many of them stand in it. */
  readonly sent: number
  /** To be called when they are taken: counts them, but for those that were rejected. */
  readonly settle: (rejected: number) => void
}

export class Drain implements ChannelConnection {
  readonly #options: DrainOptions
  readonly #values: OutgoingValue[] = []
  /** When the first of them came, monotonic milliseconds. */
  #sinceMs = 0
  readonly #lost = new Map<string, number>()
  #isReading = false
  readonly #frames: { readonly bytes: Uint8Array; readonly written: () => void }[] = []
  readonly #over = new AbortController()
  readonly #backoff: Backoff
  /** Of the channel, when this connection began, and when it was looked at last. */
  readonly #purgedBefore: number
  #purged: number
  #timer: Timer | undefined
  #wake: () => void = () => {}
  undrained = 0
  readonly behind = false

  constructor(options: DrainOptions) {
    this.#options = options
    this.#backoff = new Backoff(TO_PEER, options.random)
    this.#purgedBefore = options.channel.queue.counts.dropped.purged
    this.#purged = this.#purgedBefore
  }

  /** Begins to deliver what comes. */
  start(): void {
    this.#run().catch((error: unknown) => this.#failed(error))
  }

  writeValues(bytes: Uint8Array, written: () => void): void {
    this.undrained += bytes.length
    this.#frames.push({ bytes, written })
    this.#readMore()
  }

  /** Nobody asks on this channel. */
  writeAnswers(): void {}

  notice(): void {}

  end(): void {
    if (this.#isOver) return
    this.#over.abort()
    for (const { written } of this.#frames.splice(0)) written()
    this.#options.destination.close()
    this.#options.clock.clear(this.#timer)
    this.#wake()
    this.#options.ended(this)
  }

  get #isOver(): boolean {
    return this.#over.signal.aborted
  }

  #readMore(): void {
    if (!this.#isReading) this.#read().catch((error: unknown) => this.#failed(error))
  }

  /** A fault of the server costs the connection, which is made again. */
  #failed(error: unknown): void {
    this.#options.channel.outbox.failed(error)
  }

  /** Reads what was handed over, as far as it is needed soon: frames take less memory than what is read from them. */
  async #read(): Promise<void> {
    const { channel, work, clock, ownLabels, table, tenantLabel } = this.#options
    this.#isReading = true
    while (!this.#isOver && this.#values.length < table.batchSize) {
      const [next] = this.#frames
      if (next === undefined) break
      const { bytes, written } = next
      if (this.#values.length === 0) this.#sinceMs = clock.monotonicMs()
      const take = (outgoing: OutgoingValue | OutgoingLoss): void => {
        const value = 'count' in outgoing ? this.#loss(outgoing) : outgoing
        this.#values.push(tenantLabel === undefined ? value : labelled(value, tenantLabel))
      }
      await work({ tenant: channel.owner.tenant }, readFrames(bytes, channel, ownLabels, take))
      if (this.#isOver) break
      this.#frames.shift()
      this.undrained -= bytes.length
      written()
      this.#wake()
      channel.outbox.drained()
    }
    this.#isReading = false
  }

  /** A GAP becomes the sum of what was lost for its reason since the server started. */
  #loss(loss: OutgoingLoss): OutgoingValue {
    const { counts, clock, table } = this.#options
    const { transaction, count, reason } = loss
    const word = gapReasonName(reason) ?? String(reason)
    const sum = (this.#lost.get(word) ?? 0) + count
    this.#lost.set(word, sum)
    counts.lost += count
    const labels = [
      ['drain', table.name],
      ['reason', word],
    ] as const
    return {
      transaction,
      name: LOST_METRIC,
      labels,
      value: { type: BasicType.DOUBLE, value: sum },
      time: clock.microseconds(),
      loss,
    }
  }

  async #run(): Promise<void> {
    const { batchSize } = this.#options.table
    while (!this.#isOver) {
      await this.#enough()
      if (this.#isOver) return
      const batch = this.#values.slice(0, batchSize)
      await this.#deliver(batch)
      this.#values.splice(0, batch.length)
      this.#readMore()
      this.#sinceMs = this.#options.clock.monotonicMs()
    }
  }

  /** Settles when there are values for a whole request, or some that have waited long enough. */
  async #enough(): Promise<void> {
    const { table, clock } = this.#options
    while (!this.#isOver && this.#values.length < table.batchSize) {
      const waited = clock.monotonicMs() - this.#sinceMs
      if (this.#values.length === 0) await this.#until(undefined)
      else if (waited >= table.batchAgeMs) return
      else await this.#until(table.batchAgeMs - waited)
    }
  }

  /** Settles when something has come, when the time is over, or at the end. */
  #until(delayMs: number | undefined): Promise<void> {
    const { clock } = this.#options
    return new Promise((resolve) => {
      this.#wake = () => {
        clock.clear(this.#timer)
        this.#timer = undefined
        this.#wake = () => {}
        resolve()
      }
      if (delayMs !== undefined) this.#timer = clock.setTimeout(this.#wake, delayMs)
    })
  }

  /** Settles when each value was taken, or stands alone and was refused. What comes before the range under way is committed. */
  async #deliver(batch: readonly OutgoingValue[]): Promise<void> {
    const { counts, clock, state, refused, wire } = this.#options
    const ranges: Range[] = [{ from: 0, to: batch.length }]
    // When the range that is the first now has failed first.
    let sinceMs: number | undefined
    let prepared: Prepared | undefined
    const goOn = (): void => {
      sinceMs = undefined
      prepared = undefined
      this.#backoff.reset()
    }
    let isSplitting = false
    for (let range = ranges[0]; range !== undefined && !this.#isOver; range = ranges[0]) {
      const { from, to } = range
      prepared ??= await this.#prepare(batch.slice(from, to))
      if (this.#isOver) return
      if (this.#hasPurged()) {
        prepared = undefined
        continue
      }
      const end = from + prepared.taken
      if (end < to) {
        ranges.splice(0, 1, { from, to: end }, { from: end, to })
        continue
      }
      const refusal = await this.#attempt(prepared)
      if (this.#isOver) return
      if (refusal === undefined) {
        ranges.shift()
        this.#commit(batch[to - 1] as OutgoingValue)
        goOn()
        state('')
        continue
      }
      const isOne = to - from === 1
      sinceMs ??= clock.monotonicMs()
      const isLong = clock.monotonicMs() - sinceMs >= SUSPECT_MS || (isSplitting && !isOne)
      const isCertain = refusal.kind === 'refused' && (wire.judgesValues || refusal.counter === 'refusedTooLarge')
      const isSuspect = refusal.kind !== 'failed' || (refusal.status > 0 && isLong)
      if (isCertain || (isSuspect && (await this.#isWell()))) {
        if (isOne) {
          const value = batch[from] as OutgoingValue
          counts[refusal.counter]++
          refused(refusal, value)
          ranges.shift()
          this.#commit(value)
        } else {
          const half = from + Math.ceil((to - from) / 2)
          ranges.splice(0, 1, { from, to: half }, { from: half, to })
          isSplitting = refusal.kind === 'failed'
        }
        goOn()
        continue
      }
      if (this.#isOver) return
      state(refusal.detail.slice(0, MAX_DETAIL))
      counts.retries++
      await pause(clock, this.#pauseMs(refusal), this.#over.signal)
    }
  }

  /** Whether the destination takes a request without values: then it is the values that it does not take. */
  async #isWell(): Promise<boolean> {
    const { wire, destination } = this.#options
    try {
      const { body, headers } = wire.empty()
      const { status } = await destination.post(body, headers)
      return status >= 200 && status < 300
    } catch {
      return false
    }
  }

  #pauseMs({ retryAfter }: DeliveryProblem): number {
    return Math.max(this.#backoff.next(), retryAfterMs(retryAfter, this.#options.clock.wallMs()))
  }

  /** Whether values were purged from the channel since the last look, as when a right to them is withdrawn. */
  #hasPurged(): boolean {
    const { purged } = this.#options.channel.queue.counts.dropped
    const before = this.#purged
    this.#purged = purged
    return purged !== before
  }

  /** Makes the request of values, as many as one takes; of those that were purged nothing is sent. */
  async #prepare(given: readonly OutgoingValue[]): Promise<Prepared> {
    const { wire, counts, work, channel } = this.#options
    const isThere = ({ transaction, loss }: OutgoingValue): boolean =>
      transaction === 0 || loss !== undefined || channel.queue.isUnsettled(transaction)
    const mayLack = this.#purged !== this.#purgedBefore
    const values = mayLack ? given.map((value) => (isThere(value) ? value : { ...value, name: '' })) : given
    const wanted = values.filter(({ name }) => name !== '' && this.#options.isWanted(name))
    const { request, taken, unsent, accepted } = await work({ tenant: channel.owner.tenant }, wire.encode(wanted))
    const next = wanted[taken]
    const end = next === undefined ? values.length : values.indexOf(next)
    const leftOut = values.slice(0, end).filter(({ name }) => name !== '').length - taken
    const sent = taken - unsent.unsupported - unsent.superseded
    const settle = (rejected: number): void => {
      accepted?.()
      counts.unsupported += unsent.unsupported
      counts.superseded += unsent.superseded
      counts.leftOut += leftOut
      counts.values += sent - rejected
    }
    return { request, taken: end, wanted: wanted.slice(0, taken), sent, settle }
  }

  /** Sends a request; gives why its values were not taken, undefined if they were. */
  async #attempt({ request, wanted, sent, settle }: Prepared): Promise<DeliveryProblem | undefined> {
    const { destination, counts, refused } = this.#options
    if (request === undefined) {
      settle(0)
      return undefined
    }
    let answer: ReceiverAnswer
    try {
      counts.requests++
      answer = await destination.post(request.body, request.headers)
    } catch (error) {
      const detail = error instanceof Error ? error.message : String(error)
      return { kind: 'failed', counter: 'refusedFailed', status: 0, detail, retryAfter: undefined }
    }
    const refusal = problemIn(answer)
    if (refusal !== undefined) return refusal
    // What a destination takes only in part must not be sent again (OTLP, "Partial Success").
    const { rejected: said, message } = this.#partialRefusal(answer)
    const rejected = Math.min(Math.max(0, said), sent)
    settle(rejected)
    if (rejected > 0 && wanted[0] !== undefined) {
      counts.refusedInvalid += rejected
      const detail = `${rejected} of ${wanted.length} values: ${message}`
      refused(
        { kind: 'refused', counter: 'refusedInvalid', status: answer.status, detail, retryAfter: undefined },
        wanted[0],
      )
    }
    return undefined
  }

  /** An answer that cannot be read says nothing: 2xx alone means that everything was taken. */
  #partialRefusal({ body }: ReceiverAnswer): ReturnType<DrainWire['partialRefusal']> {
    try {
      return this.#options.wire.partialRefusal(body)
    } catch {
      return { rejected: 0, message: '' }
    }
  }

  #commit({ transaction }: OutgoingValue): void {
    if (transaction !== 0) this.#options.channel.queue.commit(transaction, true)
  }
}
