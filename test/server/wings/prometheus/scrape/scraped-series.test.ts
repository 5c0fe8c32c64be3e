/** What is known of the series of a target from one scrape to the next. */
import { beforeEach, describe, expect, it } from 'vitest'
import { TextMemory, TextParser } from '../../../../../protocol/prometheus/text.ts'
import { finish, type Steps } from '../../../../../server/kernel/core/fair-work.ts'
import { LabelledFamily, type LabelledSensor } from '../../../../../server/kit/labelled-sensor.ts'
import { LabelledSeries } from '../../../../../server/kit/labelled-series.ts'
import {
  type Known,
  Scrape,
  ScrapedSeries,
  type Taken,
} from '../../../../../server/wings/prometheus/scrape/scraped-series.ts'
import { Readers } from '../../../../support/readers.ts'
import { targetOf } from './scripted-target.ts'

const LABELS = [
  ['job', 'node'],
  ['instance', '127.0.0.1:1'],
] as const

let readers: Readers
let sensor: LabelledSensor
let series: ScrapedSeries
let scrape: Scrape
let memory: TextMemory<Known>
const begin = (sampleLimit?: number): void => {
  const { hub, quotas, clock } = readers
  const keptMs = () => 60_000
  const family = new LabelledFamily({
    family: 'prometheus.',
    kind: 'prometheus',
    from: 'a test',
    hub,
    quotas,
    clock,
    keptMs,
  })
  const rule = { source_labels: ['__name__'], regex: 'drop.*', action: 'drop' }
  const target = targetOf({ name: 'node', url: 'http://127.0.0.1:1/metrics', metric_relabel: [rule] })
  sensor = family.of('default')
  series = new ScrapedSeries({ ...target, sampleLimit, sensor, clock })
  scrape = new Scrape(series, { ...target, sampleLimit })
  memory = new TextMemory()
}
beforeEach(() => {
  readers = new Readers()
  begin()
})

/** Reads a text; the steps take it. */
function taking(text: string): Steps<Taken> {
  scrape.clear()
  const parser = new TextParser('prometheus', { lineBytes: 1_000, families: 10 }, scrape, memory)
  for (const _ of parser.push(Buffer.from(text)));
  for (const _ of parser.end());
  return series.take(scrape, parser.families, readers.clock.microseconds())
}
const take = (text: string): Taken => finish(taking(text))

describe('what the server says of the target', () => {
  const own = (): LabelledSeries => {
    const found = sensor.of('prometheus.up', LABELS)
    if (!(found instanceof LabelledSeries)) throw new Error(found.detail)
    return found
  }
  const says = (up: number): void =>
    series.takeOwn({ up, scrape_duration_seconds: 0, scrape_samples_scraped: 0 }, readers.clock.microseconds())

  it('stays its own, also if its series ended while a scrape was taken that has it', () => {
    take('a 1\n')
    says(1)
    const steps = taking('b 1\nup 7\n')
    steps.next()
    // As when all series of its tenant end.
    sensor.end(own())
    finish(steps)
    says(1)
    readers.clock.advance(1_000)
    expect(take('b 1\nup 7\n')).toMatchObject({ duplicates: 1, samples: 1 })
    expect(own().last?.value.value).toBe(1)
  })
})

describe('texts that are gone are forgotten', () => {
  it('though lines are there that the rules drop', () => {
    begin(1_000)
    const dropped = Array.from({ length: 50 }, (_, index) => `drop${index} 1\n`).join('')
    take(`${dropped}a 1\nb 1\n`)
    const gone = series.pend('a')
    take(`${dropped}b 1\n`)
    expect(series.pend('a')).not.toBe(gone)
  })

  it('though a line stands twice', () => {
    take('a 1\nx 1\nx 1\n')
    const gone = series.pend('a')
    take('x 1\nx 1\n')
    expect(series.pend('a')).not.toBe(gone)
  })

  it('with what a long scrape needed', () => {
    take(Array.from({ length: 1_000 }, (_, index) => `a${index} 1\n`).join(''))
    expect([scrape.known.length, scrape.values.length]).toEqual([1_000, 1_024])
    take('a 1\n')
    scrape.trim()
    expect([scrape.known.length, scrape.values.length]).toEqual([1, 64])
    take('a 2\n')
    expect([scrape.size, scrape.values[0]]).toEqual([1, 2])
  })
})
