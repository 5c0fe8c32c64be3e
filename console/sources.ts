/** A source, with its sensor's state and counters: how it looks, how many report through it, and what it refused. */
import type { Look, SensorState } from './fleet.ts'
import { formatCount } from './units.ts'

const goodStates: readonly string[] = ['measuring', 'listening', 'sending', 'matching']

/** A source that is off was not asked for. */
export function sourceLook({ state }: SensorState): Look {
  if (state === 'off') return 'gone'
  return goodStates.includes(state) ? 'good' : 'attention'
}

/** Counters of values that were not taken, by their names (docs/sources/README.md): they should stay 0. */
const REFUSALS = /refused|bad|full$|^over|drops|invalid|failures|unserved|unanswered|wrong|cutoff/i

export function isRefusal(counter: string): boolean {
  return REFUSALS.test(counter)
}

export function refusedBy({ counters }: SensorState): number {
  return Object.entries(counters).reduce((sum, [name, count]) => sum + (isRefusal(name) ? count : 0), 0)
}

/** The entry of a server that is consumed begins with this; the name of that server follows. */
export const UPSTREAM = 'upstream/'

/** How many things report through it, as `14 hosts`; empty if it does not count them. */
export function reporters({ name: sensor, counters }: SensorState): string {
  // Of a server that is consumed, connections are all that there have been.
  const names = sensor.startsWith(UPSTREAM) ? ['metrics'] : ['hosts', 'agents', 'sources', 'brokers', 'connections']
  for (const name of names) {
    const count = counters[name]
    if (count !== undefined) return `${formatCount(count)} ${count === 1 ? name.slice(0, -1) : name}`
  }
  return ''
}
