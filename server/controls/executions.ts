/**
 * What runs, and what has run under an idempotency key [MON 10]. A row is stored with the audit record before a control
 * starts, and again with its result: after a crash a row without one is a control of which nobody knows the outcome.
 * Controls without a key have rows too, under slots that are used again: the name of a slot no key can have.
 */
import type { Change, ExecutionRow } from '../../storage/store.ts'
import { StatusError } from '../core/errors.ts'

const KEPT_MS = 86_400_000
const MINUTE_MS = 60_000
const MAX_KEYS = 10_000
/** Of the results kept for one user. */
const MAX_KEPT_BYTES = 16 << 20
/** Of one key. */
const MAX_WAITING = 1024
const SLOT = '\0'
/** The result of a control without a key, which nobody asks for again; and of what was refused while it ran. */
const NOTHING = new Uint8Array(0)

export interface Execution {
  readonly user: number
  readonly control: string
  /** A key, or a slot. */
  readonly key: string
  readonly digest: Uint8Array
  /** Also of the arguments that are secret; known only as long as the process lives. */
  readonly proof: string | undefined
  readonly at: number
  result: Uint8Array | undefined
  readonly waiting: ((result: Uint8Array) => void)[]
}

/** What was asked for under a key. */
export interface Keyed {
  readonly key: string
  readonly digest: Uint8Array
  readonly proof: string
}

export interface ExecutionsOptions {
  readonly rows: readonly ExecutionRow[]
  readonly change: (change: Change) => void
  /** Milliseconds: setting the wall clock forgets no key. */
  readonly age: () => number
}

interface Kept {
  readonly keys: Map<string, Execution>
  bytes: number
}

export class Executions {
  readonly #options: ExecutionsOptions
  /** By user id. */
  readonly #users = new Map<number, Kept>()
  readonly #freeSlots: number[] = []
  #slots = 0
  /** When the oldest row was made; Infinity while there is none. */
  #oldest = Number.POSITIVE_INFINITY
  /** Rows without a result when the process began. */
  readonly #open: Execution[] = []

  constructor(options: ExecutionsOptions) {
    this.#options = options
    for (const row of options.rows) this.#restore(row)
  }

  #restore(row: ExecutionRow): void {
    this.#oldest = Math.min(this.#oldest, row.at)
    const execution: Execution = { ...row, proof: undefined, waiting: [] }
    if (row.result === undefined) this.#open.push(execution)
    if (row.key.startsWith(SLOT) || row.result?.length === 0) return
    const kept = this.#of(row.user)
    kept.keys.set(nameOf(row), execution)
    kept.bytes += row.result?.length ?? 0
  }

  /** What ended with the process before: `result` is theirs from now on. */
  recover(result: Uint8Array): Execution[] {
    for (const execution of this.#open) this.end(execution, result)
    return this.#open.splice(0)
  }

  /**
   * What was run under a key, or is running. Throws StatusError INVALID_ARGUMENT if that was with other arguments, BUSY if
   * too many wait for it.
   */
  find(user: number, control: string, { key, digest, proof }: Keyed): Execution | undefined {
    const known = this.#users.get(user)?.keys.get(nameOf({ control, key }))
    if (known === undefined || this.#isOver(known)) return undefined
    if (!Buffer.from(known.digest).equals(digest) || (known.proof !== undefined && known.proof !== proof)) {
      throw new StatusError('INVALID_ARGUMENT', 'this idempotency_key was used with other arguments')
    }
    if (known.waiting.length >= MAX_WAITING) {
      throw new StatusError('BUSY', 'too many wait for the result of this idempotency_key')
    }
    return known
  }

  /** A control is to start. */
  begin(user: number, control: string, keyed: Keyed | undefined): Execution {
    const key = keyed?.key ?? `${SLOT}${this.#freeSlots.pop() ?? this.#slots++}`
    const at = this.#options.age()
    const digest = keyed?.digest ?? NOTHING
    const execution = { user, control, key, digest, proof: keyed?.proof, at, result: undefined, waiting: [] }
    if (keyed !== undefined) this.#keep(execution)
    this.#put(execution)
    return execution
  }

  /** In the place of one that is over, if its key was used before. */
  #keep(execution: Execution): void {
    const kept = this.#of(execution.user)
    const name = nameOf(execution)
    kept.bytes -= kept.keys.get(name)?.result?.length ?? 0
    kept.keys.set(name, execution)
  }

  /** Throws StatusError QUOTA_EXCEEDED if no further key can be kept. */
  needsRoom(user: number): void {
    const kept = this.#of(user)
    if (kept.keys.size >= MAX_KEYS) this.#forgetOld(kept)
    if (kept.keys.size >= MAX_KEYS || kept.bytes >= MAX_KEPT_BYTES) {
      const what = `${kept.keys.size} keys with ${kept.bytes} bytes of results`
      throw new StatusError(
        'QUOTA_EXCEEDED',
        `${what} of yours are kept, and no more: each is forgotten after 24 hours`,
      )
    }
  }

  /** The result is there: it is stored, and whoever waits gets it. */
  end(execution: Execution, result: Uint8Array): void {
    const isSlot = keyOf(execution) === undefined
    if (isSlot) this.#free(execution)
    else if (this.#isKept(execution)) this.#of(execution.user).bytes += result.length
    this.#settle(execution, isSlot ? NOTHING : result, result)
  }

  /** It was refused after all, and nothing ran: the key is free. `result`: of whoever was promised the same one. */
  cancel(execution: Execution, result: Uint8Array): void {
    if (keyOf(execution) === undefined) this.#free(execution)
    else if (this.#isKept(execution)) this.#of(execution.user).keys.delete(nameOf(execution))
    this.#settle(execution, NOTHING, result)
  }

  #settle(execution: Execution, stored: Uint8Array, result: Uint8Array): void {
    execution.result = result
    this.#put({ ...execution, result: stored })
    for (const waiting of execution.waiting.splice(0)) waiting(result)
  }

  /** A user is removed; its rows go with it. */
  forget(user: number): void {
    this.#users.delete(user)
  }

  /** Forgets what is older than 24 hours; to be called every second or so. */
  sweep(): void {
    const before = this.#options.age() - KEPT_MS
    // Not for each row by itself: a minute more does no harm.
    if (this.#oldest >= before - MINUTE_MS) return
    this.#oldest = Number.POSITIVE_INFINITY
    for (const [user, kept] of this.#users) {
      this.#forgetOld(kept)
      if (kept.keys.size === 0) this.#users.delete(user)
      for (const { at } of kept.keys.values()) this.#oldest = Math.min(this.#oldest, Math.max(at, before))
    }
    this.#options.change({ remove: 'execution', before })
  }

  #put({ user, control, key, digest, at, result }: Execution): void {
    this.#oldest = Math.min(this.#oldest, at)
    this.#options.change({ put: 'execution', row: { user, control, key, digest, at, result } })
  }

  #free({ key }: Execution): void {
    const slot = Number(key.slice(SLOT.length))
    if (slot < this.#slots) this.#freeSlots.push(slot)
  }

  #of(user: number): Kept {
    let kept = this.#users.get(user)
    if (kept === undefined) {
      kept = { keys: new Map(), bytes: 0 }
      this.#users.set(user, kept)
    }
    return kept
  }

  #isKept(execution: Execution): boolean {
    return this.#users.get(execution.user)?.keys.get(nameOf(execution)) === execution
  }

  #isOver({ at, result }: Execution): boolean {
    return result !== undefined && at < this.#options.age() - KEPT_MS
  }

  #forgetOld(kept: Kept): void {
    for (const [name, execution] of kept.keys) {
      if (!this.#isOver(execution)) continue
      kept.keys.delete(name)
      kept.bytes -= execution.result?.length ?? 0
    }
  }
}

/** Its idempotency key, if it has one. */
export function keyOf({ key }: Execution): string | undefined {
  return key.startsWith(SLOT) ? undefined : key
}

function nameOf({ control, key }: Pick<Execution, 'control' | 'key'>): string {
  return `${control}${SLOT}${key}`
}
