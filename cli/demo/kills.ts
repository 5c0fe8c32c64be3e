/**
 * The demonstration of one place, a server or a cluster, that is killed three times. The source pauses before each kill until the
 * ledger shows that everything is stored; smon has no responses that would tell it. The consumer is at work then: the place is
 * killed in the middle of its COMMITs.
 */
import type { Connect } from '../../client/index.ts'
import { type LogIn, SingleServer } from './place.ts'
import type { Demonstration, Step } from './scenario.ts'
import { DEMO_SOURCE, DemoServer, METRIC } from './server.ts'
import { Stage } from './stage.ts'

const INTRODUCTION = [
  'A source counts 1, 2, 3 … A consumer has to handle each number exactly once and in order.',
  'The server between them is killed three times with kill -9. It promises that what is stored',
  'is not lost. The source cannot see what is stored: before a kill it pauses until all is.',
  '',
] as const
/** The consumer pauses after this share of a round, so that values queue up, including the last one. */
const PAUSE_AFTER = 0.6
/** A kill comes when the consumer has handled this share of what waits for it. */
const MIDWAY = 1 / 3

export async function demonstrateServer(connect: Connect, logIn: LogIn): Promise<Demonstration> {
  const place = new SingleServer(await DemoServer.create(), logIn, 'the server')
  return { introduction: INTRODUCTION, ...killsOf(new Stage({ place, connect })) }
}

export function killsOf(stage: Stage): Omit<Demonstration, 'introduction'> {
  const round: readonly Step[] = [
    { feed: PAUSE_AFTER },
    { pause: 'the consumer pauses; values wait for it' },
    { feed: 1 - PAUSE_AFTER },
    { store: stage, say: (fed) => `the source pauses until all ${fed} are on disk; the consumer continues` },
    { kill: stage, handled: MIDWAY },
    { restart: stage },
  ]
  return {
    stages: [stage],
    follow: { source: DEMO_SOURCE },
    following: (channel) => `a consumer follows ${METRIC} on the durable channel ${channel}`,
    steps: [...round, ...round, ...round, { feed: 1 }, { say: 'the source stops; the consumer handles what is left' }],
    verdict: '3 kills, each number handled exactly once',
  }
}
