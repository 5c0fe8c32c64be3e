/**
 * Each deed for a second: all of them from a network of the hostile tenant's own, and from that of the good one those whose bounds
 * depend on the network. `npm run chaos -- --neighbours 10` has all from both, and longer.
 */
import { expect, it } from 'vitest'
import { type DeedName, deeds } from './neighbours/deeds.ts'
import { Namespace } from './neighbours/namespace.ts'
import { neighbours } from './neighbours.ts'

const SECONDS = 1
const METRICS = 5_000

/** Those that need a token, which is taken over loopback only. */
const BY_TOKEN: readonly DeedName[] = ['bodies', 'scrapes']

/** By which network. */
const DEEDS: readonly (readonly ['own' | 'same', readonly DeedName[]])[] = [
  ['own', (Object.keys(deeds) as DeedName[]).filter((deed) => !BY_TOKEN.includes(deed))],
  ['same', ['passwords', 'proofs', 'connections', 'requests', 'fragments', ...BY_TOKEN]],
]

it.for(DEEDS)(
  'a hostile tenant harms nobody, from the %s network',
  { timeout: 600_000 },
  async ([network, only], context) => {
    const made = network === 'own' ? Namespace.make() : undefined
    if (typeof made === 'string') context.skip(made)
    else made?.remove()
    const lines: string[] = []
    const options = { seed: 1, count: SECONDS, metrics: METRICS, networks: [network], only }
    const totals = await neighbours({ ...options, say: (line) => lines.push(line) })
    expect(totals, lines.join('\n')).toMatchObject({ lost: 0, unexpected: 0, reused: 0, broken: 0 })
    expect(totals[`${network}Network`]).toBe(only.length)
  },
)
