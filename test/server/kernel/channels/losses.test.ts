import { describe, expect, it, vi } from 'vitest'
import { GapReason } from '../../../../protocol/monitor/constants.ts'
import type { GapEntry } from '../../../../server/kernel/channels/gap.ts'
import { Lane } from '../../../../server/kernel/channels/lane.ts'
import { Rig } from './rig.ts'

function gapsOf(rig: Rig): GapEntry[] {
  return [...rig.queue.lanes()].flatMap((lane) => [...lane].filter((entry) => entry.kind === 'gap'))
}

describe('a full channel', () => {
  it('drops the oldest block that is not sent, and tells it in its place, by the id of its last value', async () => {
    const rig = await Rig.connected({ maxBytes: 3_000 })
    rig.append(7, 31)
    rig.persist()
    const sent = await rig.send()
    expect(sent[0]).toBe('GAP 7 109 x10 @1-10 reason 1')
    expect(sent[1]).toBe('VALUE 7 110 @11')
    expect(sent).toHaveLength(22)
    expect(rig.queue.status()).toMatchObject({ accepted: 31, gaps: 1, dropped: { overflow: 10 } })
  })

  it('merges losses that are neighbours, of several metrics too', async () => {
    const rig = await Rig.connected({ maxBytes: 3_000 })
    rig.append(7, 30)
    rig.append(8, 30)
    rig.append(9, 11)
    rig.persist()
    expect((await rig.send())[0]).toBe('GAP 0 149 x50 @1-50 reason 1')
  })

  it('merges no losses of different producers [MON 9.13]', async () => {
    const rig = await Rig.connected()
    const loss = { reason: GapReason.purged, metric: 7, count: 2, from: 1, to: 2 }
    for (const producer of [undefined, 'east', 'east', 'west']) rig.queue.lost(0, { ...loss, producer })
    rig.persist()
    expect((await rig.send()).map((gap) => gap.replace(/ \d+ x/, ' x'))).toEqual([
      'GAP 7 x2 @1-2 reason 4',
      'GAP 7 x4 @1-2 reason 4',
      'GAP 7 x2 @1-2 reason 4',
    ])
  })

  it('merges losses that become neighbours when what stood between them is dropped', async () => {
    const rig = await Rig.connected({ maxAgeMs: 1_000 })
    rig.append(7, 20)
    rig.append(8, 1, { waiting: true })
    rig.persist()
    rig.host.now = 500
    rig.append(7, 1)
    rig.queue.release(8)
    rig.host.now = 1_001
    rig.queue.expire()
    expect(gapsOf(rig)).toHaveLength(2)
    rig.host.now = 1_501
    rig.queue.expire()
    rig.persist()
    expect(await rig.send()).toEqual(['GAP 0 121 x22 @1-22 reason 2'])
  })

  it('merges what is released with a neighbour', async () => {
    const rig = await Rig.connected({ maxBytes: 3_000, overflow: 'drop-newest' })
    rig.append(7, 31)
    rig.host.refusing = 'overflow'
    rig.append(7, 1, { waiting: true })
    rig.host.refusing = undefined
    rig.queue.release(7)
    rig.persist()
    expect((await rig.send()).at(-1)).toBe('GAP 7 130 x2 @31-32 reason 1')
  })

  it('drops what arrives with drop-newest, and reports it after what is there', async () => {
    const rig = await Rig.connected({ maxBytes: 1_000, overflow: 'drop-newest' })
    rig.append(7, 12)
    rig.append(8, 1)
    rig.persist()
    const sent = await rig.send()
    expect(sent).toHaveLength(11)
    expect(sent[10]).toBe('GAP 0 110 x3 @11-13 reason 1')
    rig.queue.commit(104, true)
    rig.append(9, 2)
    expect(await rig.send()).toEqual(['VALUE 9 111 @14', 'VALUE 9 112 @15'])
  })

  it('never touches what is in flight: the rest of the block goes, then what arrives', async () => {
    const rig = await Rig.connected({ maxBytes: 1_000, window: 4 })
    rig.append(7, 10)
    rig.persist()
    expect(await rig.send()).toHaveLength(4)
    rig.append(7, 1)
    expect(rig.queue.status()).toMatchObject({ inFlight: 4, queued: 1, dropped: { overflow: 6 } })
    rig.append(7, 7)
    expect(rig.queue.status()).toMatchObject({ inFlight: 4, dropped: { overflow: 12 } })
    rig.queue.commit(103, true)
    expect(await rig.send()).toEqual(['GAP 7 115 x12 @5-16 reason 1', 'VALUE 7 116 @17', 'VALUE 7 117 @18'])
  })

  it('commits the GAP after the sent half of a block by its id, and the half by theirs', async () => {
    const rig = await Rig.connected({ maxBytes: 1_000, window: 4 })
    rig.append(7, 10)
    rig.persist()
    await rig.send()
    rig.append(7, 1)
    rig.queue.commit(100, false)
    expect(await rig.send()).toEqual(['GAP 7 109 x6 @5-10 reason 1'])
    rig.queue.commit(107, false)
    expect(rig.queue.status()).toMatchObject({ committed: 1, inFlight: 3 })
    rig.queue.commit(109, false)
    for (const id of [101, 102, 103]) rig.queue.commit(id, false)
    expect(gapsOf(rig).every(({ settled }) => settled)).toBe(true)
    expect(rig.queue.status()).toMatchObject({ committed: 4, inFlight: 0, queued: 1 })
  })

  it('drops what is left of a half sent block on the next connection, as another GAP with an id of its own', async () => {
    const rig = await Rig.connected({ maxBytes: 1_000, window: 4 })
    rig.append(7, 10)
    rig.persist()
    await rig.send()
    rig.append(8, 1)
    rig.persist()
    rig.queue.commit(100, false)
    await rig.send()
    rig.queue.detach()
    rig.append(9, 9)
    rig.persist()
    const ids = gapsOf(rig).map(({ transaction }) => transaction)
    expect(ids).toEqual([103, 109])
    expect(new Set(gapsOf(rig).map(({ id }) => id)).size).toBe(2)
    await rig.crash()
    expect(gapsOf(rig).map(({ transaction, count }) => [transaction, count])).toEqual([
      [103, 3],
      [109, 6],
      [expect.any(Number), 0],
    ])
  })

  it('tells the range of what is lost of a block only, if the rest was committed', async () => {
    const rig = await Rig.connected({ maxBytes: 1_000 })
    rig.append(7, 5)
    rig.append(8, 5)
    rig.persist()
    await rig.send()
    for (const id of [100, 101, 102, 103, 104, 109]) rig.queue.commit(id, false)
    rig.queue.detach()
    rig.append(9, 7)
    rig.queue.attach()
    rig.persist()
    expect((await rig.send())[0]).toBe('GAP 8 108 x4 @6-9 reason 1')
  })

  it('drops a value that can never fit without dropping the others for it', async () => {
    const rig = await Rig.connected({ maxBytes: 1_000 })
    rig.append(7, 3)
    rig.append(8, 1, { bytes: 2_000 })
    rig.persist()
    expect((await rig.send()).at(-1)).toBe('GAP 8 103 x1 @4-4 reason 1')
    expect(rig.queue.status().inFlight).toBe(3)
  })

  it('drops waiting values too, and tells them when they are released', async () => {
    const rig = await Rig.connected({ maxBytes: 2_000 })
    rig.append(8, 15, { waiting: true })
    rig.host.now = 1
    rig.append(7, 10)
    rig.persist()
    expect(await rig.send()).toHaveLength(10)
    rig.queue.release(8)
    expect((await rig.send())[0]).toBe('GAP 8 110 x10 @1-10 reason 1')
  })

  it('leaves the result of an EXECUTE alone, and says when it is gone [MON 10]', async () => {
    const rig = await Rig.connected({ maxBytes: 1_000, maxAgeMs: 1_000 })
    const id = rig.queue.appendResult(new Uint8Array(24).fill(9, 4, 8), new Uint8Array(40), 5)
    rig.append(7, 20)
    rig.host.now = 5_000
    rig.queue.expire()
    rig.persist()
    expect((await rig.send())[0]).toMatch(/^VALUE 151587081 100/)
    expect(rig.resultsGone).toEqual([])
    rig.queue.commit(id, false)
    expect(rig.resultsGone).toEqual([0x09090909])
  })

  it('keeps at most 1,024 unsent GAPs: the two oldest become one, and no count is lost', async () => {
    const rig = await Rig.connected({ maxBytes: 1_000, overflow: 'drop-newest' })
    rig.append(7, 10)
    rig.persist()
    await rig.send()
    for (let id = 100; gapsOf(rig).length < 1_024; id++) {
      rig.append(7, 1)
      rig.queue.commit(id < 110 ? id : (lastValue(rig) ?? 0), false)
      rig.append(8, 1)
    }
    for (let i = 0; i < 50; i++) {
      rig.append(7, 1)
      rig.queue.commit(lastValue(rig) ?? 0, false)
      rig.append(8, 1)
    }
    const gaps = gapsOf(rig)
    expect(gaps).toHaveLength(1_024)
    const counts = gaps.reduce((sum, { count }) => sum + count, 0)
    expect(counts).toBe(rig.queue.status().dropped.overflow)
    const ids = gaps.map(({ transaction }) => transaction)
    expect(ids).toEqual([...ids].sort((a, b) => a - b))
  })
})

function valuesOf(rig: Rig, metric: number): number {
  const lane = [...rig.queue.lanes()].find(({ id }) => id === metric)
  return [...(lane ?? [])].reduce((sum, entry) => sum + (entry.kind === 'block' ? entry.unsettled : 0), 0)
}

/** The id of the value that was taken in last. */
function lastValue(rig: Rig): number | undefined {
  const [lane] = rig.queue.lanes()
  return [...lane!].filter((entry) => entry.kind === 'block' && entry.unsettled > 0).at(-1)?.last
}

describe('a full channel with many buffer lanes', () => {
  const LANES = 2_000

  /** A value of each metric waits, the one of metric 2 first, and there is no room left. */
  async function full(): Promise<Rig> {
    const rig = await Rig.connected({ maxBytes: LANES * 100 })
    for (let index = 0; index < LANES; index++) {
      rig.host.now++
      rig.append(2 + ((index * 7) % LANES), 1, { waiting: true })
    }
    return rig
  }

  it('finds the oldest value without a look at every lane', async () => {
    const rig = await full()
    const looks = vi.spyOn(Lane.prototype, 'at')
    rig.append(1, 1_000)
    rig.append(3, 500, { waiting: true })
    const count = looks.mock.calls.length
    looks.mockRestore()
    expect(rig.queue.status()).toMatchObject({ accepted: LANES + 1_500, dropped: { overflow: 1_500 } })
    // More than there should be, but no lane has two that could become one.
    expect(gapsOf(rig)).toHaveLength(1_500)
    // Once all lanes to put them in order, then few for each value.
    expect(count).toBeLessThan(5 * LANES + 50 * 1_500)
  })

  it('drops the oldest first, whatever lane it is in, as values and lanes come and go', async () => {
    const rig = await full()
    const waits = (index: number): boolean => valuesOf(rig, 2 + ((index * 7) % LANES)) > 0
    rig.append(1, 10)
    expect([...Array(12).keys()].map(waits)).toEqual([...Array(10).fill(false), true, true])
    // The oldest lane left is released, the next one is stopped, and two that were dropped from have a value again.
    rig.queue.release(2 + 10 * 7)
    await rig.queue.stop(2 + 11 * 7, rig.read)
    rig.host.now++
    rig.append(2, 1, { waiting: true })
    rig.append(1, 10)
    expect([10, 11, 12, 20, 21, 22].map(waits)).toEqual([false, false, false, false, false, true])
    expect(valuesOf(rig, 2)).toBe(1)
    rig.queue.expire()
    rig.append(1, 1)
    expect([22, 23].map(waits)).toEqual([false, true])
  })
})

describe('keep-latest', () => {
  it('keeps the older value where the new one finds no room', async () => {
    const rig = await Rig.connected({ maxBytes: 1_000, overflow: 'keep-latest' })
    rig.append(7, 1)
    rig.append(7, 1, { bytes: 2_000 })
    expect(rig.queue.status()).toMatchObject({ accepted: 2, queued: 1, dropped: { superseded: 0, overflow: 1 } })
    rig.persist()
    expect(await rig.send()).toEqual(['VALUE 7 100 @1', 'GAP 7 101 x1 @2-2 reason 1'])
  })

  it('keeps it in a buffer lane too, and drops it later like any other', async () => {
    const rig = await Rig.connected({ maxBytes: 1_000, overflow: 'keep-latest', window: 9 })
    rig.append(7, 1, { waiting: true })
    for (let metric = 10; metric < 19; metric++) rig.append(metric, 1)
    rig.persist()
    expect(await rig.send()).toHaveLength(9)
    rig.append(7, 1, { waiting: true, bytes: 200 })
    expect(rig.queue.status()).toMatchObject({ inFlight: 9, queued: 1, dropped: { superseded: 0, overflow: 1 } })
    rig.append(8, 1)
    expect(rig.queue.status()).toMatchObject({ inFlight: 9, queued: 1, dropped: { superseded: 0, overflow: 2 } })
    expect(rig.queue.imbalance).toBe(0)
  })

  it('takes the room of the older value for the new one, and no other value loses', async () => {
    const rig = await Rig.connected({ maxBytes: 1_000, overflow: 'keep-latest' })
    for (let metric = 10; metric < 20; metric++) rig.append(metric, 1)
    rig.append(10, 1)
    rig.append(19, 1)
    expect(rig.queue.status()).toMatchObject({ queued: 10, gaps: 0, dropped: { superseded: 2, overflow: 0 } })
  })
})

describe('old values', () => {
  it('go by the age clock when they are not in flight, and are reported', async () => {
    const rig = await Rig.connected({ maxAgeMs: 1_000, window: 2 })
    rig.append(7, 5)
    rig.append(8, 2, { waiting: true })
    rig.persist()
    await rig.send()
    rig.host.now = 1_000
    rig.queue.expire()
    expect(rig.queue.status().dropped.expired).toBe(0)
    rig.host.now = 1_001
    rig.queue.expire()
    expect(rig.queue.status()).toMatchObject({ inFlight: 2, queued: 0, dropped: { expired: 5 } })
    rig.append(7, 1)
    rig.queue.commit(101, true)
    expect(await rig.send()).toEqual(['GAP 7 104 x3 @3-5 reason 2', 'VALUE 7 105 @8'])
  })

  it('go even after younger ones, where they were released', async () => {
    const rig = await Rig.connected({ maxAgeMs: 1_000 })
    rig.append(8, 1, { waiting: true })
    rig.host.now = 900
    rig.append(7, 1)
    rig.queue.release(8)
    rig.host.now = 1_100
    rig.queue.expire()
    expect(rig.queue.status().dropped.expired).toBe(1)
  })
})

describe('values that are not old enough', () => {
  it('are looked at once, until the oldest may be, or those in flight are queued again', async () => {
    const rig = await Rig.connected({ maxAgeMs: 1_000, window: 2 })
    rig.append(7, 2)
    rig.persist()
    await rig.send()
    rig.queue.seal(7)
    rig.host.now = 500
    rig.append(7, 3)
    const looks = vi.spyOn(Lane.prototype, 'unsentIndex')
    const looked = (now: number): boolean => {
      looks.mockClear()
      rig.host.now = now
      rig.queue.expire()
      return looks.mock.calls.length > 0
    }
    try {
      expect([looked(600), looked(1_200), looked(1_500)]).toEqual([true, false, false])
      rig.queue.detach()
      expect(looked(1_500)).toBe(true)
      expect(rig.queue.status().dropped.expired).toBe(2)
      expect([looked(1_500), looked(1_501)]).toEqual([false, true])
      expect(rig.queue.status().dropped.expired).toBe(5)
    } finally {
      looks.mockRestore()
    }
  })
})

describe('a full disk', () => {
  it('drops what arrives, tells it when there is room, and lets the rest be committed [MON 8 Full disk]', async () => {
    const rig = await Rig.connected()
    rig.append(7, 3)
    rig.persist()
    await rig.send()
    rig.store.full = true
    rig.append(7, 1)
    rig.journal.atTurnEnd()
    expect(rig.host.refusing).toBe('full')
    rig.append(7, 4)
    rig.append(8, 4, { waiting: true })
    rig.queue.commit(101, false)
    rig.store.full = false
    rig.persist()
    expect(await rig.send()).toEqual(['VALUE 7 103 @4', `GAP 7 104 x4 @5-8 reason ${GapReason.full}`])
    rig.queue.release(8)
    expect(await rig.send()).toEqual([`GAP 8 105 x4 @9-12 reason ${GapReason.full}`])
    expect(rig.queue.status()).toMatchObject({ committed: 1, inFlight: 3, dropped: { full: 8 } })
    expect(rig.queue.imbalance).toBe(0)
  })
})
