/**
 * What becomes of EXECUTEs that have to be approved [MON 10.1]: they are asked for, tried out, and then approved, refused, or ended by
 * time or a change. One that is approved starts when the batch is stored in which its wait ends: whatever happens to the process, it
 * starts once or not at all.
 */
import { formatIdentity } from '../../../auth/identity.ts'
import type { Credential } from '../../../auth/mechanism.ts'
import { formatRule, formatScope, type Identity, parseScope, type Rule } from '../../../auth/permissions.ts'
import { XdrReader } from '../../../protocol/bytes/reader.ts'
import { readArguments } from '../../../protocol/monitor/arguments.ts'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import { VOID } from '../../../protocol/monitor/value.ts'
import type { ApprovalRow, Recovered } from '../../../storage/store.ts'
import type { Tokens } from '../accounts/tokens.ts'
import type { Users } from '../accounts/users.ts'
import type { Channel } from '../channels/channel.ts'
import type { Journal } from '../channels/journal.ts'
import type { Clock } from '../core/clock.ts'
import { StatusError } from '../core/errors.ts'
import { PRODUCER } from '../metrics/reach.ts'
import {
  type ApprovalEnd,
  type ApprovalListener,
  Approvals,
  NO_REPEATS,
  type Onlooker,
  type WaitingExecute,
} from './approvals.ts'
import {
  type Control,
  type ControlArguments,
  type ControlContext,
  type ControlParameter,
  type ControlResult,
  type ControlRun,
  failed,
  ok,
} from './control.ts'
import type { ControlAudit, Decider } from './control-audit.ts'
import type { ControlCatalogue } from './control-catalogue.ts'
import type { Execution, Executions, IdempotencyKey } from './executions.ts'
import {
  approvalDigest,
  checkInvocation,
  holdsSecret,
  type Invocation,
  prepared,
  readInvocation,
  storedArguments,
} from './invocation.ts'
import { encodeResult, type PendingResult, type Results } from './results.ts'
import { CHECKED, type RunningControls } from './running.ts'

/** Characters of the id of one that waits, from the beginning of its digest in hexadecimal. */
const ID_LENGTH = 20
/** So many that wait are judged again in one sweep. */
const JUDGED_AT_ONCE = 8
const MAX_REASON_BYTES = 1_024

export interface ApprovingOptions {
  readonly journal: Journal
  readonly clock: Pick<Clock, 'microseconds' | 'wallMs'>
  /** Milliseconds since the database was made. */
  readonly age: () => number
  readonly recovered: Pick<Recovered, 'approvals'>
  readonly accounts: Pick<Users, 'identityOf'>
  readonly tokens: Pick<Tokens, 'isValid'>
  /** How long an EXECUTE that begins to wait now may do so, in milliseconds. */
  readonly approvalTimeoutMs: () => number
}

interface Parts {
  readonly controls: ControlCatalogue
  readonly results: Results
  readonly executions: Executions
  readonly audit: ControlAudit
  readonly running: RunningControls
}

/** An EXECUTE that has passed all checks but that it has to be approved by a rule. */
export interface AskedExecute {
  readonly control: Control
  readonly args: ControlArguments
  readonly all: ControlArguments
  readonly context: ControlContext & { readonly channel: Channel }
  readonly key: IdempotencyKey | undefined
  readonly rule: Rule
  readonly onBehalfOf: string | undefined
}

export class Approving {
  readonly #options: ApprovingOptions
  readonly #parts: Parts
  readonly #approvals: Approvals
  /** Those whose dry run has begun in this process. */
  readonly #triedOut = new WeakSet<WaitingExecute>()

  constructor(options: ApprovingOptions, parts: Parts) {
    const { journal, clock, age } = options
    this.#options = options
    this.#parts = parts
    this.#approvals = new Approvals({ change: journal.change.bind(journal), clock, age })
    for (const row of options.recovered.approvals) this.#restore(row)
  }

  /** If whoever has asked is not there any more, or the execution is damaged, it does not wait any more, and its outcome is unknown. */
  #restore(row: ApprovalRow): void {
    const { id, user, control, result } = row
    const identity = this.#options.accounts.identityOf(user)
    const execution = identity && this.#parts.executions.waiting(row)
    if (identity === undefined || execution === undefined) {
      this.#options.journal.change({ remove: 'approval', id })
      return
    }
    const args = readArguments(new XdrReader(row.args))
    const pending = { id: result, control, user, channel: undefined }
    const rule = this.#parts.controls.approvalRule(control, args, contextOf(row, identity))
    this.#approvals.restore({
      identity,
      args,
      execution,
      rule: rule === undefined ? '' : formatRule(rule),
      row,
      pending,
    })
  }

  /** Gives a result that was announced before the start to the EXECUTE that still waits; false if there is none. */
  announced(id: number, channel: Channel): boolean {
    const waiting = this.#approvals.ofResult(id, channel.id)
    if (waiting === undefined) return false
    const { row, pending, execution } = waiting
    if (id === row.result && channel.id === row.channel) waiting.pending = { ...pending, channel }
    else execution.waiting.push((result) => this.#parts.results.deliver({ ...pending, id, channel }, result))
    return true
  }

  /** Another result is to come of an execution, which may wait for approval. */
  repeat(execution: Execution, { id, channel }: PendingResult): void {
    if (channel?.row.durable) this.#approvals.repeat(execution, id, channel.id)
  }

  /** Tries out again what waits and whose dry run the end of the process has cut off; later, if the control is away. */
  recover(): void {
    for (const waiting of this.#approvals.all()) if (!this.#isAway(waiting)) this.#tryOut(waiting)
  }

  #tryOut(waiting: WaitingExecute): void {
    if (waiting.row.preview !== undefined || this.#triedOut.has(waiting)) return
    const judged = this.#judgedAgain(waiting)
    if (judged === undefined) return
    const { control, invocation } = judged
    const preview = this.#preview(waiting, control, invocation)
    if (preview === undefined) this.#approvals.show(waiting, encodeResult(CHECKED))
    else preview()
  }

  /** A control that is away may come back, as those of a broker or of another server do. */
  #isAway({ row, args, identity }: WaitingExecute): boolean {
    const { controls } = this.#parts
    return controls.isShown(identity, row.control) && controls.meant(row.control, args, identity) === undefined
  }

  /** Throws StatusError unless an EXECUTE may wait. */
  needsRoom(control: Control, { all }: Invocation, identity: Identity): void {
    if (holdsSecret(all, control)) {
      const why = 'it takes a secret, which would lie on the disk as long as it waits'
      throw new StatusError('PERMISSION_DENIED', `${control.name} cannot run where a rule has it approved: ${why}`)
    }
    this.#approvals.needsRoom(identity, storedArguments(all, control).length)
    this.#parts.running.needsRoomForDryRun(control, identity)
  }

  /** The audit record, the announcement of the result and what is to be approved are one batch. */
  ask({ control, args, all, context, key, rule, onBehalfOf }: AskedExecute): {
    readonly id: number
    readonly run: () => void
  } {
    const { age, approvalTimeoutMs } = this.#options
    const { results, executions, audit } = this.#parts
    const { identity, credential, address, channel, destination = '' } = context
    const user = identity.userId
    const pending = results.announce(control.name, user, channel)
    const of = { user, channel: channel.id, result: pending.id, asked: this.#approvals.stamp() }
    const digest = approvalDigest(control, all, rule, of)
    const id = Buffer.from(digest).toString('hex').slice(0, ID_LENGTH)
    const execution = executions.begin(user, control.name, key, `approval ${id}`)
    const row: ApprovalRow = {
      ...of,
      id,
      role: rule.approval ?? '',
      control: control.name,
      args: storedArguments(all, control),
      execution: execution.key,
      repeats: NO_REPEATS,
      address,
      destination,
      scope: formatScope(credential.scope),
      token: credential.token ?? 0,
      age: age(),
      timeout: Math.min(approvalTimeoutMs(), this.#credentialMs(credential)),
      digest,
      preview: control.dryRun === undefined ? encodeResult(CHECKED) : undefined,
    }
    const text = formatRule(rule)
    audit.asked(control, all, row, text, context)
    const waiting = { identity, args: readArguments(new XdrReader(row.args)), execution, rule: text, row, pending }
    this.#approvals.add(waiting)
    return { id: pending.id, run: this.#preview(waiting, control, { args, onBehalfOf }) ?? (() => {}) }
  }

  /** How long a credential is good for: nothing that it has asked for runs afterwards. */
  #credentialMs({ expires = Number.POSITIVE_INFINITY }: Credential): number {
    return Math.max(0, expires - this.#options.clock.wallMs())
  }

  /** Tries out what waits. A stop ends that early: the next start does it again. */
  #preview(
    waiting: WaitingExecute,
    control: Control,
    { args, onBehalfOf }: Pick<Invocation, 'args' | 'onBehalfOf'>,
  ): (() => void) | undefined {
    const { running } = this.#parts
    this.#triedOut.add(waiting)
    return running.beginDryRun(control, args, { identity: waiting.identity, onBehalfOf }, (result) => {
      if (!running.signal.aborted) this.#approvals.show(waiting, encodeResult(result))
    })
  }

  /** Checks that an EXECUTE waits that somebody may approve. Throws StatusError. */
  approve(id: string, by: ControlContext): ControlRun {
    this.#approvable(id, by)
    return () => decided(() => this.#start(this.#approvable(id, by), by))
  }

  #approvable(id: string, by: ControlContext): WaitingExecute {
    const waiting = this.#approvals.approvable(id, by)
    if (waiting.row.preview !== undefined) return waiting
    throw new StatusError('BUSY', `the dry run of ${waiting.row.control} has not ended yet: try again later`)
  }

  /** Throws StatusError if nothing runs: either it still waits, or its wait has ended by that. */
  async #start(waiting: WaitingExecute, by: Decider): Promise<ControlResult> {
    const { running, audit } = this.#parts
    const { pending, execution, identity } = waiting
    if (waiting.args.some(({ name }) => name === PRODUCER) && this.#isAway(waiting)) {
      throw new StatusError(
        'BUSY',
        `${waiting.row.control} is not known: its producer has not been connected since the start`,
      )
    }
    const { control, invocation, context } = this.#judgeAgain(waiting, by)
    running.needsRoom(control, identity)
    const { all, run } = prepared(control, invocation, context)
    const end = { state: 'approved', by: by.identity, reason: '' } as const
    this.#approvals.end(waiting, end)
    audit.decided(waiting.row, end, by)
    audit.execute(control, all, pending.id, context)
    const start = running.begin({ control, context, isRecorded: true, run, pending, execution })
    await this.#options.journal.whenStored()
    start()
    return ok(`${control.name} is approved, and runs: ${formatIdentity(identity)} gets its result`)
  }

  /**
   * Judges an EXECUTE that waits by what holds now. If it may not run any more, or is not what was asked for, ends its wait and throws
   * StatusError.
   */
  #judgeAgain(waiting: WaitingExecute, by?: Decider) {
    const { row, identity, args, pending } = waiting
    const { controls } = this.#parts
    const channel = pending.channel?.deleted === false ? pending.channel : undefined
    const context: ControlContext = { ...contextOf(row, identity), channel }
    try {
      if (row.token !== 0 && !this.#options.tokens.isValid(row.token, this.#options.clock.wallMs())) {
        throw new StatusError('PERMISSION_DENIED', 'the token with which it was asked for is revoked, or has expired')
      }
      const control = controls.meant(row.control, args, identity)
      if (control === undefined) {
        throw new StatusError('NO_SUCH_CONTROL', `whoever has asked has no control ${row.control} any more`)
      }
      const invocation = readInvocation(args, control)
      const rule = controls.judge(control, invocation, context)
      checkInvocation(invocation, control)
      const digest = rule && approvalDigest(control, invocation.all, rule, row)
      if (digest === undefined || !Buffer.from(row.digest).equals(digest)) {
        throw new StatusError('PERMISSION_DENIED', 'the control, or the rule by which it waits, is not what it was')
      }
      return { control, invocation, context }
    } catch (error) {
      if (!(error instanceof StatusError)) throw error
      this.#giveUp(waiting, { state: 'ended', by: by?.identity, reason: error.message }, by)
      throw error
    }
  }

  /** The same, and undefined if its wait has ended by that. */
  #judgedAgain(waiting: WaitingExecute) {
    try {
      return this.#judgeAgain(waiting)
    } catch (error) {
      if (error instanceof StatusError) return undefined
      throw error
    }
  }

  /** Ends the waits for controls whose names begin with a prefix, and that are not what they were. */
  reviewAll(prefix: string): void {
    for (const waiting of this.#approvals.all()) if (waiting.row.control.startsWith(prefix)) this.#judgedAgain(waiting)
  }

  /** Ends waits, by time or because rights have changed; must be called about every second. */
  sweep(): void {
    for (const waiting of this.#approvals.overdue()) {
      const reason = `nobody has approved it within ${Math.round(waiting.row.timeout / 1000)} s`
      this.#giveUp(waiting, { state: 'timeout', reason })
    }
    for (const waiting of this.#approvals.some(JUDGED_AT_ONCE)) {
      // It is missing only when somebody approves it.
      if (this.#isAway(waiting)) continue
      this.#judgedAgain(waiting)
      if (this.#approvals.has(waiting)) this.#tryOut(waiting)
    }
  }

  /** Checks that an EXECUTE waits that somebody may refuse. Throws StatusError. */
  refuse(id: string, reason: string, by: ControlContext): ControlRun {
    this.#approvals.refusable(id, by.identity)
    return () =>
      decided(async () => {
        const waiting = this.#approvals.refusable(id, by.identity)
        this.#giveUp(waiting, { state: 'refused', by: by.identity, reason }, by)
        await this.#options.journal.whenStored()
        return ok(`${waiting.row.control} is refused, and does not run`)
      })
  }

  /** Nothing runs. The refusal, its audit record and the end of the execution are one batch. */
  #giveUp(waiting: WaitingExecute, end: ApprovalEnd, by?: Decider): void {
    const { audit, results, executions } = this.#parts
    const { row, pending, execution, identity } = waiting
    this.#approvals.end(waiting, end)
    audit.decided(row, end, by ?? { identity, address: '' })
    const bytes = encodeResult(refusal(end))
    results.deliver(pending, bytes)
    executions.end(execution, bytes)
  }

  /** Ends the waits of what a removed user has asked for. Its channels and the rows of its executions go with it. */
  forget(user: number): void {
    for (const waiting of this.#approvals.all()) {
      if (waiting.row.user !== user) continue
      const end = { state: 'ended', reason: 'whoever has asked for it was removed' } as const
      this.#approvals.end(waiting, end)
      this.#parts.audit.decided(waiting.row, end, { identity: waiting.identity, address: '' })
    }
  }

  /** Those that an identity may decide about, or has asked for itself, in the order in which they were asked for. */
  shownTo(identity: Onlooker): readonly WaitingExecute[] {
    return this.#approvals.shownTo(identity)
  }

  /** Resolves when everything that has begun or ended so far is stored. */
  whenStored(): Promise<void> {
    return this.#options.journal.whenStored()
  }

  /** EXECUTEs that have found no place to wait so far. */
  get refused(): number {
    return this.#approvals.refused
  }

  /** Calls the listener with each that begins to wait, and with each end. The returned function ends it. */
  follow(listener: ApprovalListener): () => void {
    return this.#approvals.follow(listener)
  }
}

/** Who has asked, and how, as far as it is stored. */
function contextOf({ scope, address, destination }: ApprovalRow, identity: Identity): ControlContext {
  const credential = { method: '', scope: parseScope(scope) }
  return { identity, credential, address, channel: undefined, ...(destination !== '' && { destination }) }
}

/** What keeps somebody from deciding, once the EXECUTE of that has been accepted, is its result. */
async function decided(decide: () => Promise<ControlResult>): Promise<ControlResult> {
  try {
    return await decide()
  } catch (error) {
    if (error instanceof StatusError) return failed(error.message)
    throw error
  }
}

/** The result of an EXECUTE that was not approved. */
function refusal({ state, by, reason }: ApprovalEnd): ControlResult {
  const who = state === 'refused' && by !== undefined ? `by ${formatIdentity(by)}: ` : ''
  return { outcome: 'refused', detail: `${who}${reason}`, value: VOID }
}

const idParameter: ControlParameter = {
  name: 'id',
  type: BasicType.STRING,
  maxLength: 64,
  description: 'Its id, as `control.pending` and `producer.approvals` show it.',
}

/** `control.approve` and `control.refuse`. */
export function decisionControls(approving: Pick<Approving, 'approve' | 'refuse'>): Control[] {
  return [
    {
      name: 'control.approve',
      description: 'Lets an EXECUTE run that waits for the approval of your role. Nobody approves their own.',
      parameters: [idParameter],
      prepare: (args, context) => approving.approve(args.get('id') as string, context),
    },
    {
      name: 'control.refuse',
      description:
        'Ends the wait of an EXECUTE that waits for the approval of your role, or that is your own: it does not run.',
      parameters: [
        idParameter,
        {
          name: 'reason',
          type: BasicType.STRING,
          maxLength: MAX_REASON_BYTES,
          description: 'Why, for whoever has asked.',
        },
      ],
      prepare: (args, context) => approving.refuse(args.get('id') as string, args.get('reason') as string, context),
    },
  ]
}
