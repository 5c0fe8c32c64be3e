/**
 * The controls that run, and those that have run under an idempotency key [MON 10]. A row is stored with the audit record
 * before a control starts, and again with its result; after a crash, the outcome of a control whose row has no result is
 * unknown, unless it waits for approval. Controls without a key have rows too, under numbered slots that are reused; no key can
 * have the name of a slot.
 */
import type { ApprovalRow, Change, ExecutionRow } from '../../../storage/store.ts'
import { StatusError } from '../core/errors.ts'

const KEPT_MS = 86_400_000
const MINUTE_MS = 60_000
const MAX_KEYS = 10_000
/** Bytes of the results that are kept for one user. */
const MAX_KEPT_BYTES = 16 << 20
/** EXECUTEs that may wait for the result of one key. */
const MAX_WAITING = 1024
const SLOT = '\0'
/** Stored as the result of a control without a key, which nobody can request again, and of a control that was refused while it ran. */
const NOTHING = new Uint8Array(0)

export interface Execution {
  readonly user: number
  readonly control: string
  /** An idempotency key, or the name of a slot. */
  readonly key: string
  readonly digest: Uint8Array
  /** A digest that includes the secret arguments; undefined after a restart, because it is never stored. */
  readonly proof: string | undefined
  readonly at: number
  result: Uint8Array | undefined
  readonly waiting: ((result: Uint8Array) => void)[]
}

/** An idempotency key, with digests of the arguments with which it was used. */
export interface IdempotencyKey {
  readonly key: string
  readonly digest: Uint8Array
  readonly proof: string
}

export interface ExecutionsOptions {
  readonly rows: readonly ExecutionRow[]
  readonly change: (change: Change) => void
  /** Milliseconds of the age clock, so that no key is forgotten when the wall clock is set. */
  readonly age: () => number
}

interface UserKeys {
  readonly keys: Map<string, Execution>
  bytes: number
}

export class Executions {
  readonly #options: ExecutionsOptions
  /** By user id. */
  readonly #users = new Map<number, UserKeys>()
  readonly #freeSlots: number[] = []
  #slots = 0
  /** When the oldest row was made; Infinity if there is none. */
  #oldest = Number.POSITIVE_INFINITY
  /** Rows that had no result when the process began. */
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

  /** Takes out one that waits for approval, so that `recover` leaves it alone; undefined if it is not stored. */
  waiting({
    user,
    control,
    execution: key,
  }: Pick<ApprovalRow, 'user' | 'control' | 'execution'>): Execution | undefined {
    const at = this.#open.findIndex((one) => one.user === user && one.control === control && one.key === key)
    return at < 0 ? undefined : this.#open.splice(at, 1)[0]
  }

  /** Gives `result` to the controls that ended with the previous process, and returns them. */
  recover(result: Uint8Array): Execution[] {
    for (const execution of this.#open) this.end(execution, result)
    return this.#open.splice(0)
  }

  /**
   * Returns the execution that has run or is running under a key. Throws StatusError INVALID_ARGUMENT if it has other arguments,
   * BUSY if too many EXECUTEs wait for its result.
   */
  find(user: number, control: string, { key, digest, proof }: IdempotencyKey): Execution | undefined {
    const known = this.#users.get(user)?.keys.get(nameOf({ control, key }))
    if (known === undefined || this.#isOver(known)) return undefined
    if (!Buffer.from(known.digest).equals(digest) || (known.proof !== undefined && known.proof !== proof)) {
      throw new StatusError('INVALID_ARGUMENT', 'this idempotency_key was used with other arguments')
    }
    if (known.waiting.length >= MAX_WAITING) {
      throw new StatusError('BUSY', 'too many EXECUTEs wait for the result of this idempotency_key')
    }
    return known
  }

  /** Stores that a control is about to start, or waits for approval: then it has a slot of this name. */
  begin(user: number, control: string, keyed: IdempotencyKey | undefined, waiting?: string): Execution {
    const key = keyed?.key ?? `${SLOT}${waiting ?? this.#freeSlots.pop() ?? this.#slots++}`
    const at = this.#options.age()
    const digest = keyed?.digest ?? NOTHING
    const execution = { user, control, key, digest, proof: keyed?.proof, at, result: undefined, waiting: [] }
    if (keyed !== undefined) this.#keep(execution)
    this.#put(execution)
    return execution
  }

  /** Replaces an earlier execution of the same key, which has expired. */
  #keep(execution: Execution): void {
    const kept = this.#of(execution.user)
    const name = nameOf(execution)
    kept.bytes -= kept.keys.get(name)?.result?.length ?? 0
    kept.keys.set(name, execution)
  }

  /** Throws StatusError QUOTA_EXCEEDED if no more keys can be kept for the user. */
  needsRoom(user: number): void {
    const kept = this.#of(user)
    if (kept.keys.size >= MAX_KEYS) this.#forgetOld(kept)
    if (kept.keys.size >= MAX_KEYS || kept.bytes >= MAX_KEPT_BYTES) {
      throw new StatusError(
        'QUOTA_EXCEEDED',
        `${kept.keys.size} of your keys with ${kept.bytes} bytes of results are kept, which is the maximum; a key expires after 24 hours`,
      )
    }
  }

  /** Stores the result and hands it to everyone who waits for it. */
  end(execution: Execution, result: Uint8Array): void {
    const isSlot = keyIfGiven(execution) === undefined
    if (isSlot) this.#free(execution)
    else if (this.#isKept(execution)) this.#of(execution.user).bytes += result.length
    this.#settle(execution, isSlot ? NOTHING : result, result)
  }

  /** Stores what an execution came to whose outcome was unknown. */
  learn(execution: Execution, result: Uint8Array): void {
    if (!this.#isKept(execution)) return
    this.#of(execution.user).bytes += result.length - (execution.result?.length ?? 0)
    this.#settle(execution, result, result)
  }

  /** Frees the key of a control that was refused after all. `result` goes to those who wait for the same key. */
  cancel(execution: Execution, result: Uint8Array): void {
    if (keyIfGiven(execution) === undefined) this.#free(execution)
    else if (this.#isKept(execution)) this.#of(execution.user).keys.delete(nameOf(execution))
    this.#settle(execution, NOTHING, result)
  }

  #settle(execution: Execution, stored: Uint8Array, result: Uint8Array): void {
    execution.result = result
    this.#put({ ...execution, result: stored })
    for (const waiting of execution.waiting.splice(0)) waiting(result)
  }

  /** Forgets the keys of a removed user; the storage removes its rows with the user. */
  forget(user: number): void {
    this.#users.delete(user)
  }

  /** Forgets what is older than 24 hours; must be called about every second. */
  sweep(): void {
    const before = this.#options.age() - KEPT_MS
    // Rows are removed in groups: up to a minute later does no harm.
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

  #of(user: number): UserKeys {
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

  #forgetOld(kept: UserKeys): void {
    for (const [name, execution] of kept.keys) {
      if (!this.#isOver(execution)) continue
      kept.keys.delete(name)
      kept.bytes -= execution.result?.length ?? 0
    }
  }
}

/** The idempotency key of an execution; undefined if it has none. */
export function keyIfGiven({ key }: Execution): string | undefined {
  return key.startsWith(SLOT) ? undefined : key
}

function nameOf({ control, key }: Pick<Execution, 'control' | 'key'>): string {
  return `${control}${SLOT}${key}`
}
