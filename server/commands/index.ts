/** One line for each command that is about metrics, channels or controls: leaving one out does not compile. */
import type { CommandHandlers } from '../sessions/handler.ts'
import { buffer } from './buffer.ts'
import { collect } from './collect.ts'
import { commit } from './commit.ts'
import { defChannel } from './def-channel.ts'
import { delChannel } from './del-channel.ts'
import { execute } from './execute.ts'
import { get } from './get.ts'
import { query } from './query.ts'
import { setChannel } from './set-channel.ts'
import { stop } from './stop.ts'
import { subscribe } from './subscribe.ts'

export const handlers: CommandHandlers = {
  COLLECT: collect,
  STOP: stop,
  SUBSCRIBE: subscribe,
  BUFFER: buffer,
  GET: get,
  DEF_CHANNEL: defChannel,
  SET_CHANNEL: setChannel,
  DEL_CHANNEL: delChannel,
  COMMIT: commit,
  EXECUTE: execute,
  QUERY: query,
}
