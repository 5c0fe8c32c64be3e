/** A deed from either network, for a second; all of them in the long form, and longer with `npm run chaos -- --neighbours 10`. */
import { expect, it } from 'vitest'
import { isLong } from '../support/long.ts'
import { Namespace } from './neighbours/namespace.ts'
import { neighbours } from './neighbours.ts'

const SECONDS = 1
const METRICS = 5_000

it.for([
  ['own', ['lists']],
  ['same', ['passwords']],
] as const)(
  'a hostile tenant harms nobody, from the %s network',
  { timeout: 600_000 },
  async ([network, short], context) => {
    const made = network === 'own' ? Namespace.make() : undefined
    if (typeof made === 'string') context.skip(made)
    else made?.remove()
    const lines: string[] = []
    const deeds = isLong ? {} : { only: short }
    const options = { seed: 1, count: SECONDS, metrics: METRICS, networks: [network], ...deeds }
    const totals = await neighbours({ ...options, say: (line) => lines.push(line) })
    expect(totals, lines.join('\n')).toMatchObject({ lost: 0, unexpected: 0, reused: 0, broken: 0 })
    expect(totals[`${network}Network`]).toBeGreaterThanOrEqual(short.length)
  },
)
