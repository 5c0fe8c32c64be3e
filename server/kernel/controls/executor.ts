/**
 * Runs controls [MON 10]. Before the response it checks the name, the rights, the arguments, and whether the control may run
 * now. The control starts when its audit record and the announcement of its result are stored; its result is stored in one
 * batch with a second audit record. A control that had not ended when the process ended has the outcome `unknown`, which is
 * also the result of its idempotency key for as long as the key is kept.
 */
import { randomBytes } from 'node:crypto'
import { setMaxListeners } from 'node:events'
import { AuthError } from '../../../auth/errors.ts'
import { type AccessRequest, ADMIN_ROLE, type Identity } from '../../../auth/permissions.ts'
import type { ArgumentList } from '../../../protocol/monitor/arguments.ts'
import { VOID } from '../../../protocol/monitor/value.ts'
import type { ExecutionRow } from '../../../storage/store.ts'
import type { LimitedRecords } from '../accounts/audit/limited-records.ts'
import type { AuditLog } from '../accounts/audit/log.ts'
import type { Channel } from '../channels/channel.ts'
import type { Journal } from '../channels/journal.ts'
import type { Clock } from '../core/clock.ts'
import { StatusError } from '../core/errors.ts'
import type { Logger } from '../core/log.ts'
import type { Ids } from '../metrics/ids.ts'
import { PRODUCER } from '../metrics/reach.ts'
import {
  type Audience,
  type Control,
  type ControlArguments,
  type ControlContext,
  type ControlResult,
  type ControlRun,
  type ControlSource,
  failed,
  KEY_PARAMETER,
  type RemoteControl,
  type RemoteControls,
} from './control.ts'
import { ControlAudit } from './control-audit.ts'
import { ControlCatalogue } from './control-catalogue.ts'
import { type Execution, Executions, type IdempotencyKey, keyIfGiven } from './executions.ts'
import { argumentText, checkInvocation, idempotencyKeyOf, readInvocation } from './invocation.ts'
import { encodeResult, type PendingResult, Results, UNKNOWN_RESULT } from './results.ts'

/** The rights to run controls. */
export interface ControlRights {
  mayBeAllowed(identity: Identity, request: Pick<AccessRequest, 'command' | 'object'>): boolean
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
  readonly audit: Pick<AuditLog, 'record'>
  readonly limitedRecords: Pick<LimitedRecords, 'record'>
  /** Counts an EXECUTE; throws StatusError QUOTA_EXCEEDED. */
  readonly admit: (identity: Identity) => void
  /** Required for an EXECUTE that will be recorded; throws StatusError QUOTA_EXCEEDED. */
  readonly needsAuditRoom: (identity: Identity) => void
  readonly executions: readonly ExecutionRow[]
}

/** Controls that run at the same time, for one tenant and for all together. */
const MAX_RUNNING_OF_TENANT = 128
const MAX_RUNNING = 1024
/** How long a stop waits for running controls; a program that ignores SIGTERM has been killed by then. */
const STOP_MS = 3_000
const DRY_RUN: ControlResult = { outcome: 'dry-run', detail: 'checked only: nothing ran', value: VOID }

/** An EXECUTE that has passed all checks. */
interface CheckedExecute {
  readonly control: Control
  /** All arguments, for the audit log. */
  readonly all: ControlArguments
  readonly context: ControlContext
  readonly key: IdempotencyKey | undefined
  readonly isDryRun: boolean
  /** The execution that it repeats; undefined if it is the first one. */
  readonly known: Execution | undefined
  /** Whether it is recorded in the audit log. */
  readonly isRecorded: boolean
  readonly run: ControlRun
}

/** An EXECUTE whose control has started. */
interface StartedExecute extends CheckedExecute {
  readonly pending: PendingResult
  readonly execution: Execution
}

/** The id of the result, and a function to call when the response was sent. */
export interface ExecuteResponse {
  readonly id: number
  readonly run: () => void
}

export class Executor {
  readonly #options: ExecutorOptions
  readonly #controls: ControlCatalogue
  readonly #remote: RemoteControls[] = []
  readonly #results: Results
  readonly #executions: Executions
  readonly #audit: ControlAudit
  readonly #secret = randomBytes(32)
  readonly #stopping = new AbortController()
  readonly #unfinished = new Set<Promise<void>>()
  /** By tenant, and by tenant and control. */
  readonly #running = new Map<string, number>()
  #runningAll = 0

  constructor(options: ExecutorOptions) {
    const { journal, age, audit, limitedRecords, executions } = options
    this.#options = options
    // Each program that runs has a listener.
    setMaxListeners(0, this.#stopping.signal)
    this.#controls = new ControlCatalogue((identity, control) => this.#isShown(identity, control))
    this.#results = new Results(options)
    const change = journal.change.bind(journal)
    this.#executions = new Executions({ rows: executions, change, age })
    this.#audit = new ControlAudit(audit, limitedRecords)
  }

  /** Adds controls, and sources of controls that appear and disappear at run time. */
  add(
    controls: readonly Control[],
    sources: readonly ControlSource[] = [],
    remote: readonly RemoteControls[] = [],
  ): void {
    this.#controls.add(controls, sources)
    this.#remote.push(...remote)
  }

  /** Puts other controls in the place of all whose names begin with a prefix. Those that run continue to their end. */
  replace(prefix: string, controls: readonly Control[]): void {
    this.#controls.replace(prefix, controls)
  }

  /** Whom a control is for, whatever the rules say. */
  audienceOf(control: string): Audience {
    return this.#controls.audienceOf(control)
  }

  /** Whether an identity may run a control on a full disk, from the reserve: an admin those that help against it. */
  usesReserve(control: string, identity: Identity): boolean {
    return identity.role === ADMIN_ROLE && this.#controls.find(control, identity)?.usesReserve === true
  }

  /** The controls that an identity can see, and undefined for each that it cannot. */
  visible(identity: Identity): Iterable<Control | undefined> {
    return this.#controls.visible(identity)
  }

  /** Checks an EXECUTE and prepares its start. Throws StatusError if nothing runs. */
  async execute(name: string, list: ArgumentList, context: ControlContext): Promise<ExecuteResponse> {
    const control = this.#find(name, list, context.identity)
    let checked: CheckedExecute
    try {
      checked = this.#check(name, control, list, context)
    } catch (error) {
      if (error instanceof StatusError) this.#audit.refused(name, control, list, error, context)
      throw error
    }
    if (checked.isDryRun || checked.known !== undefined) return this.#respondOnly(checked)
    return control?.immediate ? this.#runBeforeResponse(checked) : this.#runAfterResponse(checked)
  }

  /** With the argument `producer` it is a control of another producer: the name of this one is nobody's path [MON 9.13]. */
  #find(name: string, list: ArgumentList, identity: Identity): Control | undefined {
    const producer = list.find((argument) => argument.name === PRODUCER)?.value
    if (typeof producer !== 'string') return this.#controls.find(name, identity)
    if (!this.#isShown(identity, name)) return undefined
    for (const remote of this.#remote) {
      const found = remote.find(name, producer, identity)
      if (found !== undefined) return found
    }
    return undefined
  }

  /** The controls of other producers that an identity can see. */
  *remote(producers: (path: string) => boolean, identity: Identity): Generator<RemoteControl> {
    for (const remote of this.#remote) {
      for (const one of remote.of(producers, identity)) {
        if (this.#isShown(identity, one.control.name)) yield one
      }
    }
  }

  /** Whether the identity may run the control with some arguments; only then the catalogue shows it. */
  #isShown(identity: Identity, control: string): boolean {
    return this.#options.rights.mayBeAllowed(identity, { command: 'EXECUTE', object: control })
  }

  #check(name: string, control: Control | undefined, list: ArgumentList, context: ControlContext): CheckedExecute {
    const { rights } = this.#options
    const refused = (): StatusError =>
      new StatusError('PERMISSION_DENIED', `you may not run ${name} with these arguments`)
    if (control === undefined) {
      // On a connection that the producer made, it is refused like a control that may not be run.
      const bare = { command: 'EXECUTE', object: name, argument: () => undefined } as const
      if (context.destination !== undefined && !rights.may(context, bare)) throw refused()
      throw new StatusError('NO_SUCH_CONTROL', `no control ${name}: \`producer.controls\` lists the controls`)
    }
    const invocation = readInvocation(list, control)
    const { args, isDryRun } = invocation
    const argument = (of: string): string | undefined => argumentText(args.get(of))
    if (!rights.may(context, { command: 'EXECUTE', object: name, argument })) throw refused()
    this.#options.admit(context.identity)
    checkInvocation(invocation, control)
    this.#results.needsRoom(context.channel)
    const key =
      invocation.key === undefined || isDryRun
        ? undefined
        : idempotencyKeyOf(invocation.key, invocation.given, control, this.#secret)
    const user = context.identity.userId
    const known = key && this.#executions.find(user, name, key)
    if (known === undefined && !isDryRun) this.#checkCapacity(control, context.identity, key)
    const made = control.isKeyed && key === undefined && !isDryRun ? crypto.randomUUID() : undefined
    const all = made === undefined ? invocation.all : new Map(invocation.all).set(KEY_PARAMETER, made)
    const run = known === undefined ? control.prepare(args, { ...context, key: key?.key ?? made }) : () => DRY_RUN
    const isRecorded = control.isRecorded?.(args, context) ?? true
    if (isRecorded && known === undefined && !isDryRun) this.#options.needsAuditRoom(context.identity)
    return { control, all, context, key, isDryRun, known, isRecorded, run }
  }

  /** The refusals name no counts: nobody learns what others run. Admins are kept out only by `maxRunning`. */
  #checkCapacity(
    { name, maxRunning = Number.POSITIVE_INFINITY }: Control,
    { userId, tenant, role }: Identity,
    key: IdempotencyKey | undefined,
  ): void {
    if (key !== undefined) this.#executions.needsRoom(userId)
    const running = (of: string): number => this.#running.get(of) ?? 0
    if (running(`${tenant}/${name}`) >= maxRunning) {
      throw new StatusError('BUSY', `${name} is already running: try again later`)
    }
    const isFull = running(tenant) >= MAX_RUNNING_OF_TENANT || this.#runningAll >= MAX_RUNNING
    if (isFull && role !== ADMIN_ROLE) {
      throw new StatusError('BUSY', 'too many controls are already running: try again later')
    }
  }

  /** Responds to an EXECUTE for which nothing runs: a dry run, or the repetition of a key. */
  #respondOnly({ control, all, context, known, isRecorded }: CheckedExecute): ExecuteResponse {
    const pending = this.#results.announce(control.name, context.identity.userId, context.channel)
    const action = known === undefined ? 'dry-run' : 'repeat'
    if (isRecorded) this.#audit.unexecuted(action, control, all, pending.id, context)
    const finish = (result: Uint8Array): void => this.#results.deliver(pending, result)
    const run = (): void => {
      if (known === undefined) finish(encodeResult(DRY_RUN))
      else if (known.result === undefined) known.waiting.push(finish)
      else finish(known.result)
    }
    return { id: pending.id, run }
  }

  /** The audit record and the announcement of the result are one batch; the control starts when it is stored and the response was sent. */
  #runAfterResponse(checked: CheckedExecute): ExecuteResponse {
    const { control, all, context, key, isRecorded } = checked
    const user = context.identity.userId
    const pending = this.#results.announce(control.name, user, context.channel)
    if (isRecorded) this.#audit.execute(control, all, pending.id, context)
    const started = { ...checked, pending, execution: this.#executions.begin(user, control.name, key) }
    this.#count(started, 1)
    return { id: pending.id, run: () => this.#watch(this.#run(started)) }
  }

  /** Runs a control before the response. Its effect is in the same batch as its audit record, or in a later one. */
  async #runBeforeResponse(checked: CheckedExecute): Promise<ExecuteResponse> {
    const { control, all, context, key, isRecorded, run } = checked
    const user = context.identity.userId
    const id = this.#options.ids.take()
    if (isRecorded) this.#audit.execute(control, all, id, context)
    const execution = this.#executions.begin(user, control.name, key)
    try {
      const result = await run(this.#stopping.signal)
      // If the channel was deleted meanwhile, its connection was closed too, and nobody reads the refusal.
      if (context.channel.deleted) throw new StatusError('NO_SUCH_CHANNEL', 'the channel is gone')
      const pending = this.#results.announce(control.name, user, context.channel, id)
      return { id, run: () => this.#end({ ...checked, pending, execution }, result) }
    } catch (error) {
      this.#options.ids.free(id)
      if (error instanceof StatusError) {
        if (isRecorded) this.#audit.withdrawn(control.name, id, error, context)
        this.#executions.cancel(execution, encodeResult(failed(`nothing ran: ${error.message}`)))
      } else {
        const result = failed('the producer failed; its log has the details')
        if (isRecorded) this.#audit.outcome(control.name, id, result, context)
        this.#executions.end(execution, encodeResult(result))
      }
      throw error
    }
  }

  async #run(started: StartedExecute): Promise<void> {
    const { control, run } = started
    const { signal } = this.#stopping
    let result: ControlResult
    try {
      result = signal.aborted ? failed('the producer stopped before the control started') : await run(signal)
    } catch (error) {
      result = this.#failure(error, control.name)
    }
    this.#count(started, -1)
    this.#end(started, result)
  }

  /** The result, its audit record and the end of its execution are one batch. */
  #end({ control, context, pending, execution, isRecorded }: StartedExecute, result: ControlResult): void {
    const bytes = encodeResult(result)
    if (isRecorded) this.#audit.outcome(control.name, pending.id, result, context)
    this.#results.deliver(pending, bytes)
    this.#executions.end(execution, bytes)
  }

  /** An AuthError (too many passwords are being set at once) is for the consumer; any other error is a defect of the server. */
  #failure(error: unknown, control: string): ControlResult {
    if (error instanceof AuthError) return failed(error.message)
    this.#options.log.error({ err: error, control }, 'a control failed')
    return failed('the producer failed; its log has the details')
  }

  #count({ control: { name }, context: { identity } }: StartedExecute, more: 1 | -1): void {
    for (const of of [identity.tenant, `${identity.tenant}/${name}`]) {
      const running = (this.#running.get(of) ?? 0) + more
      if (running === 0) this.#running.delete(of)
      else this.#running.set(of, running)
    }
    this.#runningAll += more
  }

  #watch(running: Promise<void>): void {
    this.#unfinished.add(running)
    void running.finally(() => this.#unfinished.delete(running))
  }

  /** Delivers an announced result that was not ready when the process ended; `recover` writes the audit record. */
  unknown(id: number, control: string, user: number, channel: Channel): void {
    channel.results.add(id)
    this.#results.deliver({ id, control, user, channel }, encodeResult(UNKNOWN_RESULT))
  }

  /** Records the outcome `unknown` of all controls that had not ended when the process ended. */
  recover(identityOf: (user: number) => Identity | undefined): void {
    for (const execution of this.#executions.recover(encodeResult(UNKNOWN_RESULT))) {
      this.#audit.unknown(execution.control, keyIfGiven(execution), identityOf(execution.user), UNKNOWN_RESULT)
    }
  }

  /** Forgets keys that are too old; must be called about every second. */
  sweep(): void {
    this.#executions.sweep()
  }

  /** Forgets the keys of a removed user. */
  forget(user: number): void {
    this.#executions.forget(user)
  }

  /** Ends running controls and waits for them for a while. Those that do not end by then are `unknown` after the next start. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    if (this.#unfinished.size === 0) return
    const { clock } = this.#options
    await new Promise<void>((resolve) => {
      const timer = clock.setTimeout(resolve, STOP_MS)
      void Promise.all(this.#unfinished).then(() => {
        clock.clear(timer)
        resolve()
      })
    })
  }
}
