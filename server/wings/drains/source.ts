/** Drains: what the configuration names is delivered elsewhere, and so are channels with a URL of the same protocols. */
import type { Source } from '../../kit/source.ts'
import type { drainSection } from './config.ts'
import { httpDestination } from './destination.ts'
import { Drains } from './drains.ts'

export const drain: Source<typeof drainSection> = {
  open(kit, tables) {
    kit.peer.delivery.offer(httpDestination(kit))
    const drains = new Drains(kit)
    // The configuration may change before anything may be delivered.
    let wanted = tables
    let isListening = false
    return {
      statuses: drains.statuses,
      listen() {
        isListening = true
        return drains.follow(wanted)
      },
      reload(tables) {
        wanted = tables
        if (isListening) void drains.follow(tables)
      },
      sweep: () => drains.sweep(),
      close: () => drains.stop(),
    }
  },
}
