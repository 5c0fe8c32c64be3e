/** Sequences of random commands; `npm run chaos -- --commands 100000` has more of them. */
import { beforeAll, describe, expect, it } from 'vitest'
import { times } from '../support/long.ts'
import { MemoryStore } from '../support/memory-store/store.ts'
import { natsMissing } from '../support/nats.ts'
import { cases } from './commands/cases.ts'
import { runText } from './commands/sequence.ts'
import { SqliteBacked } from './commands/sqlite-backed.ts'
import { prepareGround } from './commands/stage.ts'
import { newCounts } from './commands/walk.ts'
import { clusterCommands, runCommands } from './commands.ts'

const SEED = 1
const SEQUENCES = times({ short: 20, long: 30 })
const OVER_SQLITE = 2
const OVER_A_LOG = times({ short: 1, long: 2 })
const howTo = natsMissing === undefined ? '' : ` (${natsMissing})`
const MINUTES = 60_000

describe('sequences of commands over the wire', () => {
  let ground: MemoryStore
  beforeAll(async () => {
    ground = await prepareGround(new MemoryStore())
  })

  it(
    `are answered, delivered and counted as the model says, ${SEQUENCES} of them`,
    async () => {
      const totals = await runCommands({ seed: SEED, count: SEQUENCES, say: () => {} }, ground)
      expect(totals).toMatchObject({ sequences: SEQUENCES, lost: 0, unexpected: 0, reused: 0 })
      // They are worth something only if much happens in them.
      expect(totals['commands']).toBeGreaterThan(50 * SEQUENCES)
      expect(totals['delivered']).toBeGreaterThan(40 * SEQUENCES)
      expect(totals['duplicates']).toBeGreaterThan(SEQUENCES)
    },
    10 * MINUTES,
  )

  it(
    'give the same over SQLite',
    async () => {
      const store = new SqliteBacked()
      try {
        const totals = await runCommands({ seed: SEED, count: OVER_SQLITE, say: () => {} }, await prepareGround(store))
        expect(totals).toMatchObject({ sequences: OVER_SQLITE, lost: 0, unexpected: 0, reused: 0 })
      } finally {
        store.removeAll()
      }
    },
    10 * MINUTES,
  )

  // Skipped only where nats-server is missing; the name says how to install it.
  it.skipIf(natsMissing !== undefined)(
    `give the same over the log of a cluster${howTo}`,
    async () => {
      const totals = await clusterCommands({ seed: SEED, count: OVER_A_LOG, say: () => {} })
      expect(totals).toMatchObject({ sequences: OVER_A_LOG, lost: 0, unexpected: 0, reused: 0 })
    },
    10 * MINUTES,
  )

  it.each(Object.entries(cases))('once failed: %s', async (_, text) => {
    await runText(ground, newCounts(), text)
  })
})
