/**
 * The demonstration with servers above servers (docs/hierarchy.md): two racks, a site that consumes both, and a main server that
 * consumes the site. One server of each level is killed. Only the source of a rack pauses for that, until the rack has stored what
 * was fed: smon has no responses that would tell it. From there on each server commits below what it has stored, so that the
 * others are killed at any moment, while values come.
 */
import type { Connect } from '../../client/index.ts'
import { type LogIn, SingleServer } from './place.ts'
import type { Demonstration } from './scenario.ts'
import { DEMO_SOURCE, DemoServer, METRIC } from './server.ts'
import { Stage } from './stage.ts'

const INTRODUCTION = [
  '1, 2, 3 …  ──►  rack1  ──┐',
  '                         ├──►  east  ──►  main  ──►  a consumer',
  '1, 2, 3 …  ──►  rack2  ──┘',
  '',
  'Two sources count. A consumer at main has to handle each number of each source exactly once',
  'and in order. One server of each level is killed with kill -9. What is stored may not be',
  'lost: a server commits below only what it has stored itself. A source cannot see what is',
  'stored: before its rack is killed it pauses until all is.',
  '',
] as const
/** What the source of a rack feeds at once before that is killed: more than passes at once, so that values may still wait there. */
const BURST = 20_000
/** A killed server is away for this share of a round. */
const AWAY = 0.4
const ALL_UP = 1 - AWAY

export async function demonstrateTree(connect: Connect, logIn: LogIn): Promise<Demonstration> {
  const servers = [await DemoServer.create({ name: 'rack1' }), await DemoServer.create({ name: 'rack2' })]
  const east = await DemoServer.create({ name: 'east', takesNumbers: false, upstreams: servers })
  const main = await DemoServer.create({ name: 'main', takesNumbers: false, upstreams: [east] })
  const stageOf = (server: DemoServer, below: readonly Stage[] = []) =>
    new Stage({ place: new SingleServer(server, logIn), connect, below, producer: `east/${server.name}` })
  const [rack1, rack2] = servers.map((server) => stageOf(server)) as [Stage, Stage]
  const site = stageOf(east, [rack1, rack2])
  const top = stageOf(main, [site])
  return {
    introduction: INTRODUCTION,
    stages: [rack1, rack2, site, top],
    follow: { source: DEMO_SOURCE, producer: 'east/*' },
    following: () => `a consumer at main follows ${METRIC} with producer=east/* on a durable channel`,
    steps: [
      { feed: 1 },
      { kill: rack1, burst: BURST },
      { feed: AWAY },
      { restart: rack1 },
      { feed: ALL_UP },
      { kill: site },
      { feed: AWAY },
      { restart: site },
      { feed: ALL_UP },
      { kill: top },
      { feed: AWAY },
      { restart: top },
      { feed: ALL_UP },
      { say: 'the sources stop; the consumer handles what is left' },
    ],
    verdict: '3 kills, one at each level, each number handled exactly once',
  }
}
