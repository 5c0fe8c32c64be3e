/** How far the history has taken a channel: what comes again, what another channel or older files lack, and what was lost. */
import { beforeEach, describe, expect, it } from 'vitest'
import { XdrWriter } from '../../../../protocol/bytes/writer.ts'
import { GapReason } from '../../../../protocol/monitor/constants.ts'
import { writeGap } from '../../../../protocol/monitor/message.ts'
import { frames, load, NOW, TestRecorder } from './test-recorder.ts'

let test: TestRecorder
beforeEach(() => {
  test = new TestRecorder()
})

describe('what was lost', () => {
  beforeEach(() => {
    test.begin()
    test.bind({})
  })

  it('is a range, with what was bound', () => {
    const writer = new XdrWriter()
    const [from, to] = [NOW * 1_000, NOW * 1_000 + 1_500]
    writeGap(writer, { transaction: 4, metric: 1, count: 7, from, to, reason: GapReason.overflow })
    test.take(writer.copy())
    test.handle({ kind: 'commit' })
    expect(test.store.losses).toEqual([{ native: 'test.*', fromMs: NOW, toMs: NOW + 2, count: 7, reason: 'overflow' }])
    expect(test.counts()).toMatchObject({ lost: 7 })
  })

  it('at times that nobody knows is between the last sample and now', () => {
    test.take(frames([1, -5, load(1)]))
    const writer = new XdrWriter()
    writeGap(writer, { transaction: 2, metric: 0, count: 0, from: 0, to: 0, reason: GapReason.restart })
    test.take(writer.copy())
    test.handle({ kind: 'commit' })
    expect(test.store.losses).toEqual([{ native: '', fromMs: NOW - 5, toMs: NOW, count: 0, reason: 'restart' }])
  })
})

describe('what was lost of the server', () => {
  const lose = (metric: number): void => {
    const writer = new XdrWriter()
    const [from, to] = [NOW * 1_000, NOW * 1_000 + 1_500]
    writeGap(writer, { transaction: 4 + metric, metric, count: 7, from, to, reason: GapReason.overflow })
    test.take(writer.copy())
    test.handle({ kind: 'commit' })
  }
  beforeEach(() => {
    test.begin()
    test.bind({}, { name: 'host.*', tenant: '' })
  })

  it('belongs to no tenant', () => {
    lose(2)
    const loss = { native: 'host.*', fromMs: NOW, toMs: NOW + 2, count: 7, reason: 'overflow' }
    expect([test.store.losses, test.store.lossesOfServer]).toEqual([[], [loss]])
  })

  it('is nothing where a metric of the tenant is known, and perhaps something where none is', () => {
    lose(0)
    const loss = { native: '', fromMs: NOW, toMs: NOW + 2, count: 7, reason: 'overflow' }
    // How much the tenant has lost is its own affair.
    expect([test.store.losses, test.store.lossesOfServer]).toEqual([[loss], [{ ...loss, count: 0 }]])
    lose(1)
    expect([test.store.losses.length, test.store.lossesOfServer.length]).toEqual([2, 1])
  })
})

describe('a loss at times that nobody knows', () => {
  it('is a range that has been, also after a sample of the future', () => {
    test.begin()
    test.bind({})
    test.take(frames([1, 30_000, load(1)]))
    const writer = new XdrWriter()
    writeGap(writer, { transaction: 2, metric: 0, count: 0, from: 0, to: 0, reason: GapReason.restart })
    test.take(writer.copy())
    test.handle({ kind: 'commit' })
    expect(test.store.losses).toMatchObject([{ fromMs: NOW, toMs: NOW }])
  })
})

describe('after a crash', () => {
  beforeEach(() => {
    test.begin()
    test.bind({})
    test.take(frames([1, 0, load(1)], [2, 1, load(2)]))
    test.handle({ kind: 'commit' })
  })

  it('what comes again is passed over, and reported as stored', () => {
    test.take(frames([3, 2, load(3)]))
    test.crash()
    test.begin()
    test.bind({})
    test.take(frames([1, 0, load(1)], [2, 1, load(2)]))
    test.handle({ kind: 'commit' })
    expect(test.stored()).toEqual([2])
    test.take(frames([3, 2, load(3)]))
    test.handle({ kind: 'commit' })
    expect(test.stored()).toEqual([2, 3])
    expect(test.store.samples).toHaveLength(3)
    expect(test.store.losses).toEqual([])
    expect(test.counts()).toMatchObject({ samples: 1, repeated: 2 })
  })

  it.each([{ generation: 'other' }, { channel: 6 }])('another history of ids begins: %j', (other) => {
    test.crash()
    test.nowMs += 60_000
    test.begin(other)
    test.bind({})
    test.take(frames([1, 60_000, load(4)]))
    test.handle({ kind: 'commit' })
    expect(test.store.samples).toHaveLength(3)
    const loss = { native: '', fromMs: NOW, toMs: NOW + 60_000, count: 0, reason: 'another channel' }
    expect(test.store.losses).toEqual([loss])
    test.crash()
    test.begin(other)
    expect(test.store.losses).toEqual([loss])
  })
})

describe('files of the history that are older than the database', () => {
  /** Six values were stored and committed, of which an older copy of the files has two. */
  function goBack(): void {
    test.begin()
    test.bind({})
    test.take(frames([1, 0, load(1)], [2, 1, load(2)]))
    test.handle({ kind: 'commit' })
    const older = test.store.crash()
    test.nowMs += 60_000
    test.take(frames([3, 2, load(3)], [4, 3, load(4)], [5, 4, load(5)], [6, 5, load(6)]))
    test.handle({ kind: 'commit' })
    expect(test.stored()).toEqual([2, 6])
    test.store = older
    test.start()
    test.nowMs += 60_000
  }

  it('have a range of loss for what lies between, once', () => {
    goBack()
    test.begin({ committed: 6 })
    test.bind({})
    test.handle({ kind: 'commit' })
    const loss = { native: '', fromMs: NOW, toMs: NOW + 120_000, count: 4, reason: 'older files of the history' }
    expect(test.store.losses).toEqual([loss])
    expect(test.stored()).toEqual([])
    test.crash()
    test.begin({ committed: 6 })
    test.bind({})
    test.take(frames([7, 6, load(7)]))
    test.handle({ kind: 'commit' })
    test.crash()
    test.begin({ committed: 7 })
    test.handle({ kind: 'commit' })
    expect(test.store.losses).toEqual([loss])
    expect(test.store.samples).toHaveLength(3)
  })

  it('are not those of a channel that has committed less, or whose ids were skipped', () => {
    test.begin()
    test.bind({})
    test.take(frames([1, 0, load(1)], [2, 1, load(2)]))
    test.handle({ kind: 'commit' })
    test.crash()
    test.begin({ committed: 1, unsettled: 1 })
    test.bind({})
    test.take(frames([2, 1, load(2)], [2_000_000, 2, load(3)]))
    test.handle({ kind: 'commit' })
    test.crash()
    test.begin({ committed: 3 })
    test.handle({ kind: 'commit' })
    expect(test.store.losses).toEqual([])
    expect(test.store.samples).toHaveLength(3)
  })

  it('are seen although values were dropped that were taken, once the channel was empty', () => {
    test.begin()
    test.bind({})
    test.take(frames([1, 0, load(1)], [2, 1, load(2)]))
    test.handle({ kind: 'commit' })
    // The second was dropped before it was committed.
    test.crash()
    test.begin({ committed: 1 })
    test.bind({})
    test.take(frames([3, 2, load(3)]))
    test.handle({ kind: 'commit' })
    test.crash()
    test.begin({ committed: 3 })
    test.handle({ kind: 'commit' })
    expect(test.store.losses).toMatchObject([{ count: 1 }])
  })

  it('of a version that did not count have none', () => {
    test.begin()
    test.bind({})
    test.take(frames([1, 0, load(1)]))
    test.handle({ kind: 'commit' })
    const position = test.store.positionOf('default')!
    test.store.append({
      tenant: 'default',
      position: { ...position, committed: undefined },
      series: new Uint32Array(0),
      times: new Float64Array(0),
      values: new Float64Array(0),
      length: 0,
      losses: [],
    })
    test.store.commit()
    test.crash()
    test.begin({ committed: 70, unsettled: 2 })
    test.handle({ kind: 'commit' })
    expect(test.store.losses).toEqual([])
  })
})

describe('a connection that is made again', () => {
  it('gets nothing stored twice, and hears of what was stored', () => {
    test.begin()
    test.bind({})
    test.take(frames([1, 0, load(1)], [2, 1, load(2)]))
    test.begin({ connection: 2 })
    test.take(frames([3, 2, load(3)]), 1)
    test.handle({ kind: 'bind', connection: 2, metrics: [] })
    test.take(frames([1, 0, load(1)], [2, 1, load(2)], [3, 2, load(3)]), 2)
    test.handle({ kind: 'commit' })
    expect(test.store.samples).toHaveLength(3)
    expect(test.posted.filter(({ kind }) => kind === 'stored')).toEqual([
      { kind: 'stored', connection: 2, transaction: 3 },
    ])
    expect(test.posted.filter(({ kind }) => kind === 'taken')).toHaveLength(3)
  })
})

describe('another tenant of the same name', () => {
  it('has no history, and no loss', () => {
    test.begin()
    test.bind({})
    test.take(frames([1, 0, load(1)]))
    test.handle({ kind: 'commit' })
    test.begin({ owner: 4, channel: 6, connection: 2 })
    test.handle({ kind: 'commit' })
    expect(test.store.samples).toEqual([])
    expect(test.store.losses).toEqual([])
  })

  it('is not one whose channel was deleted: what was taken stays', () => {
    test.begin()
    test.bind({})
    test.take(frames([1, 0, load(1)]))
    test.begin({ channel: 6, connection: 2 })
    test.handle({ kind: 'commit' })
    expect(test.store.samples).toHaveLength(1)
  })
})

describe('a tenant that is removed', () => {
  it('takes its history along', () => {
    test.begin()
    test.bind({})
    test.take(frames([1, 0, load(1)]))
    test.handle({ kind: 'commit' })
    test.handle({ kind: 'tenants', tenants: ['other'], generation: 'g' })
    test.take(frames([2, 0, load(2)]))
    test.handle({ kind: 'commit' })
    expect(test.store.samples).toEqual([])
  })

  it('keeps it where the database is another one, which may not know the tenant yet', () => {
    test.begin()
    test.bind({})
    test.take(frames([1, 0, load(1)]))
    test.handle({ kind: 'commit' })
    test.handle({ kind: 'tenants', tenants: ['other'], generation: 'another' })
    expect(test.store.samples).toHaveLength(1)
    test.handle({ kind: 'tenants', tenants: ['other'], generation: 'g' })
    expect(test.store.samples).toEqual([])
  })
})
