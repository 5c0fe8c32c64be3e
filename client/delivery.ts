/**
 * The values of one channel on their way to whoever handles them: in the order of the channel, one after the other, each
 * committed when it was handled. What takes its time makes the producer wait.
 */
import type { Gap, ValueMessage } from '../protocol/monitor/message.ts'
import { Commits } from './commits.ts'
import type { Follow } from './follows.ts'
import { Inbox } from './inbox.ts'
import { Progress } from './progress.ts'
import { Sample } from './sample.ts'

/** Values that may wait to be handled before reading rests. */
const MAX_WAITING = 1024

export interface DeliveryOptions {
  /** The highest transaction id that an earlier run has handled. */
  readonly after: number | undefined
  /** Nothing is committed but by `commit`. */
  readonly isExplicit: boolean
  readonly nameOf: (metric: number) => string
  readonly followOf: (metric: number) => Follow | undefined
  readonly gap: (gap: Gap) => void
  /** Reading is to rest, or to go on. */
  readonly hold: (isHeld: boolean) => void
  /** COMMIT. Rejects with StatusError or ConnectionError. */
  readonly send: (transaction: number, through: boolean) => Promise<unknown>
  readonly failed: (error: Error) => void
}

export class Delivery {
  readonly #options: DeliveryOptions
  readonly #inbox: Inbox<Sample | Gap>
  #progress: Progress
  #commits: Commits
  /** Handed to the loop, which has not asked for the next yet. */
  #current: Sample | undefined
  #isRead = false
  readonly #leaving: (() => void)[] = []
  #ended: { readonly error: Error | undefined } | undefined

  constructor(options: DeliveryOptions) {
    this.#options = options
    this.#inbox = new Inbox({ limit: MAX_WAITING, hold: options.hold })
    this.#progress = new Progress(options.after)
    this.#commits = this.#committing()
  }

  get isHeld(): boolean {
    return this.#inbox.isHeld
  }

  /** Whether a value or GAP is to be handled; repeats are not, and are committed again where that is due. */
  isNew(transaction: number): boolean {
    if (this.#progress.arrived(transaction)) return true
    this.#commits.flush()
    return false
  }

  push(message: ValueMessage | Gap): void {
    const isGap = message.kind === 'gap'
    this.#inbox.push(isGap ? message : new Sample(this.#options.nameOf(message.metric), message))
  }

  /** Somebody waited for that value, and has it before those that arrived earlier. */
  answered(transaction: number): void {
    if (transaction === 0 || this.#options.isExplicit) return
    this.#progress.handledAhead(transaction)
    this.#commits.flush()
  }

  /** For one reader at a time; what it leaves was not handled. */
  iterator(): AsyncIterator<Sample, undefined> {
    this.read()
    let isAsked = false
    return {
      next: async () => {
        if (isAsked) throw new Error('the next value was asked for before the last one had come')
        isAsked = true
        const value = await this.next().finally(() => {
          isAsked = false
        })
        return value ? { done: false, value } : { done: true, value: undefined }
      },
      return: () => {
        this.leave()
        return Promise.resolve({ done: true, value: undefined })
      },
    }
  }

  /** To be called before `next`. Throws where somebody reads already. */
  read(): void {
    if (this.#isRead) throw new Error('the values of this consumer are already being read')
    this.#isRead = true
  }

  /** The next value that no handler takes; undefined at the end. Rejects with what a handler throws, or what ended it. */
  async next(): Promise<Sample | undefined> {
    if (this.#current) {
      this.#done(this.#current.transaction)
      this.#current = undefined
      this.#commits.flush()
    }
    for (;;) {
      const entry = this.#ended ? this.#unkept(this.#ended.error) : this.#inbox.take()
      if (entry === undefined) {
        if (this.#ended) return this.#finish(this.#ended.error)
        this.#commits.flush()
        await this.#inbox.arrived()
      } else if (entry.kind === 'value' && !this.#options.followOf(entry.metric)?.handler) {
        this.#current = entry
        return entry
      } else {
        const progress = this.#progress
        const handling = this.#handle(entry)
        if (handling !== undefined) await handling
        // Unless the channel was left meanwhile: the ids of the next one are others.
        if (progress === this.#progress) this.#done(entry.transaction)
        if (handling !== undefined) this.#commits.flush()
      }
    }
  }

  /** The current one is nobody's: it stays uncommitted. */
  passOver(): void {
    if (this.#current) this.#progress.passedOver(this.#current.transaction)
    this.#current = undefined
  }

  /** The reader leaves; the current one was not handled. */
  leave(): void {
    if (this.#current) this.#inbox.putBack(this.#current)
    this.#current = undefined
    this.#unread()
  }

  /**
   * The consumer sends this COMMIT itself; the value in the loop counts as handled then. Gives whether it is to cover
   * everything before it: it may where nothing of that was passed over.
   */
  committing(transaction: number, through: boolean): boolean {
    const isCurrent = !this.#options.isExplicit && this.#current?.transaction === transaction
    if (isCurrent) this.#current = undefined
    const covers = through || (isCurrent && !this.#progress.hasPassedOver)
    if (covers) this.#progress.committingThrough(transaction)
    else if (isCurrent) this.#progress.handled(transaction)
    return covers
  }

  /** A new connection has taken the channel up. */
  connected(): void {
    this.#progress.connected()
  }

  /** A SET_CHANNEL goes out, or has failed: what is handled from now on cannot be committed before its response. */
  turning(isTurning: boolean): void {
    this.#commits.rest(isTurning)
    if (!isTurning) this.#commits.flush()
  }

  /** Another channel: what was not handled stays on the old one. */
  turn(): void {
    this.#inbox.clear()
    this.#current = undefined
    this.#progress = new Progress()
    this.#commits = this.#committing()
  }

  /** Settles when what was handled is committed, or the connection has ended. */
  settled(): Promise<void> {
    return this.#commits.settled()
  }

  /** The reader comes to its end behind what it handles now. */
  end(error: Error | undefined): void {
    this.#ended ??= { error }
    this.#inbox.wake()
  }

  /** Settles when nobody reads any more. */
  left(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#isRead) this.#leaving.push(resolve)
      else resolve()
    })
  }

  /** A promise while it takes its time. What fails is there again for the next reader. */
  #handle(entry: Sample | Gap): Promise<unknown> | undefined {
    const progress = this.#progress
    const failed = (error: unknown): never => {
      if (progress === this.#progress) this.#inbox.putBack(entry)
      this.#unread()
      throw error
    }
    try {
      const done =
        entry.kind === 'gap' ? this.#options.gap(entry) : this.#options.followOf(entry.metric)?.handler?.(entry)
      return isThenable(done) ? Promise.resolve(done).catch(failed) : undefined
    } catch (error) {
      return failed(error)
    }
  }

  #done(transaction: number): void {
    if (!this.#options.isExplicit) this.#progress.handled(transaction)
  }

  /** What can still be handled when the connection is gone for good: values that are kept nowhere. */
  #unkept(error: Error | undefined): Sample | Gap | undefined {
    if (!error) return undefined
    let entry = this.#inbox.take()
    while (entry && entry.transaction !== 0) entry = this.#inbox.take()
    return entry
  }

  #finish(error: Error | undefined): undefined {
    this.#unread()
    if (error) throw error
    return undefined
  }

  #unread(): void {
    this.#isRead = false
    for (const left of this.#leaving.splice(0)) left()
  }

  #committing(): Commits {
    const { send, failed } = this.#options
    return new Commits({ progress: this.#progress, send, failed })
  }
}

/** Promises of other libraries too: what they stand for is not done before they are. */
function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function'
}
