import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { Consumer, Field, Handler } from '../../client/browser.ts'
import { BasicType, ConnectionError } from '../../client/browser.ts'
import { Sample } from '../../client/values.ts'
import { SeriesWatch } from '../../console/series-watch.ts'
import { CurrentTime } from '../../server/kernel/metrics/current.ts'

const SECOND = 1_000_000
const START = 1_700_000_000
const clock = { nowMs: (START + 100) * 1_000 }

interface Recent {
  readonly [label: string]: string | readonly number[]
}

/** A consumer whose server says what a test has it say. */
class FakeConsumer {
  recent: readonly Recent[] = []
  /** The answer to a QUERY of the metric itself. */
  last: readonly Pick<Sample, 'value' | 'time'>[] = []
  readonly asked: string[] = []
  capabilities = { producer: { id: '01', name: 'main' }, below: [{ id: '02', name: 'rack1' }] }
  refusal: Error | undefined
  follows = 0
  stops = 0
  #handler: Handler = () => {}
  readonly #listeners = new Map<string, Set<(event: unknown) => void>>()

  on(event: string, listener: (event: never) => void): () => void {
    const listeners = this.#listeners.get(event) ?? new Set()
    this.#listeners.set(event, listeners.add(listener as (event: unknown) => void))
    return () => listeners.delete(listener as (event: unknown) => void)
  }

  query(metric: string): Promise<{ plain: readonly Recent[]; elements: readonly Pick<Sample, 'value' | 'time'>[] }> {
    this.asked.push(metric)
    return Promise.resolve({ plain: this.recent, elements: this.last })
  }

  follow(_metric: string, _args: unknown, handler: Handler) {
    this.follows++
    if (this.refusal !== undefined) return Promise.reject(this.refusal)
    this.#handler = handler
    const followed = { id: 7, stop: () => Promise.resolve(this.stops++) }
    return new Promise((resolve) => setImmediate(resolve, followed))
  }

  emit(event: string, detail: unknown = {}): void {
    for (const listener of this.#listeners.get(event) ?? []) listener(detail)
  }

  /** A value at so many seconds after the start, with labels. */
  value(second: number, value: unknown, labels: Readonly<Record<string, string>> = {}): void {
    const type = typeof value === 'string' ? BasicType.STRING : value === null ? BasicType.VOID : BasicType.DOUBLE
    const measured = { type, value } as Field
    const texts = Object.entries(labels).map(([name, text]) => ({ name, type: BasicType.STRING, value: text }))
    const whole =
      texts.length === 0 ? measured : { type: BasicType.REC, value: [...texts, { ...measured, name: 'value' }] }
    this.#handler(
      new Sample('m', { metric: 7, transaction: 0, time: (START + second) * SECOND, value: whole } as never),
    )
  }
}

function recentOf(
  seconds: readonly number[],
  values: readonly number[],
  labels: Readonly<Record<string, string>> = {},
): Recent {
  return { name: 'm', ...labels, times: seconds.map((second) => (START + second) * SECOND), values }
}

describe('SeriesWatch', () => {
  const frames: ((nowMs: number) => void)[] = []
  let nowMs = 0
  /** Frames are a second apart. */
  const frame = (): void => {
    nowMs += 1_000
    for (const draw of frames.splice(0)) draw(nowMs)
  }
  const settled = () => new Promise<void>((resolve) => setImmediate(resolve))
  let consumer: FakeConsumer

  beforeEach(() => {
    frames.length = 0
    vi.stubGlobal('requestAnimationFrame', (draw: (nowMs: number) => void) => frames.push(draw))
    consumer = new FakeConsumer()
  })
  afterEach(() => {
    for (const watch of watches.splice(0)) watch.end()
    vi.unstubAllGlobals()
  })

  const watches: SeriesWatch[] = []
  const newWatch = (args: Readonly<Record<string, string>> = {}, time = clock, metric = 'm'): SeriesWatch => {
    const watch = new SeriesWatch(consumer as unknown as Consumer, metric, args, 3_600_000, time)
    watches.push(watch)
    return watch
  }
  const watchOf = async (...differences: Parameters<typeof newWatch>): Promise<SeriesWatch> => {
    const watch = newWatch(...differences)
    await watch.begin()
    return watch
  }
  const seriesOf = (watch: SeriesWatch, label = '') => {
    frame()
    const series = watch.state.value.series.find(({ labels }) => Object.values(labels).join(' ') === label)
    if (series === undefined) throw new Error(`there is no series ${label}`)
    const { samples } = series
    const shown = Array.from({ length: samples.length }, (_, index) => [
      Math.round(samples.timeAt(index) - START),
      samples.valueAt(index),
    ])
    return { ...series, shown }
  }

  it.each([
    ['main', 1],
    ['rack1', 0],
    ['*', 0],
  ])('begins with %s: what the server has kept is that of itself alone', async (producer, count) => {
    consumer.recent = [recentOf([1, 2], [10, 20])]
    const watch = await watchOf({ producer })
    expect(watch.state.value).toMatchObject({ isLoaded: true, problem: '' })
    expect(watch.state.value.series).toHaveLength(count)
  })

  describe('if nothing was kept', () => {
    const number = (value: number) => ({ name: 'value', type: BasicType.DOUBLE, value })
    const of = (host: string, second: number, value: number) => {
      const text = { name: 'host', type: BasicType.STRING, value: host }
      const time = { name: 'time', type: BasicType.UINT64, value: BigInt((START + second) * SECOND) }
      const fields = [text, time, number(value)]
      return { time: (START + second) * SECOND, value: { type: BasicType.REC, value: fields } } as unknown as Sample
    }
    beforeEach(() => {
      consumer.last = [of('web1', 40, 4), of('web2', 50, 5)]
    })

    it('begins with the last value, and goes on with what comes', async () => {
      const watch = await watchOf()
      consumer.value(60, 6, { host: 'web1' })
      expect(seriesOf(watch, 'web1').shown).toEqual([
        [40, 4],
        [60, 6],
      ])
      expect(seriesOf(watch, 'web2').shown).toEqual([[50, 5]])
    })

    it('shows what is measured on request once, although it is measured twice', async () => {
      const watch = await watchOf()
      consumer.value(40.01, 4, { host: 'web1' })
      consumer.value(41.01, 7, { host: 'web1' })
      expect(seriesOf(watch, 'web1').samples.length).toBe(2)
      expect(seriesOf(watch, 'web1').samples.timeAt(0)).toBeCloseTo(START + 40.01)
    })

    it('shows the last text, but no record, list or VOID', async () => {
      const lastOf = (value: unknown) => [{ time: START * SECOND, value }] as typeof consumer.last
      consumer.last = lastOf({ type: BasicType.STRING, value: 'Linux' })
      const watch = await watchOf({ host: 'web1' })
      frame()
      expect(watch.state.value.lines).toMatchObject([{ text: 'Linux' }])
      for (const value of [
        { type: BasicType.VOID, value: null },
        { type: BasicType.REC, value: [number(1)] },
        { type: BasicType.ARRAY, value: { element: BasicType.DOUBLE, items: [] } },
      ]) {
        consumer.last = lastOf(value)
        const other = await watchOf({ host: 'web2' })
        frame()
        expect(other.state.value).toMatchObject({ series: [], lines: [], problem: '' })
      }
    })
  })

  it('asks for no last value if some were kept', async () => {
    consumer.recent = [recentOf([1, 2], [10, 20])]
    await watchOf()
    expect(consumer.asked).toEqual(['producer.recent'])
  })

  it('goes on with what comes after what was kept, each value once', async () => {
    consumer.recent = [recentOf([1, 2], [10, 20], { host: 'web1' })]
    const watch = await watchOf()
    consumer.value(2, 20, { host: 'web1' })
    consumer.value(3, 30, { host: 'web1' })
    expect(seriesOf(watch, 'web1').shown).toEqual([
      [1, 10],
      [2, 20],
      [3, 30],
    ])
    expect(seriesOf(watch, 'web1').labels).toEqual({ host: 'web1' })
  })

  it('goes on with the machine of the server, whose values have no label that nothing asks for', async () => {
    consumer.recent = [
      recentOf([1, 2], [10, 20], { host: 'main', cpu: '0' }),
      recentOf([1, 2], [30, 40], { host: 'main' }),
    ]
    const watch = await watchOf({}, clock, 'host.cpu.user')
    consumer.value(3, 50)
    frame()
    expect(watch.state.value.series.map(({ labels }) => labels)).toEqual([{}])
    expect(seriesOf(watch).shown).toEqual([
      [1, 30],
      [2, 40],
      [3, 50],
    ])
    const parts = await watchOf({ host: 'main', cpu: '*' }, clock, 'host.cpu.user')
    consumer.value(3, 60, { cpu: '0' })
    frame()
    expect(parts.state.value.series.map(({ labels }) => labels)).toEqual([{ cpu: '0' }])
    expect(seriesOf(parts, '0').shown.at(-1)).toEqual([3, 60])
  })

  it('goes on after a value of the future, also if it was kept', async () => {
    consumer.recent = [recentOf([1, 3_600, 2], [10, 70, 20])]
    const watch = await watchOf()
    expect(seriesOf(watch).shown).toEqual([
      [1, 10],
      [2, 20],
    ])
    consumer.value(3_600, 71)
    consumer.value(3, 30)
    expect(seriesOf(watch).shown).toEqual([
      [1, 10],
      [2, 20],
      [3, 30],
    ])
  })

  it('goes on after the clock of a source was set back, once its last value is a minute old', async () => {
    const time = { nowMs: clock.nowMs }
    const watch = await watchOf({}, time)
    consumer.value(90, 1)
    consumer.value(100, 2)
    consumer.value(92, 3)
    expect(seriesOf(watch).samples.lastValue).toBe(2)
    time.nowMs += 60_000
    consumer.value(95, 4)
    expect(seriesOf(watch).shown).toEqual([
      [90, 1],
      [95, 4],
    ])
  })

  it('shows the value that is current at the server, whatever the clock of a source does', async () => {
    const steps = fc.array(
      fc.record({
        passedMs: fc.constantFrom(0, 1_000, 59_999, 60_000),
        ahead: fc.constantFrom(-3_600, -60, -1, 0, 1, 60, 61, 3_600),
      }),
      { minLength: 1, maxLength: 20 },
    )
    await fc.assert(
      fc.asyncProperty(steps, async (all) => {
        const time = { nowMs: clock.nowMs }
        const server = { monotonicMs: () => time.nowMs, microseconds: () => time.nowMs * 1_000 }
        const watch = await watchOf({}, time)
        const current = new CurrentTime()
        let value = Number.NaN
        for (const [index, { passedMs, ahead }] of all.entries()) {
          time.nowMs += passedMs
          const second = time.nowMs / 1_000 + ahead - START
          consumer.value(second, index)
          if (current.isTaken((START + second) * SECOND, server)) value = index
          expect(seriesOf(watch).samples.lastValue).toBe(value)
        }
      }),
    )
  })

  it('takes a label that an argument fixes for no label, in values as in what was kept', async () => {
    consumer.recent = [recentOf([1], [10], { host: 'web1' })]
    const watch = await watchOf({ host: 'web1' })
    consumer.value(2, 20)
    expect(watch.state.value.series.map(({ labels }) => labels)).toEqual([{}])
    expect(seriesOf(watch).shown).toHaveLength(2)
  })

  it('asks for a frame once, however many values come', async () => {
    const watch = await watchOf()
    let calls = 0
    watch.onValues(() => calls++)
    consumer.value(0, 0)
    frame()
    calls = 0
    for (let second = 1; second < 100; second++) consumer.value(second, second)
    expect(frames).toHaveLength(1)
    frame()
    expect(calls).toBe(1)
  })

  it('fills the hole of a lost connection from what the server has kept', async () => {
    const watch = await watchOf()
    consumer.value(1, 1)
    consumer.emit('disconnected')
    expect(seriesOf(watch).shown).toEqual([
      [1, 1],
      [1, Number.NaN],
    ])
    consumer.recent = [recentOf([1, 2, 3], [1, 2, 3])]
    consumer.emit('connected')
    consumer.value(4, 4)
    await settled()
    expect(seriesOf(watch).shown.map(([, value]) => value)).toEqual([1, 2, 3, 4])
    expect(seriesOf(watch).holes).toEqual([])
  })

  it('shows the hole where that does not reach', async () => {
    const watch = await watchOf()
    consumer.value(1, 1)
    consumer.emit('disconnected')
    consumer.recent = [recentOf([5, 6], [5, 6])]
    consumer.emit('connected')
    await settled()
    expect(seriesOf(watch).shown.map(([, value]) => value)).toEqual([1, Number.NaN, 5, 6])
    expect(seriesOf(watch).holes).toEqual([{ from: START + 1, to: START + 5, count: 0 }])
  })

  it('ends the hole of what is measured on request with its next value', async () => {
    const watch = await watchOf()
    consumer.value(1, 1)
    consumer.emit('disconnected')
    consumer.emit('connected')
    await settled()
    expect(seriesOf(watch).cutAt).toBe(START + 1)
    consumer.value(9, 9)
    expect(seriesOf(watch).holes).toEqual([{ from: START + 1, to: START + 9, count: 0 }])
  })

  it('shows a GAP with its count, and no line over it', async () => {
    const watch = await watchOf()
    consumer.value(1, 1)
    consumer.emit('gap', { id: 8, count: 5, from: 0, to: 0 })
    consumer.emit('gap', { id: 7, count: 214, from: (START + 1) * SECOND, to: (START + 3) * SECOND })
    consumer.value(3, 3)
    expect(watch.gaps).toEqual([{ from: START + 1, to: START + 3, count: 214 }])
    expect(seriesOf(watch).shown.map(([, value]) => value)).toEqual([1, Number.NaN, 3])
  })

  it('has an open GAP end by the clock of the server', async () => {
    const watch = await watchOf()
    consumer.value(1, 1)
    consumer.emit('gap', { id: 7, count: 1, from: 0, to: 0 })
    expect(watch.gaps).toEqual([{ from: START + 1, to: START + 100, count: 1 }])
  })

  it('has a hole where a value is not finite, in what comes and in what was kept', async () => {
    consumer.recent = [recentOf([1, 2], [1, Number.POSITIVE_INFINITY])]
    const watch = await watchOf()
    consumer.value(3, Number.NEGATIVE_INFINITY)
    consumer.value(4, 4)
    expect(seriesOf(watch).shown.map(([, value]) => value)).toEqual([1, Number.NaN, Number.NaN, 4])
  })

  it('asks again after a lost connection, and says nothing of it', async () => {
    const watch = newWatch()
    consumer.refusal = new ConnectionError('CLOSED', 'the connection is lost')
    void watch.begin()
    await settled()
    await settled()
    expect(watch.state.value.problem).toBe('')
    consumer.refusal = undefined
    consumer.emit('connected')
    await settled()
    await settled()
    consumer.value(1, 1)
    expect(seriesOf(watch).shown).toEqual([[1, 1]])
  })

  it('shows that a value is missing as a hole', async () => {
    const watch = await watchOf()
    consumer.value(1, 1)
    consumer.value(2, null)
    expect(seriesOf(watch).shown).toEqual([
      [1, 1],
      [2, Number.NaN],
    ])
  })

  it('has a line for each text that differs from the one before, the newest first, and a bound', async () => {
    const watch = await watchOf()
    for (const text of ['a', 'a', 'b', 'a']) consumer.value(1, text)
    frame()
    expect(watch.state.value.lines.map(({ text }) => text)).toEqual(['a', 'b', 'a'])
    for (let count = 0; count < 1_000; count++) consumer.value(2, `${count}`)
    watch.end()
    const other = await watchOf()
    for (let count = 0; count < 1_000; count++) consumer.value(2, `${count}`)
    frame()
    expect(other.state.value.lines).toHaveLength(200)
    expect(other.state.value.lines[0]?.text).toBe('999')
  })

  it('keeps 512 series, and counts the others', async () => {
    const watch = await watchOf()
    for (let host = 0; host < 600; host++) consumer.value(1, 1, { host: `web${host}` })
    frame()
    expect(watch.state.value.series).toHaveLength(512)
    expect(watch.state.value.more).toBe(88)
  })

  it('stops to read when nobody looks any more', async () => {
    const watch = await watchOf()
    watch.end()
    await settled()
    expect(consumer.stops).toBe(1)
  })

  it('has one subscription if the connection comes back while it begins, and ends that', async () => {
    const watch = newWatch()
    const begun = watch.begin()
    consumer.emit('connected')
    await begun
    await settled()
    expect(consumer.follows).toBe(1)
    watch.end()
    await settled()
    expect(consumer.stops).toBe(1)
  })
})
