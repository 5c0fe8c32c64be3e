/** The catalogue of an open family: texts of its sources are bounded, and names that nobody wants are passed over. */
import { expect, it } from 'vitest'
import { BasicType } from '../../../../protocol/monitor/constants.ts'
import { Catalogue, type CataloguedSeries, NO_METADATA } from '../../../../server/kernel/metrics/catalogue.ts'

function seriesOf(name: string): CataloguedSeries {
  return { name, labels: { name }, subscriptions: [], metadata: NO_METADATA, matches: () => true }
}

it('units and descriptions of any length are cut, and cut again they are the same', () => {
  const catalogue = new Catalogue<CataloguedSeries>('otlp.', [])
  const series = seriesOf('otlp.a')
  catalogue.add(series)
  const metadata = {
    type: BasicType.DOUBLE,
    unit: 'u'.repeat(1 << 20),
    description: `${'d'.repeat(999)}😀${'d'.repeat(9)}`,
  }
  catalogue.update(series, metadata)
  expect(catalogue.metric('otlp.a')).toMatchObject({ unit: 'u'.repeat(64), description: `${'d'.repeat(999)}\ufffd` })
  const { changes } = catalogue
  catalogue.update(series, { ...metadata })
  expect(catalogue.changes).toBe(changes)
  catalogue.update(series, { ...metadata, unit: 's' })
  expect(catalogue.metric('otlp.a')?.unit).toBe('s')
})

it('of names that are not wanted one series each is given at most, however many there are', () => {
  const catalogue = new Catalogue<CataloguedSeries>('otlp.', [])
  for (const name of ['otlp.a', 'otlp.b', 'otlp.c']) for (let n = 0; n < 5; n++) catalogue.add(seriesOf(name))
  const names = Array.from(
    catalogue.series(undefined, '', (name) => name === 'otlp.b'),
    ({ name }) => name,
  )
  expect(names).toEqual(['otlp.a', ...Array.from({ length: 5 }, () => 'otlp.b'), 'otlp.c'])
  expect([...catalogue.series()]).toHaveLength(15)
})
