/** What a command's handler is: `(session, arguments) => outcome`. Synchronous wherever it can be: commands are as hot as values. */
import type { CommandArguments, CommandName } from '../../protocol/monitor/commands/index.ts'
import type { Session } from './session.ts'

/** What a handler gives: the result; with `stored` the response waits for the disk; `after` runs when it is out. */
export interface Reply {
  readonly result: number
  readonly stored?: boolean
  readonly after?: () => void
}
export type Outcome = number | Reply
export type Handler<N extends CommandName> = (session: Session, args: CommandArguments<N>) => Outcome | Promise<Outcome>
/** Commands that concern the connection itself are the session's own. */
export type HandledName = Exclude<CommandName, 'AUTH' | 'NOP' | 'WRAP'>
/** One for each command: leaving one out does not compile. */
export type Handlers = { readonly [N in HandledName]: Handler<N> }
