/** A channel of a tree that has room for little, and the server above is away: what is dropped is reported, to the value. */
import { expect, it } from 'vitest'
import { until } from '../../rig/patience.ts'
import { SERIES } from '../../rig/promised-feed.ts'
import { type, u32, u64 } from '../../support/bytes.ts'
import { accountsOf } from './accounts.ts'
import { Arrivals } from './arrivals.ts'
import { imbalances } from './balance.ts'
import { type Level, ledgerAt, Tree } from './servers.ts'

const OVERFLOW = 1
const MAX_BYTES = 16_384
const [BEFORE, AFTER] = [10, 10]
const DROPPED = 500

async function narrow(level: Level): Promise<void> {
  const seat = await level.server.seat()
  const { channel } = await ledgerAt(level)
  await seat.execute(
    'channel.configure',
    ['channel', type.uint32, u32(channel)],
    ['window_bytes', type.uint64, u64(MAX_BYTES)],
    ['max_bytes', type.uint64, u64(MAX_BYTES)],
  )
  seat.peer.destroy()
}

/** The level with the small channel, by its number. */
const LEVELS: readonly (readonly [string, number])[] = [
  ['lowest', 0],
  ['middle', 1],
]

it.concurrent.each(LEVELS)(
  'the channel of the %s level is small, and the one above is away: each value comes or is reported',
  { timeout: 120_000 },
  async (_, at) => {
    const tree = await Tree.open({ seed: 1, hasDisks: false })
    const consumer = new Arrivals()
    try {
      const { levels, feed, uppermost } = tree
      const [small, away] = [levels[at] as Level, levels[at + 1] as Level]
      await tree.start()
      await narrow(small)
      const consumed = consumer.run(uppermost.server)
      for (let n = 0; n < BEFORE; n++) expect(await feed.send()).toBe(true)
      await until('what was fed is there', () => consumer.values === BEFORE * SERIES)

      await away.server.end('SIGTERM')
      await until('values are dropped', async () => {
        for (let n = 0; n < BEFORE; n++) expect(await feed.send()).toBe(true)
        return (await ledgerAt(small)).dropped.overflow > DROPPED
      })
      await away.server.start()
      await until('the channel has room', async () => (await ledgerAt(small)).queued === 0)
      for (let n = 0; n < AFTER; n++) expect(await feed.send()).toBe(true)

      const accounts = await accountsOf(tree, new Map([[away, BEFORE * SERIES]]))
      consumer.isOver = true
      await consumed
      expect(imbalances(accounts, consumer.cameOf(feed.promised), feed.promised.size)).toEqual([])
      const reported = consumer.gaps.get(OVERFLOW)?.values ?? 0
      expect(reported).toBeGreaterThan(DROPPED)
      expect(consumer.values + reported).toBe(feed.promised.size)
      expect(consumer).toMatchObject({ repeated: 0, disordered: 0 })
    } finally {
      consumer.isOver = true
      await tree.remove()
    }
  },
)
