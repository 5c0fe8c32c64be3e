/** What a control is [MON 10]: declared as data, judged before the response, run after it. */
import type { Credential } from '../../auth/mechanism.ts'
import type { Identity } from '../../auth/permissions.ts'
import { BasicType } from '../../protocol/monitor/constants.ts'
import { type Value, VOID } from '../../protocol/monitor/value.ts'
import type { Channel } from '../channels/channel.ts'

export interface ControlParameter {
  readonly name: string
  readonly type: BasicType
  readonly optional?: boolean
  /** Its value where it is left out. */
  readonly default?: Value['value'] | undefined
  /** In no log and no audit record. */
  readonly secret?: boolean
  /** The value as these may have it, where something inside it is secret. */
  readonly masked?: (value: Value['value']) => Value['value']
  readonly description: string
}

/** What stands in the place of a secret. */
export const HIDDEN = '***'

/** What every control takes beside its own. */
export const KEY_PARAMETER = 'idempotency_key'
export const DRY_RUN_PARAMETER = 'dry_run'
export const commonParameters: readonly ControlParameter[] = [
  {
    name: KEY_PARAMETER,
    type: BasicType.STRING,
    optional: true,
    description: 'EXECUTEs of this control with the same key within 24 hours run once and get the same result.',
  },
  { name: DRY_RUN_PARAMETER, type: BasicType.BOOLEAN, optional: true, description: 'Judges, and runs nothing.' },
]

export interface ControlResult {
  readonly outcome: 'ok' | 'failed' | 'timeout' | 'unknown' | 'dry-run'
  readonly detail: string
  readonly value: Value
}

export interface ControlContext {
  readonly identity: Identity
  readonly credential: Credential
  /** Of the peer. */
  readonly address: string
  /** The current channel of the connection when EXECUTE arrived. */
  readonly channel: Channel
}

/** The arguments by name, of the declared types, with the defaults of those that were left out. */
export type Given = ReadonlyMap<string, Value['value']>

/** What a control does. `signal`: the producer stops, and whatever goes on beyond that has to end. */
export type Run = (signal: AbortSignal) => ControlResult | Promise<ControlResult>

export interface Control {
  readonly name: string
  readonly description: string
  readonly parameters: readonly ControlParameter[]
  /** The tenants whose users may ever run it, whatever rules say; left out: all. */
  readonly tenants?: readonly string[]
  /** So many at once; left out: any number. */
  readonly maxRunning?: number
  /** What it does is stored when OK is answered: it runs before the response [MON 8 Configuring]. A StatusError of its refuses. */
  readonly immediate?: true
  /** Fills in what was left out and can be only one thing, before rights are judged. `given` is changed. */
  complete?(given: Map<string, Value['value']>): void
  /** Judges the arguments and changes nothing; gives what runs once "a result is to come" is stored. Throws StatusError. */
  prepare(args: Given, context: ControlContext): Run
}

/** Controls that come and go, as the methods of a broker do with its schemas. */
export interface ControlSource {
  /** What the names of all of them begin with. */
  readonly prefix: string
  /** The tenants that may have some. */
  readonly tenants: readonly string[]
  /** Those of an identity's tenant. */
  of(identity: Identity): Iterable<Control>
  find(name: string, identity: Identity): Control | undefined
}

export function ok(detail = '', value: Value = VOID): ControlResult {
  return { outcome: 'ok', detail, value }
}

export function failed(detail: string): ControlResult {
  return { outcome: 'failed', detail, value: VOID }
}
