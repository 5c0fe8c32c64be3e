/** The log over one real nats-server: one record after the other, by one node at a time. */
import { randomBytes } from 'node:crypto'
import { jetstream, jetstreamManager } from '@nats-io/jetstream'
import { headers } from '@nats-io/transport-node'
import { describe, expect, test } from 'vitest'
import type { Log, LogEntry } from '../../../storage/replicated/log.ts'
import { eventually } from '../../support/eventually.ts'
import { natsMissing } from '../../support/nats.ts'
import { batch, epoch, firstOf, outcomeOf, Reader, STREAM, TestLogs, textOf } from './test-logs.ts'

const howTo = natsMissing === undefined ? '' : ` (${natsMissing})`
/** What fits into a part, where max_payload is 1 MiB. */
const PART_BYTES = 2 ** 20 - 2 ** 16

/** Puts a part into the stream, as a node would that is interrupted, or is none. */
async function publish(
  log: Log,
  kind: string,
  number: number,
  part: string,
  record: string,
  content: string,
): Promise<void> {
  const made = headers()
  const fields = { Kind: kind, Epoch: number, Part: part, Node: 'x', Format: 1, Record: record }
  for (const [name, value] of Object.entries(fields)) made.set(`Cin-${name}`, String(value))
  await jetstream(log.connection).publish('cin.main.log.1', content, { headers: made })
}

/** A test with a nats-server of its own, beside the others: some of them wait for what takes many seconds. */
function onOne(name: string, run: (log: Log, logs: TestLogs) => Promise<void>): void {
  test.concurrent(name, async () => {
    const logs = await TestLogs.start(1)
    try {
      await run(await logs.created(), logs)
    } finally {
      await logs.stop()
    }
  })
}

// Skipped only where nats-server is missing; the name says how to install it.
describe.skipIf(natsMissing !== undefined)(`the log on one nats-server${howTo}`, () => {
  onOne('has what was appended, in order', async (log) => {
    expect(await log.bounds(10_000)).toEqual({ log: 0, first: 1, last: 0 })
    expect(await log.append(epoch(1), 0)).toBe(1)
    expect(await log.append(batch('one'), 1)).toBe(2)
    expect(await log.append(batch('two'), 2)).toBe(3)
    expect(await log.bounds(10_000)).toEqual({ log: 1, first: 1, last: 3 })
    const [begin, ...batches] = await firstOf(log, 3)
    expect(begin).toMatchObject({ kind: 'epoch', epoch: 1, node: 'a', sequence: 1 })
    expect(batches.map((entry) => [entry.sequence, textOf(entry)])).toEqual([
      [2, 'one'],
      [3, 'two'],
    ])
    expect((await firstOf(log, 1, 2)).map(textOf)).toEqual(['two'])
    expect(log.obstacle).toBeUndefined()
  })

  onOne('divides large records and puts them together', async (log) => {
    const large = randomBytes(20 * 2 ** 20 + 17)
    const last = await log.append(batch(large), 0)
    expect(last).toBe(Math.ceil(large.length / PART_BYTES))
    await log.append(batch('small'), last)
    const [one, two] = await firstOf(log, 2)
    expect(one?.sequence).toBe(last)
    expect(Buffer.from(one!.bytes).equals(large)).toBe(true)
    expect(textOf(two)).toBe('small')
  })

  onOne('gives a record by its last message, deflated or not', async (log) => {
    const long = Buffer.from('a value, '.repeat(500_000))
    const last = await log.append(batch(long), 0)
    await log.append(batch('short'), last)
    expect(last).toBe(1)
    expect(Buffer.from((await log.recordAt(last, 10_000)) ?? []).equals(long)).toBe(true)
    expect(Buffer.from((await log.recordAt(last + 1, 10_000)) ?? []).toString()).toBe('short')
  })

  onOne('refuses a record of more than 1 GiB', async (log) => {
    expect(await outcomeOf(log.append(batch(new Uint8Array(2 ** 30 + 1)), 0))).toBe('IO')
    expect(await log.append(batch('next'), 0)).toBe(1)
  })

  onOne('is read while it grows', async (log, logs) => {
    const reader = new Reader(await logs.connected({ node: 'b' }))
    for (let number = 1; number <= 50; number++) await log.append(batch(String(number)), number - 1)
    await eventually(() => expect(reader.texts).toHaveLength(50))
    await reader.stop()
    expect(reader.texts).toEqual(Array.from({ length: 50 }, (_, index) => String(index + 1)))
  })

  onOne('lets one of two append', async (log, logs) => {
    const other = await logs.connected({ node: 'b' })
    let last = 0
    for (let race = 0; race < 200; race++) {
      const outcomes = await Promise.all([
        outcomeOf(log.append(batch(`a ${race}`), last)),
        outcomeOf(other.append(batch(`b ${race}`), last)),
      ])
      expect(outcomes.toSorted()).toEqual(['DEPOSED', 'appended'])
      last++
    }
    expect((await log.bounds(10_000)).last).toBe(200)
  })

  onOne('lets one of two append records of several parts, and has them whole', async (log, logs) => {
    const other = await logs.connected({ node: 'b' })
    const large = randomBytes(5 * PART_BYTES)
    let last = 0
    const winners: string[] = []
    for (let race = 0; race < 15; race++) {
      const [ours, theirs] = await Promise.all([
        outcomeOf(log.append(batch(large, race), last)),
        outcomeOf(other.append(batch(large, race), last)),
      ])
      expect([ours, theirs]).toContain('DEPOSED')
      if (ours === 'appended') winners.push('a')
      if (theirs === 'appended') winners.push('b')
      last = (await log.bounds(10_000)).last
    }
    // Both lose if the parts of one come between those of the other.
    expect(winners.length).toBeGreaterThan(0)
    await log.append(epoch(1_000), last)
    const entries = await firstOf(log, winners.length + 1)
    expect(entries.slice(0, -1).map(({ node, bytes }) => [node, bytes.length])).toEqual(
      winners.map((node) => [node, large.length]),
    )
  })

  onOne('has nothing of a record that a deposed leader has not ended', async (log) => {
    await publish(log, 'epoch', 1, '1/1', 'r1', '')
    await publish(log, 'batch', 1, '1/1', 'r2', 'whole')
    await publish(log, 'batch', 1, '1/4', 'r3', 'begun ')
    await publish(log, 'batch', 1, '2/4', 'r3', 'and ')
    const last = await log.append(epoch(2), 4)
    // Part 3 was refused, since it expected part 2 to be the last message; part 4 expects the epoch record.
    await publish(log, 'batch', 1, '4/4', 'r3', 'over')
    // So the new leader is not where it believes to be, and is not deposed.
    expect(await log.append(batch('next', 2), last)).toBe(7)
    expect(await log.append(batch('last', 2), 7)).toBe(8)
    const entries = await firstOf(log, 5)
    expect(entries.map(({ kind, sequence }) => [kind, sequence])).toEqual([
      ['epoch', 1],
      ['batch', 2],
      ['epoch', 5],
      ['batch', 7],
      ['batch', 8],
    ])
    expect(entries.map(textOf)).toEqual(['', 'whole', '', 'next', 'last'])
  })

  onOne(
    'has the second epoch record of a leader after what comes between the two, and the first after nothing',
    async (log) => {
      await publish(log, 'epoch', 1, '1/1', 'r1', '')
      await publish(log, 'batch', 1, '1/4', 'r2', 'begun ')
      await publish(log, 'batch', 1, '2/4', 'r2', 'and ')
      expect(await outcomeOf(log.append(epoch(2), 1))).toBe('DEPOSED')
      const last = await log.append(epoch(2), 3)
      await publish(log, 'batch', 1, '4/4', 'r2', 'over')
      expect(await log.append({ ...epoch(2), isRepeated: true }, last)).toBe(6)
      const entries = await firstOf(log, 3)
      expect(entries.map(({ kind, sequence, epoch }) => [kind, sequence, epoch])).toEqual([
        ['epoch', 1, 1],
        ['epoch', 4, 2],
        ['epoch', 6, 2],
      ])
    },
  )

  onOne('begins a record of several parts again after parts that are void', async (log) => {
    const large = randomBytes(3 * PART_BYTES)
    await log.append(epoch(2), 0)
    await publish(log, 'batch', 1, '2/9', 'r1', 'void')
    const last = await log.append(batch(large, 2), 1)
    const [, one] = await firstOf(log, 2)
    expect(one?.sequence).toBe(last)
    expect(Buffer.from(one!.bytes).equals(large)).toBe(true)
  })

  onOne('does not let a node go on whose epoch is over', async (log, logs) => {
    const other = await logs.connected({ node: 'b' })
    await log.append(epoch(1), 0)
    await other.append(epoch(2), 1)
    expect(await outcomeOf(log.append(batch('late'), 1))).toBe('DEPOSED')
    // Nor does an epoch record come after something that its node has not read.
    expect(await outcomeOf(log.append(epoch(3), 1))).toBe('DEPOSED')
    expect(await log.append(epoch(3), 2)).toBe(3)
  })

  onOne('is made once', async (log, logs) => {
    const other = await logs.connected({ node: 'b' })
    expect(await Promise.all([outcomeOf(log.create(2)), outcomeOf(other.create(2))])).toEqual(['appended', 'appended'])
    log.open(2)
    other.open(2)
    const outcomes = [log.append(epoch(1), 0), other.append(epoch(1), 0)].map(outcomeOf)
    expect((await Promise.all(outcomes)).toSorted()).toEqual(['DEPOSED', 'appended'])
    expect(await outcomeOf(log.create(2))).toBe('DEPOSED')
    expect(await log.bounds(10_000)).toEqual({ log: 2, first: 1, last: 1 })
  })

  onOne('is not made where another stream is in the way', async (log) => {
    const manager = await jetstreamManager(log.connection)
    await manager.streams.add({ name: 'CIN_main_2', subjects: ['something.else'] })
    await expect(log.create(2)).rejects.toMatchObject({ code: 'IO', message: expect.stringContaining('CIN_main_2') })
  })

  onOne('is told from the logs of other clusters', async (log, logs) => {
    const other = await logs.connected({ cluster: 'main_1' })
    expect(await other.bounds(10_000)).toEqual({ log: 0, first: 1, last: 0 })
    await other.create(7)
    other.open(7)
    await other.append(epoch(1), 0)
    await log.append(epoch(1), 0)
    expect((await other.bounds(10_000)).log).toBe(7)
    expect((await log.bounds(10_000)).log).toBe(1)
  })

  onOne('says so if records that are wanted were discarded', async (_, logs) => {
    const small = await logs.connected({ cluster: 'small', maxBytes: 100_000 })
    await small.create(1)
    let last = 0
    for (let number = 1; number <= 20; number++) last = await small.append(batch(randomBytes(10_000)), last)
    const { first } = await small.bounds(10_000)
    expect(first).toBeGreaterThan(2)
    await expect(firstOf(small, 1)).rejects.toMatchObject({
      code: 'BEHIND',
      message: expect.stringContaining(String(first)),
    })
    await expect(firstOf(small, 1, first - 2)).rejects.toMatchObject({ code: 'BEHIND' })
    expect((await firstOf(small, 1, first - 1))[0]?.sequence).toBe(first)
  })

  onOne('says so if they are discarded while it is read', async (_, logs) => {
    const small = await logs.connected({ cluster: 'small', maxBytes: 100_000 })
    await small.create(1)
    let last = await small.append(batch('first'), 0)
    const found: LogEntry[] = []
    const reading = (async () => {
      for await (const entry of small.read(0, new AbortController().signal)) {
        found.push(entry)
        // More than is read ahead.
        for (let number = 1; number <= 50; number++) last = await small.append(batch(randomBytes(10_000)), last)
      }
    })()
    await expect(reading).rejects.toMatchObject({ code: 'BEHIND' })
    // What came was without a gap.
    expect(found.map(({ sequence }) => sequence)).toEqual(found.map((_, index) => index + 1))
  })

  onOne('says so if it is shorter than it was, or not there any more', async (log, logs) => {
    const manager = await jetstreamManager(log.connection)
    const lost = await logs.connected({ cluster: 'lost' })
    await lost.create(1)
    for (const one of [log, lost]) for (let last = 0; last < 5; last++) await one.append(batch(`before ${last}`), last)
    for (const name of [STREAM, 'CIN_lost_1']) await manager.streams.delete(name)
    // As after a restore of an old backup of the nats-servers.
    await log.create(1)
    await log.append(batch('another'), 0)
    const outcomes = [log, lost].flatMap((one) => [
      outcomeOf(one.append(batch('next'), 5)),
      outcomeOf(firstOf(one, 1, 5)),
      firstOf(one, 1, 5).catch(String),
    ])
    const said = [
      "StorageError: the cluster's log ends at 1, but had a record at 5 before",
      "StorageError: the nats-servers no longer know the cluster's log, but had a record at 5 before",
    ].map((text) => expect.stringContaining(text))
    expect(await Promise.all(outcomes)).toEqual(['FOREIGN', 'FOREIGN', said[0], 'FOREIGN', 'FOREIGN', said[1]])
  })

  onOne('does not read what a newer version has written, and skips what is no record', async (log) => {
    await jetstream(log.connection).publish('cin.main.log.1', 'nothing of ours')
    expect(await log.append(batch('ours'), 0)).toBe(2)
    expect((await firstOf(log, 1)).map(textOf)).toEqual(['ours'])
    const made = headers()
    const fields = { Kind: 'batch', Epoch: 1, Part: '1/1', Node: 'new', Format: 3, Record: 'r' }
    for (const [name, value] of Object.entries(fields)) made.set(`Cin-${name}`, String(value))
    await jetstream(log.connection).publish('cin.main.log.1', 'new', { headers: made })
    await expect(firstOf(log, 2)).rejects.toMatchObject({ code: 'TOO_NEW', message: expect.stringContaining('new') })
  })

  onOne('is appended to through the end of the nats-server', async (log, logs) => {
    await log.append(batch('before'), 0)
    await logs.servers.kill(0)
    const appending = log.append(batch('while it is down'), 1)
    await eventually(() => expect(log.obstacle).toContain('nats-server'))
    await logs.servers.restart(0)
    expect(await appending).toBe(2)
    expect(log.obstacle).toBeUndefined()
    expect((await firstOf(log, 2)).map(textOf)).toEqual(['before', 'while it is down'])
  })

  onOne('has a record once if the nats-server was frozen on the way', async (log, logs) => {
    const large = randomBytes(12 * PART_BYTES)
    logs.servers.freeze(0)
    const appending = log.append(batch(large), 0)
    await eventually(() => expect(log.obstacle).toBeDefined())
    logs.servers.thaw(0)
    const last = await appending
    await log.append(batch('next'), last)
    const entries = await firstOf(log, 2)
    expect(entries.map(({ bytes }) => bytes.length)).toEqual([large.length, 4])
    expect(entries[0]?.sequence).toBe(last)
  })

  onOne('ends an append when it is told to, or closed', async (log, logs) => {
    await logs.servers.kill(0)
    const ended = new AbortController()
    const appending = outcomeOf(log.append(batch('never'), 0, ended.signal))
    ended.abort()
    expect(await appending).toBe('UNREACHABLE')
    expect(await outcomeOf(log.append(batch('never'), 0, ended.signal))).toBe('UNREACHABLE')
    const closed = outcomeOf(log.append(batch('never'), 0))
    const reading = outcomeOf(firstOf(log, 1))
    await log.close()
    expect([await closed, await reading, await outcomeOf(log.bounds(10_000))]).toEqual([
      'UNREACHABLE',
      'UNREACHABLE',
      'UNREACHABLE',
    ])
    expect(await outcomeOf(log.append(batch('never'), 0))).toBe('UNREACHABLE')
  })

  onOne('says in time that nobody answers', async (log, logs) => {
    await logs.servers.kill(0)
    await expect(log.bounds(300)).rejects.toMatchObject({
      code: 'UNREACHABLE',
      message: expect.stringContaining('majority'),
    })
  })
})
