/**
 * The end of a turn of the event loop: first waiting work has its time (core/fair-work.ts), then responses go out, so that what was
 * just worked out is answered in the same turn, then answers, then values, then what changed goes to the store.
 * A task is scheduled once per phase and turn; awaits and system calls are per turn, never per value. What a task throws
 * costs its owner: the other tasks run on.
 *
 * A write costs as much as some fifty values, to a connection as to the store: were each turn's values written at once to a
 * thousand connections, there would be time for nothing else. So values go out in rounds, and a round of many writes has a
 * pause after it. Channels are counted, not time: a slow machine does not make a single connection wait. Responses and answers
 * have no pauses. Each tenant has rounds of its own, and each phase but the last has 3 ms of a turn, in which tenants take turns.
 * A connection is never written values or answers before responses of it that are ready (Session.writeValues).
 */
import type { Clock, Timer } from '../core/clock.ts'
import { finish, type Steps } from '../core/fair-work.ts'
import { type FaultOwner, runOwned } from '../core/faults.ts'

export type Phase = 'respond' | 'answer' | 'send' | 'store'

export interface Task extends FaultOwner {
  atTurnEnd(): void
  /** How many channels the last call has written; 1 if it does not say. */
  readonly channelsWritten?: number
  /** Whose responses, answers or values it sends: tenants take turns in that. */
  readonly tenant?: string
}

type TurnClock = Pick<Clock, 'monotonicMs' | 'setTimeout' | 'clear'>

/** The time for each of responding, answering and sending in one turn. Connections that are left over are the first of the next turn. */
const PHASE_MS = 3
/** The pause after a round, for each channel that was written in it but the first ones. */
interface Pause {
  readonly msPerChannel: number
  readonly maxMs: number
}
const FREE_CHANNELS = 20
/** Several times what a write takes. A batch of many channels is one of small blocks. */
const PAUSE: Pause = { msPerChannel: 0.2, maxMs: 200 }
const NO_PAUSE: Pause = { msPerChannel: 0, maxMs: 0 }

/** Tasks in rounds: all that are due once, then a pause in which only those that were not in it are run. */
class Rounds {
  readonly #clock: Pick<Clock, 'monotonicMs'>
  readonly #pause: Pause
  /** Those that were not run in the round before come first: nobody waits for the many who always have something. */
  readonly #due = new Set<Task>()
  readonly #dueAgain = new Set<Task>()
  /** Those that were run in this round or its pause, and of these those that wait for its end. */
  readonly #ran = new Set<Task>()
  readonly #held = new Set<Task>()
  /** When the pause began. */
  #pausedMs: number | undefined
  /** The channels that were written since the round began. */
  #channels = 0

  constructor(clock: Pick<Clock, 'monotonicMs'>, pause: Pause) {
    this.#clock = clock
    this.#pause = pause
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

  /** True once nothing waits, and nothing would have to wait. */
  get isOver(): boolean {
    return this.nextMs === Number.POSITIVE_INFINITY && this.#clock.monotonicMs() >= this.#endMs
  }

  get #isDue(): boolean {
    return this.#due.size > 0 || this.#dueAgain.size > 0
  }

  get #endMs(): number {
    if (this.#pausedMs === undefined) return this.#ran.size > 0 ? Number.POSITIVE_INFINITY : Number.NEGATIVE_INFINITY
    const { msPerChannel, maxMs } = this.#pause
    return this.#pausedMs + Math.min(maxMs, Math.max(0, this.#channels - FREE_CHANNELS) * msPerChannel)
  }

  /** Runs what is due in this turn, a task at each step. Those for which there is no time come first in the next turn. */
  *turn(): Steps<void> {
    if (this.#clock.monotonicMs() >= this.#endMs) this.#beginRound()
    const [due, dueAgain] = [[...this.#due], [...this.#dueAgain]]
    for (const task of due) yield this.#run(task, this.#due)
    for (const task of dueAgain) yield this.#run(task, this.#dueAgain)
  }

  #run(task: Task, from: Set<Task>): void {
    from.delete(task)
    this.#ran.add(task)
    runOwned(task, () => task.atTurnEnd())
    this.#channels += task.channelsWritten ?? 1
    if (!this.#isDue) this.#pausedMs ??= this.#clock.monotonicMs()
  }

  #beginRound(): void {
    this.#ran.clear()
    this.#pausedMs = undefined
    this.#channels = 0
    for (const task of this.#held) this.#dueAgain.add(task)
    this.#held.clear()
  }
}

/** The tasks of a phase: tenants take turns, a task each. */
class PhaseOfTenants {
  readonly #clock: Pick<Clock, 'monotonicMs'>
  readonly #pause: Pause
  /** By tenant; the first is the one whose last task is the longest ago. */
  readonly #tenants = new Map<string, Rounds>()

  constructor(clock: Pick<Clock, 'monotonicMs'>, pause: Pause) {
    this.#clock = clock
    this.#pause = pause
  }

  add(task: Task): void {
    const tenant = task.tenant ?? ''
    let rounds = this.#tenants.get(tenant)
    if (rounds === undefined) {
      rounds = new Rounds(this.#clock, this.#pause)
      this.#tenants.set(tenant, rounds)
    }
    rounds.add(task)
  }

  get nextMs(): number {
    let nextMs = Number.POSITIVE_INFINITY
    for (const rounds of this.#tenants.values()) nextMs = Math.min(nextMs, rounds.nextMs)
    return nextMs
  }

  run(): void {
    const endMs = this.#clock.monotonicMs() + PHASE_MS
    const turns = new Map<string, Steps<void>>()
    for (const [tenant, rounds] of this.#tenants) {
      if (rounds.isOver) this.#tenants.delete(tenant)
      else turns.set(tenant, rounds.turn())
    }
    for (const [tenant, turn] of turns) {
      turns.delete(tenant)
      if (turn.next().done === true) continue
      turns.set(tenant, turn)
      const rounds = this.#tenants.get(tenant) as Rounds
      this.#tenants.delete(tenant)
      this.#tenants.set(tenant, rounds)
      if (this.#clock.monotonicMs() >= endMs) return
    }
  }
}

export class TurnScheduler {
  readonly #responding: PhaseOfTenants
  readonly #answering: PhaseOfTenants
  readonly #sending: PhaseOfTenants
  readonly #storing: Rounds
  readonly #clock: TurnClock
  /** Called at the end of this turn, before anything goes out. */
  readonly #deferred: (() => void)[] = []
  #scheduled = false
  /** For those that wait for the end of a pause. */
  #timer: Timer | undefined
  /** Counts the beginnings and ends of turns. */
  #number = 0

  constructor(clock: TurnClock) {
    this.#clock = clock
    this.#responding = new PhaseOfTenants(clock, NO_PAUSE)
    this.#answering = new PhaseOfTenants(clock, NO_PAUSE)
    this.#sending = new PhaseOfTenants(clock, PAUSE)
    this.#storing = new Rounds(clock, PAUSE)
  }

  schedule(phase: Phase, task: Task): void {
    if (phase === 'respond') this.#responding.add(task)
    else if (phase === 'answer') this.#answering.add(task)
    else if (phase === 'send') this.#sending.add(task)
    else this.#storing.add(task)
    this.#scheduleEnd()
  }

  /** Calls back after the input of this turn and before its output; if that is under way, in the next turn. */
  defer(work: () => void): void {
    this.#deferred.push(work)
    this.#scheduleEnd()
  }

  /** Sends the responses that are ready: what comes next in this turn takes its time. */
  respond(): void {
    this.#responding.run()
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
    try {
      for (let left = this.#deferred.length; left > 0; left--) (this.#deferred.shift() as () => void)()
    } finally {
      this.#goOut()
    }
  }

  #goOut(): void {
    this.#scheduled = false
    this.#number++
    this.#responding.run()
    this.#answering.run()
    this.#sending.run()
    finish(this.#storing.turn())
    this.#scheduleNext()
  }

  #scheduleNext(): void {
    this.#clock.clear(this.#timer)
    this.#timer = undefined
    if (this.#deferred.length > 0) {
      this.#scheduleEnd()
      return
    }
    const phases = [this.#responding, this.#answering, this.#sending, this.#storing]
    const delayMs = Math.min(...phases.map(({ nextMs }) => nextMs)) - this.#clock.monotonicMs()
    // A timer is late by a millisecond.
    if (delayMs <= 1) this.#scheduleEnd()
    else if (delayMs < Number.POSITIVE_INFINITY)
      this.#timer = this.#clock.setTimeout(() => this.#scheduleEnd(), delayMs)
  }
}
