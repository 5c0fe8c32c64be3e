/**
 * Each deed for a second: those whose bounds depend on the network, or that need a token, from the network of the good tenant, and
 * all others from one of the hostile tenant's own. `npm run chaos -- --neighbours 10` has all from both, and longer.
 */
import { expect, it } from 'vitest'
import { type DeedName, deeds } from './neighbours/deeds.ts'
import { Namespace } from './neighbours/namespace.ts'
import { inRounds } from './neighbours/rounds.ts'
import { neighbours } from './neighbours.ts'

const SECONDS = 1
const METRICS = 5_000

/** Those that need a token, which is taken over loopback only. */
const BY_TOKEN: readonly DeedName[] = ['bodies', 'scrapes', 'queries']

const FROM_THE_SAME: readonly DeedName[] = ['passwords', 'proofs', 'connections', 'requests', 'fragments', ...BY_TOKEN]

/** So many that lists of them, and what a query selects, would be most of what the server has if they were not bounded. */
const MANY_METRICS = 20_000

/** By which network. */
const DEEDS: readonly (readonly ['own' | 'same', readonly DeedName[]])[] = [
  ['own', (Object.keys(deeds) as DeedName[]).filter((deed) => !FROM_THE_SAME.includes(deed))],
  ['same', FROM_THE_SAME],
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

it('the heaviest queries over very many series do not make the server grow beyond its bound', {
  timeout: 600_000,
}, async () => {
  const lines: string[] = []
  const options = { seed: 1, count: 20, metrics: MANY_METRICS, networks: ['same'], only: ['queries'] } as const
  const totals = await neighbours({ ...options, say: (line) => lines.push(line) })
  expect(totals, lines.join('\n')).toMatchObject({ lost: 0, unexpected: 0, reused: 0 })
  // How long a command takes depends on what else the machine does; a run by hand judges it.
  const broken = lines.filter((line) => line.includes('broken: ') && !/ a (NOP|QUERY) took /.test(line))
  expect(broken, lines.join('\n')).toEqual([])
})

it.for([
  ['OTLP protobuf, counts of points, gzip', true, '200'],
  ['OTLP JSON, counts of a point', false, '403'],
  ['remote write, labels, Snappy', true, '400'],
] as const)(
  '%s in rounds, may publish %s: answers come, and memory is bounded',
  { timeout: 600_000 },
  async ([shape, mayPublish, status]) => {
    const { answers, broken } = await inRounds({ shape, mayPublish, metrics: METRICS, rounds: 4 })
    // How long a NOP takes depends on what else the machine does; a run by hand judges it.
    expect(broken.filter((promise) => !promise.includes('NOP'))).toEqual([])
    expect(answers[status]).toBeGreaterThan(0)
  },
)
