/**
 * EXECUTEs in the audit log [MON 10]: `execute` before a control starts and `outcome` with its result; `repeat` for a key
 * that was used, `dry-run`, and `refused`, which is bounded: who is refused over and over must not fill the log.
 */
import type { ArgumentList } from '../../protocol/monitor/arguments.ts'
import type { Value } from '../../protocol/monitor/value.ts'
import type { AuditEntry } from '../accounts/audit/log.ts'
import type { Refusals } from '../accounts/audit/refusals.ts'
import type { StatusError } from '../core/errors.ts'
import {
  type Control,
  type ControlContext,
  type ControlParameter,
  type ControlResult,
  commonParameters,
  type Given,
  HIDDEN,
  KEY_PARAMETER,
} from './control.ts'

/** The audit log, as far as it is needed here. */
export interface Audit {
  record(entry: AuditEntry): void
}

export class Audited {
  readonly #audit: Audit
  readonly #refusals: Pick<Refusals, 'record'>

  constructor(audit: Audit, refusals: Pick<Refusals, 'record'>) {
    this.#audit = audit
    this.#refusals = refusals
  }

  /** `id`: of the result. */
  execute(
    action: 'execute' | 'repeat' | 'dry-run',
    control: Control,
    given: Given,
    id: number,
    who: ControlContext,
  ): void {
    const outcome = action === 'execute' ? 'started' : action
    const args = shown(control, given)
    this.#audit.record({ action, ...actor(who), object: control.name, args, outcome, detail: `result ${id}` })
  }

  outcome(control: string, id: number, { outcome, detail }: ControlResult, who: ControlContext): void {
    const text = detail === '' ? `result ${id}` : `result ${id}: ${detail}`
    this.#audit.record({ action: 'outcome', ...actor(who), object: control, outcome, detail: text })
  }

  /** It was started by a process that ended before it. `key`: its idempotency key. */
  unknown(control: string, key: string | undefined, identity: AuditEntry['identity'], { detail }: ControlResult): void {
    const args = key === undefined ? {} : { [KEY_PARAMETER]: key }
    this.#audit.record({ action: 'outcome', identity, address: '', object: control, args, outcome: 'unknown', detail })
  }

  /** It began and was refused then: nothing ran. */
  withdrawn(control: string, id: number, error: StatusError, who: ControlContext): void {
    const detail = `result ${id}: ${error.message}`
    this.#audit.record({ action: 'outcome', ...actor(who), object: control, outcome: error.status, detail })
  }

  /** `control`: undefined where it is not shown to them. */
  refused(
    name: string,
    control: Control | undefined,
    list: ArgumentList,
    error: StatusError,
    who: ControlContext,
  ): void {
    const given = new Map(list.map((argument) => [argument.name, argument.value]))
    const args = control === undefined ? {} : shown(control, given)
    const { status: outcome, message: detail } = error
    this.#refusals.record({ identity: who.identity, address: who.address, object: name, args, outcome, detail })
  }
}

function actor({ identity, address }: ControlContext): Pick<AuditEntry, 'identity' | 'address'> {
  return { identity, address }
}

/** What is not declared may be a secret under a misspelt name. */
function shown(control: Control, given: Given): Record<string, Value['value']> {
  const declared = new Map<string, ControlParameter>()
  for (const parameter of [...control.parameters, ...commonParameters]) declared.set(parameter.name, parameter)
  return Object.fromEntries(
    [...given].map(([name, value]) => {
      const parameter = declared.get(name)
      if (parameter === undefined || parameter.secret) return [name, HIDDEN]
      return [name, parameter.masked === undefined ? value : parameter.masked(value)]
    }),
  )
}
