/** Columns give back what was written into them, series by series, and take no more than they may. */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import { type Value, VOID } from '../../../protocol/monitor/value.ts'
import {
  buffersOf,
  type Columns,
  ColumnWriter,
  metadataFrom,
  NO_SERIES,
  type SaidMetadata,
  split,
  textsIn,
  valueAt,
} from '../../../server/kit/columns.ts'
import { seriesOfKey } from '../../../server/kit/series-key.ts'

const METADATA: readonly (SaidMetadata | undefined)[] = [
  undefined,
  { unit: 's' },
  { description: 'É.', isCounter: true, type: BasicType.DOUBLE },
  { isCounter: false, distribution: 'histogram' },
]

const VALUES: readonly Value[] = [
  { type: BasicType.DOUBLE, value: -0 },
  { type: BasicType.DOUBLE, value: Number.NaN },
  { type: BasicType.INT64, value: -(2n ** 53n) + 1n },
  { type: BasicType.INT64, value: 2n ** 63n - 1n },
  { type: BasicType.STRING, value: 'naïve' },
  { type: BasicType.REC, value: [{ name: 'count', type: BasicType.UINT64, value: 3n }] },
  VOID,
]

interface Written {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly metadata: SaidMetadata | undefined
  readonly values: readonly (readonly [value: Value, time: number])[]
}

/** Few names, labels and texts, so that series come again and differ in one of them alone. */
const written = fc.array(
  fc.record({
    name: fc.constantFrom('a', 'b', 'é'),
    labels: fc.dictionary(fc.constantFrom('x', 'y'), fc.constantFrom('1', '2', '1:x')),
    metadata: fc.constantFrom(...METADATA),
    values: fc.array(fc.tuple(fc.constantFrom(...VALUES), fc.nat())),
  }),
)

function columnsOf(series: readonly Written[]): Columns {
  const columns = new ColumnWriter('t.')
  for (const { name, labels, metadata, values } of series) {
    columns.begin(name, columns.keyOf(name, Object.entries(labels)), metadata)
    for (const [value, time] of values) columns.value(value, time)
  }
  return columns.columns()
}

function read(columns: Columns): unknown[] {
  return Array.from(columns.of, (place, at) => {
    const { name, labels } = seriesOfKey(textsIn(columns.series)(place))
    const about = (columns.described[place] as number) - 1
    const said =
      about < 0 ? undefined : metadataFrom(columns.traits[about] as number, split(textsIn(columns.metadata)(about)))
    return { name, labels: { ...labels }, said, value: valueAt(columns, at), time: columns.times[at] }
  })
}

it('each value has the name, the labels and the metadata of its series', () => {
  fc.assert(
    fc.property(written, (series) => {
      const expected = series.flatMap(({ name, labels, metadata, values }) =>
        values.map(([value, time]) => {
          const said = metadata && { ...metadataFrom(0, []), ...metadata }
          return { name: `t.${name}`, labels: { ...labels }, said, value, time }
        }),
      )
      expect(read(columnsOf(series))).toEqual(expected)
    }),
  )
})

it('a series that may not be taken costs its own values alone', () => {
  const columns = new ColumnWriter('t.')
  columns.begin('a', columns.keyOf('a', [['x', '1']]))
  columns.value(VOID, 1)
  columns.refuse('b', 'no')
  columns.value(VOID, 2)
  columns.begin('a', columns.keyOf('a', [['x', '1']]))
  columns.value(VOID, 3)
  const { of, refusedSeries, problem, series } = columns.columns()
  expect([...of]).toEqual([0, NO_SERIES, 1])
  expect([textsIn(series)(0), refusedSeries, problem]).toEqual([textsIn(series)(1), 1, 't.b: no'])
})

it('what is said and not kept is counted, with the first metric that it was said of', () => {
  const columns = new ColumnWriter('t.')
  columns.leave('none', 0)
  columns.leave('a', 2)
  columns.leave('b', 1)
  expect(columns.columns()).toMatchObject({ left: 3, leftOf: 't.a' })
})

it('what columns may have together is bounded', () => {
  const columns = new ColumnWriter('t.')
  const text = 'x'.repeat(1_000)
  const fill = (): void => {
    for (let index = 0; index < 40_000; index++) columns.begin('a', columns.keyOf('a', [['x', text + index]]))
  }
  expect(fill).toThrow(expect.objectContaining({ code: 'TOO_LONG' }))
})

it('all of their memory can be given away', () => {
  const columns = columnsOf([{ name: 'a', labels: { x: '1' }, metadata: { unit: 's' }, values: [[VOID, 1]] }])
  const before = read(columns)
  const buffers = buffersOf(columns)
  expect(new Set(buffers).size).toBe(buffers.length)
  const given = structuredClone(columns, { transfer: buffers })
  expect(read(given)).toEqual(before)
  // What was given away is empty here, and nothing of it was copied.
  const { series, described, metadata, traits, families, of, times, kinds, numbers, encoded } = columns
  const texts = [series, metadata, families].flatMap(({ bytes, ends }) => [bytes, ends])
  for (const { buffer } of [...texts, described, traits, of, times, kinds, numbers, encoded]) {
    expect(buffer.byteLength).toBe(0)
  }
})
