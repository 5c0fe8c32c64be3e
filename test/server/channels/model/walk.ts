/** A random walk: which steps, how often, with which settings. All of it comes from one seed. */
import type { QueueSettings } from '../../../../server/channels/queue-state.ts'
import { Steps } from './steps.ts'
import { Random, type Storage, World } from './world.ts'

type Step = (steps: Steps, random: Random, index: number) => unknown

/** Each with its weight. */
const moves: readonly (readonly [number, Step])[] = [
  [30, (steps, _, index) => steps.append(index)],
  [20, (steps, random, index) => steps.send(index, 100 + random.below(8_000))],
  [20, (steps, _, index) => steps.commit(index)],
  [20, (steps) => steps.batch()],
  [6, (steps, _, index) => steps.release(index)],
  [6, (steps, _, index) => steps.attach(index)],
  [4, (steps, _, index) => steps.detach(index)],
  [4, (steps, _, index) => steps.expire(index)],
  [3, (steps, _, index) => steps.stop(index)],
  [3, (steps, _, index) => steps.purge(index)],
  [3, (steps, _, index) => steps.copy(index)],
  [3, (steps, _, index) => steps.hold(index)],
  [3, (steps, _, index) => steps.window(index)],
  [2, (steps, _, index) => steps.endStops(index)],
  [2, (steps, _, index) => steps.result(index)],
  [2, (steps, random) => steps.full(random.below(2) === 0)],
  [2, (steps, _, index) => steps.damage(index)],
  [2, (steps) => steps.drained()],
  [2, (steps) => steps.crash()],
  [1, (steps) => steps.restart()],
]
const all = moves.flatMap(([weight, step]) => Array<Step>(weight).fill(step))

function settingsOf(random: Random): QueueSettings {
  return {
    durable: random.below(5) > 0,
    window: random.pick([1, 5, 50, 65_536]),
    windowBytes: random.pick([300, 4_000, 1 << 20]),
    maxBytes: random.pick([1_500, 6_000, 30_000, 1 << 20]),
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
    for (let count = 5 + random.below(length); count > 0; count--) {
      const step = random.pick(all)
      done.push(String(step).replace(/^.*steps\./, ''))
      await step(steps, random, random.below(2))
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
