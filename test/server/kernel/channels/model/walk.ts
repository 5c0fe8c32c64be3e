/** A random walk: which steps, how often, with which settings. All of it comes from one seed. */
import type { QueueSettings } from '../../../../../server/kernel/channels/queue-host.ts'
import { Random } from '../../../../support/random.ts'
import { Steps } from './steps.ts'
import { type Storage, World } from './world.ts'

type Step = (steps: Steps, random: Random, index: number) => unknown

/** Each with its weight. */
const moves: readonly (readonly [number, Step])[] = [
  [30, (steps, _, index) => steps.append(index)],
  [8, (steps, random) => steps.publish(random.below(3) === 0)],
  [20, (steps, random, index) => steps.consumer.send(index, 100 + random.below(8_000))],
  [20, (steps, _, index) => steps.consumer.commit(index)],
  [20, (steps) => steps.batch()],
  [6, (steps, _, index) => steps.release(index)],
  [4, (steps, _, index) => steps.consumer.attach(index)],
  [2, (steps, _, index) => steps.consumer.detach(index)],
  [4, (steps, _, index) => steps.expire(index)],
  [3, (steps, _, index) => steps.stop(index)],
  [3, (steps, _, index) => steps.purge(index)],
  [3, (steps, _, index) => steps.copy(index)],
  [3, (steps, _, index) => steps.consumer.hold(index)],
  [3, (steps, _, index) => steps.window(index)],
  [2, (steps, _, index) => steps.endStops(index)],
  [2, (steps, _, index) => steps.result(index)],
  [2, (steps, random) => steps.full(random.below(4) === 0)],
  [2, (steps, _, index) => steps.damage(index)],
  [2, (steps) => steps.consumer.drained()],
  [1, (steps) => steps.crash().then(() => steps.consumer.comeBack())],
  [1, (steps) => steps.restart().then(() => steps.consumer.comeBack())],
  [1, (steps, _, index) => steps.quiet(index)],
]
const NARROW = {
  durable: true,
  window: 5,
  windowBytes: 1 << 20,
  maxBytes: 3_000,
  maxAgeMs: 20_000,
  overflow: 'drop-oldest',
} as const

const all = moves.flatMap(([weight, step]) => Array<Step>(weight).fill(step))

function settingsOf(random: Random): QueueSettings {
  // Where most can go wrong: it is always full, and always something is in flight.
  if (random.below(3) === 0) return { ...NARROW, maxBytes: random.pick([2_000, 4_000]) }
  return {
    durable: random.below(5) > 0,
    window: random.pick([1, 5, 50, 65_536]),
    windowBytes: random.pick([300, 4_000, 1 << 20]),
    maxBytes: random.pick([1_500, 3_000, 6_000, 30_000, 1 << 20]),
    maxAgeMs: random.pick([3_000, 20_000, 1_000_000]),
    overflow: random.pick(['drop-oldest', 'drop-oldest', 'drop-newest', 'keep-latest']),
  }
}

export async function walk(seed: number, storage: Storage, length: number): Promise<void> {
  const random = new Random(seed)
  const world = new World(storage, [settingsOf(random), settingsOf(random)], random.below(2) === 0)
  const done: string[] = []
  try {
    await world.open()
    const steps = new Steps(world, random)
    steps.consumer.comeBack()
    for (let count = 5 + random.below(length); count > 0; count--) {
      const step = random.pick(all)
      done.push(String(step).replace(/^.*?steps\./, ''))
      await step(steps, random, random.below(2))
      steps.marks()
    }
    await steps.drain()
    await steps.crash()
  } catch (error) {
    const settings = JSON.stringify(world.settings)
    throw new Error(`MODEL_SEED=${seed}: after ${done.length} steps\n${settings}\n${done.slice(-12).join('\n')}`, {
      cause: error,
    })
  } finally {
    await world.storage.close()
  }
}
