/**
 * EXECUTEs that wait until somebody approves them [MON 10.1]. Each has a row from the batch in which it was asked for to the one that
 * ends its wait; with the second it may run, once. What is shown to those who decide, and to whoever asked, is decided here.
 */
import { ADMIN_ROLE, type Identity } from '../../../auth/permissions.ts'
import type { ArgumentList } from '../../../protocol/monitor/arguments.ts'
import type { ApprovalRow, Change } from '../../../storage/store.ts'
import type { Clock } from '../core/clock.ts'
import { StatusError } from '../core/errors.ts'
import { type ControlContext, ON_BEHALF_OF_PARAMETER } from './control.ts'
import type { Execution } from './executions.ts'
import type { PendingResult } from './results.ts'

/** EXECUTEs that wait at the same time, for one asker, one tenant and all together, and the bytes of the arguments of one. */
const MAX_WAITING_OF_ASKER = 20
const MAX_WAITING_OF_TENANT = 100
const MAX_WAITING = 1_000
const MAX_ARGUMENT_BYTES = 16_384

/** Of an EXECUTE that was not repeated. */
export const NO_REPEATS = '[]'

/** How a wait goes on: after `waiting` one of the others follows. */
export type ApprovalState = 'waiting' | 'approved' | 'refused' | 'timeout' | 'ended'

/** An EXECUTE that waits. */
export interface WaitingExecute {
  /** Whoever has asked. */
  readonly identity: Identity
  readonly args: ArgumentList
  readonly execution: Execution
  /** The text of the rule by which it waits. */
  readonly rule: string
  row: ApprovalRow
  /** Without a channel if there is none that gets the result. */
  pending: PendingResult
}

/** Who looks at what waits. */
export type Onlooker = Pick<Identity, 'userId' | 'tenant' | 'role'>

/** How a wait has ended. */
export interface ApprovalEnd {
  readonly state: Exclude<ApprovalState, 'waiting'>
  /** undefined if nobody has decided it. */
  readonly by?: Identity | undefined
  readonly reason: string
}

/** `end` is undefined while it waits. */
export type ApprovalListener = (waiting: WaitingExecute, end: ApprovalEnd | undefined) => void

export interface ApprovalsOptions {
  readonly change: (change: Change) => void
  readonly clock: Pick<Clock, 'microseconds'>
  /** Milliseconds of the age clock, so that nothing ends early or late when the wall clock is set. */
  readonly age: () => number
}

export class Approvals {
  readonly #options: ApprovalsOptions
  readonly #waiting = new Map<string, WaitingExecute>()
  readonly #listeners = new Set<ApprovalListener>()
  #lastAsked = 0
  #refused = 0
  /** Where the next look at a few of them begins. */
  #looked = 0

  constructor(options: ApprovalsOptions) {
    this.#options = options
  }

  /** Throws StatusError if no further EXECUTE with arguments of so many bytes may wait. The refusals name no counts. */
  needsRoom({ tenant, userId }: Identity, argumentBytes: number): void {
    if (argumentBytes > MAX_ARGUMENT_BYTES) {
      throw new StatusError(
        'INVALID_ARGUMENT',
        `it needs approval, and then its arguments may have at most ${MAX_ARGUMENT_BYTES} bytes`,
      )
    }
    const ofTenant = this.all().filter(({ identity }) => identity.tenant === tenant)
    const own = ofTenant.filter(({ row }) => row.user === userId)
    if (own.length >= MAX_WAITING_OF_ASKER) {
      this.#refused++
      const remedy = 'have some approved first, or take some back by `control.refuse`'
      throw new StatusError(
        'BUSY',
        `${own.length} EXECUTEs of yours wait for approval, which is the maximum: ${remedy}`,
      )
    }
    if (ofTenant.length >= MAX_WAITING_OF_TENANT || this.#waiting.size >= MAX_WAITING) {
      this.#refused++
      throw new StatusError('BUSY', 'too many EXECUTEs wait for approval: have some approved or refused first')
    }
  }

  /** EXECUTEs that have found no place so far. */
  get refused(): number {
    return this.#refused
  }

  /** The time of an EXECUTE that begins to wait now, in microseconds: no other has the same. */
  stamp(): number {
    this.#lastAsked = Math.max(this.#lastAsked + 1, this.#options.clock.microseconds())
    return this.#lastAsked
  }

  /** Stores one that begins to wait. Those who may approve it are shown it when it has a preview. */
  add(waiting: WaitingExecute): void {
    this.#waiting.set(waiting.row.id, waiting)
    this.#put(waiting)
  }

  /** Takes one that has waited when the previous process ended. */
  restore(waiting: WaitingExecute): void {
    this.#lastAsked = Math.max(this.#lastAsked, waiting.row.asked)
    this.#waiting.set(waiting.row.id, waiting)
  }

  /** Stores what its dry run has brought, unless its wait has ended meanwhile. */
  show(waiting: WaitingExecute, preview: Uint8Array): void {
    if (!this.has(waiting)) return
    waiting.row = { ...waiting.row, preview }
    this.#put(waiting)
  }

  #put(waiting: WaitingExecute): void {
    this.#options.change({ put: 'approval', row: waiting.row })
    if (waiting.row.preview !== undefined) this.#tell(waiting, undefined)
  }

  /** Stores that another result is to come of an execution, if it waits: its EXECUTE was repeated. */
  repeat(execution: Execution, result: number, channel: number): void {
    const waiting = this.all().find((one) => one.execution === execution)
    if (waiting === undefined) return
    const repeats = JSON.stringify([...repeatsOf(waiting), [channel, result]])
    waiting.row = { ...waiting.row, repeats }
    this.#options.change({ put: 'approval', row: waiting.row })
  }

  /** Ends a wait. From the batch on that has this, it is not approved any more. */
  end(waiting: WaitingExecute, end: ApprovalEnd): void {
    const { id } = waiting.row
    if (!this.#waiting.delete(id)) return
    this.#options.change({ remove: 'approval', id })
    this.#tell(waiting, end)
  }

  #tell(waiting: WaitingExecute, end: ApprovalEnd | undefined): void {
    for (const listener of [...this.#listeners]) listener(waiting, end)
  }

  has(waiting: WaitingExecute): boolean {
    return this.#waiting.get(waiting.row.id) === waiting
  }

  /** One that an identity may know of, and refuse: also what it has asked for itself. Throws StatusError. */
  refusable(id: string, by: Identity): WaitingExecute {
    const waiting = this.#waiting.get(id)
    // What is over is over also before the sweep that ends it: after a start, for example.
    if (waiting === undefined || this.#isOverdue(waiting) || !mayKnow(waiting, by)) {
      throw new StatusError('INVALID_ARGUMENT', `nothing with the id ${id} waits for your approval: it may have ended`)
    }
    return waiting
  }

  /**
   * One that somebody may approve: not who has asked for it, nor anybody called like whom it was asked on behalf of, nor on behalf of
   * others, since nobody here knows who these are. Throws StatusError.
   */
  approvable(
    id: string,
    { identity: by, onBehalfOf }: Pick<ControlContext, 'identity' | 'onBehalfOf'>,
  ): WaitingExecute {
    const waiting = this.refusable(id, by)
    const { args, row } = waiting
    const askedFor = args.find(({ name }) => name === ON_BEHALF_OF_PARAMETER)?.value
    if (row.user === by.userId || (typeof askedFor === 'string' && isAmong(by.name, askedFor))) {
      throw new StatusError('PERMISSION_DENIED', 'nobody approves what they have asked for themselves')
    }
    if (onBehalfOf !== undefined) {
      const why = 'this server does not know who that is, and whether they have asked for it'
      throw new StatusError(
        'PERMISSION_DENIED',
        `nobody approves on behalf of others, or through another server: ${why}`,
      )
    }
    return waiting
  }

  /** The one of which a result was announced with this id on a channel, for itself or a repetition. */
  ofResult(result: number, channel: number): WaitingExecute | undefined {
    return this.all().find((waiting) => {
      const { row } = waiting
      if (row.result === result && row.channel === channel) return true
      return repeatsOf(waiting).some(([on, id]) => on === channel && id === result)
    })
  }

  /** Those that an identity may decide about, or has asked for itself, in the order in which they were asked for. */
  shownTo(identity: Onlooker): WaitingExecute[] {
    return this.all()
      .filter((waiting) => mayKnow(waiting, identity))
      .sort((one, other) => one.row.asked - other.row.asked)
  }

  all(): WaitingExecute[] {
    return [...this.#waiting.values()]
  }

  overdue(): WaitingExecute[] {
    return this.all().filter((waiting) => this.#isOverdue(waiting))
  }

  #isOverdue({ row }: WaitingExecute): boolean {
    return row.age + row.timeout <= this.#options.age()
  }

  /** The next so many, each in its turn. */
  some(count: number): WaitingExecute[] {
    const all = this.all()
    if (this.#looked >= all.length) this.#looked = 0
    const some = all.slice(this.#looked, this.#looked + count)
    this.#looked += count
    return some
  }

  /** Calls the listener with each that begins to wait, and with each end. The returned function ends it. */
  follow(listener: ApprovalListener): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }
}

function repeatsOf({ row }: WaitingExecute): readonly (readonly [channel: number, result: number])[] {
  return row.repeats === NO_REPEATS ? [] : (JSON.parse(row.repeats) as [number, number][])
}

/** Whether an identity may decide about one that waits, or has asked for it. */
export function mayKnow({ row, identity }: WaitingExecute, of: Onlooker): boolean {
  if (of.role === ADMIN_ROLE || of.userId === row.user) return true
  return of.tenant === identity.tenant && of.role === row.role
}

/**
 * Whether a name is one of those on whose behalf something was asked for: `tenant/user` each, the nearest server's first. The tenants of
 * another server are not those of this one, and nobody becomes somebody else by the case of a letter.
 */
function isAmong(name: string, onBehalfOf: string): boolean {
  const all = `, ${onBehalfOf}, `.toLowerCase()
  return [`/${name}, `, `, ${name}, `].some((one) => all.includes(one.toLowerCase()))
}
