/**
 * Runs controls [MON 10]. Judged before the response: name, rights, arguments, and then whether it may run now. Begun when
 * its audit record and "a result is to come" are stored; its result is stored in one batch with a second audit record. What
 * ended with the process has the outcome `unknown`, and under an idempotency key for as long as the key is kept.
 */
import { randomBytes } from 'node:crypto'
import { setMaxListeners } from 'node:events'
import { AuthError } from '../../auth/errors.ts'
import type { AccessRequest, Identity } from '../../auth/permissions.ts'
import type { ArgumentList } from '../../protocol/monitor/arguments.ts'
import { VOID } from '../../protocol/monitor/value.ts'
import type { ExecutionRow } from '../../storage/store.ts'
import type { Refusals } from '../accounts/audit/refusals.ts'
import type { Channel } from '../channels/channel.ts'
import type { Journal } from '../channels/journal.ts'
import type { Clock } from '../core/clock.ts'
import { StatusError } from '../core/errors.ts'
import type { Logger } from '../core/log.ts'
import type { Ids } from '../metrics/ids.ts'
import { type Audit, Audited } from './audited.ts'
import {
  type Control,
  type ControlContext,
  type ControlResult,
  type ControlSource,
  failed,
  type Given,
  type Run,
} from './control.ts'
import { Controls } from './controls.ts'
import { type Execution, Executions, type Keyed, keyOf } from './executions.ts'
import { checkGiven, keyedOf, readGiven, textOf } from './given.ts'
import { type Expected, encoded, Results, UNKNOWN } from './results.ts'

/** Who may run what. */
export interface ControlRights {
  /** Whether there are arguments with which they may run it: then the catalogue shows it. */
  isShown(identity: Identity, control: string): boolean
  may(who: ControlContext, request: AccessRequest): boolean
}

export interface ExecutorOptions {
  readonly ids: Ids
  readonly journal: Journal
  readonly clock: Pick<Clock, 'microseconds' | 'setTimeout' | 'clear'>
  /** Milliseconds since the database was made. */
  readonly age: () => number
  readonly log: Logger
  readonly rights: ControlRights
  readonly audit: Audit
  readonly refusals: Pick<Refusals, 'record'>
  /** Counts an EXECUTE of somebody; throws StatusError QUOTA_EXCEEDED. */
  readonly admit: (identity: Identity) => void
  readonly executions: readonly ExecutionRow[]
}

/** Of all controls together. */
const MAX_RUNNING = 1024
/** A stop waits so long for what runs: a program that ignores SIGTERM has been killed by then. */
const STOP_MS = 3_000
const DRY_RUN: ControlResult = { outcome: 'dry-run', detail: 'judged only: nothing ran', value: VOID }

/** An EXECUTE that may run. */
interface Judged {
  readonly control: Control
  /** As given, with the key and the like: for the audit log. */
  readonly shown: Given
  readonly context: ControlContext
  readonly keyed: Keyed | undefined
  readonly isDryRun: boolean
  /** What it repeats. */
  readonly known: Execution | undefined
  readonly run: Run
}

/** A control that was begun. */
interface Begun extends Judged {
  readonly expected: Expected
  readonly execution: Execution
}

/** The result id, and what is to be called when the response is out. */
export interface Answered {
  readonly id: number
  readonly run: () => void
}

export class Executor {
  readonly #options: ExecutorOptions
  readonly #controls: Controls
  readonly #results: Results
  readonly #executions: Executions
  readonly #audited: Audited
  readonly #secret = randomBytes(32)
  readonly #stopping = new AbortController()
  readonly #underWay = new Set<Promise<void>>()
  readonly #running = new Map<string, number>()
  #runningAll = 0

  constructor(options: ExecutorOptions) {
    const { rights, journal, age, audit, refusals, executions } = options
    this.#options = options
    // One for each program that runs.
    setMaxListeners(0, this.#stopping.signal)
    this.#controls = new Controls((identity, control) => rights.isShown(identity, control))
    this.#results = new Results(options)
    const change = journal.change.bind(journal)
    this.#executions = new Executions({ rows: executions, change, age })
    this.#audited = new Audited(audit, refusals)
  }

  /** Adds controls, and sources of controls that come and go. */
  add(controls: readonly Control[], sources: readonly ControlSource[] = []): void {
    this.#controls.add(controls, sources)
  }

  /** The tenants that a control is for; undefined if it is for all of them. */
  tenantsOf(control: string): readonly string[] | undefined {
    return this.#controls.tenantsOf(control)
  }

  /** Those an identity is shown. */
  visible(identity: Identity): Control[] {
    return this.#controls.visible(identity)
  }

  /** Judges an EXECUTE, which is begun then. Throws StatusError, and then nothing ran. */
  async execute(name: string, list: ArgumentList, context: ControlContext): Promise<Answered> {
    const control = this.#controls.find(name, context.identity)
    let judged: Judged
    try {
      judged = this.#judge(name, control, list, context)
    } catch (error) {
      if (error instanceof StatusError) this.#audited.refused(name, control, list, error, context)
      throw error
    }
    if (judged.isDryRun || judged.known !== undefined) return this.#answer(judged)
    return control?.immediate ? this.#now(judged) : this.#later(judged)
  }

  #judge(name: string, control: Control | undefined, list: ArgumentList, context: ControlContext): Judged {
    if (control === undefined) {
      throw new StatusError('NO_SUCH_CONTROL', `no control ${name}: \`producer.controls\` lists what there is`)
    }
    const asked = readGiven(list, control)
    const { given, key, isDryRun } = asked
    const argument = (of: string): string | undefined => textOf(given.get(of))
    if (!this.#options.rights.may(context, { command: 'EXECUTE', object: name, argument })) {
      throw new StatusError('PERMISSION_DENIED', `you may not run ${name} with these arguments`)
    }
    this.#options.admit(context.identity)
    checkGiven(asked, control)
    const keyed = key === undefined || isDryRun ? undefined : keyedOf(key, asked.own, control, this.#secret)
    const user = context.identity.userId
    const known = keyed && this.#executions.find(user, name, keyed)
    if (known === undefined && !isDryRun) this.#needsRoom(control, user, keyed)
    const run = known === undefined ? control.prepare(given, context) : () => DRY_RUN
    return { control, shown: asked.shown, context, keyed, isDryRun, known, run }
  }

  #needsRoom({ name, maxRunning = Number.POSITIVE_INFINITY }: Control, user: number, keyed: Keyed | undefined): void {
    if (keyed !== undefined) this.#executions.needsRoom(user)
    const running = this.#running.get(name) ?? 0
    if (running >= maxRunning) throw new StatusError('BUSY', `${name} is running, ${running} times; try again`)
    if (this.#runningAll >= MAX_RUNNING) throw new StatusError('BUSY', `${MAX_RUNNING} controls are running; try again`)
  }

  /** Nothing is to run: it is only judged, or its key has run. */
  #answer({ control, shown, context, known }: Judged): Answered {
    const expected = this.#results.announce(control.name, context.identity.userId, context.channel)
    this.#audited.execute(known === undefined ? 'dry-run' : 'repeat', control, shown, expected.id, context)
    const finish = (result: Uint8Array): void => this.#results.finish(expected, result)
    const run = (): void => {
      if (known === undefined) finish(encoded(DRY_RUN))
      else if (known.result === undefined) known.waiting.push(finish)
      else finish(known.result)
    }
    return { id: expected.id, run }
  }

  /** Its audit record and "a result is to come" are one batch; it starts when that is stored and the response is out. */
  #later(judged: Judged): Answered {
    const { control, shown, context, keyed } = judged
    const user = context.identity.userId
    const expected = this.#results.announce(control.name, user, context.channel)
    this.#audited.execute('execute', control, shown, expected.id, context)
    const begun = { ...judged, expected, execution: this.#executions.begin(user, control.name, keyed) }
    this.#count(control.name, 1)
    return { id: expected.id, run: () => this.#watch(this.#run(begun)) }
  }

  /** A control that acts before the response: its effect is in the same batch as its audit record, or in a later one. */
  async #now(judged: Judged): Promise<Answered> {
    const { control, shown, context, keyed, run } = judged
    const user = context.identity.userId
    const id = this.#options.ids.take()
    this.#audited.execute('execute', control, shown, id, context)
    const execution = this.#executions.begin(user, control.name, keyed)
    try {
      const result = await run(this.#stopping.signal)
      // Deleted meanwhile, and this connection with it: nobody reads the refusal.
      if (context.channel.deleted) throw new StatusError('NO_SUCH_CHANNEL', 'the channel is gone')
      const expected = this.#results.announce(control.name, user, context.channel, id)
      return { id, run: () => this.#end({ ...judged, expected, execution }, result) }
    } catch (error) {
      this.#options.ids.free(id)
      if (error instanceof StatusError) {
        this.#audited.withdrawn(control.name, id, error, context)
        this.#executions.cancel(execution, encoded(failed(`nothing ran: ${error.message}`)))
      } else {
        const result = failed('the producer failed; its log says how')
        this.#audited.outcome(control.name, id, result, context)
        this.#executions.end(execution, encoded(result))
      }
      throw error
    }
  }

  async #run(begun: Begun): Promise<void> {
    const { control, run } = begun
    const { signal } = this.#stopping
    let result: ControlResult
    try {
      result = signal.aborted ? failed('the producer stopped before it began') : await run(signal)
    } catch (error) {
      result = this.#failure(error, control.name)
    }
    this.#count(control.name, -1)
    this.#end(begun, result)
  }

  /** The result, its audit record and the end of its execution are one batch. */
  #end({ control, context, expected, execution }: Begun, result: ControlResult): void {
    const bytes = encoded(result)
    this.#audited.outcome(control.name, expected.id, result, context)
    this.#results.finish(expected, bytes)
    this.#executions.end(execution, bytes)
  }

  /** What auth says (too many passwords are being set at once) is for the consumer; all else is ours. */
  #failure(error: unknown, control: string): ControlResult {
    if (error instanceof AuthError) return failed(error.message)
    this.#options.log.error({ err: error, control }, 'a control failed')
    return failed('the producer failed; its log says how')
  }

  #count(control: string, more: 1 | -1): void {
    const running = (this.#running.get(control) ?? 0) + more
    if (running === 0) this.#running.delete(control)
    else this.#running.set(control, running)
    this.#runningAll += more
  }

  #watch(running: Promise<void>): void {
    this.#underWay.add(running)
    void running.finally(() => this.#underWay.delete(running))
  }

  /** A result that was to come when the process ended. Its audit record is `recover`'s. */
  unknown(id: number, control: string, user: number, channel: Channel): void {
    channel.results.add(id)
    this.#results.finish({ id, control, user, channel }, encoded(UNKNOWN))
  }

  /** What was begun and not ended when the process ended: the audit log and the keys learn that nobody knows. */
  recover(identityOf: (user: number) => Identity | undefined): void {
    for (const execution of this.#executions.recover(encoded(UNKNOWN))) {
      this.#audited.unknown(execution.control, keyOf(execution), identityOf(execution.user), UNKNOWN)
    }
  }

  /** Forgets keys that are too old; to be called every second or so. */
  sweep(): void {
    this.#executions.sweep()
  }

  /** A user is removed: its keys are worth nothing. */
  forget(user: number): void {
    this.#executions.forget(user)
  }

  /** Ends what runs, and waits for it for a while. What does not end by then is `unknown` after the next start. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    if (this.#underWay.size === 0) return
    const { clock } = this.#options
    await new Promise<void>((resolve) => {
      const timer = clock.setTimeout(resolve, STOP_MS)
      void Promise.all(this.#underWay).then(() => {
        clock.clear(timer)
        resolve()
      })
    })
  }
}
