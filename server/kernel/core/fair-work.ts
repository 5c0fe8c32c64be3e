/**
 * The fair event loop: long work is done in steps, and all of it shares a few milliseconds of each turn; then timers and
 * sockets have their time. Tenants take turns, and the parties of a tenant among themselves, so that somebody who asks for
 * much waits for it and nobody else does. Work that finds nobody waiting is done at once, as far as the turn allows, and so is the
 * first millisecond of a tenant of which nothing waits: a NOP is answered beside whatever others ask for.
 */
import type { Clock } from './clock.ts'

/** Work in steps of well under a millisecond, with a `yield` between any two. */
export type Steps<T> = Generator<void, T, void>

/** Something to be done, at once or in steps. */
export type Effect = () => Steps<void> | undefined | void

/** The tenant of the server's own work: no tenant can have this name, and connections before AUTH have none. */
export const SERVER_TENANT = ' server'

/** Whose work it is: a session, or an identity. */
export interface Party {
  readonly tenant: string
  /** True once nobody wants its work any more: what waits is dropped. */
  readonly isOver?: boolean
  /** Is told how long a slice of its work took, in milliseconds. */
  worked?(ms: number): void
}

export interface Work {
  /** Does one step. Returns true if there is nothing left to do now. */
  step(): boolean
  /** A step has thrown; the work is not continued. */
  failed(error: unknown): void
  /** Its party is over; the work is not continued. */
  dropped?(): void
}

/** Sends responses that are ready. */
interface Responses {
  respond(): void
}

const NO_RESPONSES: Responses = { respond() {} }

/** What all work together may take of a turn. */
const TURN_MS = 5
/** What one party may take before the next has its turn. */
const SLICE_MS = 1
/** What tenants of which nothing waits may take of a turn beyond that, together, though others wait. */
const AT_ONCE_MS = 2

export class FairWork {
  readonly #clock: Pick<Clock, 'monotonicMs'>
  readonly #defer: (turn: () => void) => void
  readonly #responses: Responses
  /** What waits, by tenant and party. The first of each is next, and goes to the end after its slice. */
  readonly #waiting = new Map<string, Map<Party, Work[]>>()
  /** What was taken of this turn. */
  #spentMs = 0
  /** The tenants that had something done in this turn though others waited. */
  readonly #served = new Set<string>()
  /** The end of the slice that is running; undefined between slices. */
  #sliceEndMs: number | undefined
  #isDeferred = false

  /**
   * `defer` calls back in the next turn of the event loop, after its input and output; `responses` sends what was answered meanwhile,
   * before what has waited has its time.
   */
  constructor(
    clock: Pick<Clock, 'monotonicMs'>,
    defer: (turn: () => void) => void = setImmediate,
    responses: Responses = NO_RESPONSES,
  ) {
    this.#clock = clock
    this.#defer = defer
    this.#responses = responses
  }

  /** Does steps until they are done: at once if nobody waits and the turn allows, else a slice at a time. Must not be waiting already. */
  add(party: Party, work: Work): void {
    // Work that a slice leads to is a part of that slice.
    if (this.#sliceEndMs !== undefined) {
      if (!this.#stepUntil(this.#sliceEndMs, work)) this.#enqueue(party, work)
    } else {
      const ms = this.#msAtOnce(party)
      if (ms <= 0 || !this.#slice(party, ms, work)) this.#enqueue(party, work)
    }
  }

  /** How long work may be done at once. */
  #msAtOnce({ tenant }: Party): number {
    if (this.#waiting.size === 0 && this.#spentMs < TURN_MS) return TURN_MS - this.#spentMs
    if (this.#waiting.has(tenant) || this.#served.has(tenant)) return 0
    this.#served.add(tenant)
    return Math.min(SLICE_MS, TURN_MS + AT_ONCE_MS - this.#spentMs)
  }

  /** The result of steps: the value itself if they could be done at once. The promise never settles if they are dropped. */
  run<T>(party: Party, steps: Steps<T>): T | Promise<T> {
    const running = new Running(steps)
    this.add(party, running)
    return running.result()
  }

  #enqueue(party: Party, work: Work): void {
    const parties = this.#waiting.get(party.tenant) ?? new Map<Party, Work[]>()
    this.#waiting.set(party.tenant, parties)
    const works = parties.get(party)
    if (works === undefined) parties.set(party, [work])
    else works.push(work)
    this.#deferTurn()
  }

  #deferTurn(): void {
    if (this.#isDeferred) return
    this.#isDeferred = true
    this.#defer(() => this.#turn())
  }

  #turn(): void {
    this.#isDeferred = false
    this.#spentMs = 0
    if (this.#served.size > 0) this.#served.clear()
    if (this.#waiting.size > 0) this.#responses.respond()
    while (this.#spentMs < TURN_MS) {
      const next = this.#next()
      if (next === undefined) return
      const { party, work } = next
      if (party.isOver === true) work.dropped?.()
      else if (!this.#slice(party, SLICE_MS, work)) this.#enqueue(party, work)
    }
    this.#deferTurn()
  }

  /** Takes the next work, and puts its tenant and party at the end of their rows. */
  #next(): { readonly party: Party; readonly work: Work } | undefined {
    for (const [tenant, parties] of this.#waiting) {
      this.#waiting.delete(tenant)
      for (const [party, works] of parties) {
        parties.delete(party)
        const work = works.shift() as Work
        if (works.length > 0) parties.set(party, works)
        if (parties.size > 0) this.#waiting.set(tenant, parties)
        return { party, work }
      }
    }
    return undefined
  }

  #slice(party: Party, ms: number, work: Work): boolean {
    const startMs = this.#clock.monotonicMs()
    this.#sliceEndMs = startMs + ms
    try {
      return this.#stepUntil(this.#sliceEndMs, work)
    } finally {
      this.#sliceEndMs = undefined
      const workedMs = this.#clock.monotonicMs() - startMs
      this.#spentMs += workedMs
      party.worked?.(workedMs)
      this.#deferTurn()
    }
  }

  /** Returns false if the work is to go on later. */
  #stepUntil(endMs: number, work: Work): boolean {
    try {
      while (!work.step()) if (this.#clock.monotonicMs() >= endMs) return false
    } catch (error) {
      work.failed(error)
    }
    return true
  }
}

/** Steps on their way to a result. */
class Running<T> implements Work {
  readonly #steps: Steps<T>
  /** Returns the result, or throws what a step has thrown. */
  #ended: (() => T) | undefined
  #settle: () => void = () => {}

  constructor(steps: Steps<T>) {
    this.#steps = steps
  }

  step(): boolean {
    const { done, value } = this.#steps.next()
    if (done === true) this.#end(() => value)
    return done === true
  }

  failed(error: unknown): void {
    this.#end(() => {
      throw error
    })
  }

  dropped(): void {
    this.#steps.return(undefined as never)
  }

  result(): T | Promise<T> {
    if (this.#ended !== undefined) return this.#ended()
    return new Promise<void>((resolve) => {
      this.#settle = resolve
    }).then(() => (this.#ended as () => T)())
  }

  #end(ended: () => T): void {
    this.#ended = ended
    this.#settle()
  }
}

/** Does all steps at once: for where nobody else is kept waiting. */
export function finish<T>(steps: Steps<T>): T {
  for (;;) {
    const { done, value } = steps.next()
    if (done === true) return value
  }
}

/** Whether something is to be worked out in steps. */
export function isSteps<T>(given: unknown): given is Steps<T> {
  return typeof given === 'object' && given !== null && 'next' in given
}
