/** A control [MON 10]: declared as data, checked before the response of EXECUTE, run after it. */
import type { Credential } from '../../../auth/mechanism.ts'
import type { Identity } from '../../../auth/permissions.ts'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import { type Value, VOID } from '../../../protocol/monitor/value.ts'
import type { Channel } from '../channels/channel.ts'
import { PRODUCER } from '../metrics/reach.ts'
import type { Bounds } from './bounds.ts'

export interface ControlParameter extends Bounds {
  readonly name: string
  readonly type: BasicType
  readonly optional?: boolean
  /** The value if the argument is omitted. */
  readonly default?: Value['value'] | undefined
  /** Hidden in every log and audit record. */
  readonly secret?: boolean
  /** Hides the secret parts of a value for logs and audit records. */
  readonly masked?: (value: Value['value']) => Value['value']
  readonly description: string
}

/** Replaces a secret in logs and audit records. */
export const HIDDEN = '***'

/** The parameters of every control. */
export const KEY_PARAMETER = 'idempotency_key'
export const DRY_RUN_PARAMETER = 'dry_run'
export const ON_BEHALF_OF_PARAMETER = 'on_behalf_of'
export const REPEAT_ONLY_PARAMETER = 'repeat_only'
export const commonParameters: readonly ControlParameter[] = [
  {
    name: KEY_PARAMETER,
    type: BasicType.STRING,
    optional: true,
    description: 'EXECUTEs of this control with the same key within 24 hours run once and get the same result.',
  },
  {
    name: DRY_RUN_PARAMETER,
    type: BasicType.BOOLEAN,
    optional: true,
    description: 'Checks everything, and runs nothing.',
  },
  {
    name: ON_BEHALF_OF_PARAMETER,
    type: BasicType.STRING,
    optional: true,
    maxLength: 1024,
    description:
      'Whom the identity that is logged in claims to act for; it is recorded, and they cannot approve what they have asked for.',
  },
  {
    name: REPEAT_ONLY_PARAMETER,
    type: BasicType.BOOLEAN,
    optional: true,
    description: 'Gives the result of an earlier EXECUTE with the same key, and runs nothing.',
  },
]

/** Names that no argument of a control's own may have: every control takes them, or they say which producer runs it [MON 9.13]. */
export const reservedParameters: readonly string[] = [...commonParameters.map(({ name }) => name), PRODUCER]

/** What an EXECUTE can come to. */
export const outcomes = ['ok', 'failed', 'timeout', 'unknown', 'dry-run', 'refused'] as const

export interface ControlResult {
  readonly outcome: (typeof outcomes)[number]
  readonly detail: string
  readonly value: Value
}

export interface ControlContext {
  readonly identity: Identity
  readonly credential: Credential
  /** The address of the peer. */
  readonly address: string
  /** The current channel of the connection when EXECUTE arrived; undefined if it has ended while the EXECUTE waited for approval. */
  readonly channel: Channel | undefined
  /** Where the producer made the connection to, as scheme://host:port; undefined if it came in. */
  readonly destination?: string | undefined
  /** The idempotency key that was given, or made for a control that is `isKeyed`. */
  readonly key?: string | undefined
  /** Whom the identity claims to act for. */
  readonly onBehalfOf?: string | undefined
}

/** The arguments by name, converted to the declared types, with defaults for omitted ones. */
export type ControlArguments = ReadonlyMap<string, Value['value']>

/** Runs a control. `signal` is aborted when the producer stops, and everything that the control has started must then end. */
export type ControlRun = (signal: AbortSignal) => ControlResult | Promise<ControlResult>

/** Whom a control is for, whatever the rules say: to all others it does not exist. */
export interface Audience {
  /** The only tenants whose users may run it; undefined for all tenants. */
  readonly tenants?: readonly string[]
  /** True if only admins may run it. */
  readonly adminOnly?: true
}

export interface Control extends Audience {
  readonly name: string
  readonly description: string
  readonly parameters: readonly ControlParameter[]
  /** How many may run at the same time for each tenant; undefined for any number. */
  readonly maxRunning?: number
  /**
   * True if the control runs before the response, so that OK means that its effect is stored [MON 8 Configuring]. Its
   * StatusError refuses the EXECUTE.
   */
  readonly immediate?: true
  /** True if it helps against a full disk: an admin may run it then, with the space of the reserve. */
  readonly usesReserve?: true
  /** True if it is run elsewhere, and may have to be requested again: without an idempotency key it gets one, which is recorded. */
  readonly isKeyed?: true
  /** Adds omitted arguments that have only one possible value to `args`, before the rights are checked. */
  complete?(args: Map<string, Value['value']>): void
  /**
   * Whether an EXECUTE that `prepare` has accepted is recorded in the audit log; if undefined, it always is. Controls that only
   * list or explain are not, and neither is what users do to their own channels.
   */
  isRecorded?(args: ControlArguments, context: ControlContext): boolean
  /**
   * Checks the arguments and changes nothing. Returns the function that is run when the announcement of the result is stored.
   * Throws StatusError.
   */
  prepare(args: ControlArguments, context: ControlContext): ControlRun
  /**
   * Returns what is run instead for a dry run, which changes nothing; called after `prepare`, with the same arguments. Without it a dry
   * run only checks.
   */
  dryRun?(args: ControlArguments, context: Pick<ControlContext, 'identity' | 'onBehalfOf'>): ControlRun
  /**
   * Returns what asks elsewhere for the result of an EXECUTE with the key of the context whose outcome is `unknown` here. It starts
   * nothing, and gives `unknown` if nothing is known there either.
   */
  learn?(args: ControlArguments, context: Pick<ControlContext, 'identity' | 'key' | 'onBehalfOf'>): ControlRun
  /** What it runs, if that may change while its name stays: what was approved before must not run afterwards. */
  readonly definition?: string
}

/** Controls that appear and disappear at run time, for example the methods of a broker. */
export interface ControlSource extends Audience {
  /** The common prefix of their names. */
  readonly prefix: string
  /** The tenants that may have such controls. */
  readonly tenants: readonly string[]
  /** The controls of the tenant of an identity. */
  of(identity: Identity): Iterable<Control>
  find(name: string, identity: Identity): Control | undefined
}

export interface RemoteControl {
  /** The path of its producer. */
  readonly producer: string
  readonly control: Control
}

/** The controls of other producers, which are run there. */
export interface RemoteControls {
  /** Undefined if no such producer is there for the identity, or it has no such control that may be run from here. */
  find(name: string, producer: string, identity: Identity): Control | undefined
  /** Those of the producers that match. */
  of(producers: (path: string) => boolean, identity: Identity): Iterable<RemoteControl>
}

export function ok(detail = '', value: Value = VOID): ControlResult {
  return { outcome: 'ok', detail, value }
}

export function failed(detail: string): ControlResult {
  return { outcome: 'failed', detail, value: VOID }
}
