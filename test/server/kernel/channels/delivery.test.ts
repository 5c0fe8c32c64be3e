import { describe, expect, it } from 'vitest'
import { headOf, ORIGIN, Rig } from './rig.ts'

/** Connected, with ids reserved. */
async function rigOf(settings = {}): Promise<Rig> {
  const rig = await Rig.connected(settings)
  rig.append(7, 1)
  rig.persist()
  expect(await rig.send()).toEqual(['VALUE 7 100 @1'])
  rig.queue.commit(ORIGIN, false)
  return rig
}

const ids = (frames: readonly string[]): number[] => frames.map((frame) => Number(frame.split(' ')[2]))

describe('what is sent', () => {
  it('waits until its id is reserved on disk, and not for its own batch after that [MON 8 Durability]', async () => {
    const rig = await Rig.connected()
    rig.append(7, 2)
    expect(await rig.send()).toEqual([])
    rig.persist()
    expect(await rig.send()).toEqual(['VALUE 7 100 @1', 'VALUE 7 101 @2'])
    rig.append(7, 1)
    expect(await rig.send()).toEqual(['VALUE 7 102 @3'])
  })

  it('comes again on the next connection, in order and with the same ids, before what is new [MON 8 Life]', async () => {
    const rig = await rigOf()
    rig.append(7, 5)
    expect(ids(await rig.send())).toEqual([101, 102, 103, 104, 105])
    rig.queue.commit(103, false)
    rig.queue.detach()
    rig.persist()
    rig.append(8, 1)
    rig.queue.attach()
    expect(ids(await rig.send())).toEqual([101, 102, 104, 105, 106])
  })

  it('is read back from the store when it is not in memory', async () => {
    const rig = await rigOf()
    rig.append(7, 30)
    await rig.send()
    rig.queue.detach()
    rig.persist()
    expect(rig.queue.resident).toBe(0)
    rig.queue.attach()
    expect(ids(await rig.send())).toEqual(Array.from({ length: 30 }, (_, n) => 101 + n))
    expect(rig.queue.resident).toBe(0)
  })

  it('is at most the window; a COMMIT opens it and says so [MON 8 Window]', async () => {
    const rig = await rigOf({ window: 3 })
    rig.append(7, 10)
    expect(ids(await rig.send())).toEqual([101, 102, 103])
    const { ready } = rig
    rig.queue.commit(102, false)
    expect(rig.ready).toBeGreaterThan(ready)
    expect(ids(await rig.send())).toEqual([104])
    rig.queue.commit(104, true)
    expect(ids(await rig.send())).toEqual([105, 106, 107])
  })

  it('is at most the window of bytes, but for one value that is larger', async () => {
    const rig = await rigOf({ windowBytes: 350 })
    rig.append(7, 5)
    expect(ids(await rig.send())).toEqual([101, 102, 103])
    rig.queue.commit(103, true)
    rig.append(7, 1, { bytes: 1_000 })
    rig.append(7, 1)
    expect(ids(await rig.send())).toEqual([104, 105])
    rig.queue.commit(105, true)
    expect(ids(await rig.send())).toEqual([106])
    rig.queue.commit(106, true)
    expect(ids(await rig.send())).toEqual([107])
  })

  it('is cut between frames where the link has no room, but for one value', async () => {
    const rig = await rigOf()
    rig.append(7, 5)
    const slice = rig.queue.next(250)
    expect(slice.kind === 'slice' && slice.bytes.length).toBe(200)
    const one = rig.queue.next(10)
    expect(one.kind === 'slice' && one.bytes.length).toBe(100)
  })

  it('is no GAP after a barrier either on a channel that is not durable, where GAPs have no id', async () => {
    const rig = await Rig.connected({ durable: false, maxBytes: 100 })
    rig.append(7, 30)
    const hold = rig.queue.holdBack()
    expect(await rig.send()).toEqual([])
    hold.release()
    const frames = await rig.send()
    expect(frames.filter((frame) => frame.startsWith('GAP'))).toHaveLength(1)
  })

  it('is nothing after a barrier until it is released [MON 6.1]', async () => {
    const rig = await rigOf()
    rig.append(7, 2)
    const hold = rig.queue.holdBack()
    rig.append(7, 2)
    expect(ids(await rig.send())).toEqual([101, 102])
    hold.release()
    expect(ids(await rig.send())).toEqual([103, 104])
  })

  it('has no id, no window and is never committed where the channel is not durable', async () => {
    const rig = await Rig.connected({ durable: false, window: 1, windowBytes: 100 })
    rig.append(7, 3)
    expect(await rig.send()).toEqual(['VALUE 7 0 @1', 'VALUE 7 0 @2', 'VALUE 7 0 @3'])
    expect(rig.queue.status()).toMatchObject({ accepted: 3, committed: 3, inFlight: 0, queued: 0 })
    expect(rig.queue.commit(ORIGIN, false)).toBe(false)
    expect(rig.queue.commit(0, false)).toBe(true)
    expect(rig.queue.empty).toBe(true)
    expect(rig.journal.busy).toBe(false)
  })
})

describe('COMMIT', () => {
  it('is OK for every id that was given, whatever became of its value, and for no other [MON 8 COMMIT]', async () => {
    const rig = await rigOf()
    rig.append(7, 3)
    await rig.send()
    for (const id of [0, 100, 101, 101, 103]) expect(rig.queue.commit(id, false)).toBe(true)
    for (const id of [1, 99, 104, 2 ** 52, Number.MAX_SAFE_INTEGER]) expect(rig.queue.commit(id, false)).toBe(false)
    expect(rig.queue.status()).toMatchObject({ committed: 3, inFlight: 1 })
  })

  it('with through takes what was sent on this connection, and nothing that was not', async () => {
    const rig = await rigOf({ window: 4 })
    rig.append(7, 6)
    await rig.send()
    rig.queue.commit(102, false)
    rig.queue.commit(103, true)
    expect(rig.queue.status()).toMatchObject({ committed: 4, inFlight: 1, queued: 2 })
    rig.queue.detach()
    rig.queue.attach()
    rig.queue.commit(106, true)
    expect(rig.queue.status()).toMatchObject({ committed: 5, inFlight: 0, queued: 2 })
  })

  it('forgets what was settled after a value that is never committed', async () => {
    const rig = await rigOf()
    for (let id = 101; id < 2_000; id++) {
      rig.append(7, 1)
      await rig.send()
      rig.persist()
      if (id > 101) rig.queue.commit(id, false)
    }
    const [lane] = rig.queue.lanes()
    expect(lane!.length).toBeLessThan(200)
    expect(rig.queue.status()).toMatchObject({ inFlight: 1, queued: 0 })
  })
})

describe('keep-latest', () => {
  const head = headOf(7, [1])
  const other = headOf(7, [2])

  it('keeps the newest unsent value of each series, at the end, with a new id, and tells no GAP [MON 8 Limits]', async () => {
    const rig = await rigOf({ overflow: 'keep-latest' })
    rig.append(7, 1, { head })
    rig.append(7, 1, { head: other })
    rig.append(7, 1, { head })
    rig.append(8, 1)
    expect(await rig.send()).toEqual(['VALUE 7 102 @3', 'VALUE 7 103 @4', 'VALUE 8 104 @5'])
    expect(rig.queue.status().dropped.superseded).toBe(1)
  })

  it('leaves what is in flight until its connection ends', async () => {
    const rig = await rigOf({ overflow: 'keep-latest' })
    rig.append(7, 1, { head })
    await rig.send()
    rig.append(7, 1, { head })
    expect(rig.queue.status()).toMatchObject({ inFlight: 1, queued: 1 })
    rig.queue.detach()
    rig.queue.attach()
    expect(ids(await rig.send())).toEqual([102])
    expect(rig.queue.imbalance).toBe(0)
  })

  it('does not let a waiting value take the place of one that was released', async () => {
    const rig = await rigOf({ overflow: 'keep-latest' })
    rig.append(7, 2, { head, waiting: true })
    rig.queue.release(7)
    rig.append(7, 1, { head, waiting: true })
    expect(await rig.send()).toEqual(['VALUE 7 101 @3'])
    rig.queue.release(7)
    expect(await rig.send()).toEqual(['VALUE 7 102 @4'])
  })
})

describe('values that wait', () => {
  it('get their ids at their release, in order, after what is queued [MON 8 Binding]', async () => {
    const rig = await rigOf()
    rig.append(8, 2, { waiting: true })
    rig.append(9, 1, { waiting: true })
    rig.append(7, 1)
    rig.persist()
    rig.queue.release(8)
    rig.append(7, 1)
    const sent = ['VALUE 7 101 @5', 'VALUE 8 102 @2', 'VALUE 8 103 @3', 'VALUE 7 104 @6']
    expect(await rig.send()).toEqual(sent)
    expect(rig.queue.status()).toMatchObject({ inFlight: 4, queued: 1 })
  })

  it('keep the ids of their release when they are read back', async () => {
    const rig = await rigOf()
    rig.append(8, 30, { waiting: true })
    rig.persist()
    rig.queue.release(8)
    rig.persist()
    await rig.crash()
    rig.queue.attach()
    rig.persist()
    const sent = await rig.send()
    expect(ids(sent).slice(0, 30)).toEqual(Array.from({ length: 30 }, (_, n) => 101 + n))
  })
})
