/** What the thread of the history makes of frames: samples with the names that Prometheus knows, each stored once. */
import { beforeEach, describe, expect, it } from 'vitest'
import { XdrWriter } from '../../../../protocol/bytes/writer.ts'
import { BasicType } from '../../../../protocol/monitor/constants.ts'
import type { Field, Value } from '../../../../protocol/monitor/value.ts'
import { ChannelDecoder } from '../../../../server/wings/history/decoder.ts'
import { SERVER } from '../../../../server/wings/history/messages.ts'
import { HistoryReadError } from '../../../../storage/history/store.ts'
import { double, frames, histogramOf, labelled, load, NOW, TestRecorder, text } from './test-recorder.ts'

const HOUR_MS = 3_600_000

let test: TestRecorder
beforeEach(() => {
  test = new TestRecorder()
})

describe('samples', () => {
  beforeEach(() => {
    test.begin()
    test.bind({})
  })

  it('have names and labels that Prometheus takes, and times in milliseconds, rounded down', () => {
    test.take(frames([1, 5, labelled(double(1.5), { name: 'test.a-b', host: 'h', 'x.y': '1', empty: '' })]))
    test.handle({ kind: 'commit' })
    expect(test.store.samples).toEqual([`default: test_a_b{host=h,x_y=1} 1.5 ${NOW + 5}`])
    expect(test.store.asked[0]?.native).toBe('test.a-b')
  })

  it('are of every number and of booleans', () => {
    const values: Value[] = [
      { type: BasicType.BOOLEAN, value: true },
      { type: BasicType.INT32, value: -3 },
      { type: BasicType.UINT32, value: 4_000_000_000 },
      { type: BasicType.INT64, value: -5n },
      { type: BasicType.UINT64, value: 6n },
      double(Number.NaN),
    ]
    for (const [at, value] of values.entries()) test.take(frames([at + 1, at, labelled(value, { name: 'test.n' })]))
    test.handle({ kind: 'commit' })
    expect(test.store.samples.map((sample) => sample.split(' ')[2])).toEqual([
      '1',
      '-3',
      '4000000000',
      '-5',
      '6',
      'NaN',
    ])
    expect(test.store.asked).toHaveLength(1)
  })

  it('of a series that is known cost no look at its texts', () => {
    for (let at = 1; at <= 10; at++) test.take(frames([2 * at, at, load(at)], [2 * at + 1, at, load(at, 'other')]))
    test.handle({ kind: 'commit' })
    expect(test.store.samples).toHaveLength(20)
    expect(test.store.asked).toHaveLength(2)
  })

  it('are asked for again before the history forgets the series', () => {
    for (const transaction of [1, 2, 3]) {
      test.take(frames([transaction, transaction, load(transaction)]))
      test.nowMs += HOUR_MS
    }
    expect(test.store.asked).toHaveLength(3)
  })

  it('of records are one for each number; texts and lists are none', () => {
    const rec: Value = { type: BasicType.REC, value: [{ name: 'free', ...double(1) } as Field, text('state', 'ok')] }
    const list: Value = { type: BasicType.ARRAY, value: { element: BasicType.DOUBLE, items: [1, 2] } }
    test.take(frames([1, 0, labelled(rec, { name: 'test.disk', host: 'h' })]))
    test.take(frames([2, 0, labelled({ type: BasicType.STRING, value: 'x' }, { name: 'test.os', host: 'h' })]))
    test.take(frames([3, 0, labelled(list, { name: 'test.list', host: 'h' })]))
    test.handle({ kind: 'commit' })
    expect(test.store.samples).toEqual([`default: test_disk_free{host=h} 1 ${NOW}`])
    expect(test.counts()).toMatchObject({ samples: 1, unsupported: 2 })
    expect(test.stored()).toEqual([3])
  })

  it('of histograms are buckets, count and sum; the end of the series is the end of them all', () => {
    const histogram = histogramOf([1], [2n, 1n])
    test.take(frames([1, 0, labelled(histogram, { name: 'otlp.took', host: 'h' })]))
    test.take(frames([2, 9, labelled({ type: BasicType.VOID, value: null }, { name: 'otlp.took', host: 'h' })]))
    test.handle({ kind: 'commit' })
    const names = test.store.samples.map((sample) => sample.replace(/^default: /, ''))
    expect(names.slice(0, 4)).toContain(`otlp_took_count{host=h} 3 ${NOW}`)
    expect(names.slice(4).filter((name) => name.includes('stale'))).toHaveLength(4)
    expect(names).toContain(`otlp_took_bucket{host=h,le=+Inf} stale ${NOW + 9}`)
  })

  it('of histograms that always have other bounds are forgotten when they are too many, and asked for again', () => {
    const decoder = new ChannelDecoder(test.store as never, 0, NOW, 20)
    decoder.bind([{ id: 1, name: 'otlp.*', args: [], carriesLabels: true, tenant: 'default', own: [] }])
    let transaction = 0
    const decode = (bound: number): void => {
      const value = labelled(histogramOf([bound], [1n, 1n]), { name: 'otlp.took' })
      decoder.decode(frames([++transaction, 0, value]), NOW)
    }
    decode(0.5)
    decode(0.5)
    expect(test.store.asked).toHaveLength(4)
    // Those of the value at which it is too much are the last ones that are added to what was known.
    for (let bound = 1; bound <= 17; bound++) decode(bound)
    expect(test.store.asked).toHaveLength(21)
    decode(0.5)
    expect(test.store.asked).toHaveLength(25)
  })

  it('are asked for again if the clock was set back', () => {
    test.store.most = 0
    test.nowMs += 1_000 * HOUR_MS
    test.take(frames([1, 0, load(1)]))
    test.store.most = 1
    test.nowMs -= 1_000 * HOUR_MS
    test.take(frames([2, 0, load(2)]))
    test.handle({ kind: 'commit' })
    expect(test.store.samples).toHaveLength(1)
  })

  it('say that a series has ended', () => {
    test.take(
      frames(
        [1, 0, load(1)],
        [2, 1, labelled({ type: BasicType.VOID, value: null }, { name: 'test.load', host: 'h' })],
      ),
    )
    test.handle({ kind: 'commit' })
    expect(test.store.samples.at(-1)).toBe(`default: test_load{host=h} stale ${NOW + 1}`)
  })

  it('keep their own times, however late they come', () => {
    test.take(frames([1, 0, load(1)], [2, -8 * 24 * HOUR_MS, load(2)]))
    test.handle({ kind: 'commit' })
    expect(test.store.samples.at(-1)).toBe(`default: test_load{host=h} 2 ${NOW - 8 * 24 * HOUR_MS}`)
  })

  it('of a time more than a minute ahead of the clock are counted and not recorded, and so is the end of a series', () => {
    const end = labelled({ type: BasicType.VOID, value: null }, { name: 'test.load', host: 'h' })
    test.take(frames([1, 0, load(1)], [2, 59_999, load(2)], [3, 60_000, load(3)], [4, 24 * HOUR_MS, load(4, 'new')]))
    test.take(frames([5, 24 * HOUR_MS, end]))
    test.handle({ kind: 'commit' })
    expect(test.store.samples.map((sample) => Number(sample.split(' ').at(-1)) - NOW)).toEqual([0, 59_999])
    expect(test.counts()).toMatchObject({ samples: 2, ahead: 3 })
    expect(test.store.asked).toHaveLength(1)
    expect(test.stored()).toEqual([5])
    // When that time has come it is one like any other.
    test.nowMs += 24 * HOUR_MS
    test.take(frames([6, 24 * HOUR_MS, load(6)]))
    test.handle({ kind: 'commit' })
    expect(test.store.samples).toHaveLength(3)
  })

  it('of series over the quota are counted, and the rest is recorded', () => {
    test.store.most = 1
    test.take(frames([1, 0, load(1)], [2, 0, load(2, 'two')], [3, 1, load(3)], [4, 1, load(4, 'two')]))
    test.handle({ kind: 'commit' })
    expect(test.store.samples).toHaveLength(2)
    expect(test.counts()).toMatchObject({ samples: 2, refused: 2 })
    test.store.most = 2
    test.nowMs += 61_000
    test.take(frames([5, 2, load(5, 'two')]))
    test.handle({ kind: 'commit' })
    expect(test.store.samples).toHaveLength(3)
  })

  it('whose bytes say that they are something else are not taken for it', () => {
    // The text ends as the record of a number does.
    const trick = new XdrWriter().string('value').uint32(BasicType.DOUBLE).double(7).copy()
    test.take(frames([1, 0, load(1)]))
    test.take(frames([2, 1, labelled({ type: BasicType.STRING, value: trick }, { name: 'test.load', host: 'h' })]))
    test.handle({ kind: 'commit' })
    expect(test.store.samples).toHaveLength(1)
  })
})

describe('bindings', () => {
  it('of a name without labels have those of their arguments and their sensor', () => {
    test.begin()
    const args = [{ name: 'mount', type: BasicType.STRING, value: '/' }] as const
    test.bind({ name: 'host.fs.free', args, carriesLabels: false, tenant: SERVER, own: [['host.', [['host', 'n1']]]] })
    test.take(frames([1, 0, double(3)]))
    test.handle({ kind: 'commit' })
    expect(test.store.samples).toEqual([`: host_fs_free{host=n1,mount=/} 3 ${NOW}`])
    expect(test.stored()).toEqual([1])
  })

  it('that are not known are results or answers, and no samples', () => {
    test.begin()
    test.take(frames([1, 0, double(3), 77]))
    test.handle({ kind: 'commit' })
    expect(test.store.samples).toEqual([])
    expect(test.stored()).toEqual([1])
  })
})

describe('a full disk', () => {
  it('keeps the channel from being committed, and ends when there is room', () => {
    test.begin()
    test.bind({})
    test.store.isFull = true
    test.take(frames([1, 0, load(1)]))
    test.handle({ kind: 'tick' })
    test.handle({ kind: 'tick' })
    expect(test.stored()).toEqual([])
    const states = () => test.posted.filter(({ kind }) => kind === 'state')
    expect(states()).toEqual([{ kind: 'state', problem: 'the disk is full' }])
    test.store.isFull = false
    test.handle({ kind: 'tick' })
    expect(test.stored()).toEqual([1])
    expect(test.store.samples).toHaveLength(1)
    expect(states().at(-1)).toEqual({ kind: 'state', problem: '' })
  })

  it('has what makes room done', () => {
    test.store.isFull = true
    test.store.slices = 1
    test.handle({ kind: 'tick' })
    expect(test.store.slices).toBe(0)
  })

  it('for work in the background is said once, and the work is tried again later', () => {
    test.store.isFullForWork = true
    const states = () => test.posted.flatMap((one) => (one.kind === 'state' ? [one.problem] : []))
    for (let second = 0; second < 5; second++) test.handle({ kind: 'tick' })
    expect(states()).toEqual(['', 'the disk is full for a file'])
    test.store.isFullForWork = false
    test.store.slices = 2
    test.handle({ kind: 'tick' })
    expect(test.store.slices).toBe(2)
    test.nowMs += 30_000
    test.handle({ kind: 'tick' })
    expect(test.store.slices).toBe(1)
    expect(states()).toHaveLength(2)
    test.laters.shift()?.()
    test.handle({ kind: 'tick' })
    expect(states().at(-1)).toBe('')
  })

  it('and something that cannot be read for work in the background are alike', () => {
    test.store.unreadable = new HistoryReadError('the disk could not read it')
    test.handle({ kind: 'tick' })
    expect(test.posted.at(-1)).toEqual({ kind: 'state', problem: 'the disk could not read it' })
  })

  it('and a program that holds a lock are alike', () => {
    test.begin()
    test.bind({})
    test.store.isLocked = true
    test.take(frames([1, 0, load(1)]))
    test.handle({ kind: 'tick' })
    expect(test.posted.at(-1)).toEqual({ kind: 'state', problem: 'another program holds a lock' })
    test.store.isLocked = false
    test.handle({ kind: 'tick' })
    expect(test.stored()).toEqual([1])
  })
})

describe('commits', () => {
  it('come before a second is over when a quarter of the window is there', () => {
    test.begin({ window: 8 })
    test.bind({})
    test.take(frames([1, 0, load(1)]))
    expect(test.store.commits).toBe(0)
    test.take(frames([2, 0, load(1)]))
    expect(test.store.commits).toBe(1)
    expect(test.stored()).toEqual([2])
  })

  it('of many new series take several calls, between which values are taken, and are reported after the last', () => {
    test.begin()
    test.bind({})
    test.store.calls = 2
    test.take(frames([1, 0, load(1)]))
    test.handle({ kind: 'commit' })
    test.handle({ kind: 'commit' })
    expect([test.store.commits, test.stored(), test.laters.length]).toEqual([2, [], 1])
    test.take(frames([2, 0, load(2)]))
    test.laters.shift()?.()
    expect([test.store.commits, test.stored(), test.laters.length]).toEqual([3, [2], 0])
    expect(test.store.samples).toHaveLength(2)
  })

  it('have work in the background follow, in slices between which values are taken', () => {
    test.store.slices = 3
    test.handle({ kind: 'tick' })
    test.handle({ kind: 'tick' })
    expect(test.store.slices).toBe(2)
    expect(test.laters).toHaveLength(1)
    test.laters.shift()?.()
    test.laters.shift()?.()
    expect(test.store.slices).toBe(0)
    expect(test.laters).toHaveLength(0)
  })
})
