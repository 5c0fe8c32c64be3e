import { describe, expect, it } from 'vitest'
import type { Block } from '../../../../server/kernel/channels/block.ts'
import type { MetricCopies } from '../../../../server/kernel/channels/metric-values.ts'
import { finish } from '../../../../server/kernel/core/fair-work.ts'
import { describeFrames, Rig } from './rig.ts'

/** In flight: 100, 101; queued: 102 to 105; waiting: one of metric 8. Metrics 7 and 8 in turn. */
async function rigOf(): Promise<Rig> {
  const rig = await Rig.connected({ window: 2 })
  for (let i = 0; i < 3; i++) {
    rig.append(7, 1)
    rig.append(8, 1)
  }
  rig.append(8, 1, { waiting: true })
  rig.persist()
  expect(await rig.send()).toHaveLength(2)
  return rig
}

const ids = (frames: readonly string[]): number[] => frames.map((frame) => Number(frame.split(' ')[2]))

describe('STOP', () => {
  it('drops what waits, takes what is in flight out of the window, and passes over what is queued [MON 6.6]', async () => {
    const rig = await rigOf()
    expect(rig.queue.stop(8, rig.read)).toBeUndefined()
    expect(rig.queue.status()).toMatchObject({ inFlight: 1, queued: 4, dropped: { stopped: 2 } })
    expect(ids(await rig.send())).toEqual([102])
    rig.append(8, 1)
    rig.queue.commit(102, true)
    expect(ids(await rig.send())).toEqual([104, 106])
    expect(rig.queue.status().dropped.stopped).toBe(4)
    expect(rig.queue.commit(101, false)).toBe(true)
    expect(rig.queue.status().committed).toBe(2)
  })

  it('reads back what it has to tell apart', async () => {
    const rig = await rigOf()
    rig.append(9, 20)
    rig.queue.detach()
    rig.persist()
    rig.queue.attach()
    await rig.send()
    rig.persist()
    const [lane] = rig.queue.lanes()
    const head = lane!.head
    if (head?.kind === 'block') head.dropBytes()
    await rig.queue.stop(8, rig.read)
    expect(rig.queue.status()).toMatchObject({ inFlight: 1, dropped: { stopped: 2 } })
  })

  it('is forgotten when everything before it is gone, and holds after a restart until then', async () => {
    const rig = await rigOf()
    await rig.queue.stop(8, rig.read)
    expect(rig.queue.endPassedStops()).toEqual([])
    const [[metric, through]] = [...rig.queue.stops] as [[number, number]]
    rig.persist()
    await rig.crash()
    rig.queue.restoreStop(metric, through)
    rig.queue.attach()
    rig.persist()
    expect(ids(await rig.send())).toEqual([100, 102])
    rig.queue.commit(102, true)
    await rig.send()
    rig.queue.commit(104, true)
    expect(ids(await rig.send())).toHaveLength(0)
    expect(rig.queue.endPassedStops()).toEqual([8])
    expect(rig.queue.imbalance).toBe(0)
  })
})

describe('purge', () => {
  it('drops a metric everywhere, and tells it where it was lost', async () => {
    const rig = await rigOf()
    expect(await rig.queue.purge({ metric: 8 }, rig.read)).toBe(4)
    expect(rig.queue.status()).toMatchObject({ inFlight: 1, queued: 2, dropped: { purged: 4 } })
    rig.queue.commit(100, false)
    expect(ids(await rig.send())).toEqual([102, 104])
    rig.queue.commit(104, true)
    expect(await rig.send()).toEqual(['GAP 8 106 x3 @2-6 reason 4'])
    rig.queue.release(8)
    expect(await rig.send()).toEqual(['GAP 8 107 x1 @7-7 reason 4'])
  })

  it('drops everything up to an id, in flight or not, and nothing that waits', async () => {
    const rig = await rigOf()
    expect(await rig.queue.purge({ through: 103 }, rig.read)).toBe(4)
    expect(ids(await rig.send())).toEqual([104, 105])
    expect(rig.queue.status()).toMatchObject({ inFlight: 2, queued: 1, dropped: { purged: 4 } })
  })

  it('asks for many blocks at once, but for no more than about half a mebibyte', async () => {
    // Many blocks of 4 KiB, with values of both metrics.
    const rig = await Rig.connected({ maxBytes: 1 << 20 })
    rig.queue.detach()
    for (let count = 0; count < 400; count++) {
      for (const metric of [7, 8]) rig.append(metric, 1, { bytes: 1_000 })
    }
    rig.persist()
    for (const lane of rig.queue.lanes()) {
      for (const block of lane.blocksOf(undefined)) block.dropBytes()
    }
    const asked: { readonly bytes: number; readonly answer: () => void }[] = []
    const read = async (block: Block): Promise<Uint8Array | undefined> => {
      await new Promise<void>((answer) => asked.push({ bytes: block.length, answer }))
      return rig.read(block)
    }
    let purged: number | undefined
    void rig.queue.purge({ metric: 8 }, read).then((count) => {
      purged = count
    })
    let rounds = 0
    for (; purged === undefined; rounds++) {
      expect(rounds).toBeLessThan(10)
      await new Promise((resolve) => setImmediate(resolve))
      const round = asked.splice(0)
      expect(round.reduce((sum, { bytes }) => sum + bytes, 0)).toBeLessThanOrEqual((512 + 256) << 10)
      for (const { answer } of round) answer()
    }
    expect(purged).toBe(400)
    expect(rounds).toBeGreaterThan(1)
    expect(rig.queue.imbalance).toBe(0)
  })

  it('reads nothing back to drop everything', async () => {
    const rig = await rigOf()
    rig.append(7, 20)
    rig.queue.detach()
    rig.persist()
    const purged = await rig.queue.purge({}, () => Promise.reject(new Error('it was read')))
    expect(purged).toBe(27)
    expect(rig.queue.status()).toMatchObject({ inFlight: 0, queued: 0 })
    rig.queue.attach()
    expect(await rig.send()).toEqual([expect.stringMatching(/^GAP 0 126 x26 /)])
  })
})

describe('a purge that waits for blocks of a channel that is deleted meanwhile', () => {
  it.each(['found', 'missing'] as const)('settles and leaves nothing, its blocks %s', async (outcome) => {
    const share = { bytes: 0, limit: 1 << 30 }
    const rig = new Rig({}, undefined, share)
    await rig.open()
    rig.queue.attach()
    // These need not be read: they have a block of their own.
    rig.append(8, 30)
    rig.queue.seal(8)
    rig.append(7, 1)
    rig.append(8, 1)
    rig.append(8, 1, { waiting: true })
    rig.queue.detach()
    rig.persist()
    for (const lane of rig.queue.lanes()) {
      for (let at = 0; at < lane.length; at++) {
        const entry = lane.at(at)
        if (entry?.kind === 'block') entry.dropBytes()
      }
    }
    const asked: (() => void)[] = []
    const read = async (block: Block): Promise<Uint8Array | undefined> => {
      await new Promise<void>((resolve) => asked.push(resolve))
      return outcome === 'found' ? rig.read(block) : undefined
    }
    const purge = rig.queue.purge({ metric: 8 }, read)
    await Promise.resolve()
    expect(asked.length).toBeGreaterThan(0)
    finish(rig.queue.discard())
    let dropped: number | undefined
    void purge.then((count) => {
      dropped = count
    })
    for (let turn = 0; turn < 50 && dropped === undefined; turn++) {
      for (const answer of asked.splice(0)) answer()
      await new Promise((resolve) => setImmediate(resolve))
    }
    expect(dropped).toBe(30)
    expect(rig.queue.imbalance).toBe(0)
    expect(share.bytes).toBe(0)
    expect(rig.queue.status()).toMatchObject({ queued: 0, inFlight: 0 })
  })
})

async function copied(copies: MetricCopies): Promise<Uint8Array[]> {
  await copies.load()
  const found = copies.now()
  if (found === undefined) throw new Error('frames are missing after they were loaded')
  return found.map(({ frame }) => frame)
}

describe('the copies of SUBSCRIBE', () => {
  it('are all uncommitted values of the metric, in order, with their old times and new ids [MON 8 Binding]', async () => {
    const rig = await rigOf()
    rig.queue.commit(101, false)
    const frames = await copied(rig.queue.copiesOf(8, rig.read))
    expect(frames.flatMap(describeFrames)).toEqual(['VALUE 8 103 @4', 'VALUE 8 105 @6', 'VALUE 8 0 @7'])
    const other = await Rig.connected()
    for (const frame of frames) other.queue.appendFrames(frame, false)
    other.persist()
    expect(await other.send()).toEqual(['VALUE 8 100 @4', 'VALUE 8 101 @6', 'VALUE 8 102 @7'])
    expect(other.queue.status().accepted).toBe(3)
  })

  it('miss nothing that comes while blocks are read back', async () => {
    const rig = await rigOf()
    rig.append(8, 20)
    rig.queue.detach()
    rig.persist()
    const read = async (block: Block): Promise<Uint8Array | undefined> => {
      rig.append(8, 1)
      return rig.read(block)
    }
    const frames = await copied(rig.queue.copiesOf(8, read))
    const times = frames.flatMap(describeFrames).map((frame) => Number(frame.split('@')[1]))
    expect(times.slice(0, 3)).toEqual([2, 4, 6])
    expect(times.at(-2)).toBeGreaterThan(27)
    expect(times.at(-1)).toBe(7)
  })

  it('are no values that were stopped', async () => {
    const rig = await rigOf()
    await rig.queue.stop(8, rig.read)
    expect(await copied(rig.queue.copiesOf(8, rig.read))).toEqual([])
  })
})
