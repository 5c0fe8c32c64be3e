/**
 * Writes the responses of a session: some at once, others when the change that they confirm is durable. All responses of
 * a turn leave in one write. The effects of a command (`onSent`) start when its response is written, never before.
 */
import { XdrWriter } from '../../protocol/bytes/writer.ts'
import { type Capabilities, writeCapabilities } from '../../protocol/monitor/capabilities.ts'
import { writeAuth, writeNotice, writeResponse } from '../../protocol/monitor/message.ts'
import { StatusCode } from '../../protocol/monitor/status.ts'
import type { DurabilityWaiter, Journal } from '../channels/journal.ts'
import type { Task, TurnScheduler } from '../channels/turn-scheduler.ts'
import type { Effect } from './handler.ts'
import type { LinkWriter } from './link-writer.ts'

export interface ResponseWriterOptions {
  readonly journal: Journal
  readonly turn: TurnScheduler
  readonly linkWriter: LinkWriter
  /** Called after responses were written or drained: reading may continue. */
  readonly onProgress: () => void
  /** Takes what an effect, or writing, has thrown. */
  readonly failed: (error: unknown) => void
}

/** Responses that wait for the same mark of the journal. */
interface PendingDurable {
  readonly mark: number
  /** The position after their last byte in the writer of pending responses. */
  end: number
  count: number
  readonly onSent: Effect[]
}

export class ResponseWriter implements Task, DurabilityWaiter {
  readonly #options: ResponseWriterOptions
  readonly #ready = new XdrWriter(1024)
  #onSent: Effect[] = []
  /** The cost of `#onSent` above one for each. */
  #extraCost = 0
  readonly #pending = new XdrWriter(1024)
  readonly #pendingMarks: PendingDurable[] = []
  #isEnded = false
  /** The number of commands whose response waits for the disk. */
  #unanswered = 0

  constructor(options: ResponseWriterOptions) {
    this.#options = options
  }

  get unanswered(): number {
    return this.#unanswered
  }

  /** Bytes that are ready and have not been passed to the link. */
  get backlog(): number {
    return this.#ready.length
  }

  /** The cost of the effects that start with the responses of this turn. */
  get cost(): number {
    return this.#onSent.length + this.#extraCost
  }

  /** Responds OK now. */
  ok(seq: number, result: number, onSent?: Effect, cost = 1): void {
    writeResponse(this.#ready, seq, StatusCode.OK, result)
    if (onSent) {
      this.#onSent.push(onSent)
      this.#extraCost += cost - 1
    }
    this.#schedule()
  }

  /** Responds OK as soon as every change made so far is durable. */
  okWhenDurable(seq: number, result: number, onSent?: Effect): void {
    const { journal } = this.#options
    const mark = journal.mark()
    if (mark <= journal.durable) {
      this.ok(seq, result, onSent)
      return
    }
    let last = this.#pendingMarks[this.#pendingMarks.length - 1]
    if (last === undefined || last.mark !== mark) {
      last = { mark, end: 0, count: 0, onSent: [] }
      this.#pendingMarks.push(last)
      if (this.#pendingMarks.length === 1) journal.wait(this)
    }
    writeResponse(this.#pending, seq, StatusCode.OK, result)
    last.end = this.#pending.length
    last.count++
    this.#unanswered++
    if (onSent) last.onSent.push(onSent)
  }

  refuse(seq: number, status: number, detail: string): void {
    writeResponse(this.#ready, seq, status, 0, detail)
    this.#schedule()
  }

  /** AUTH_NEEDED, followed by the AUTH message [MON 6.4]. */
  challenge(seq: number, data: Uint8Array): void {
    writeResponse(this.#ready, seq, StatusCode.AUTH_NEEDED, 0)
    writeAuth(this.#ready, data)
    this.#schedule()
  }

  capabilities(capabilities: Capabilities): void {
    writeCapabilities(this.#ready, capabilities)
    this.#schedule()
  }

  notice(code: number, channel: number, detail: string): void {
    writeNotice(this.#ready, code, channel, detail)
    this.#schedule()
  }

  /** The journal is durable up to `mark`. */
  durable(mark: number): void {
    let end = 0
    while (this.#pendingMarks.length > 0 && (this.#pendingMarks[0] as PendingDurable).mark <= mark) {
      const first = this.#pendingMarks.shift() as PendingDurable
      end = first.end
      this.#unanswered -= first.count
      this.#onSent.push(...first.onSent)
    }
    if (this.#isEnded) this.#runOnSent()
    else if (end > 0) this.#release(end)
    if (this.#pendingMarks.length > 0) this.#options.journal.wait(this)
  }

  /** Moves the first `end` bytes of the pending responses to the ready ones. */
  #release(end: number): void {
    const bytes = this.#pending.bytes()
    this.#ready.raw(bytes.subarray(0, end))
    const rest = bytes.slice(end)
    this.#pending.clear().raw(rest)
    for (const pending of this.#pendingMarks) pending.end -= end
    this.#schedule()
  }

  #schedule(): void {
    this.#options.turn.schedule('respond', this)
  }

  atTurnEnd(): void {
    this.flush()
    this.#options.onProgress()
  }

  /** Writes what is ready, then starts the effects that waited for it. */
  flush(): void {
    if (this.#ready.length > 0) {
      const bytes = this.#ready.copy()
      this.#ready.clear()
      if (!this.#isEnded) this.#options.linkWriter.write('responses', bytes, this.#options.onProgress)
    }
    this.#runOnSent()
  }

  #runOnSent(): void {
    const onSent = this.#onSent
    this.#onSent = []
    this.#extraCost = 0
    for (const act of onSent) this.#start(act)
  }

  /** Effects of other commands start even if one throws: a hold is released, a control runs. */
  #start(effect: Effect): void {
    try {
      effect()?.catch((error) => this.failed(error))
    } catch (error) {
      this.failed(error)
    }
  }

  failed(error: unknown): void {
    this.#options.failed(error)
  }

  /**
   * The connection is gone. Commands that wait for the disk, or are decided later, still take effect then, although nobody
   * reads the response: a control runs, a hold is released.
   */
  end(): void {
    this.#isEnded = true
    this.#runOnSent()
  }
}
