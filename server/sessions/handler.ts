/** What a command's handler is: `(session, arguments) => outcome`. Synchronous wherever it can be: commands are as hot as values. */

import type { Credential } from '../../auth/mechanism.ts'
import type { Identity } from '../../auth/permissions.ts'
import type { CommandArguments, CommandName } from '../../protocol/monitor/commands/index.ts'
import type { Channel } from '../channels/channel.ts'
import type { Connection } from '../channels/outbox.ts'
import type { MetricInstance } from '../metrics/instance.ts'
import type { Producer } from './producer.ts'

/** The session as a command sees it: who asks, from which channel. */
export interface CommandSession extends Connection {
  readonly producer: Producer
  readonly identity: Identity
  /** With what it was proven: may be narrower than the identity. */
  readonly credential: Credential
  /** Of the peer. */
  readonly address: string
  /** The producer made this connection: its channel is the only one [MON 14]. */
  readonly isOutbound: boolean
  /** The current channel. */
  readonly channel: Channel
  /** Instances made here and never bound. */
  readonly unboundInstances: Set<MetricInstance>
  /** Makes another channel the current one; what it gives is to be called when the response is out. */
  moveTo(channel: Channel): () => void
  /** Nothing behind the command under way is handled. */
  endAfterResponse(): void
  /** Ends the connection with its reason said first. */
  dismiss(code: number, detail: string): void
}

/** What a handler gives: the result; with `stored` the response waits for the disk; `after` runs when it is out. */
export interface Reply {
  readonly result: number
  readonly stored?: boolean
  readonly onSent?: () => void
  /** What `after` sets going may be as large as a frame. */
  readonly heavy?: boolean
}
export type Outcome = number | Reply
export type CommandHandler<N extends CommandName> = (
  session: CommandSession,
  args: CommandArguments<N>,
) => Outcome | Promise<Outcome>
/** Commands that concern the connection itself are the session's own. */
export type HandledName = Exclude<CommandName, 'AUTH' | 'NOP' | 'WRAP'>
/** One for each command: leaving one out does not compile. */
export type CommandHandlers = { readonly [N in HandledName]: CommandHandler<N> }
