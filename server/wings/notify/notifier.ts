/**
 * The connection of a notifier's channel. A transition is committed in the batch that stores what follows from it for the groups of
 * the notifier; a notification is stored before it is sent first, and sent again with the same key until it is taken or refused.
 */
import { XdrReader } from '../../../protocol/bytes/reader.ts'
import { Backoff, TO_PEER } from '../../../protocol/kept/backoff.ts'
import { pause } from '../../../protocol/kept/pause.ts'
import { readMessage } from '../../../protocol/monitor/message.ts'
import { unwrapped } from '../../kit/delivered-values.ts'
import type { StoredPeers } from '../../kit/peer.ts'
import type { Poll } from '../../kit/poll.ts'
import type { ChannelConnection, DeliveredChannel } from '../../kit/push.ts'
import type { Clock, Steps, Timer } from '../../kit/running.ts'
import { alertOfValue, type NotifiedAlert, type QueryOf } from './alert.ts'
import { alertOfPending, PENDING } from './approval-alerts.ts'
import type { NotifierCounts } from './counts.ts'
import type { NotifyGroups } from './groups.ts'
import type { Notification, NotifyDestination } from './notification.ts'

/** Transitions that are taken in one step. */
const PER_STEP = 16
const MAX_DETAIL = 300
const MICROSECONDS = 1_000

/** How a notification has ended. */
export interface NotificationOutcome {
  readonly outcome: 'delivered' | 'refused'
  readonly detail: string
  readonly attempts: number
}

export interface NotifierOptions {
  readonly channel: DeliveredChannel
  readonly groups: NotifyGroups
  readonly destination: NotifyDestination
  readonly clock: Pick<Clock, 'wallMs' | 'setTimeout' | 'clear'>
  readonly work: Poll['work']
  readonly journal: Pick<StoredPeers['journal'], 'whenStored'>
  /** 0..1 */
  readonly random: () => number
  /** Whether anybody is to be told of an alert. */
  readonly isWanted: (alert: NotifiedAlert) => boolean
  readonly queryOf: QueryOf
  /** They go on when the connection is made again. */
  readonly counts: NotifierCounts
  /** Called in the turn in which a notification counts as told. */
  readonly ended: (notification: Notification, outcome: NotificationOutcome) => void
  /** What is wrong, for people; empty when the receiver takes notifications again. */
  readonly state: (problem: string) => void
  /**
   * Transitions were lost; none after that is taken before its steps are done. `madeUp` has to be called when that is made up for: until
   * then it would be said again at the next start.
   */
  readonly lost: (count: number, madeUp: () => void) => Steps<void>
  /** Called when the channel must be left. */
  readonly left: (notifier: Notifier) => void
}

interface Transition {
  readonly transaction: number
  readonly alert: NotifiedAlert | undefined
}

export class Notifier implements ChannelConnection {
  readonly #options: NotifierOptions
  readonly #frames: { readonly bytes: Uint8Array; readonly written: () => void }[] = []
  readonly #over = new AbortController()
  readonly #backoff: Backoff
  #isReading = false
  /** Those that are not made up for. */
  #losses = 0
  #timer: Timer | undefined
  #wake: () => void = () => {}
  /** Called when something was told. */
  #told: () => void = () => {}
  undrained = 0
  readonly behind = false

  constructor(options: NotifierOptions) {
    this.#options = options
    this.#backoff = new Backoff(TO_PEER, options.random)
  }

  start(): void {
    this.#run().catch((error: unknown) => this.#failed(error))
  }

  /** What is to be told may have changed. */
  lookAgain(): void {
    this.#options.groups.lookAgain()
    this.#wake()
  }

  writeValues(bytes: Uint8Array, written: () => void): void {
    this.undrained += bytes.length
    this.#frames.push({ bytes, written })
    if (!this.#isReading) this.#read().catch((error: unknown) => this.#failed(error))
  }

  /** Nobody asks on this channel. */
  writeAnswers(): void {}

  notice(): void {}

  end(): void {
    if (this.#isOver) return
    const { destination, clock, left } = this.#options
    this.#over.abort()
    for (const { written } of this.#frames.splice(0)) written()
    destination.close()
    clock.clear(this.#timer)
    this.#wake()
    this.#told()
    left(this)
  }

  get #isOver(): boolean {
    return this.#over.signal.aborted
  }

  /** A fault of the server costs the connection, which is made again. */
  #failed(error: unknown): void {
    this.#options.channel.outbox.failed(error)
  }

  async #read(): Promise<void> {
    const { channel, work } = this.#options
    this.#isReading = true
    for (let next = this.#frames[0]; next !== undefined && !this.#isOver; next = this.#frames[0]) {
      const { bytes, written } = next
      const transitions: Transition[] = []
      await work({ tenant: channel.owner.tenant }, this.#readFrames(bytes, transitions))
      for (let at = 0; at < transitions.length && !this.#isOver; ) {
        const before = at
        at = await work({ tenant: channel.owner.tenant }, this.#takeFrom(transitions, at))
        // Otherwise each would wake the other, again and again.
        if (at > before) this.#wake()
        if (at < transitions.length) await this.#untilTold()
      }
      if (this.#isOver) break
      this.#frames.shift()
      this.undrained -= bytes.length
      written()
      channel.outbox.drained()
    }
    this.#isReading = false
  }

  *#readFrames(bytes: Uint8Array, transitions: Transition[]): Steps<void> {
    const { channel, counts, lost, queryOf } = this.#options
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    const reader = new XdrReader()
    for (let at = 0; at < bytes.length; ) {
      const start = at + 4
      at = start + view.getUint32(at)
      const message = readMessage(reader.reset(bytes, start, at, view))
      if (message.kind === 'gap') {
        counts.lost += message.count
        this.#losses++
        yield* lost(message.count, () => this.#madeUp(message.transaction))
      } else if (message.kind === 'value') {
        const { transaction, metric, time, value } = message
        // Without a binding it is a result, or the binding was stopped meanwhile.
        const instance = channel.bindings.get(metric)?.instance
        const found = instance && unwrapped(instance.selection, value)
        const alert =
          found?.name === PENDING
            ? alertOfPending(found.value, Math.round(time / MICROSECONDS))
            : found && alertOfValue(found.labels, found.value, queryOf)
        transitions.push({ transaction, alert })
      }
      yield
    }
  }

  #madeUp(transaction: number): void {
    if (this.#isOver) return
    this.#losses--
    if (transaction !== 0) this.#options.channel.queue.commit(transaction, false)
  }

  /** Takes transitions from one on, and commits them; gives the first that has to wait. */
  *#takeFrom(transitions: readonly Transition[], from: number): Steps<number> {
    const { channel, groups, isWanted, counts } = this.#options
    for (let at = from; at < transitions.length; at++) {
      if (this.#isOver) return at
      const { transaction, alert } = transitions[at] as Transition
      if (alert !== undefined && isWanted(alert)) {
        if (!groups.take(alert)) return at
        counts.transitions++
      }
      // What stands before it may be a loss that is not made up for.
      if (transaction !== 0) channel.queue.commit(transaction, this.#losses === 0)
      if (at % PER_STEP === 0) yield
    }
    return transitions.length
  }

  #untilTold(): Promise<void> {
    return new Promise((resolve) => {
      this.#told = () => {
        this.#told = () => {}
        resolve()
      }
    })
  }

  async #run(): Promise<void> {
    const { channel, groups, clock, journal, work } = this.#options
    while (!this.#isOver) {
      const isOld = groups.isSending
      const notification = await work({ tenant: channel.owner.tenant }, groups.next())
      if (notification === undefined) {
        // What was to be told and is not may have room for what waits.
        this.#told()
        const { dueMs } = groups
        await this.#until(dueMs === undefined ? undefined : Math.max(0, dueMs - clock.wallMs()))
        continue
      }
      if (!isOld) await journal.whenStored()
      const outcome = await this.#deliver(notification)
      if (outcome === undefined) return
      groups.told(notification)
      this.#options.ended(notification, outcome)
      this.#told()
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
      // A clock that is set is looked at again.
      if (delayMs !== undefined) this.#timer = clock.setTimeout(this.#wake, Math.min(delayMs, 60_000))
    })
  }

  /** Settles when it was taken or refused; undefined if it was neither before the end. */
  async #deliver(notification: Notification): Promise<NotificationOutcome | undefined> {
    const { destination, counts, clock, state } = this.#options
    for (let attempts = 1; !this.#isOver; attempts++) {
      let problem: string
      let waitMs = 0
      try {
        counts.requests++
        if (attempts > 1) counts.retries++
        const answer = await destination.send(notification)
        const detail = answer.detail.slice(0, MAX_DETAIL)
        if (answer.verdict === 'taken') {
          counts.delivered++
          this.#backoff.reset()
          state('')
          return { outcome: 'delivered', detail, attempts }
        }
        if (answer.verdict === 'refused') {
          counts.refused++
          this.#backoff.reset()
          state(`a notification was refused: ${detail}`)
          return { outcome: 'refused', detail, attempts }
        }
        problem = `the receiver answered ${detail}`
        waitMs = answer.waitMs
      } catch (error) {
        problem = (error as Error).message
      }
      if (this.#isOver) return undefined
      state(problem.slice(0, MAX_DETAIL))
      await pause(clock, Math.max(this.#backoff.next(), waitMs), this.#over.signal)
    }
    return undefined
  }
}
