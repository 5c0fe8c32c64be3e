/** What a control is [MON 10]: declared as data, judged before the response, run after it. */
import type { Credential } from '../../auth/mechanism.ts'
import type { Identity } from '../../auth/permissions.ts'
import type { BasicType } from '../../protocol/monitor/constants.ts'
import { type Value, VOID } from '../../protocol/monitor/value.ts'
import type { Channel } from '../channels/channel.ts'

export interface ControlParameter {
  readonly name: string
  readonly type: BasicType
  readonly optional?: boolean
  readonly description: string
}

export interface ControlResult {
  readonly outcome: 'ok' | 'failed' | 'timeout' | 'unknown'
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

/** What runs once "a result is to come" is stored. */
export type Run = () => ControlResult | Promise<ControlResult>

export interface Control {
  readonly name: string
  readonly description: string
  readonly parameters: readonly ControlParameter[]
  /** Who is shown it and may run it. */
  allows(identity: Identity): boolean
  /**
   * Judges the arguments, before the response: throws StatusError, and then nothing ran. `channel.*` act here, since their
   * effect is stored when OK is answered; all others act in what this returns.
   */
  prepare(args: ReadonlyMap<string, Value['value']>, context: ControlContext): Run | Promise<Run>
}

export function ok(detail = '', value: Value = VOID): ControlResult {
  return { outcome: 'ok', detail, value }
}

export function failed(detail: string): ControlResult {
  return { outcome: 'failed', detail, value: VOID }
}
