import { beforeEach, describe, expect, it } from 'vitest'
import type { Block } from '../../../../server/kernel/channels/block.ts'
import { type ChannelConnection, Outbox } from '../../../../server/kernel/channels/outbox.ts'
import { type Phase, TurnScheduler } from '../../../../server/kernel/channels/turn-scheduler.ts'
import { finish } from '../../../../server/kernel/core/fair-work.ts'
import { FakeClock } from '../../../support/fake-clock.ts'
import { describeFrames, Rig } from './rig.ts'

class HandTurn extends TurnScheduler {
  readonly scheduled: Phase[] = []
  override schedule(phase: Phase): void {
    this.scheduled.push(phase)
  }
}

/** A link that drains on demand. */
class Link implements ChannelConnection {
  readonly sent: Uint8Array[] = []
  readonly behind = false
  undrained = 0
  readonly #written: (() => void)[] = []

  writeValues(bytes: Uint8Array, written: () => void): void {
    this.sent.push(bytes)
    this.undrained += bytes.length
    this.#written.push(written)
  }

  writeAnswers(bytes: Uint8Array): void {
    this.sent.push(bytes)
  }

  drain(): void {
    for (const written of this.#written.splice(0)) written()
    this.undrained = 0
  }

  get bytes(): number {
    return this.sent.reduce((sum, { length }) => sum + length, 0)
  }

  get frames(): string[] {
    return this.sent.flatMap(describeFrames)
  }

  notice(): void {}
  end(): void {}
}

let rig: Rig
let clock: FakeClock
let turn: HandTurn
let outbox: Outbox
/** The ids of each read, and how many turns it takes. */
let reads: number[][]
let readTurns: number
let standstills: number
const failures: string[] = []
const turnEnd = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
const read = async (blocks: readonly Block[]): Promise<(Uint8Array | undefined)[]> => {
  reads.push(blocks.map(({ id }) => id))
  for (let turns = 1; turns < readTurns; turns++) await turnEnd()
  return Promise.all(blocks.map(rig.read))
}

async function open(settings = {}): Promise<Link> {
  rig = new Rig(settings)
  await rig.open()
  const { queue } = rig
  const failed = (error: unknown): void => void failures.push(String(error))
  outbox = new Outbox({ tenant: 'acme', queue, turn, clock, read, standstill: () => standstills++, failed })
  const link = new Link()
  outbox.attach(link)
  rig.append(7, 1)
  rig.persist()
  outbox.atTurnEnd()
  queue.commit(100, false)
  link.drain()
  link.sent.length = 0
  return link
}

/** Blocks of values that are on disk, and not in memory if there is no connection. */
function storeBlocks(count: number, values: number): void {
  for (let block = 0; block < count; block++) {
    rig.append(7, values)
    rig.persist()
  }
}

beforeEach(() => {
  clock = new FakeClock()
  turn = new HandTurn(clock)
  reads = []
  readTurns = 0
  standstills = 0
})

describe('the outbox', () => {
  it('sends answers before values: they are no entries of the queue', async () => {
    const link = await open()
    rig.append(7, 1)
    expect(outbox.answer((writer) => writer.uint32(24).uint32(9).uint53(0).uint53(5).uint32(11))).toBe(true)
    outbox.atTurnEnd()
    expect(link.frames).toEqual(['VALUE 9 0 @5', 'VALUE 7 101 @2'])
    outbox.detach()
    expect(outbox.answer(() => {})).toBe(false)
  })

  it('has answers sent at the end of the turn, whatever values wait for', async () => {
    await open()
    const answer = () => outbox.answer((writer) => writer.uint32(24).uint32(9).uint53(0).uint53(5).uint32(11))
    turn.scheduled.length = 0
    answer()
    answer()
    expect(turn.scheduled).toEqual(['answer'])
    outbox.detach()
    outbox.attach(new Link(), true)
    answer()
    expect(turn.scheduled).toEqual(['answer'])
    outbox.resume()
    expect(turn.scheduled).toEqual(['answer', 'answer', 'send'])
  })

  it('forgets answers of an id that was stopped, and no others', async () => {
    const link = await open()
    for (const metric of [8, 9, 8])
      outbox.answer((writer) => writer.uint32(24).uint32(metric).uint53(0).uint53(5).uint32(11))
    expect(outbox.backlog).toBe(84)
    outbox.dropAnswers(8)
    expect(outbox.backlog).toBe(28)
    outbox.atTurnEnd()
    expect(link.frames).toEqual(['VALUE 9 0 @5'])
  })

  it('hands over at most 256 KiB that the link has not drained [MON 8 Window]', async () => {
    const link = await open()
    rig.append(7, 5_000)
    outbox.atTurnEnd()
    outbox.atTurnEnd()
    expect(link.bytes).toBeLessThanOrEqual(256 << 10)
    expect(link.bytes).toBeGreaterThan((256 << 10) - 100)
    link.drain()
    outbox.atTurnEnd()
    expect(link.bytes).toBe(500_000)
  })

  it('holds buffers until the link has written them, also when the connection has ended', async () => {
    const link = await open()
    rig.append(7, 10)
    outbox.atTurnEnd()
    outbox.detach()
    finish(rig.queue.discard())
    expect(rig.host.pool.used).toBeGreaterThan(0)
    link.drain()
    expect(rig.host.pool.used).toBe(0)
  })

  it('sends nothing to a connection whose response has to go first', async () => {
    const link = await open()
    outbox.detach()
    outbox.attach(link, true)
    rig.append(7, 1)
    outbox.atTurnEnd()
    expect(link.frames).toEqual([])
    outbox.resume()
    outbox.atTurnEnd()
    expect(link.frames).toEqual(['VALUE 7 101 @2'])
  })

  it('reads several blocks back by one message to the store, and each only once', async () => {
    const link = await open()
    outbox.detach()
    storeBlocks(20, 20)
    outbox.attach(link)
    outbox.atTurnEnd()
    outbox.atTurnEnd()
    expect(reads).toHaveLength(1)
    expect(new Set(reads[0]).size).toBe(20)
    await turnEnd()
    outbox.atTurnEnd()
    expect(link.frames).toHaveLength(400)
    expect(reads).toHaveLength(1)
  })

  it('reads at most 8 MiB ahead', async () => {
    const link = await open()
    outbox.detach()
    storeBlocks(40, 4_000)
    outbox.attach(link)
    outbox.atTurnEnd()
    await turnEnd()
    expect(rig.queue.resident).toBeGreaterThan(7 << 20)
    expect(rig.queue.resident).toBeLessThanOrEqual(8 << 20)
    expect(link.frames).toHaveLength(0)
  })

  it('reads on before what was read is sent: no turn has to wait for the store, and nothing is read twice', async () => {
    const link = await open()
    outbox.detach()
    storeBlocks(60, 4_000)
    outbox.attach(link)
    outbox.atTurnEnd()
    await turnEnd()
    readTurns = 10
    for (let sent = 0; sent < 60 * 4_000; sent = link.bytes / 100) {
      outbox.atTurnEnd()
      expect(link.bytes / 100).toBeGreaterThan(sent)
      expect(rig.queue.resident).toBeLessThanOrEqual(9 << 20)
      link.drain()
      rig.queue.commit(100 + link.bytes / 100, true)
      await turnEnd()
    }
    expect(new Set(reads.flat()).size).toBe(reads.flat().length)
  })

  it('reads in portions of at most 768 KiB: more would let a batch pass, and come late', async () => {
    await open()
    outbox.detach()
    storeBlocks(10, 4_000)
    const lengths = new Map<number, number>()
    for (const lane of rig.queue.lanes())
      for (const entry of lane) if (entry.kind === 'block') lengths.set(entry.id, entry.length)
    outbox.attach(new Link())
    outbox.atTurnEnd()
    const portions = reads.map((ids) => ids.reduce((sum, id) => sum + lengths.get(id)!, 0))
    expect(portions.length).toBeLessThanOrEqual(8)
    expect(Math.max(...portions)).toBeLessThanOrEqual(768 << 10)
    expect(Math.min(...portions.slice(0, -1))).toBeGreaterThanOrEqual(512 << 10)
  })

  it('counts what is being read, so that all channels together do not read more than they may hold', async () => {
    await open()
    outbox.detach()
    storeBlocks(40, 4_000)
    const { pool } = rig.host
    outbox.attach(new Link())
    outbox.atTurnEnd()
    expect(pool.used).toBe(0)
    expect(pool.loading).toBeGreaterThan(7 << 20)
    await turnEnd()
    expect(pool.loading).toBe(0)
    outbox.detach()
    pool.loading = 64 << 20
    reads = []
    outbox.attach(new Link())
    outbox.atTurnEnd()
    expect(reads.flat()).toHaveLength(1)
  })

  it('reads a block again, and the others of its portion, if one of them cannot be taken', async () => {
    await open()
    failures.length = 0
    outbox.detach()
    for (let i = 0; i < 3; i++) {
      rig.append(7, 20)
      rig.persist()
      rig.queue.seal(7)
    }
    const { queue } = rig
    const loaded = queue.loaded.bind(queue)
    queue.loaded = (block, bytes) => {
      loaded(block, bytes)
      queue.loaded = loaded
      throw new Error('no memory')
    }
    outbox.attach(new Link())
    outbox.atTurnEnd()
    await turnEnd()
    expect(failures).toEqual(['Error: no memory'])
    outbox.detach()
    const link = new Link()
    outbox.attach(link)
    for (let turns = 0; turns < 3; turns++) {
      outbox.atTurnEnd()
      await turnEnd()
    }
    expect(link.frames).toHaveLength(60)
  })

  it('throws away what was read for a connection that has ended', async () => {
    const link = await open()
    outbox.detach()
    rig.append(7, 20)
    rig.persist()
    outbox.attach(link)
    outbox.atTurnEnd()
    outbox.detach()
    await turnEnd()
    expect(rig.queue.resident).toBe(0)
    outbox.attach(link)
    outbox.atTurnEnd()
    await turnEnd()
    outbox.atTurnEnd()
    expect(link.frames).toHaveLength(20)
  })

  it('tells once per standstill, after a second, that nothing more comes until COMMIT [MON 3 NOTICE]', async () => {
    const link = await open({ window: 2 })
    rig.append(7, 10)
    outbox.atTurnEnd()
    expect(outbox.windowFull).toBe(true)
    clock.advance(999)
    expect(standstills).toBe(0)
    outbox.atTurnEnd()
    clock.advance(10_000)
    expect(standstills).toBe(1)
    rig.queue.commit(101, false)
    outbox.atTurnEnd()
    expect(link.frames).toHaveLength(3)
    clock.advance(1_000)
    expect(standstills).toBe(2)
    rig.queue.commit(103, true)
    outbox.atTurnEnd()
    outbox.detach()
    clock.advance(1_000)
    expect(standstills).toBe(2)
    expect(clock.timers).toBe(0)
  })
})
