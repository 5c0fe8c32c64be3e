import { expect, it } from 'vitest'
import { ROLLUP_COLUMNS } from '../../../storage/history/rollup.ts'
import { newColumns } from '../../../storage/history/run-cursor.ts'
import { ROLLUP_MS } from '../../../storage/history/store.ts'
import { WindowBuilder } from '../../../storage/history/windows.ts'

it.each([ROLLUP_MS, 12 * ROLLUP_MS])('no rollups are no windows of %d ms, whatever part had none', (stepMs) => {
  const builder = new WindowBuilder(stepMs)
  builder.add(newColumns(ROLLUP_COLUMNS, 0))
  expect(builder.finish()).toBeUndefined()
  const one = newColumns(ROLLUP_COLUMNS, 1)
  one.times[0] = ROLLUP_MS
  const other = new WindowBuilder(stepMs)
  other.add(newColumns(ROLLUP_COLUMNS, 0))
  other.add(one)
  expect([...(other.finish()?.ends ?? [])]).toEqual([stepMs])
})
