import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { COLUMNS, type ColumnCells, Columns, columnTimes, MARGIN, withMargin } from '../../console/columns.ts'
import { type Cell, Samples } from '../../console/samples.ts'

/** A column is ten seconds. */
const RANGE = { from: 1_000, to: 1_000 + 10 * COLUMNS }

function columnsOf(samples: readonly (readonly [time: number, value: number])[], range = RANGE): Columns {
  const columns = new Columns(range)
  for (const [time, value] of samples) columns.add(range.from + time, value)
  return columns
}

interface Drawn {
  readonly column: number
  readonly line: number | null | undefined
  readonly low: number | null | undefined
  readonly high: number | null | undefined
}

function cellsOf(columns: Columns): Cell[] {
  const cells: ColumnCells = { line: [], low: [], high: [] }
  columns.draw(cells, false)
  return cells.line
}

/** The columns with something in them; a hole has -1 and is between two. */
function drawn(columns: Columns, isRate = false): Drawn[] {
  const cells: ColumnCells = { line: [], low: [], high: [] }
  columns.draw(cells, isRate)
  return cells.line.flatMap((line, index) =>
    line === undefined
      ? []
      : [{ column: index % 2 === 0 ? -1 : (index - 1) / 2, line, low: cells.low[index], high: cells.high[index] }],
  )
}

const at = (column: number, line: number | null, low = line, high = line): Drawn => ({ column, line, low, high })
const HOLE = at(-1, null)

describe('Columns', () => {
  it('have the mean of their samples in a band from the smallest to the largest', () => {
    const columns = columnsOf([
      [0, 1],
      [3, 9],
      [6, 2],
      [12, 5],
    ])
    expect(drawn(columns)).toEqual([at(0, 4, 1, 9), at(1, 5)])
  })

  it('leave out what is not in their range, and what is no later than what is there', () => {
    const columns = columnsOf([
      [-1, 7],
      [5, 1],
      [5, 2],
      [4, 3],
      [10 * COLUMNS, 7],
    ])
    expect(drawn(columns)).toEqual([at(0, 1)])
  })

  it('have the growth per second of counters, over their borders too', () => {
    const columns = columnsOf([
      [0, 0],
      [5, 10],
      [10, 60],
      [15, 60],
    ])
    expect(drawn(columns, true)).toEqual([at(0, 2), at(1, 5, 0, 10)])
    expect(columns.last(true)).toBe(0)
    expect(columns.last(false)).toBe(60)
  })

  it('have no growth where a counter was set back', () => {
    const columns = columnsOf([
      [0, 100],
      [10, 110],
      [20, 5],
      [30, 15],
    ])
    expect(drawn(columns, true)).toEqual([at(1, 1), at(2, null), at(3, 1)])
  })

  it('are apart where the series has ended between them, and not where it goes on in the same one', () => {
    const columns = columnsOf([
      [0, 1],
      [11, 2],
    ])
    columns.end(RANGE.from + 5)
    expect(drawn(columns)).toEqual([at(0, 1), HOLE, at(1, 2)])
    const same = new Columns(RANGE)
    same.add(RANGE.from, 1)
    same.end(RANGE.from + 2)
    same.add(RANGE.from + 4, 3)
    same.add(RANGE.from + 12, 3)
    expect(drawn(same)).toEqual([at(0, 2, 1, 3), at(1, 3)])
    expect(drawn(same, true)).toEqual([at(1, 0)])
  })

  it('are apart where nothing came for far longer than is usual', () => {
    const every = (first: number, count: number, step: number) =>
      Array.from({ length: count }, (_, index) => [first + index * step, 1] as const)
    const withHole = columnsOf([...every(0, 20, 10), ...every(1_000, 20, 10)])
    // Nothing is drawn from the last value on.
    const holes = cellsOf(withHole).flatMap((cell, index) => (cell === null ? [index] : []))
    expect(holes).toEqual(Array.from({ length: 161 }, (_, index) => 40 + index))
    // What comes every twenty minutes is no hole.
    const slow = columnsOf(every(0, 4, 1_200))
    expect(drawn(slow).map(({ line }) => line)).toEqual([1, 1, 1, 1])
  })

  it('take in what coarser or finer ones have, with the same sums', () => {
    const samples = Array.from({ length: 400 }, (_, index) => [index * 3, index] as const)
    const fine = columnsOf(samples)
    const whole = new Columns({ from: RANGE.from, to: RANGE.from + 10 * (RANGE.to - RANGE.from) })
    whole.take(fine)
    const first = drawn(whole)[0]
    // Its column is 100 s: 34 samples.
    expect(first).toEqual(at(0, 16.5, 0, 33))
    expect(drawn(whole, true)[1]?.line).toBeCloseTo(1 / 3)
    const part = new Columns({ from: RANGE.from, to: RANGE.from + (RANGE.to - RANGE.from) / 10 })
    part.take(fine)
    expect(drawn(part).length).toBe(COLUMNS / 10)
  })

  it('show of each column the side that has more samples', () => {
    const columns = columnsOf([
      [0, 1],
      [10, 1],
      [11, 1],
    ])
    const samples = new Samples()
    for (const [time, value] of [
      [8, 5],
      [9, 7],
      [12, 9],
      [20, 4],
    ] as const) {
      samples.push(RANGE.from + time, value, 64, 0)
    }
    columns.overlay(samples, new Columns(RANGE))
    expect(drawn(columns)).toEqual([at(0, 6, 5, 7), at(1, 1), at(2, 4)])
  })

  it('have of windows what they have of the samples of these', () => {
    const samples: readonly (readonly [number, number])[] = [
      [1, 4],
      [3, 9],
      [6, 2],
      [12, 5],
      [14, 7],
      [31, 8],
    ]
    const window = (rows: readonly (readonly [number, number])[]) => {
      const values = rows.map(([, value]) => value)
      const [first, last] = [rows[0], rows.at(-1)] as [readonly [number, number], readonly [number, number]]
      return {
        min: Math.min(...values),
        max: Math.max(...values),
        sum: values.reduce((sum, value) => sum + value, 0),
        count: values.length,
        first: first[1],
        firstTime: RANGE.from + first[0],
        last: last[1],
        lastTime: RANGE.from + last[0],
        resets: values.reduce((sum, value, at) => sum + (value < (values[at - 1] ?? 0) ? (values[at - 1] ?? 0) : 0), 0),
      }
    }
    const columns = new Columns(RANGE)
    for (const rows of [samples.slice(0, 2), samples.slice(2, 3), samples.slice(3, 5), samples.slice(5)]) {
      columns.addWindow(window(rows))
    }
    expect(drawn(columns)).toEqual(drawn(columnsOf(samples)))
    // What a counter grows by goes on over its new beginnings within a window.
    const rates = new Columns(RANGE)
    rates.addWindow(
      window([
        [0, 10],
        [2, 20],
        [4, 6],
      ]),
    )
    rates.addWindow(window([[14, 26]]))
    expect(drawn(rates, true)).toEqual([at(0, 4), at(1, 2)])
    const before = drawn(columns)
    columns.addWindow({ ...window([[35, 1]]), sum: Number.NaN, min: Number.NaN, max: Number.NaN })
    columns.addWindow(window([[2, 1]]))
    expect(drawn(columns)).toEqual(before)
  })

  it('forget what is cleared', () => {
    const columns = columnsOf([
      [0, 1],
      [10, 2],
      [20, 3],
    ])
    columns.clear(1, 2)
    expect(drawn(columns).map(({ column }) => column)).toEqual([0, 2])
    columns.clear(0, COLUMNS)
    expect(columns.isEmpty).toBe(true)
    expect(columns.last(false)).toBeUndefined()
  })

  it('never draw outside of what came', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.nat(10 * COLUMNS - 1), fc.integer({ min: -50, max: 50 })), { maxLength: 200 }),
        (given) => {
          const samples = given.toSorted(([a], [b]) => a - b)
          const columns = columnsOf(samples)
          const values = samples.map(([, value]) => value)
          for (const { line, low, high } of drawn(columns)) {
            if (line === null) continue
            expect(low).toBeLessThanOrEqual(line as number)
            expect(high).toBeGreaterThanOrEqual(line as number)
            expect(Math.min(...values)).toBeLessThanOrEqual(low as number)
            expect(Math.max(...values)).toBeGreaterThanOrEqual(high as number)
          }
        },
      ),
    )
  })

  it('begin before what is shown, which moves on by whole ones', () => {
    const shown = { from: 10_000, to: 14_800 }
    expect(withMargin(shown)).toEqual({ from: 9_600, to: 14_800 })
    const columns = new Columns(withMargin(shown))
    expect([columns.indexOf(shown.from), columns.indexOf(shown.from + 480)]).toEqual([MARGIN, MARGIN + 48])
  })

  it('have their cells at these times', () => {
    const times = columnTimes(RANGE)
    expect(times.length).toBe(2 * COLUMNS)
    expect(times.slice(0, 4)).toEqual([1_000, 1_005, 1_010, 1_015])
  })
})
