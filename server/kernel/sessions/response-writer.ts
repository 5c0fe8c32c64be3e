/**
 * Writes the responses of a session: some at once, others when the change that they confirm is durable. The responses of
 * a turn leave together, at its end or before the first values or answers that follow them. The effects of a command start
 * after its response is written, never before. They run one after the other in the time that sessions share, and answers are
 * made only while the peer takes them.
 */
import { XdrWriter } from '../../../protocol/bytes/writer.ts'
import { type Capabilities, writeCapabilities } from '../../../protocol/monitor/capabilities.ts'
import { writeAuth, writeNotice, writeOk, writeOks, writeResponse } from '../../../protocol/monitor/message.ts'
import { StatusCode } from '../../../protocol/monitor/status.ts'
import type { DurabilityWaiter, Journal } from '../channels/journal.ts'
import type { Task, TurnScheduler } from '../channels/turn-scheduler.ts'
import type { Effect, FairWork, Party, Steps, Work } from '../core/fair-work.ts'
import type { LinkWriter } from './link-writer.ts'

export interface ResponseWriterOptions {
  readonly journal: Journal
  readonly turn: TurnScheduler
  readonly linkWriter: LinkWriter
  readonly work: FairWork
  /** The tenant that effects are done for; it changes with AUTH. */
  readonly tenant: () => string
  /** True while the peer does not take its responses and answers. */
  readonly isBehind: () => boolean
  /** Called after responses were written or drained, or effects have ended: reading may continue. */
  readonly onProgress: () => void
  /** Takes what an effect, or writing, has thrown. */
  readonly failed: (error: unknown) => void
}

const READY_BYTES = 1024
/** A buffer that has grown beyond this is given away with its bytes: a connection keeps none that it needed once. */
const MAX_KEPT_BYTES = 64 << 10

/** Effects that are started before the clock is looked at, unless one takes longer. */
const EFFECTS_PER_STEP = 8

/** Responses that wait for the same mark of the journal, all of them OK. */
interface PendingDurable {
  readonly mark: number
  /** Three numbers for each run of them: the first seq, how many seqs follow each other, and their result. */
  readonly runs: number[]
  readonly effects: Effects[]
}

/** What a command sets going. */
export interface Effects {
  /** Called once the response is sent. */
  readonly onSent?: () => void
  /** Makes the answer, after that, and after the answers of the commands before. */
  readonly answer?: Effect
}

export class ResponseWriter implements Task, DurabilityWaiter {
  readonly #options: ResponseWriterOptions
  #ready = new XdrWriter(READY_BYTES)
  /** The effects of responses that are ready. */
  #ofReady: Effects[] = []
  /** Those of responses that were sent. */
  readonly #effects = new Fifo<Effects>()
  readonly #answers = new Fifo<Effect>()
  /** The answer that is being made. */
  #current: Steps<void> | undefined
  /** True while effects run, or wait for their turn. */
  #isAtWork = false
  /** Effects outlive the connection. */
  readonly #party: Party
  readonly #work: Work = { step: () => this.#step(), failed: (error) => this.#effectFailed(error) }
  /** The oldest mark first. Those that are durable are written with the next responses: a batch may be that of a thousand sessions. */
  readonly #pending: PendingDurable[] = []
  #isEnded = false
  /** It is scheduled for the end of this turn. */
  #isDue = false
  /** The number of commands whose response waits for the disk, or is durable and not written yet. */
  #unanswered = 0

  constructor(options: ResponseWriterOptions) {
    this.#options = options
    this.#party = {
      get tenant() {
        return options.tenant()
      },
    }
  }

  get tenant(): string {
    return this.#options.tenant()
  }

  get unanswered(): number {
    return this.#unanswered
  }

  /** Bytes that are ready and have not been passed to the link. */
  get backlog(): number {
    return this.#ready.length
  }

  /** The number of commands whose effects have not ended, but for those whose response waits for the disk. */
  get effects(): number {
    return this.#ofReady.length + this.#effects.length + this.#answers.length + (this.#current === undefined ? 0 : 1)
  }

  /** Responds OK now. */
  ok(seq: number, result: number, effects?: Effects): void {
    writeOk(this.#ready, seq, result)
    if (effects !== undefined) this.#ofReady.push(effects)
    this.#schedule()
  }

  /** Responds OK as soon as every change made so far is durable. */
  okWhenDurable(seq: number, result: number, effects?: Effects): void {
    this.oksWhenDurable(seq, 1, result, effects)
  }

  /** The same for `count` commands whose seqs follow each other. They wait as one: a consumer may have many thousands. */
  oksWhenDurable(seq: number, count: number, result = 0, effects?: Effects): void {
    const pending = this.#pendingDurable()
    if (pending === undefined) {
      this.#releaseDurable()
      writeOks(this.#ready, seq, count, result)
      if (effects !== undefined) this.#ofReady.push(effects)
      this.#schedule()
      return
    }
    addRun(pending.runs, seq, count, result)
    this.#unanswered += count
    if (effects !== undefined) pending.effects.push(effects)
  }

  /** The responses that wait for every change made so far; undefined if all of them are durable. */
  #pendingDurable(): PendingDurable | undefined {
    const { journal } = this.#options
    const mark = journal.mark()
    if (mark <= journal.durable) return undefined
    const last = this.#pending[this.#pending.length - 1]
    if (last?.mark === mark) return last
    const pending: PendingDurable = { mark, runs: [], effects: [] }
    this.#pending.push(pending)
    if (last === undefined || last.mark <= journal.durable) journal.wait(this)
    return pending
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
    this.#releaseDurable()
    writeNotice(this.#ready, code, channel, detail)
    this.#schedule()
  }

  /** The journal is durable up to `mark`. */
  durable(mark: number): void {
    const [first, last] = [this.#pending[0], this.#pending.at(-1)]
    if (this.#isEnded) this.#releaseEffects()
    else if (first === undefined || first.mark <= mark) this.#schedule()
    if (last !== undefined && last.mark > mark) this.#options.journal.wait(this)
  }

  /** Nobody reads the responses any more. */
  #releaseEffects(): void {
    this.#releaseDurable()
    this.#startEffects()
  }

  #releaseDurable(): void {
    while (this.#pending.length > 0 && (this.#pending[0] as PendingDurable).mark <= this.#options.journal.durable) {
      this.#release(this.#pending.shift() as PendingDurable)
    }
  }

  #release({ runs, effects }: PendingDurable): void {
    for (let at = 0; at < runs.length; at += 3) {
      const [seq, count, result] = [runs[at] as number, runs[at + 1] as number, runs[at + 2] as number]
      if (!this.#isEnded) writeOks(this.#ready, seq, count, result)
      this.#unanswered -= count
    }
    for (const effect of effects) this.#ofReady.push(effect)
  }

  #schedule(): void {
    if (this.#isDue) return
    this.#isDue = true
    this.#options.turn.schedule('respond', this)
  }

  atTurnEnd(): void {
    this.#isDue = false
    this.flush()
    this.#options.onProgress()
  }

  /** Writes what is ready, then starts the effects that waited for it. */
  flush(): void {
    this.#write(this.#options.onProgress)
    this.#startEffects()
  }

  /**
   * Writes what is ready, so that what the caller writes next comes after it. Nothing else goes on meanwhile, not even if the link
   * is gone: the caller is in the middle of something.
   */
  writeReady(): void {
    this.#write(() => this.#schedule())
  }

  #write(drained: () => void): void {
    this.#releaseDurable()
    if (this.#ready.length === 0) return
    const bytes = this.#takeReady()
    if (!this.#isEnded) this.#options.linkWriter.write('responses', bytes, drained)
  }

  #takeReady(): Uint8Array {
    const ready = this.#ready
    if (ready.length > MAX_KEPT_BYTES) {
      this.#ready = new XdrWriter(READY_BYTES)
      return ready.bytes()
    }
    const bytes = ready.copy()
    ready.clear()
    return bytes
  }

  /** Has an answer made after those that wait already. */
  later(answer: Effect): void {
    this.#answers.push(answer)
    this.resume()
  }

  #startEffects(): void {
    if (this.#ofReady.length === 0) return
    for (const effects of this.#ofReady) this.#effects.push(effects)
    this.#ofReady = []
    this.resume()
  }

  /** Goes on with effects, and with answers if the peer takes them. */
  resume(): void {
    if (this.#isAtWork || !this.#mayWork) return
    this.#isAtWork = true
    this.#options.work.add(this.#party, this.#work)
  }

  get #mayWork(): boolean {
    if (this.#current !== undefined || this.#effects.length > 0) return true
    return this.#answers.length > 0 && (this.#isEnded || !this.#options.isBehind())
  }

  #step(): boolean {
    for (let started = 0; started < EFFECTS_PER_STEP && this.#mayWork; started++) {
      if (this.#goesOn()) return false
    }
    if (this.#mayWork) return false
    this.#isAtWork = false
    if (this.effects === 0) this.#options.onProgress()
    return true
  }

  /** Starts an effect, or does a step of an answer. Returns true if an answer takes more than that. */
  #goesOn(): boolean {
    const effects = this.#current === undefined ? this.#effects.shift() : undefined
    if (effects !== undefined) {
      if (effects.answer !== undefined) this.#answers.push(effects.answer)
      effects.onSent?.()
      return false
    }
    this.#current ??= this.#answers.shift()?.() ?? undefined
    if (this.#current?.next().done === true) this.#current = undefined
    return this.#current !== undefined
  }

  /** The effects of other commands start even if one throws: a hold is released, a control runs. */
  #effectFailed(error: unknown): void {
    this.#current = undefined
    this.#isAtWork = false
    this.failed(error)
    this.resume()
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
    this.#releaseEffects()
    this.resume()
  }
}

/** COMMITs out of order come one by one, and have seqs that follow each other all the same. */
function addRun(runs: number[], seq: number, count: number, result: number): void {
  const last = runs.length - 3
  if (last >= 0 && (runs[last] as number) + (runs[last + 1] as number) === seq && runs[last + 2] === result)
    runs[last + 1] = (runs[last + 1] as number) + count
  else runs.push(seq, count, result)
}

const MAX_TAKEN = 1024

/** A queue that costs the same however long it is. */
class Fifo<T> {
  #items: T[] = []
  #next = 0

  get length(): number {
    return this.#items.length - this.#next
  }

  push(item: T): void {
    this.#items.push(item)
  }

  shift(): T | undefined {
    const item = this.#items[this.#next]
    if (this.length > 0) this.#next++
    // It may never be empty: what was taken must not stay in memory.
    if (this.#next === this.#items.length || this.#next === MAX_TAKEN) {
      this.#items = this.#items.slice(this.#next)
      this.#next = 0
    }
    return item
  }
}
