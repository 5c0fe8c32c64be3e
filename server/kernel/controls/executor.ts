/**
 * Runs controls [MON 10]. Before the response it checks the name, the rights, the arguments, and whether the control may run
 * now. The control starts when its audit record and the announcement of its result are stored; its result is stored in one
 * batch with a second audit record. A control that had not ended when the process ended has the outcome `unknown`, which is
 * also the result of its idempotency key for as long as the key is kept. A control that has to be approved waits between the response
 * and its start, which the approval begins.
 */
import { randomBytes } from 'node:crypto'
import { ADMIN_ROLE, type Identity, type Rule } from '../../../auth/permissions.ts'
import type { ArgumentList } from '../../../protocol/monitor/arguments.ts'
import type { Recovered } from '../../../storage/store.ts'
import type { LimitedRecords } from '../accounts/audit/limited-records.ts'
import type { AuditLog } from '../accounts/audit/log.ts'
import type { Quotas } from '../accounts/quotas.ts'
import type { Channel } from '../channels/channel.ts'
import type { Journal } from '../channels/journal.ts'
import type { Clock } from '../core/clock.ts'
import { StatusError } from '../core/errors.ts'
import type { Logger } from '../core/log.ts'
import type { Ids } from '../metrics/ids.ts'
import { Approving, type ApprovingOptions, decisionControls } from './approving.ts'
import {
  type Audience,
  type Control,
  type ControlArguments,
  type ControlContext,
  type ControlRun,
  type ControlSource,
  failed,
  type RemoteControl,
  type RemoteControls,
} from './control.ts'
import { ControlAudit } from './control-audit.ts'
import { ControlCatalogue, type ControlRights } from './control-catalogue.ts'
import { type Execution, Executions, type IdempotencyKey, keyIfGiven } from './executions.ts'
import { checkInvocation, type Invocation, idempotencyKeyOf, prepared, readInvocation } from './invocation.ts'
import { encodeResult, isUnknown, type PendingResult, Results, UNKNOWN_RESULT } from './results.ts'
import { CHECKED, RunningControls } from './running.ts'

export interface ExecutorOptions extends ApprovingOptions {
  readonly ids: Ids
  readonly journal: Journal
  readonly clock: Pick<Clock, 'microseconds' | 'wallMs' | 'setTimeout' | 'clear'>
  readonly log: Logger
  readonly rights: ControlRights
  readonly audit: Pick<AuditLog, 'record'>
  readonly limitedRecords: Pick<LimitedRecords, 'record'>
  /** What the tenant of an identity may use; undefined for one that is not counted. */
  readonly quotaOf: (identity: Identity) => ReturnType<Quotas['of']> | undefined
  readonly recovered: Pick<Recovered, 'executions' | 'approvals'>
}

/** The context of an EXECUTE that arrives now. */
export type ExecuteContext = ControlContext & { readonly channel: Channel }

/** An EXECUTE that has passed all checks. */
interface CheckedExecute {
  readonly control: Control
  readonly args: ControlArguments
  /** All arguments, for the audit log. */
  readonly all: ControlArguments
  readonly context: ExecuteContext
  readonly key: IdempotencyKey | undefined
  readonly isDryRun: boolean
  /** The rule by which it has to be approved before it runs; undefined if it need not. */
  readonly rule: Rule | undefined
  /** The execution that it repeats; undefined if it is the first one. */
  readonly known: Execution | undefined
  /** Whether it is recorded in the audit log. */
  readonly isRecorded: boolean
  readonly run: ControlRun
  readonly onBehalfOf: string | undefined
}

/** The id of the result, and a function to call when the response was sent. */
export interface ExecuteResponse {
  readonly id: number
  readonly run: () => void
}

export class Executor {
  readonly #options: ExecutorOptions
  readonly #controls: ControlCatalogue
  readonly #results: Results
  readonly #executions: Executions
  readonly #audit: ControlAudit
  readonly #secret = randomBytes(32)
  readonly #running: RunningControls
  /** What waits for approval, and who decides it. */
  readonly approving: Approving

  constructor(options: ExecutorOptions) {
    const { journal, clock, age, log, rights } = options
    this.#options = options
    const controls = new ControlCatalogue(rights)
    const results = new Results(options)
    const executions = new Executions({ rows: options.recovered.executions, change: journal.change.bind(journal), age })
    const audit = new ControlAudit(options.audit, options.limitedRecords)
    const running = new RunningControls({ clock, log, audit, results, executions })
    this.#controls = controls
    this.#results = results
    this.#executions = executions
    this.#audit = audit
    this.#running = running
    this.approving = new Approving(options, { controls, results, executions, audit, running })
    controls.add(decisionControls(this.approving))
  }

  /** Adds controls, and sources of controls that appear and disappear at run time. */
  add(
    controls: readonly Control[],
    sources: readonly ControlSource[] = [],
    remote: readonly RemoteControls[] = [],
  ): void {
    this.#controls.add(controls, sources, remote)
  }

  /** Puts other controls in the place of all whose names begin with a prefix. Those that run continue to their end. */
  replace(prefix: string, controls: readonly Control[]): void {
    this.#controls.replace(prefix, controls)
    this.approving.reviewAll(prefix)
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

  /** The controls of other producers that an identity can see. */
  remote(producers: (path: string) => boolean, identity: Identity): Iterable<RemoteControl> {
    return this.#controls.remote(producers, identity)
  }

  /** The controls of the server itself whose names match and that no rule can have wait for approval, because they take a secret. */
  secretive(matches: (name: string) => boolean): string[] {
    return this.#controls.secretive(matches)
  }

  /** Checks an EXECUTE and prepares its start. Throws StatusError if nothing runs. */
  async execute(name: string, list: ArgumentList, context: ExecuteContext): Promise<ExecuteResponse> {
    const control = this.#controls.meant(name, list, context.identity)
    let checked: CheckedExecute
    try {
      checked = this.#check(name, control, list, context)
    } catch (error) {
      if (error instanceof StatusError) this.#audit.refused(name, control, list, error, context)
      throw error
    }
    if (checked.isDryRun || checked.known !== undefined) return this.#respondOnly(checked)
    const { rule } = checked
    if (rule !== undefined) return this.approving.ask({ ...checked, rule })
    return control?.immediate ? this.#runBeforeResponse(checked) : this.#runAfterResponse(checked)
  }

  #check(name: string, control: Control | undefined, list: ArgumentList, context: ExecuteContext): CheckedExecute {
    if (control === undefined) return this.#controls.refuseUnknown(name, context)
    const invocation = readInvocation(list, control)
    const { args, isDryRun } = invocation
    const rule = this.#controls.judge(control, invocation, context)
    const quota = this.#options.quotaOf(context.identity)
    quota?.controls.take()
    checkInvocation(invocation, control)
    this.#results.needsRoom(context.channel)
    const key =
      invocation.key === undefined || isDryRun
        ? undefined
        : idempotencyKeyOf(invocation.key, invocation.given, control, this.#secret)
    const user = context.identity.userId
    const known = key && this.#executions.find(user, name, key)
    if (known === undefined && invocation.isRepeatOnly) {
      throw new StatusError('INVALID_ARGUMENT', 'no EXECUTE with this idempotency_key is known: nothing runs')
    }
    if (control.learn !== undefined && isUnknownYet(known)) this.#running.needsRoomToLearn(control, context.identity)
    if (known === undefined) this.#needsRoom(control, invocation, context.identity, rule)
    if (known === undefined && key !== undefined) this.#executions.needsRoom(user)
    const { all, run } =
      known === undefined ? prepared(control, invocation, context) : { ...invocation, run: () => CHECKED }
    const isRecorded = rule !== undefined || (control.isRecorded?.(args, context) ?? true)
    if (isRecorded && known === undefined && !isDryRun) quota?.audited.needsRoom()
    const { onBehalfOf } = invocation
    return { control, args, all, context, key, isDryRun, rule, known, isRecorded, run, onBehalfOf }
  }

  /** Throws StatusError unless a control may start now, or be tried out, or begin to wait. */
  #needsRoom(control: Control, invocation: Invocation, identity: Identity, rule: Rule | undefined): void {
    if (rule !== undefined) this.approving.needsRoom(control, invocation, identity)
    else if (invocation.isDryRun) this.#running.needsRoomForDryRun(control, identity)
    else this.#running.needsRoom(control, identity)
  }

  /** Responds to an EXECUTE for which nothing runs but perhaps a program that changes nothing: a dry run, or the repetition of a key. */
  #respondOnly(checked: CheckedExecute): ExecuteResponse {
    const { control, args, all, context, known, isRecorded, onBehalfOf } = checked
    const pending = this.#results.announce(control.name, context.identity.userId, context.channel)
    const action = known === undefined ? 'dry-run' : 'repeat'
    if (isRecorded) this.#audit.unexecuted(action, control, all, pending.id, context)
    if (known !== undefined && known.result === undefined) this.approving.repeat(known, pending)
    const finish = (result: Uint8Array): void => this.#results.deliver(pending, result)
    const begun =
      known === undefined
        ? this.#running.beginDryRun(control, args, { identity: context.identity, onBehalfOf }, (result) =>
            finish(encodeResult(result)),
          )
        : this.#beginToLearn(checked, known, pending)
    if (begun !== undefined) return { id: pending.id, run: begun }
    // In the batch of its announcement, so that no crash parts them. The command holds it back until the response is sent.
    if (known === undefined) finish(encodeResult(CHECKED))
    else if (known.result === undefined) known.waiting.push(finish)
    else finish(known.result)
    return { id: pending.id, run: () => {} }
  }

  /** What asks for a result that is not known here, but may be known where the control has run; undefined if nobody can be asked. */
  #beginToLearn(
    { control, args, context, key, onBehalfOf }: CheckedExecute,
    known: Execution,
    pending: PendingResult,
  ): (() => void) | undefined {
    if (!isUnknownYet(known)) return undefined
    const asker = { identity: context.identity, key: key?.key, onBehalfOf }
    return this.#running.beginToLearn(control, args, asker, (result) => {
      const bytes = encodeResult(result)
      // Another repetition may have learned it meanwhile.
      if (result.outcome !== 'unknown' && isUnknownYet(known)) {
        this.#audit.outcome(control.name, pending.id, result, context)
        this.#executions.learn(known, bytes)
      }
      this.#results.deliver(pending, bytes)
    })
  }

  /** The audit record and the announcement of the result are one batch; the control starts when it is stored and the response was sent. */
  #runAfterResponse(checked: CheckedExecute): ExecuteResponse {
    const { control, all, context, key, isRecorded } = checked
    const user = context.identity.userId
    const pending = this.#results.announce(control.name, user, context.channel)
    if (isRecorded) this.#audit.execute(control, all, pending.id, context)
    const started = { ...checked, pending, execution: this.#executions.begin(user, control.name, key) }
    return { id: pending.id, run: this.#running.begin(started) }
  }

  /** Runs a control before the response. Its effect is in the same batch as its audit record, or in a later one. */
  async #runBeforeResponse(checked: CheckedExecute): Promise<ExecuteResponse> {
    const { control, all, context, key, isRecorded, run } = checked
    const user = context.identity.userId
    const id = this.#options.ids.take()
    if (isRecorded) this.#audit.execute(control, all, id, context)
    const execution = this.#executions.begin(user, control.name, key)
    try {
      const result = await run(this.#running.signal)
      // If the channel was deleted meanwhile, its connection was closed too, and nobody reads the refusal.
      if (context.channel.deleted) throw new StatusError('NO_SUCH_CHANNEL', 'the channel is gone')
      const pending = this.#results.announce(control.name, user, context.channel, id)
      return { id, run: () => this.#running.end({ ...checked, pending, execution }, result) }
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

  /**
   * Takes an announced result that was not ready when the process ended. If its control waits for approval, it is still to come; else it
   * is delivered as unknown, and `recover` writes the audit record.
   */
  announced(id: number, control: string, user: number, channel: Channel): void {
    channel.results.add(id)
    if (this.approving.announced(id, channel)) return
    this.#results.deliver({ id, control, user, channel }, encodeResult(UNKNOWN_RESULT))
  }

  /**
   * Records the outcome `unknown` of all controls that had not ended when the process ended, and has a dry run again for those that wait
   * for approval without one.
   */
  recover(): void {
    for (const execution of this.#executions.recover(encodeResult(UNKNOWN_RESULT))) {
      const identity = this.#options.accounts.identityOf(execution.user)
      this.#audit.unknown(execution.control, keyIfGiven(execution), identity, UNKNOWN_RESULT)
    }
    this.approving.recover()
  }

  /** Forgets keys that are too old, and ends waits; must be called about every second. */
  sweep(): void {
    this.#executions.sweep()
    this.approving.sweep()
  }

  /** Forgets the keys of a removed user, and ends the waits of what it has asked for. The storage removes its rows with it. */
  forget(user: number): void {
    this.approving.forget(user)
    this.#executions.forget(user)
  }

  /** Ends running controls and waits for them for a while. */
  stop(): Promise<void> {
    return this.#running.stop()
  }
}

/** Whether an execution has ended without anybody here knowing how. */
function isUnknownYet(known: Execution | undefined): boolean {
  return known?.result !== undefined && isUnknown(known.result)
}
