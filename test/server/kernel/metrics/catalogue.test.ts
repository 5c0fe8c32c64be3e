/** The texts that sources say of their metrics are bounded in the catalogue, for every source. */
import { expect, it } from 'vitest'
import { BasicType } from '../../../../protocol/monitor/constants.ts'
import { Catalogue, type CataloguedSeries, NO_METADATA } from '../../../../server/kernel/metrics/catalogue.ts'

it('units and descriptions of any length are cut, and cut again they are the same', () => {
  const catalogue = new Catalogue<CataloguedSeries>('otlp.', [])
  const series: CataloguedSeries = {
    name: 'otlp.a',
    labels: { name: 'otlp.a' },
    subscriptions: [],
    metadata: NO_METADATA,
    matches: () => true,
  }
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
