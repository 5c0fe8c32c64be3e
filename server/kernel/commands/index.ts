/** The handlers of all commands about metrics, channels and controls. Leaving one out does not compile. */
import type { CommandHandlers } from '../sessions/handler.ts'
import { commit, defChannel, delChannel, setChannel } from './channels.ts'
import { Lookup } from './lookup.ts'
import { buffer, collect, stop, subscribe } from './metrics.ts'
import { execute, get, query } from './on-demand.ts'
import type { CommandServices } from './services.ts'

export function commandHandlers(services: CommandServices): CommandHandlers {
  const lookup = new Lookup(services)
  return {
    COLLECT: collect(services, lookup),
    STOP: stop(services, lookup),
    SUBSCRIBE: subscribe(services, lookup),
    BUFFER: buffer(services, lookup),
    GET: get(services, lookup),
    DEF_CHANNEL: defChannel(services, lookup),
    SET_CHANNEL: setChannel(lookup),
    DEL_CHANNEL: delChannel(services, lookup),
    COMMIT: commit,
    EXECUTE: execute(services, lookup),
    QUERY: query(services, lookup),
  }
}
