/** The log over three real nats-servers: nothing that was acknowledged is lost when they end, and its order is kept. */
import { createHash, randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import type { Log } from '../../../storage/replicated/log.ts'
import { StorageError } from '../../../storage/store.ts'
import { eventually } from '../../support/eventually.ts'
import { natsMissing } from '../../support/nats.ts'
import { Random } from '../../support/random.ts'
import {
  Appending,
  batch,
  epoch,
  firstOf,
  outcomeOf,
  Reader,
  START,
  STREAM,
  TestLogs,
  textOf,
  wordOf,
} from './test-logs.ts'

const howTo = natsMissing === undefined ? '' : ` (${natsMissing})`

/** "1", "2" ... */
const numbers = (count: number): string[] => Array.from({ length: count }, (_, index) => String(index + 1))

/**
 * A test with nats-servers of its own, beside the others: most of its time goes into elections of nats-servers, which take four to
 * nine seconds whatever is configured.
 */
function onThree(name: string, run: (logs: TestLogs, log: Log) => Promise<void>): void {
  test.concurrent(name, { timeout: 300_000 }, async () => {
    const logs = await TestLogs.start(3)
    try {
      await run(logs, await logs.created())
    } finally {
      await logs.stop()
    }
  })
}

// Skipped only where nats-server is missing; the name says how to install it.
describe.skipIf(natsMissing !== undefined)(`the log on three nats-servers${howTo}`, () => {
  onThree('lets one of two append', async (logs, log) => {
    const other = await logs.connected({ node: 'b' })
    for (let race = 0; race < 200; race++) {
      const outcomes = [log, other].map((one) => outcomeOf(one.append(batch(`${race}`), race)))
      expect((await Promise.all(outcomes)).toSorted()).toEqual(['DEPOSED', 'appended'])
    }
    expect((await firstOf(log, 200)).map(textOf)).toEqual(['0', ...numbers(199)])
  })

  onThree('is led by another server when that is asked for, and goes on', async (logs, log) => {
    expect(await log.append(batch('before'), 0)).toBe(1)
    const first = await logs.servers.streamLeader(STREAM)
    await log.move(1)
    await eventually(async () => expect(await logs.servers.streamLeader(STREAM)).not.toBe(first))
    expect(await log.append(batch('after'), 1)).toBe(2)
    await expect(log.move(7)).rejects.toThrow('stream not found')
  })

  onThree('loses nothing when the server that leads the stream is killed', async (logs, log) => {
    const { servers } = logs
    const reader = new Reader(await logs.connected({ node: 'b' }))
    // Of several parts each tenth time, since then some are on the way.
    const lengthOf = (number: number): number => (number % 10 === 0 ? 4_000_000 : 100)
    let progress = START
    for (let kill = 0; kill < 3; kill++) {
      const appending = new Appending(log, progress, lengthOf)
      await appending.more(20)
      const leader = await servers.streamLeader(STREAM)
      await servers.kill(leader)
      await appending.more(20)
      await appending.stop()
      progress = appending
      await servers.restart(leader)
      // With two of three that lag, nats-server would not go on.
      await servers.inStep(STREAM)
    }
    const { acknowledged, last } = progress
    await eventually(() => expect(reader.last).toBe(last))
    await reader.stop()
    expect(reader.texts).toEqual(numbers(acknowledged))
    expect((await log.bounds(10_000)).last).toBe(last)
  })

  // Once, since nats-server 2.9.10 has faults there: a server that was the leader before may stop to apply what comes.
  onThree('loses nothing when the server that leads the stream is frozen for a while', async (logs, log) => {
    const { servers } = logs
    const reader = new Reader(await logs.connected({ node: 'b' }))
    const appending = new Appending(log, START, () => 100)
    await appending.more(20)
    const leader = await servers.streamLeader(STREAM)
    servers.freeze(leader)
    // Another one leads.
    await appending.more(20)
    servers.thaw(leader)
    await appending.more(20)
    await appending.stop()
    await eventually(() => expect(reader.last).toBe(appending.last))
    await reader.stop()
    expect(reader.texts).toEqual(numbers(appending.acknowledged))
  })

  onThree('goes on after all nats-servers were killed at once', async ({ servers }, log) => {
    const appending = new Appending(log, START, () => 100)
    await appending.more(20)
    await Promise.all([0, 1, 2].map((index) => servers.kill(index)))
    for (const index of [0, 1, 2]) await servers.restart(index)
    await appending.more(20)
    await appending.stop()
    const entries = await firstOf(log, appending.acknowledged)
    expect(entries.map(wordOf)).toEqual(numbers(appending.acknowledged))
  })

  onThree('has the records of each leader whole and in order after takeovers', async (logs, log) => {
    const random = new Random(1)
    const nodes = [log, await logs.connected({ node: 'b' })]
    const acknowledged: { readonly sequence: number; readonly epoch: number; readonly hash: string }[] = []
    const hashOf = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')
    const takeovers = 30

    const lead = async (node: Log, number: number, from: number): Promise<void> => {
      let last = from
      // All of them fit into the log, however fast it is.
      let left = 5_000_000
      try {
        for (;;) {
          const bytes = randomBytes(1 + Math.min(random.below(random.pick([100, 4_000_000])), left))
          left = Math.max(100, left - bytes.length)
          last = await node.append(batch(bytes, number), last)
          acknowledged.push({ sequence: last, epoch: number, hash: hashOf(bytes) })
        }
      } catch (error) {
        if (!(error instanceof StorageError && error.code === 'DEPOSED')) throw error
      }
    }
    /** Appends an epoch record after whatever comes from the node that leads. */
    const takeOver = async (node: Log, number: number): Promise<number> => {
      for (;;) {
        const { last } = await node.bounds(60_000)
        const outcome = await outcomeOf(node.append(epoch(number), last))
        if (outcome === 'appended') return last + 1
        expect(outcome).toBe('DEPOSED')
      }
    }

    let leading: Promise<void> = Promise.resolve()
    for (let number = 1; number <= takeovers; number++) {
      const node = nodes[number % 2]!
      const last = await takeOver(node, number)
      await leading
      const before = acknowledged.length
      leading = lead(node, number, last)
      await eventually(() => expect(acknowledged.length).toBeGreaterThan(before + 1))
    }
    const end = await takeOver(nodes[0]!, takeovers + 1)
    await leading

    const found: typeof acknowledged = []
    let current = 0
    for await (const entry of log.read(0, new AbortController().signal)) {
      if (entry.kind === 'epoch') current = entry.epoch
      else found.push({ sequence: entry.sequence, epoch: entry.epoch, hash: hashOf(entry.bytes) })
      expect(entry.epoch).toBe(current)
      if (entry.sequence === end) break
    }
    expect(current).toBe(takeovers + 1)
    // Each is acknowledged, or was refused and is void.
    expect(found).toEqual(acknowledged)
  })

  onThree('says in time that there is no majority, and appends when there is one again', async ({ servers }, log) => {
    await log.append(epoch(1), 0)
    for (const index of [0, 1]) await servers.kill(index)
    // A server that leads believes for some seconds that the others are there.
    await eventually(async () => expect(await outcomeOf(log.bounds(1_000))).toBe('UNREACHABLE'))
    const appending = log.append(batch('one', 1), 1)
    for (const index of [0, 1]) await servers.restart(index)
    expect(await appending).toBe(2)
    expect(await log.bounds(60_000)).toEqual({ log: 1, first: 1, last: 2 })
  })
})
