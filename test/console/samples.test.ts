import { describe, expect, it } from 'vitest'
import { type Cell, cellTimes, decimate, rateAt, Samples } from '../../console/samples.ts'

const ROOM = 1024

function samplesOf(values: readonly number[], { first = 0, step = 1, room = ROOM } = {}): Samples {
  const samples = new Samples()
  for (const [index, value] of values.entries()) samples.push(first + 1 + index * step, value, room, 0)
  return samples
}

function valuesOf(samples: Samples): number[] {
  return Array.from({ length: samples.length }, (_, index) => samples.valueAt(index))
}

function timesOf(samples: Samples): number[] {
  return Array.from({ length: samples.length }, (_, index) => samples.timeAt(index))
}

describe('Samples', () => {
  it('keeps values in the order of their times, and leaves out what is not newer', () => {
    const samples = samplesOf([1, 2, 3])
    expect(samples.push(3, 9, ROOM, 0)).toBe(false)
    expect(valuesOf(samples)).toEqual([1, 2, 3])
    expect(samples.lastTime).toBe(3)
    expect(samples.lastValue).toBe(3)
  })

  it('grows up to its room', () => {
    const samples = samplesOf(Array.from({ length: 1_000 }, (_, index) => index))
    expect(samples.length).toBe(1_000)
    expect(samples.valueAt(999)).toBe(999)
  })

  it('drops what is older than wanted before anything else', () => {
    const samples = samplesOf(Array.from({ length: ROOM }, (_, index) => index))
    samples.push(2_000, 7, ROOM, 1_000)
    expect(samples.timeAt(0)).toBe(1_000)
    expect(samples.lastValue).toBe(7)
  })

  it('never has more than its room, and keeps peaks when older samples give way', () => {
    const values = Array.from({ length: 20 * ROOM }, (_, index) => (index === 40 ? 1e6 : index % 10))
    const samples = samplesOf(values)
    expect(samples.length).toBeLessThanOrEqual(ROOM)
    const few = samplesOf(values.slice(0, 2 * ROOM))
    expect(Math.max(...valuesOf(few))).toBe(1e6)
    expect(timesOf(few)).toEqual(timesOf(few).toSorted((a, b) => a - b))
    expect(few.lastTime).toBe(2 * ROOM)
  })

  it('stays within its room where all is holes', () => {
    const samples = new Samples()
    for (let time = 1; time < 10 * ROOM; time++) samples.push(time, time % 2 === 0 ? Number.NaN : 1, ROOM, 0)
    expect(samples.length).toBeLessThanOrEqual(ROOM)
  })

  it('begins a hole once', () => {
    const samples = samplesOf([1])
    samples.cut(ROOM)
    samples.cut(ROOM)
    expect(valuesOf(samples)).toEqual([1, Number.NaN])
    expect(samples.lastValue).toBeUndefined()
  })

  it('takes in samples from elsewhere, each time once, and closes a hole that they reach over', () => {
    const samples = samplesOf([1, 2])
    samples.cut(ROOM)
    samples.push(6, 6, ROOM, 0)
    samples.merge([2, 3, 4, 5, 6, 7], [2, 30, 40, 50, 6, 70])
    expect(timesOf(samples)).toEqual([1, 2, 3, 4, 5, 6, 7])
    expect(valuesOf(samples)).toEqual([1, 2, 30, 40, 50, 6, 70])
  })

  it('leaves a hole that they do not reach over', () => {
    const samples = samplesOf([1, 2])
    samples.cut(ROOM)
    samples.merge([9, 10], [90, 100])
    expect(valuesOf(samples)).toEqual([1, 2, Number.NaN, 90, 100])
  })
})

describe('decimate', () => {
  const cellsOf = (samples: Samples, from: number, to: number, columns: number, isRate = false): Cell[] => {
    const cells: Cell[] = []
    decimate(samples, { from, to, columns }, isRate, cells)
    return cells
  }

  it('has a place for each cell', () => {
    const times = cellTimes({ from: 100, to: 104, columns: 2 })
    expect(times).toEqual([100, 100.5, 101.5, 102.5, 103.5, 104])
    expect(cellsOf(samplesOf([1]), 100, 104, 2)).toHaveLength(times.length)
  })

  it('keeps the smallest and the largest value of each column, in their order', () => {
    const samples = samplesOf([5, 9, 1, 5, 1, 5, 9, 5], { first: -1 })
    expect(cellsOf(samples, 0, 8, 2)).toEqual([undefined, 9, 1, 1, 9, undefined])
  })

  it('leaves cells without samples open, so that a line goes on over them', () => {
    const samples = samplesOf([1, 2], { first: 0.5, step: 2 })
    expect(cellsOf(samples, 0, 4, 4)).toEqual([
      undefined,
      undefined,
      undefined,
      1,
      undefined,
      undefined,
      undefined,
      2,
      undefined,
      undefined,
    ])
  })

  it('shows a hole', () => {
    const samples = samplesOf([1])
    samples.cut(ROOM)
    samples.push(3.5, 4, ROOM, 0)
    expect(cellsOf(samples, 0, 4, 2)).toEqual([undefined, 1, null, 4, undefined, undefined])
  })

  it('shows it up to the next value, and where both ends are outside', () => {
    const samples = samplesOf([1])
    samples.cut(ROOM)
    samples.push(7.5, 4, ROOM, 0)
    expect(cellsOf(samples, 0, 8, 4)).toEqual([undefined, 1, null, null, null, null, null, 4, undefined, undefined])
    expect(cellsOf(samples, 2, 6, 2).slice(1)).toEqual([null, null, null, null, undefined])
  })

  it('shows a hole that ends in its column', () => {
    const samples = samplesOf([1, Number.NaN, 3])
    expect(cellsOf(samples, 0, 4, 1)).toEqual([undefined, null, 3, undefined])
  })

  it('goes on beyond both ends as the line does', () => {
    const samples = samplesOf([0, 10, 20], { first: 99, step: 10 })
    expect(cellsOf(samples, 105, 115, 1)).toEqual([5, 10, undefined, 15])
  })

  it('shows growth per second, and a hole where a counter was set back', () => {
    const samples = samplesOf([100, 120, 160, 10, 30], { first: 99, step: 10 })
    expect(rateAt(samples, 0)).toBeNaN()
    expect(cellsOf(samples, 100, 150, 5, true)).toEqual([
      undefined,
      undefined,
      undefined,
      2,
      undefined,
      4,
      undefined,
      null,
      null,
      2,
      undefined,
      undefined,
    ])
  })
})
