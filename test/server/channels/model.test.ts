/**
 * Random walks over queues and their store against the model, checked after every step. A walk is made again from its
 * seed: `MODEL_SEED=123 npx vitest run ... model`. `MODEL_WALKS=100000` goes on for longer.
 */
import { rmSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import type { QueueSettings } from '../../../server/channels/queue-state.ts'
import { Steps } from './model/steps.ts'
import { memoryStorage, sqliteStorage } from './model/storages.ts'
import { Random, type Storage, World } from './model/world.ts'

const WALKS = Number(process.env['MODEL_WALKS'] ?? 1_000)
const SEED = process.env['MODEL_SEED']

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

async function walk(seed: number, storage: Storage, length: number): Promise<void> {
  const random = new Random(seed)
  const world = new World(storage, [settingsOf(random), settingsOf(random)])
  const done: string[] = []
  try {
    await world.open()
    const steps = new Steps(world, random, random.below(2) === 0)
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

describe('the queue, its journal and a store', () => {
  const seeds = SEED === undefined ? Array.from({ length: WALKS }, (_, index) => index + 1) : [Number(SEED)]

  it(`lose, repeat and reorder nothing in ${seeds.length} random walks over a store in memory`, async () => {
    for (const seed of seeds) await walk(seed, memoryStorage(), 120)
    expect(seeds.length).toBeGreaterThan(0)
  }, 86_400_000)

  it('does the same over SQLite', async () => {
    for (const seed of seeds.slice(0, Math.max(8, seeds.length / 1_000))) {
      const storage = sqliteStorage()
      try {
        await walk(seed, storage, 80)
      } finally {
        rmSync(storage.directory, { recursive: true })
      }
    }
  }, 86_400_000)
})
