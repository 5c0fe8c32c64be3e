/**
 * The end of a turn of the event loop: first responses go out, then values, then what changed goes to the store.
 * A task is scheduled once per phase and turn; awaits and system calls are per turn, never per value. What a task throws
 * costs its owner: the other tasks run on.
 *
 * A write costs as much as some fifty values, to a connection as to the store: were each turn's values written at once to a
 * thousand connections, there would be time for nothing else. So there is a pause after each round of writes, which is the
 * longer the more it took. After few writes there is none, and who was not written to in the round never waits for its end.
 */
import type { Clock, Timer } from '../core/clock.ts'
import { type FaultOwner, runOwned } from '../core/faults.ts'

export type Phase = 'respond' | 'send' | 'store'

export interface Task extends FaultOwner {
  atTurnEnd(): void
  /** How many channels the last call has written; 1 if it does not say. */
  readonly written?: number
}

type TurnClock = Pick<Clock, 'monotonicMs' | 'setTimeout' | 'clear'>

/** The time for sending in one turn. Connections that are left over are the first of the next turn. */
const SEND_MS = 3
/** What sending takes of the time, unless the pause were too long; the first millisecond of a round is not counted. */
const SEND_SHARE = 0.1
const FREE_SEND_MS = 1
const MAX_SEND_PAUSE_MS = 500
/** The pause after a batch, for each channel in it but the first ones: with many channels it is one of small blocks. */
const STORE_PAUSE_MS_PER_CHANNEL = 0.2
const FREE_STORE_CHANNELS = 20
const MAX_STORE_PAUSE_MS = 200

const sendPauseMs = (_channels: number, spentMs: number): number =>
  Math.min(MAX_SEND_PAUSE_MS, Math.max(0, spentMs - FREE_SEND_MS) / SEND_SHARE)

const storePauseMs = (channels: number): number =>
  Math.min(MAX_STORE_PAUSE_MS, Math.max(0, channels - FREE_STORE_CHANNELS) * STORE_PAUSE_MS_PER_CHANNEL)

/** The tasks of a phase, in rounds: all that are due once, then a pause in which only those that were not in it are run. */
class Rounds {
  readonly #clock: Pick<Clock, 'monotonicMs'>
  /** Those that were not run in the round before come first: nobody waits for the many who always have something. */
  readonly #due = new Set<Task>()
  readonly #dueAgain = new Set<Task>()
  /** Those that were run in this round or its pause, and of these those that wait for its end. */
  readonly #ran = new Set<Task>()
  readonly #held = new Set<Task>()
  /** When the pause began. */
  #pausedMs: number | undefined
  /** The channels that were written since the round began, and the time that it took. */
  #channels = 0
  #spentMs = 0
  readonly #pauseMs: (channels: number, spentMs: number) => number

  constructor(clock: Pick<Clock, 'monotonicMs'>, pauseMs: (channels: number, spentMs: number) => number) {
    this.#clock = clock
    this.#pauseMs = pauseMs
  }

  add(task: Task): void {
    if (this.#ran.has(task)) this.#held.add(task)
    else if (!this.#dueAgain.has(task)) this.#due.add(task)
  }

  /** When there is something to run next; infinite if nothing waits. */
  get nextMs(): number {
    if (this.#isDue) return Number.NEGATIVE_INFINITY
    return this.#held.size > 0 ? this.#endMs : Number.POSITIVE_INFINITY
  }

  get #isDue(): boolean {
    return this.#due.size > 0 || this.#dueAgain.size > 0
  }

  get #endMs(): number {
    if (this.#pausedMs === undefined) return this.#ran.size > 0 ? Number.POSITIVE_INFINITY : Number.NEGATIVE_INFINITY
    return this.#pausedMs + this.#pauseMs(this.#channels, this.#spentMs)
  }

  /** Runs what is due, for `forMs` at most. */
  run(forMs = Number.POSITIVE_INFINITY): void {
    const beganMs = this.#clock.monotonicMs()
    if (beganMs >= this.#endMs) this.#beginRound()
    if (!this.#isDue) return
    let nowMs = this.#runAll(this.#due, beganMs + forMs)
    if (nowMs < beganMs + forMs) nowMs = this.#runAll(this.#dueAgain, beganMs + forMs)
    this.#spentMs += nowMs - beganMs
    if (!this.#isDue) this.#pausedMs ??= nowMs
  }

  /** Returns the time after it, which is past the end if some are left over. */
  #runAll(tasks: Set<Task>, endMs: number): number {
    for (const task of [...tasks]) {
      tasks.delete(task)
      this.#ran.add(task)
      runOwned(task, () => task.atTurnEnd())
      this.#channels += task.written ?? 1
      const nowMs = this.#clock.monotonicMs()
      if (nowMs >= endMs) return nowMs
    }
    return this.#clock.monotonicMs()
  }

  #beginRound(): void {
    this.#ran.clear()
    this.#pausedMs = undefined
    this.#channels = 0
    this.#spentMs = 0
    for (const task of this.#held) this.#dueAgain.add(task)
    this.#held.clear()
  }
}

export class TurnScheduler {
  readonly #responding = new Set<Task>()
  readonly #sending: Rounds
  readonly #storing: Rounds
  readonly #clock: TurnClock
  #scheduled = false
  /** For those that wait for the end of an interval. */
  #timer: Timer | undefined
  /** Counts the beginnings and ends of turns. */
  #number = 0

  constructor(clock: TurnClock) {
    this.#clock = clock
    this.#sending = new Rounds(clock, sendPauseMs)
    this.#storing = new Rounds(clock, storePauseMs)
  }

  schedule(phase: Phase, task: Task): void {
    if (phase === 'respond') this.#responding.add(task)
    else if (phase === 'send') this.#sending.add(task)
    else this.#storing.add(task)
    this.#scheduleEnd()
  }

  #scheduleEnd(): void {
    if (this.#scheduled) return
    this.#scheduled = true
    this.#number++
    setImmediate(() => this.run())
  }

  /** A clock that is read once per turn: reading it for each value costs a twentieth of what a value costs. */
  once(clock: () => number): () => number {
    let readIn = -1
    let read = 0
    return () => {
      if (readIn === this.#number && this.#scheduled) return read
      readIn = this.#number
      read = clock()
      return read
    }
  }

  /** Runs what is due. A task that is scheduled again for the same or an earlier phase waits for the next turn. */
  run(): void {
    this.#scheduled = false
    this.#number++
    for (const task of [...this.#responding]) {
      this.#responding.delete(task)
      runOwned(task, () => task.atTurnEnd())
    }
    this.#sending.run(SEND_MS)
    this.#storing.run()
    this.#scheduleNext()
  }

  #scheduleNext(): void {
    this.#clock.clear(this.#timer)
    this.#timer = undefined
    const delayMs = Math.min(this.#sending.nextMs, this.#storing.nextMs) - this.#clock.monotonicMs()
    // A timer is late by a millisecond.
    if (delayMs <= 1) this.#scheduleEnd()
    else if (delayMs < Number.POSITIVE_INFINITY)
      this.#timer = this.#clock.setTimeout(() => this.#scheduleEnd(), delayMs)
  }
}
