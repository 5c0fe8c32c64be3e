/**
 * The responses of a session: those that may go at once, and those held until what they promise is stored. All of a turn
 * leave in one write. What a command causes (`after`) starts when its response is written, never before.
 */
import { XdrWriter } from '../../protocol/bytes/writer.ts'
import { type Capabilities, writeCapabilities } from '../../protocol/monitor/capabilities.ts'
import { writeAuth, writeNotice, writeResponse } from '../../protocol/monitor/message.ts'
import { statuses } from '../../protocol/monitor/status.ts'
import type { DurabilityWaiter, Journal } from '../channels/journal.ts'
import type { Task, TurnScheduler } from '../channels/turn-scheduler.ts'

/** What may be as large as a frame counts as so many small answers. */
const HEAVY = 7

export interface RepliesOptions {
  readonly journal: Journal
  readonly turn: TurnScheduler
  readonly write: (bytes: Uint8Array) => void
  /** Something was answered: reading may go on. */
  readonly moved: () => void
}

/** Held responses that wait for the same mark of the journal. */
interface Held {
  readonly mark: number
  /** Up to where their bytes reach in the writer. */
  end: number
  count: number
  readonly after: (() => void)[]
}

export class Replies implements Task, DurabilityWaiter {
  readonly #options: RepliesOptions
  readonly #ready = new XdrWriter(1024)
  #after: (() => void)[] = []
  /** Of those, what may give something large. */
  #heavy = 0
  #held = new XdrWriter(1024)
  #marks: Held[] = []
  #ended = false
  /** Commands that have no response yet. */
  unanswered = 0

  constructor(options: RepliesOptions) {
    this.#options = options
  }

  /** OK, now. */
  now(seq: number, result: number, after?: () => void, heavy = false): void {
    writeResponse(this.#ready, seq, statuses.OK.code, result)
    if (after) this.#after.push(after)
    if (heavy) this.#heavy++
    this.#enter()
  }

  refuse(seq: number, status: number, detail: string): void {
    writeResponse(this.#ready, seq, status, 0, detail)
    this.#enter()
  }

  /** AUTH_NEEDED and the AUTH message behind it [MON 6.4]. */
  challenge(seq: number, data: Uint8Array): void {
    writeResponse(this.#ready, seq, statuses.AUTH_NEEDED.code, 0)
    writeAuth(this.#ready, data)
    this.#enter()
  }

  caps(capabilities: Capabilities): void {
    writeCapabilities(this.#ready, capabilities)
    this.#enter()
  }

  notice(code: number, channel: number, detail: string): void {
    writeNotice(this.#ready, code, channel, detail)
    this.#enter()
  }

  /** Bytes that may go and are not handed to the link. */
  get backlog(): number {
    return this.#ready.length
  }

  /** How much the responses of this turn will set going: an answer of a few bytes is 1. */
  get causing(): number {
    return this.#after.length + this.#heavy * HEAVY
  }

  /** OK as soon as everything changed so far is stored. */
  stored(seq: number, result: number, after?: () => void): void {
    const mark = this.#options.journal.mark()
    if (mark <= this.#options.journal.durable) {
      this.now(seq, result, after)
      return
    }
    let held = this.#marks[this.#marks.length - 1]
    if (held === undefined || held.mark !== mark) {
      held = { mark, end: 0, count: 0, after: [] }
      this.#marks.push(held)
      if (this.#marks.length === 1) this.#options.journal.wait(this)
    }
    writeResponse(this.#held, seq, statuses.OK.code, result)
    held.end = this.#held.length
    held.count++
    this.unanswered++
    if (after) held.after.push(after)
  }

  durable(mark: number): void {
    let end = 0
    while (this.#marks.length > 0 && (this.#marks[0] as Held).mark <= mark) {
      const held = this.#marks.shift() as Held
      end = held.end
      this.unanswered -= held.count
      this.#after.push(...held.after)
    }
    if (this.#ended) this.#runAfter()
    else if (end > 0) this.#release(end)
    if (this.#marks.length > 0) this.#options.journal.wait(this)
  }

  /** Moves the first `end` bytes of the held responses to those that are ready. */
  #release(end: number): void {
    const bytes = this.#held.bytes()
    this.#ready.raw(bytes.subarray(0, end))
    const rest = bytes.slice(end)
    this.#held.clear().raw(rest)
    for (const held of this.#marks) held.end -= end
    this.#enter()
  }

  #enter(): void {
    this.#options.turn.schedule('respond', this)
  }

  atTurnEnd(): void {
    this.flush()
    this.#options.moved()
  }

  /** Writes what is ready, then lets go of what waited for it. */
  flush(): void {
    if (this.#ready.length > 0) {
      const bytes = this.#ready.copy()
      this.#ready.clear()
      if (!this.#ended) this.#options.write(bytes)
    }
    this.#runAfter()
  }

  #runAfter(): void {
    const after = this.#after
    this.#after = []
    this.#heavy = 0
    for (const act of after) act()
  }

  /**
   * The connection is gone. What waits for the disk, or is decided later, still happens then, though nobody reads the
   * response: a control runs, a hold is let go.
   */
  end(): void {
    this.#ended = true
    this.#runAfter()
  }
}
