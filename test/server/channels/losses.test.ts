import { describe, expect, it } from 'vitest'
import { GapReason } from '../../../protocol/monitor/constants.ts'
import type { GapEntry } from '../../../server/channels/gap.ts'
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

  it('drops what arrives with drop-newest, and tells it behind what is there', async () => {
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

  it('commits the GAP behind the sent half of a block by its id, and the half by theirs', async () => {
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

/** The id of the value that was taken in last. */
function lastValue(rig: Rig): number | undefined {
  const [lane] = rig.queue.lanes()
  return [...lane!].filter((entry) => entry.kind === 'block' && entry.unsettled > 0).at(-1)?.last
}

describe('old values', () => {
  it('go by the age clock when they are not in flight, and are told', async () => {
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

  it('go even behind younger ones, where they were released', async () => {
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
