/**
 * The mailbox of a consumer: it takes the values of one channel in their order, hands them out one after the other, and
 * commits each once it was handled. While too many values wait it asks for a pause in reading, so that a slow handler makes
 * the producer wait.
 */
import type { Gap, ValueMessage } from '../protocol/monitor/message.ts'
import { AckTracker, type DueCommits } from './ack-tracker.ts'
import type { AwaitedValues } from './commands.ts'
import { ConnectionError } from './errors.ts'
import type { Subscriptions } from './subscriptions.ts'
import { Sample, type SampleOrigin } from './values.ts'

/** Reading pauses while more values than this wait to be handled, and resumes at half of it. */
const MAX_WAITING = 1024

export interface MailboxOptions {
  /** The highest transaction id that an earlier run has handled. */
  readonly after: number | undefined
  /** Whether only the `commit` method commits. */
  readonly isExplicit: boolean
  readonly subscriptions: Pick<Subscriptions, 'get' | 'nameOf'>
  /** The commands that wait for a value receive it before those that arrived earlier. */
  readonly awaited: Pick<AwaitedValues, 'take'>
  /** Names the history of the transaction ids that arrive now. */
  readonly generation: () => string
  readonly gap: (gap: Gap) => void
  readonly restored: (restored: Restored) => void
  /** Reading is to pause, or to resume. */
  readonly hold: (isHeld: boolean) => void
  /** Sends a COMMIT. Rejects with StatusError or ConnectionError. */
  readonly commit: (transaction: number, through: boolean) => Promise<unknown>
  /** The producer refused a COMMIT, which it never should. */
  readonly failed: (error: Error) => void
}

/** The transaction ids of the producer are others from here on [MON 8 Restoring]. */
export interface Restored {
  readonly kind: 'restored'
  readonly transaction: 0
  /** The generation of the ids before. */
  readonly before: string
  readonly generation: string
}

type Entry = Sample | Gap | Restored

export class Mailbox {
  readonly #options: MailboxOptions
  #entries: Entry[] = []
  /** The entries before this index were taken. */
  #taken = 0
  #isHeld = false
  /** Replaced with each channel, which has ids of its own: work that outlasts a channel recognizes that by it. */
  #acks: AckTracker
  /** What the samples of this channel and generation refer to; made for the first one. */
  #origin: SampleOrigin | undefined
  /** The value that the loop has and has not finished. */
  #current: Sample | undefined
  #isRead = false
  /** Ends the present reading. */
  #signal: AbortSignal | undefined
  #wakeReader: (() => void) | undefined
  readonly #idle: (() => void)[] = []
  #ended: { readonly error: Error | undefined } | undefined
  /** The COMMITs on their way. Only one group is, so that many values need few commands while the disk is busy. */
  #committing: Promise<void> | undefined
  #isSuspended = false

  constructor(options: MailboxOptions) {
    this.#options = options
    this.#acks = new AckTracker(options.after, options.isExplicit)
  }

  get isHeld(): boolean {
    return this.#isHeld
  }

  /** Takes a value or GAP from the connection. Repeats are not handed out again, but committed again if that is due. */
  receive(message: ValueMessage | Gap): void {
    const { transaction } = message
    if (!this.#acks.received(transaction)) this.#flush()
    else if (message.kind === 'gap') this.#push(message)
    else {
      const { awaited, isExplicit, subscriptions } = this.#options
      const taken = awaited.take(message, this.#currentOrigin)
      if (taken === undefined)
        this.#push(new Sample(subscriptions.nameOf(message.metric), message, this.#currentOrigin()))
      // Nobody knows the id of a result that nobody wants, so nobody else could commit it.
      else if (transaction !== 0 && (taken === 'unwanted' || !isExplicit)) {
        this.#acks.committed(transaction)
        this.#flush()
      }
    }
  }

  /**
   * Iterates over the values without a handler. A value that the reader leaves unfinished was not handled. Once `signal` is aborted
   * the next request rejects with its reason; the value before it was handled then.
   */
  iterator(signal?: AbortSignal): AsyncIterator<Sample, undefined> {
    this.#beginReading(signal)
    let isAsked = false
    return {
      next: async () => {
        if (isAsked) throw new Error('the next value was requested before the previous request was answered')
        isAsked = true
        const value = await this.#next().finally(() => {
          isAsked = false
        })
        return value ? { done: false, value } : { done: true, value: undefined }
      },
      return: () => {
        if (this.#current) this.#putBack(this.#current)
        this.#current = undefined
        this.#stopReading()
        return Promise.resolve({ done: true, value: undefined })
      },
    }
  }

  /** Calls the handlers until the end. Values without a handler are skipped and stay uncommitted. `signal` is as for `iterator`. */
  async run(signal?: AbortSignal): Promise<void> {
    this.#beginReading(signal)
    while (await this.#next()) {
      if (this.#current && !this.#options.isExplicit) this.#acks.skipped(this.#current.transaction)
      this.#current = undefined
    }
  }

  /**
   * The consumer is about to send this COMMIT itself, after which the value in the loop counts as handled. Returns whether
   * the COMMIT is to cover everything before it, which it may if nothing of that was skipped.
   */
  beginCommit(transaction: number, through: boolean): boolean {
    const { isExplicit } = this.#options
    const isCurrent = this.#current?.transaction === transaction
    if (isCurrent) this.#current = undefined
    const covers = through || (isCurrent && !isExplicit && !this.#acks.hasSkipped)
    if (covers) this.#acks.committingThrough(transaction)
    else if (isExplicit) this.#acks.committing(transaction)
    else if (isCurrent) this.#acks.handled(transaction)
    return covers
  }

  /** A new connection has taken up the channel. */
  reconnected(): void {
    this.#acks.reconnected()
  }

  /** Between a SET_CHANNEL and its response nothing can be committed: the COMMIT would be for another channel. */
  suspendCommits(isSuspended: boolean): void {
    this.#isSuspended = isSuspended
    if (!isSuspended) this.#flush()
  }

  /** Another channel is current. What was not handled stays on the old one. */
  switchChannel(): void {
    this.#entries = []
    this.#taken = 0
    this.#hold(false)
    this.#current = undefined
    this.#acks = new AckTracker(0, this.#options.isExplicit)
    this.#origin = undefined
    this.#committing = undefined
    this.#isSuspended = false
  }

  /** Nothing that was handled before is known by its id any more. What was received and not handled is sent again, if it is left. */
  beginGeneration(before: string, generation: string): void {
    this.switchChannel()
    this.#push({ kind: 'restored', transaction: 0, before, generation })
  }

  /** Settles when everything handled is committed, or the connection has ended. Never rejects. */
  committed(): Promise<void> {
    this.#flush()
    return this.#committing ?? Promise.resolve()
  }

  /** The reader ends after the value that it handles now. */
  end(error: Error | undefined): void {
    this.#ended ??= { error }
    this.#wake()
  }

  /** Settles when there is no reader any more. */
  idle(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#isRead) this.#idle.push(resolve)
      else resolve()
    })
  }

  /** The next value without a handler; undefined at the end. Rejects with what a handler throws, or what ended it all. */
  async #next(): Promise<Sample | undefined> {
    if (this.#current) {
      this.#handled(this.#current)
      this.#current = undefined
      this.#flush()
    }
    for (;;) {
      if (this.#signal?.aborted) this.#abort(this.#signal)
      const entry = this.#ended ? this.#takeUnkept(this.#ended.error) : this.#take()
      if (entry === undefined) {
        if (this.#ended) return this.#finish(this.#ended.error)
        this.#flush()
        await new Promise<void>((resolve) => {
          this.#wakeReader = resolve
        })
      } else if (entry.kind === 'value' && !this.#options.subscriptions.get(entry.id)?.handler) {
        this.#current = entry
        return entry
      } else {
        const acks = this.#acks
        const handling = this.#handle(entry)
        if (handling !== undefined) await handling
        if (acks === this.#acks) this.#handled(entry)
        if (handling !== undefined) this.#flush()
      }
    }
  }

  /** Returns a promise if the handler did. An entry whose handler fails is the first for the next reader. */
  #handle(entry: Entry): Promise<unknown> | undefined {
    const acks = this.#acks
    const failed = (error: unknown): never => {
      if (acks === this.#acks) this.#putBack(entry)
      this.#stopReading()
      throw error
    }
    const { gap, restored, subscriptions } = this.#options
    try {
      if (entry.kind === 'restored') restored(entry)
      else if (entry.kind === 'gap') gap(entry)
      else {
        const done = subscriptions.get(entry.id)?.handler?.(entry)
        if (isThenable(done)) return Promise.resolve(done).catch(failed)
      }
      return undefined
    } catch (error) {
      return failed(error)
    }
  }

  readonly #currentOrigin = (): SampleOrigin => {
    if (this.#origin === undefined) {
      const acks = this.#acks
      const commit = (transaction: number) => this.#commit(acks, transaction)
      this.#origin = { generation: this.#options.generation(), commit }
    }
    return this.#origin
  }

  #handled({ transaction }: Entry): void {
    if (!this.#options.isExplicit) this.#acks.handled(transaction)
  }

  /** Commits a value of the channel that `acks` is about, with the next group. */
  #commit(acks: AckTracker, transaction: number): void {
    if (acks !== this.#acks) return
    if (this.#current?.transaction === transaction) {
      if (!this.#options.isExplicit) acks.handled(transaction)
      this.#current = undefined
    }
    acks.committed(transaction)
    this.#flush()
  }

  #push(entry: Entry): void {
    this.#entries.push(entry)
    if (this.#entries.length - this.#taken > MAX_WAITING) this.#hold(true)
    this.#wake()
  }

  #take(): Entry | undefined {
    if (this.#taken === this.#entries.length) return undefined
    const entry = this.#entries[this.#taken++]
    // Moving the rest down now and then is cheaper than calling shift() each time.
    if (this.#entries.length - this.#taken <= this.#taken) {
      this.#entries = this.#entries.slice(this.#taken)
      this.#taken = 0
    }
    if (this.#entries.length - this.#taken <= MAX_WAITING / 2) this.#hold(false)
    return entry
  }

  /** After the final end of the connection only values that the producer keeps nowhere can still be handled. */
  #takeUnkept(error: Error | undefined): Entry | undefined {
    if (!error) return undefined
    let entry = this.#take()
    while (entry && entry.transaction !== 0) entry = this.#take()
    return entry
  }

  #putBack(entry: Entry): void {
    this.#entries.splice(this.#taken, 0, entry)
  }

  #hold(isHeld: boolean): void {
    if (this.#isHeld === isHeld) return
    this.#isHeld = isHeld
    this.#options.hold(isHeld)
  }

  #beginReading(signal: AbortSignal | undefined): void {
    if (this.#isRead) throw new Error('the values of this consumer are already being read')
    this.#isRead = true
    this.#signal = signal
    signal?.addEventListener('abort', this.#wake)
  }

  #stopReading(): void {
    this.#isRead = false
    this.#signal?.removeEventListener('abort', this.#wake)
    this.#signal = undefined
    for (const resolve of this.#idle.splice(0)) resolve()
  }

  #finish(error: Error | undefined): undefined {
    this.#stopReading()
    if (error) throw error
    return undefined
  }

  /** Throws the reason of the signal. */
  #abort({ reason }: AbortSignal): never {
    this.#stopReading()
    throw reason
  }

  readonly #wake = (): void => {
    this.#wakeReader?.()
    this.#wakeReader = undefined
  }

  /** Sends the COMMITs that are due, unless a group is on its way: then they follow it. */
  #flush(): void {
    if (this.#committing !== undefined || this.#isSuspended) return
    const due = this.#acks.takeDue()
    if (due) this.#committing = this.#send(due)
  }

  /** A lost connection needs no care here: what was not stored is sent again, and due again. */
  async #send(first: DueCommits): Promise<void> {
    const acks = this.#acks
    const { commit, failed } = this.#options
    try {
      for (let due: DueCommits | undefined = first; due; ) {
        const sent = due.singles.map((transaction) => commit(transaction, false))
        if (due.through > 0) sent.push(commit(due.through, true))
        await Promise.all(sent)
        acks.stored(due)
        due = this.#isSuspended || acks !== this.#acks ? undefined : acks.takeDue()
      }
    } catch (error) {
      if (!(error instanceof ConnectionError)) failed(error as Error)
    } finally {
      if (acks === this.#acks) this.#committing = undefined
    }
  }
}

/** True for promises of other libraries too. */
function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function'
}
