import { describe, expect, it } from 'vitest'
import { finish } from '../../../../server/kernel/core/fair-work.ts'
import { BLOCK_WIDTH, CHANNEL_WIDTH } from '../../../../storage/store.ts'
import { ORIGIN, Rig } from './rig.ts'

/** Values in the blocks of the last batch. */
function written(rig: Rig): number {
  const { blocks } = rig.batches.at(-1)!
  let values = 0
  for (let at = 0; at < blocks.length; at += BLOCK_WIDTH) values += blocks[at + 4]!
  return values
}

function numbers(rig: Rig): { floor: number; next: number; reserved: number } {
  const [, floor, next, reserved] = rig.batches.at(-1)!.channels.subarray(0, CHANNEL_WIDTH)
  return { floor: floor!, next: next!, reserved: reserved! }
}

describe('a batch', () => {
  it('has no block that was wholly committed before', async () => {
    const rig = await Rig.connected()
    rig.persist()
    rig.append(7, 1)
    rig.persist()
    rig.append(7, 50)
    await rig.send()
    for (let id = 100; id <= 150; id++) rig.queue.commit(id, false)
    rig.persist()
    expect(written(rig)).toBe(0)
    expect(numbers(rig).floor).toBe(151)
    expect(rig.host.unstored).toBe(0)
  })

  it('has a small block again when it has grown, so that a slow channel does not leave a row per value', async () => {
    const rig = await Rig.connected()
    for (let i = 1; i <= 3; i++) {
      rig.append(7, 1)
      rig.persist()
      expect(written(rig)).toBe(i)
    }
    expect(new Set(rig.batches.map(({ blocks }) => blocks[0])).size).toBe(1)
    rig.append(7, 20)
    rig.persist()
    rig.append(7, 1)
    rig.persist()
    expect(written(rig)).toBe(1)
  })

  it('tells what is stored', async () => {
    const rig = await Rig.connected()
    rig.append(7, 3)
    expect(rig.queue.status()).toMatchObject({ stored: ORIGIN - 1, unstored: 3 })
    expect(rig.host.unstored).toBe(300)
    rig.persist()
    expect(rig.queue.status()).toMatchObject({ stored: 102, unstored: 0 })
    rig.append(7, 2)
    rig.queue.commit(103, false)
    expect(rig.queue.status()).toMatchObject({ stored: 103, unstored: 1 })
    finish(rig.queue.discard())
    expect(rig.host.unstored).toBe(0)
    expect(rig.host.pool.used).toBe(0)
  })

  it('does not count as stored what a crash would give other ids, or lose untold', async () => {
    const rig = await Rig.connected({ maxBytes: 1_000, window: 2 })
    rig.append(7, 1, { waiting: true })
    rig.persist()
    rig.queue.release(7)
    expect(rig.queue.status()).toMatchObject({ stored: ORIGIN - 1, unstored: 0 })
    rig.persist()
    expect(rig.queue.status()).toMatchObject({ stored: ORIGIN, unstored: 0 })
    rig.append(7, 20)
    const { dropped, unstored, stored } = rig.queue.status()
    expect([dropped.overflow > 0, unstored > 0, stored]).toEqual([true, true, ORIGIN])
    rig.persist()
    expect(rig.queue.status()).toMatchObject({ stored: ORIGIN + 20, unstored: 0 })
  })
})

describe('the range of ids', () => {
  it('is reserved ahead of use while values come', async () => {
    const rig = await Rig.connected()
    rig.append(7, 1)
    rig.persist()
    expect(numbers(rig).reserved).toBeGreaterThan(100_000)
  })

  it('does not wait for others: until ids are reserved nothing is sent, and a crash would report no value', async () => {
    const rig = new Rig()
    await rig.open()
    rig.append(7, 1)
    expect(rig.awaited).toBe(1)
    rig.persist()
    rig.append(7, 1)
    rig.persist()
    expect(rig.awaited).toBe(1)
    rig.host.now = 10_000
    rig.queue.expire()
    rig.persist()
    rig.append(7, 1)
    expect(rig.awaited).toBe(2)
  })

  it('is given back after 10 s of quiet; the next value waits for a new one [MON 8 Durability]', async () => {
    const rig = await Rig.connected()
    rig.append(7, 1)
    rig.persist()
    rig.host.now = 9_999
    rig.queue.expire()
    expect(rig.journal.busy).toBe(false)
    rig.host.now = 10_000
    rig.queue.expire()
    rig.journal.atTurnEnd()
    expect(numbers(rig)).toMatchObject({ next: 101, reserved: 101 })
    // Nothing of it is used any more, even before that is durable.
    rig.append(7, 1)
    expect(await rig.send()).toEqual(['VALUE 7 100 @1'])
    rig.store.complete()
    expect(await rig.send()).toEqual([])
    rig.persist()
    expect(await rig.send()).toEqual(['VALUE 7 101 @2'])
  })

  it('is skipped after an unclean end, and one GAP says that values may be missing', async () => {
    const rig = await Rig.connected()
    rig.append(7, 2)
    rig.persist()
    const { reserved } = numbers(rig)
    rig.append(7, 3)
    expect(await rig.send()).toHaveLength(5)
    expect(await rig.crash()).toBe(false)
    rig.queue.attach()
    expect(await rig.send()).toEqual(['VALUE 7 100 @1', 'VALUE 7 101 @2'])
    rig.append(7, 1)
    rig.persist()
    expect(await rig.send()).toEqual([`GAP 0 ${reserved} x0 @0-0 reason 5`, `VALUE 7 ${reserved + 1} @6`])
    // One that was skipped is OK to COMMIT, one that was never given is not.
    expect(rig.queue.commit(104, false)).toBe(true)
    expect(rig.queue.commit(reserved + 2, false)).toBe(false)
    expect(rig.queue.status()).toMatchObject({ accepted: 3, committed: 0 })
  })

  it('is given back at a clean end: no GAP, and ids go on', async () => {
    const rig = await Rig.connected()
    rig.append(7, 2)
    rig.persist()
    rig.queue.close()
    rig.persist()
    expect(await rig.crash()).toBe(true)
    rig.queue.attach()
    rig.append(7, 1)
    rig.persist()
    expect(await rig.send()).toEqual(['VALUE 7 100 @1', 'VALUE 7 101 @2', 'VALUE 7 102 @3'])
  })

  it('is not begun anew where the queue was empty at the crash', async () => {
    const rig = await Rig.connected()
    rig.append(7, 5)
    rig.persist()
    await rig.send()
    rig.queue.commit(104, true)
    rig.queue.close()
    rig.persist()
    await rig.crash()
    rig.append(7, 1)
    rig.queue.attach()
    rig.persist()
    expect(await rig.send()).toEqual(['VALUE 7 105 @6'])
  })
})

describe('what comes back after a crash', () => {
  it('is what was stored and not committed, whatever the order of the COMMITs', async () => {
    const rig = await Rig.connected()
    rig.append(7, 30)
    rig.persist()
    await rig.send()
    for (const id of [100, 101, 105, 129, 110]) rig.queue.commit(id, false)
    rig.persist()
    rig.queue.commit(102, false)
    await rig.crash()
    rig.queue.attach()
    const ids = (await rig.send()).filter((frame) => frame.startsWith('VALUE')).map((frame) => frame.split(' ')[2])
    const missing = ['100', '101', '105', '110', '129']
    expect(ids).toEqual(Array.from({ length: 30 }, (_, n) => `${100 + n}`).filter((id) => !missing.includes(id)))
    expect(rig.queue.status()).toMatchObject({ accepted: 30, committed: 5, inFlight: 25, queued: 0 })
    expect(rig.queue.imbalance).toBe(0)
  })

  it('is the values that wait, in their lanes', async () => {
    const rig = await Rig.connected()
    rig.append(8, 3, { waiting: true })
    rig.append(7, 1)
    rig.persist()
    await rig.crash()
    rig.queue.attach()
    rig.persist()
    expect((await rig.send()).slice(0, 1)).toEqual(['VALUE 7 100 @4'])
    rig.queue.release(8)
    expect((await rig.send()).map((frame) => frame.split('@')[1])).toEqual(['1', '2', '3'])
  })

  it('tells what is damaged, and only that, when its turn comes', async () => {
    const rig = await Rig.connected()
    for (let i = 0; i < 3; i++) {
      rig.append(7, 15)
      rig.persist()
    }
    await rig.crash()
    const [lane] = rig.queue.lanes()
    rig.store.damage(lane!.at(1)!.id)
    rig.queue.attach()
    const sent = await rig.send()
    expect(sent).toHaveLength(31)
    expect(sent[15]).toBe('GAP 7 129 x15 @16-30 reason 3')
    expect(rig.queue.status()).toMatchObject({ inFlight: 30, dropped: { damaged: 15 } })
    expect(rig.queue.imbalance).toBe(0)
  })

  it('is counted and reported if a block was set aside before that could be stored', async () => {
    const rig = await Rig.connected()
    rig.append(7, 15)
    rig.persist()
    const [lane] = rig.queue.lanes()
    rig.store.damage(lane!.head!.id)
    await rig.store.read([lane!.head!.id])
    await rig.crash()
    expect(rig.queue.status().dropped.damaged).toBe(15)
    expect(rig.queue.imbalance).toBe(0)
    rig.queue.attach()
    rig.persist()
    expect(await rig.send()).toEqual([
      expect.stringMatching(/^GAP 0 \d+ x15 @0-0 reason 3$/),
      expect.stringMatching(/^GAP 0 \d+ x0 @0-0 reason 5$/),
    ])
  })

  it('does not change a GAP that may have been sent', async () => {
    const rig = await Rig.connected({ maxBytes: 1_000, overflow: 'drop-newest' })
    rig.append(7, 12)
    rig.persist()
    await rig.crash()
    rig.append(7, 3)
    rig.persist()
    await rig.crash()
    rig.queue.attach()
    rig.persist()
    const gaps = (await rig.send()).filter((frame) => frame.startsWith('GAP')).map((frame) => frame.split(' ')[3])
    expect(gaps).toEqual(['x2', 'x0', 'x3', 'x0'])
  })
})

describe('memory', () => {
  it('holds nothing for an idle channel, and little for one whose consumer is away', async () => {
    const rig = await Rig.connected()
    rig.queue.detach()
    rig.append(7, 20_000)
    rig.persist()
    expect(rig.queue.resident).toBe(0)
    rig.append(7, 1)
    rig.persist()
    expect(rig.queue.resident).toBeGreaterThan(0)
    rig.host.now = 10_000
    rig.queue.expire()
    expect(rig.queue.resident).toBe(0)
    expect(rig.host.pool.used).toBe(0)
  })

  it('stays bounded for a consumer that is there and stands still', async () => {
    const rig = await Rig.connected({ window: 1 })
    for (let i = 0; i < 100; i++) {
      rig.append(7, 5_000)
      rig.persist()
      await rig.send(1_000)
    }
    expect(rig.queue.resident).toBeLessThan(10 << 20)
  })

  it('keeps what is sent next, however much waits to be stored after it', async () => {
    const rig = await Rig.connected()
    rig.store.manual = true
    rig.append(7, 20_000)
    rig.journal.atTurnEnd()
    rig.append(7, 100_000)
    rig.store.complete()
    // 2 MB are stored, and 10 MB wait. What is stored leaves first, and is still here.
    for (let sent = 0; sent < 2_000_000; ) {
      const next = rig.queue.next(256 << 10)
      if (next.kind !== 'slice') throw new Error(`after ${sent} bytes: ${next.kind}`)
      sent += next.bytes.length
      next.chunk?.unhold()
    }
  })

  it('is given back by a channel that is not durable when its values are sent', async () => {
    const rig = await Rig.connected({ durable: false, maxBytes: 1 << 20 })
    for (let i = 0; i < 100; i++) rig.append(7, 1_000)
    expect(rig.queue.resident).toBeLessThan(2 << 20)
    await rig.send(1 << 22)
    finish(rig.queue.discard())
    expect(rig.host.pool.used).toBe(0)
  })
})
