/** Repeats and selections in a tree that is left in peace otherwise: what comes again, and what goes to which channel, to the value. */
import { expect, it } from 'vitest'
import { until } from '../../rig/patience.ts'
import { SERIES } from '../../rig/promised-feed.ts'
import { args, command, str, type } from '../../support/bytes.ts'
import { accountsOf } from './accounts.ts'
import { Arrivals } from './arrivals.ts'
import { imbalances } from './balance.ts'
import type { CutLink } from './cut-link.ts'
import { channelAt, countersAt, type Level, ledgerAt, METRIC, Tree } from './servers.ts'

const REQUESTS = 10
const VALUES = REQUESTS * SERIES

/** A test with a tree of its own, beside the others. */
function inTree(name: string, run: (tree: Tree, consumer: Arrivals) => Promise<void>): void {
  it.concurrent(name, async () => {
    const tree = await Tree.open({ seed: 1, hasDisks: false })
    const consumer = new Arrivals()
    try {
      await run(tree, consumer)
    } finally {
      consumer.isOver = true
      await tree.remove()
    }
  })
}

inTree('values whose COMMITs are lost come again, are recognised, and are committed once', async (tree, consumer) => {
  const { levels, links, feed, uppermost } = tree
  const [lowest, middle] = levels as [Level, Level, Level]
  const [lowestLink] = links as [CutLink, CutLink]
  await tree.start()
  const consumed = consumer.run(uppermost.server)
  for (let n = 0; n < REQUESTS; n++) expect(await feed.send()).toBe(true)
  await until('all is committed at the lowest', async () => (await ledgerAt(lowest)).committed === VALUES)

  lowestLink.isMute = true
  for (let n = 0; n < REQUESTS; n++) expect(await feed.send()).toBe(true)
  await until('what was fed is there', () => consumer.values === 2 * VALUES)
  expect(await ledgerAt(lowest)).toMatchObject({ accepted: 2 * VALUES, committed: VALUES })
  expect(await countersAt(middle)).toMatchObject({ values: 2 * VALUES, repeated: 0 })
  lowestLink.isMute = false
  lowestLink.sever()
  await until('all is committed at the lowest', async () => (await ledgerAt(lowest)).committed === 2 * VALUES)
  expect(await countersAt(middle)).toMatchObject({ values: 2 * VALUES, repeated: VALUES })

  const accounts = await accountsOf(tree, new Map())
  consumer.isOver = true
  await consumed
  expect(imbalances(accounts, consumer.cameOf(feed.promised), feed.promised.size)).toEqual([])
  expect(consumer).toMatchObject({ values: 2 * VALUES, repeated: 0, disordered: 0 })
})

inTree('each channel accepts what is taken for its selection, although servers are killed', async (tree, consumer) => {
  const { levels, feed, uppermost } = tree
  const [, middle] = levels as [Level, Level, Level]
  await tree.start()
  const seat = await uppermost.server.seat()
  const channel = await seat.defChannel(['name', type.string, str('one series')])
  const list = args(['producer', type.string, str('*/*')], ['n', type.string, str('1')])
  const id = await seat.collect(METRIC, list)
  await seat.ok((seq) => command.subscribe(seq, id, channel))
  seat.peer.destroy()
  for (const level of levels.slice(0, 2)) {
    await until('both are wanted below', async () => (await ledgerAt(level)).bound === 2)
  }
  const consumed = consumer.run(uppermost.server)
  for (const { server } of levels) {
    for (let n = 0; n < REQUESTS; n++) expect(await feed.send()).toBe(true)
    await server.end('SIGKILL')
    await server.start()
  }
  for (let n = 0; n < REQUESTS; n++) expect(await feed.send()).toBe(true)
  const requests = (levels.length + 1) * REQUESTS
  await until('what was fed is there', () => consumer.values === requests * SERIES)
  const one = async () => (await channelAt(uppermost, (name) => name === 'one series'))?.accepted
  await until('the other channel has its part', async () => (await one()) === requests)
  await until('all is committed in the middle', async () => (await ledgerAt(middle)).queued === 0)
  expect(await ledgerAt(middle)).toMatchObject({ committed: requests * (SERIES + 1), in_flight: 0 })
  expect(await ledgerAt(uppermost)).toMatchObject({ accepted: requests * SERIES })
  expect(await one()).toBe(requests)
  consumer.isOver = true
  await uppermost.server.end('SIGTERM')
  await consumed
})
