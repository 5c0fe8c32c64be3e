/** Numbers and timestamps of any kind in what a target exposes: each sample is taken or refused, and whoever reads can write it. */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { LabelledFamily } from '../../../../../server/kit/labelled-sensor.ts'
import { ScrapeTarget } from '../../../../../server/wings/prometheus/scrape/target.ts'
import { handKit } from '../../../../support/hand-kit.ts'
import { times } from '../../../../support/long.ts'
import { doubles, int64s, numberTexts } from '../../../../support/odd-numbers.ts'
import { lastOf, Readers } from '../../../../support/readers.ts'
import { targetOf } from './scripted-target.ts'

/** As Go writes numbers, and as it does not. */
const written = fc.oneof(
  doubles.map((one) => String(one).replace(/^(-?)Infinity$/, (_, sign) => `${sign || '+'}Inf`)),
  numberTexts.filter((text) => !/[\s]|^$/.test(text)),
)
const stamps = fc.oneof(
  fc.constantFrom('', ' 1700000000000', ' 0', ' -1'),
  int64s.map((time) => ` ${time}`),
)
const lines = fc
  .tuple(
    fc.constantFrom('a', 'b_bucket{le="0.5"}', 'b_bucket{le="+Inf"}', 'up', 'scrape_samples_scraped'),
    written,
    stamps,
  )
  .map((parts) => parts.slice(0, 2).join(' ') + parts[2])
const page = fc.array(lines, { maxLength: 8 }).map((all) => `# TYPE a counter\n# TYPE b histogram\n${all.join('\n')}\n`)

function scraped(readers: Readers, text: () => string): ScrapeTarget {
  const { hub, quotas, clock } = readers
  const family = new LabelledFamily({
    family: 'prometheus.',
    kind: 'prometheus',
    from: 'a test',
    hub,
    quotas,
    clock,
    keptMs: () => 60_000,
    requests: () => ({ expected: () => [target.placeholder], refresh: () => target.refresh() }),
  })
  const body = async function* () {
    yield Buffer.from(text())
  }
  const target: ScrapeTarget = new ScrapeTarget({
    ...handKit(hub, clock).kit,
    spec: targetOf({ name: 'node', url: 'http://127.0.0.1:1/metrics' }),
    name: 'node',
    sensor: family.of('default'),
    fetcher: { fetch: async () => ({ format: 'prometheus', body: body(), isWhole: false }), close() {} },
    random: () => 0,
  })
  return target
}

it('are taken, or cost the scrape, and nothing beyond it', () =>
  fc.assert(
    fc.asyncProperty(fc.array(page, { minLength: 1, maxLength: 3 }), async (pages) => {
      const readers = new Readers()
      let text = ''
      const target = scraped(readers, () => text)
      readers.bind('prometheus.*')
      target.start()
      for (const given of [...pages, 'good 7\n']) {
        text = given
        readers.clock.advance(15_000)
        await target.refresh()
        readers.clock.advance(1_000)
        const sent = await readers.read([target])
        expect(lastOf(sent, 'prometheus.up')).toBeOneOf([0, 1])
        if (text === 'good 7\n') expect(lastOf(sent, 'prometheus.good')).toBe(7)
      }
      await target.close()
    }),
    { numRuns: times({ short: 15, long: 60 }) },
  ))
