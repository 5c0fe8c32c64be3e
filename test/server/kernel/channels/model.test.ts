/**
 * Random walks over queues and their store against the model, checked after every step. A walk is made again from its
 * seed: `MODEL_SEED=123 npx vitest run ... model`. `MODEL_WALKS=100000` goes on for longer.
 */
import { rmSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { times } from '../../../support/long.ts'
import { memoryStorage, sqliteStorage } from './model/storages.ts'
import { walk } from './model/walk.ts'

const WALKS = Number(process.env['MODEL_WALKS'] ?? times({ short: 80, long: 500 }))
const SEED = process.env['MODEL_SEED']

describe('the queue, its journal and a store', () => {
  const seeds = SEED === undefined ? Array.from({ length: WALKS }, (_, index) => index + 1) : [Number(SEED)]

  it('lose, repeat and reorder nothing in random walks over a store in memory', async () => {
    for (const seed of seeds) await walk(seed, memoryStorage(), 120)
    expect(seeds.length).toBeGreaterThan(0)
  }, 86_400_000)

  it('does the same over SQLite', async () => {
    for (const seed of seeds.slice(0, Math.max(times({ short: 4, long: 8 }), seeds.length / 1_000))) {
      const storage = sqliteStorage()
      try {
        await walk(seed, storage, 80)
      } finally {
        rmSync(storage.directory, { recursive: true })
      }
    }
  }, 86_400_000)
})
