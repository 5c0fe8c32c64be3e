/**
 * EXECUTEs in the audit log [MON 10]: `execute` before a control starts and `outcome` with its result; before that, if it has to be
 * approved, `ask` when it begins to wait and `approval` when that ends; and, in limited numbers, `repeat` for a key that was used
 * before, `dry-run` and `refused`.
 */
import type { ArgumentList } from '../../../protocol/monitor/arguments.ts'
import type { Value } from '../../../protocol/monitor/value.ts'
import type { ApprovalRow } from '../../../storage/store.ts'
import type { LimitedRecords } from '../accounts/audit/limited-records.ts'
import type { AuditEntry, AuditLog } from '../accounts/audit/log.ts'
import type { StatusError } from '../core/errors.ts'
import type { ApprovalEnd } from './approvals.ts'
import {
  type Control,
  type ControlArguments,
  type ControlContext,
  type ControlParameter,
  type ControlResult,
  commonParameters,
  HIDDEN,
  KEY_PARAMETER,
} from './control.ts'

type WaitingRow = Pick<ApprovalRow, 'id' | 'control' | 'result'>
export type Decider = Pick<ControlContext, 'identity' | 'address'>

export class ControlAudit {
  readonly #audit: Pick<AuditLog, 'record'>
  readonly #limited: Pick<LimitedRecords, 'record'>

  constructor(audit: Pick<AuditLog, 'record'>, limited: Pick<LimitedRecords, 'record'>) {
    this.#audit = audit
    this.#limited = limited
  }

  /** `id` is the id of the result. */
  execute(control: Control, args: ControlArguments, id: number, who: ControlContext): void {
    this.#audit.record({ action: 'execute', ...executed(control, args, id, who), outcome: 'started' })
  }

  /** An EXECUTE begins to wait for approval, by the rule of this text. */
  asked(control: Control, args: ControlArguments, { id, result }: WaitingRow, rule: string, who: ControlContext): void {
    const record = { ...executed(control, args, result, who), outcome: 'waiting' }
    this.#audit.record({ action: 'ask', ...record, detail: `result ${result}, approval ${id}; ${rule}` })
  }

  /** The wait of an EXECUTE has ended. `by` has decided it, or else it is the one who has asked. */
  decided({ id, control, result }: WaitingRow, { state, reason }: ApprovalEnd, by: Decider): void {
    const text = reason === '' ? '' : `: ${reason}`
    const detail = `result ${result}, approval ${id}${text}`
    this.#audit.record({ action: 'approval', ...actor(by), object: control, args: { id }, outcome: state, detail })
  }

  /** An EXECUTE that runs nothing. */
  unexecuted(
    action: 'repeat' | 'dry-run',
    control: Control,
    args: ControlArguments,
    id: number,
    who: ControlContext,
  ): void {
    this.#limited.record({ action, ...executed(control, args, id, who), outcome: action })
  }

  outcome(control: string, id: number, { outcome, detail }: ControlResult, who: ControlContext): void {
    const text = detail === '' ? `result ${id}` : `result ${id}: ${detail}`
    this.#audit.record({ action: 'outcome', ...actor(who), object: control, outcome, detail: text })
  }

  /** The control was started by a process that ended before it. `key` is its idempotency key. */
  unknown(control: string, key: string | undefined, identity: AuditEntry['identity'], { detail }: ControlResult): void {
    const args = key === undefined ? {} : { [KEY_PARAMETER]: key }
    this.#audit.record({ action: 'outcome', identity, address: '', object: control, args, outcome: 'unknown', detail })
  }

  /** The control was started and then refused, so nothing ran. */
  withdrawn(control: string, id: number, error: StatusError, who: ControlContext): void {
    const detail = `result ${id}: ${error.message}`
    this.#audit.record({ action: 'outcome', ...actor(who), object: control, outcome: error.status, detail })
  }

  /** `control` is undefined if the caller cannot see it. */
  refused(
    name: string,
    control: Control | undefined,
    list: ArgumentList,
    error: StatusError,
    who: ControlContext,
  ): void {
    const given = new Map(list.map((argument) => [argument.name, argument.value]))
    const args = control === undefined ? {} : loggableArguments(control, given)
    const { status: outcome, message: detail } = error
    this.#limited.record({ action: 'refused', ...actor(who), object: name, args, outcome, detail })
  }
}

function actor({ identity, address }: Decider): Decider {
  return { identity, address }
}

function executed(control: Control, args: ControlArguments, id: number, who: ControlContext) {
  return { ...actor(who), object: control.name, args: loggableArguments(control, args), detail: `result ${id}` }
}

/** Hides secrets, and arguments that are not declared: they may be secrets under a misspelt name. */
function loggableArguments(control: Control, args: ControlArguments): Record<string, Value['value']> {
  const declared = new Map<string, ControlParameter>()
  for (const parameter of [...control.parameters, ...commonParameters]) declared.set(parameter.name, parameter)
  return Object.fromEntries(
    [...args].map(([name, value]) => {
      const parameter = declared.get(name)
      if (parameter === undefined || parameter.secret) return [name, HIDDEN]
      return [name, parameter.masked === undefined ? value : parameter.masked(value)]
    }),
  )
}
