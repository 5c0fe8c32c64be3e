/**
 * A command handler is `(session, arguments) => outcome`, synchronous wherever possible: commands are as hot as values. What
 * may take long, such as a pattern over thousands of names, is worked out in steps.
 */
import type { Credential } from '../../../auth/mechanism.ts'
import type { Identity } from '../../../auth/permissions.ts'
import type { CommandArguments, CommandName } from '../../../protocol/monitor/commands.ts'
import type { Channel } from '../channels/channel.ts'
import type { ChannelConnection } from '../channels/outbox.ts'
import type { Effect, Steps } from '../core/fair-work.ts'
import type { MetricInstance } from '../metrics/instance.ts'
import type { Effects } from './response-writer.ts'

/** A session as commands see it: its identity and its current channel. */
export interface CommandSession extends ChannelConnection {
  readonly identity: Identity
  /** The proof of the identity; its scope may be narrower. */
  readonly credential: Credential
  /** The address of the peer. */
  readonly address: string
  /**
   * Where the producer made this connection to, as scheme://host:port: its channel is then the only one [MON 14]. Undefined if
   * the connection came in.
   */
  readonly destination: string | undefined
  /** The current channel. */
  readonly channel: Channel
  /** Instances that were made here and never bound. */
  readonly unboundInstances: Set<MetricInstance>
  /** Makes another channel the current one. The returned function is to be called when the response is sent. */
  moveTo(channel: Channel): () => void
  /** Ignores everything after the current command. */
  stopReading(): void
  /** Has an answer made after those of the commands so far. */
  later(answer: Effect): void
  /** Sends a notice with the reason and ends the connection. */
  dismiss(code: number, detail: string): void
}

export interface Reply extends Effects {
  readonly result: number
  /** True if the response waits until every change made so far is durable. */
  readonly stored?: boolean
  /** True if no other command is handled before the answer was made. */
  readonly alone?: boolean
}
export type Outcome = number | Reply
/** An outcome, or what will decide it. */
export type Decision = Outcome | Promise<Outcome> | Steps<Outcome | Promise<Outcome>>
export type CommandHandler<N extends CommandName> = (session: CommandSession, args: CommandArguments<N>) => Decision
/** All commands but those about the connection itself, which belong to the session. */
export type HandledName = Exclude<CommandName, 'AUTH' | 'NOP' | 'WRAP'>
export type CommandHandlers = { readonly [N in HandledName]: CommandHandler<N> }
