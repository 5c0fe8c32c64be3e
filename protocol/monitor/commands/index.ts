/** The table of commands, in the order of their numbers [MON 2]. One line each. */
import type { ArgumentsOf, CommandDeclaration } from '../command.ts'
import { auth } from './auth.ts'
import { buffer } from './buffer.ts'
import { collect } from './collect.ts'
import { commit } from './commit.ts'
import { defChannel } from './def-channel.ts'
import { delChannel } from './del-channel.ts'
import { execute } from './execute.ts'
import { get } from './get.ts'
import { nop } from './nop.ts'
import { query } from './query.ts'
import { setChannel } from './set-channel.ts'
import { stop } from './stop.ts'
import { subscribe } from './subscribe.ts'
import { wrap } from './wrap.ts'

export const commands = {
  NOP: nop,
  COLLECT: collect,
  STOP: stop,
  SUBSCRIBE: subscribe,
  BUFFER: buffer,
  GET: get,
  AUTH: auth,
  DEF_CHANNEL: defChannel,
  SET_CHANNEL: setChannel,
  DEL_CHANNEL: delChannel,
  COMMIT: commit,
  EXECUTE: execute,
  QUERY: query,
  WRAP: wrap,
} as const

export type Commands = typeof commands
export type CommandName = keyof Commands
export type CommandArguments<N extends CommandName> =
  Commands[N] extends CommandDeclaration<infer F> ? ArgumentsOf<F> : never

const byCode: readonly CommandName[] = (Object.keys(commands) as CommandName[]).sort(
  (a, b) => commands[a].code - commands[b].code,
)

/** The name of a command number, or undefined. */
export function commandName(code: number): CommandName | undefined {
  return byCode[code]
}
