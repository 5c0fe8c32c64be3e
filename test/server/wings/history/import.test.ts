/** A text becomes samples of the history: under which series, at which times, and what of it is not stored. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { importText } from '../../../../server/wings/history/import.ts'
import { type ImportCounts, SERVER } from '../../../../server/wings/history/messages.ts'
import type { HistorySeries } from '../../../../storage/history/store.ts'
import { all, linesOf, query, UNLIMITED } from '../../../storage/history/history-model.ts'
import { TestHistory } from '../../../storage/history/test-history.ts'

let test: TestHistory
let now: number
beforeEach(() => {
  test = new TestHistory()
  now = test.now / 1000
})
afterEach(() => test.end())

function imported(text: string, { tenant = 'acme', ofServer = false } = {}): ImportCounts {
  const steps = importText(test.history, { tenant, ofServer, text }, test.now)
  for (;;) {
    const step = steps.next()
    if (step.done === true) return step.value
  }
}

const stored = (count: number): ImportCounts => ({ stored: count, tooOld: 0, ahead: 0, refused: 0 })
const LOAD: HistorySeries = {
  tenant: 'acme',
  name: 'gmetric_load',
  native: 'gmetric.load',
  labels: [['host', 'web1']],
}

describe('the samples of a text', () => {
  it('are stored at their own times, and the same text again changes nothing', () => {
    const text = `# TYPE a counter\na_total{b="1",job=""} 1 ${now - 60}\na_total{b="1",job=""} 2.5 ${now - 59.5}\n{"x.y","z é"="2"} +Inf ${now}\n# EOF\n`
    expect(imported(text)).toEqual(stored(3))
    const lines = test.lines()
    expect(lines).toHaveLength(3)
    expect(imported(text)).toEqual(stored(3))
    expect(test.lines()).toEqual(lines)
    expect([...all(test.history.select(query('acme')))].map(({ series }) => series.native)).toEqual([
      'prometheus.a_total',
      'prometheus.x.y',
    ])
  })

  it('belong to the series that has their name and labels, whatever its metric is called', () => {
    test.store([[LOAD, test.now - 10_000, 7]])
    expect(imported(`gmetric_load{host="web1"} 8 ${now - 10}\ngmetric_load{host="web1"} 9 ${now - 5}`)).toEqual(
      stored(2),
    )
    const [series, ...others] = all(test.history.select(query('acme')))
    expect([series?.series, [...(series?.values ?? [])], others]).toEqual([LOAD, [8, 9], []])
  })

  it('are those of the server only if an admin imports them', () => {
    test.store([[{ ...LOAD, tenant: SERVER }, test.now - 10_000, 7]])
    const text = `gmetric_load{host="web1"} 8 ${now - 5}\n`
    expect(imported(text)).toEqual({ ...stored(0), refused: 1 })
    expect([test.lines('acme'), linesOf(all(test.history.select(query(SERVER))))]).toEqual([[], expect.any(Array)])
    expect(imported(text, { ofServer: true })).toEqual(stored(1))
    expect([...(all(test.history.select(query(SERVER)))[0]?.values ?? [])]).toEqual([7, 8])
    expect(test.lines('acme')).toEqual([])
  })

  it('are counted where they cannot be stored: too old, ahead, or of too many series', () => {
    const hour = 3_600_000
    test.reopen({ ...UNLIMITED, keepMs: hour, quotas: new Map([['acme', { bytes: 1e12, series: 1 }]]) })
    const text = [`a 1 ${now - 3_700}`, `a 2 ${now - 60}`, `a 3 ${now + 61}`, `b 4 ${now}`].join('\n')
    expect(imported(text)).toEqual({ stored: 1, tooOld: 1, ahead: 1, refused: 1 })
  })

  it('have the types, helps and units that the text says, where nothing else is known', () => {
    const known = { name: 'gmetric_load', type: 'gauge', help: 'The load.', unit: '' }
    test.store([[LOAD, test.now - 10_000, 7]])
    test.history.describe('acme', { native: 'gmetric.load', families: [known] })
    test.history.commit()
    const head = (name: string, type: string): string =>
      `# TYPE ${name} ${type}\n# HELP ${name} All of \\"${name}\\".\n`
    imported(
      [
        `${head('gmetric_load', 'counter')}gmetric_load{host="web1"} 8 ${now - 10}`,
        `${head('a', 'counter')}a_total 1 ${now}`,
        `a_created 1 ${now}`,
        `# TYPE w_seconds histogram\n# UNIT w_seconds seconds\nw_seconds_bucket{le="+Inf"} 3 ${now}`,
        `# TYPE s stateset\ns{s="on"} 1 ${now}`,
        `b 1 ${now}\n`,
      ].join('\n'),
    )
    // In the next part of the file.
    imported(`# TYPE w_seconds histogram\n# UNIT w_seconds seconds\nw_seconds_count 3 ${now}\n# EOF\n`)
    const waits = { name: 'w_seconds', type: 'histogram', help: '', unit: 'seconds' }
    const of = (native: string) => test.history.familiesOf('acme', native)
    expect(of('gmetric.load')).toEqual([known])
    expect(of('prometheus.a_total')).toEqual([{ name: 'a_total', type: 'counter', help: 'All of "a".', unit: '' }])
    expect(of('prometheus.w_seconds_bucket')).toEqual([waits])
    expect(of('prometheus.w_seconds_count')).toEqual([waits])
    expect(['a_created', 's', 'b'].map((name) => of(`prometheus.${name}`))).toEqual([[], [], []])
  })

  it.each([
    ['a line that is none', (at: number) => `a 1 ${at}\nb{c=} 2 ${at}\n`, 'line 2: '],
    ['a sample without a time', (at: number) => `a 1 ${at}\na 1 ${at + 1}\na 2\n`, 'line 3: a sample without a time'],
    ['a line after the end', (at: number) => `# EOF\na 1 ${at}\n`, 'line 2: a line after # EOF'],
    ['a line that is too long', (at: number) => `a{b="${'x'.repeat(16_400)}"} 1 ${at}\n`, 'line 1: '],
  ])('are none of them stored with %s', (_, text, problem) => {
    expect(() => imported(text(now - 60))).toThrow(problem)
    expect(test.lines()).toEqual([])
  })
})
