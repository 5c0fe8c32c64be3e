/** What a scrape costs is done in steps: the event loop is free after each new series, which rules may make dear. */
import { expect, it } from 'vitest'
import { LabelledFamily } from '../../../../../server/kit/labelled-sensor.ts'
import { Scrape, ScrapedSeries } from '../../../../../server/wings/prometheus/scrape/scraped-series.ts'
import { Readers } from '../../../../support/readers.ts'
import { targetOf } from './scripted-target.ts'

it('a new series is a step, one that is known a part of one', () => {
  const { hub, quotas, clock } = new Readers()
  const family = new LabelledFamily({
    family: 'prometheus.',
    kind: 'prometheus',
    from: 'a test',
    hub,
    quotas,
    clock,
    keptMs: () => 60_000,
  })
  const rule = { source_labels: ['__name__'], regex: 'a1', action: 'drop' }
  const spec = targetOf({ name: 'node', url: 'http://127.0.0.1:1/metrics', metric_relabel: [rule] })
  const series = new ScrapedSeries({ ...spec, sensor: family.of('default'), clock })
  const scrape = new Scrape(series, spec)
  const steps = (count: number): number => {
    scrape.clear()
    for (let at = 0; at < count; at++) scrape.take(scrape.series(`a${at}`), at, undefined)
    return [...series.take(scrape, new Map(), clock.microseconds())].length
  }
  expect(steps(20)).toBe(20)
  expect(steps(20)).toBe(0)
  expect(steps(22)).toBe(2)
})
