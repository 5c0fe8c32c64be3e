/** Benchmarks that no other test runs still run, in a form that is too short to measure anything. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { benchAlerts } from './alerts.ts'
import { benchDoors } from './doors.ts'
import { benchHistory } from './history.ts'
import { benchLatency } from './latency.ts'
import { benchMemory } from './memory.ts'
import { benchPromql } from './promql.ts'
import { benchScale } from './scale.ts'
import { benchSeries } from './series.ts'

it('latency brings values from end to end, through a durable channel and one that is not', async () => {
  const short = ['--rates', '500', '--seconds', '0.2', '--warm-up', '0.1', '--settle', '60', '--alone']
  const { runs } = (await benchLatency(short)) as {
    runs: readonly { readonly server: string; readonly p50Ms: string }[]
  }
  expect(runs.map(({ server }) => server)).toEqual(['cinnabar, durable', 'cinnabar, not durable'])
  for (const { p50Ms } of runs) expect(Number(p50Ms)).toBeGreaterThan(0)
})

it('memory --parts says what each of them adds', async () => {
  const sizes = ['--channels', '20', '--bindings', '20', '--series', '200', '--connections', '10', '--calm', '100']
  const { rest, added } = (await benchMemory(['--parts', ...sizes])) as {
    rest: Readonly<Record<string, number>>
    added: Readonly<Record<string, { readonly count: number }>>
  }
  expect(rest['cinnabar']).toBeGreaterThan(0)
  expect(Object.keys(added)).toEqual(['channel', 'binding', 'series', 'connection'])
})

it('scale measures each size and draws the curves', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'cinnabar-bench-scale-'))
  const svg = join(directory, 'scale.svg')
  const short = ['--runs', '1', '--seconds', '0.2', '--factors', '1', '--only', 'series,tenants', '--svg', svg]
  const { costs } = (await benchScale(short)) as { costs: Readonly<Record<string, readonly number[]>> }
  expect(Object.keys(costs)).toEqual(['series', 'tenants'])
  expect(readFileSync(svg, 'utf8')).toContain('>tenants</text>')
  rmSync(directory, { recursive: true })
})

it('doors says what a value costs that is scraped or written, durable or not, and what it costs others', async () => {
  const short = ['--peers', '--targets', '1', '--seconds', '1', '--warm-up', '0.5']
  const figures = (await benchDoors(short)) as Readonly<Record<string, string>>
  const scrapers = ['cinnabar', 'cinnabarRecorded', 'cinnabarTakenOnly', 'prometheus', 'vmagent'].map(
    (who) => `scrape ${who}`,
  )
  const takers = ['cinnabar', 'cinnabarUnbound', 'prometheus'].map((who) => `remote-write ${who}`)
  const points = ['gauges', 'histograms'].flatMap((kind) =>
    ['cinnabar', 'cinnabarUnbound'].map((who) => `otlp-${kind} ${who}`),
  )
  // So little costs less than a tick of the kernel's clock now and then; that nothing came is an error by itself.
  const statsd = ['counters', 'timers'].map((kind) => `statsd-${kind} cinnabar`)
  for (const who of [...scrapers, ...takers, ...points, ...statsd])
    expect(Number(figures[`${who} cpuPerMillion`]), who).toBeGreaterThanOrEqual(0)
  expect(Number(figures['fleet cinnabar scrapedSamples'])).toBeGreaterThan(0)
  // On a machine that does much else, some may be lost.
  const [sent, delivered] = ['datagrams', 'delivered'].map((what) => Number(figures[`fleet cinnabar ${what}`]))
  expect(delivered).toBeGreaterThan(0)
  expect(delivered).toBeLessThanOrEqual(Number(sent))
})

it('series says what they cost', async () => {
  const sizes = ['--scraped', '100', '--series', '200', '--calm', '2']
  const figures = (await benchSeries(sizes)) as Readonly<Record<string, string | number>>
  for (const what of ['restMiB', 'scrapedSeries', 'startSeconds', 'getCpuSeconds'])
    expect(Number(figures[what]), what).toBeGreaterThan(0)
  expect(figures['writtenSeries']).toBe(200)
})

it('history measures each row, and stores every sample', async () => {
  const sizes = ['--series', '40', '--hours', '1', '--active', '50', '--seconds', '1', '--calm', '0.1']
  const kept = ['--alive', '500', '--dead', '500', '--many', '20', '--days', '2']
  const figures = (await benchHistory([...sizes, ...kept, '--peers'])) as Readonly<Record<string, string | number>>
  for (const kind of ['counters', 'gauges', 'node_exporter']) {
    for (const who of ['cinnabar', 'prometheus', 'victoria-metrics']) {
      expect(Number(figures[`${kind}, ${who}: bytes per sample`]), `${kind}, ${who}`).toBeGreaterThan(0)
    }
  }
  expect(Number(figures['catching up: samples/s'])).toBeGreaterThan(0)
  expect(Number(figures['memory per active series, bytes'])).toBeGreaterThan(0)
  expect(Number(figures['start with 2 days of 20 series: s'])).toBeGreaterThan(0)
  expect(Object.keys(figures).filter((name) => name.startsWith('at rest'))).toHaveLength(5)
})

it('promql asks each the same, of a day and of months', async () => {
  const sizes = ['--series', '10', '--hours', '1', '--runs', '1', '--days', '1', '--long', '5']
  const figures = (await benchPromql([...sizes, '--peers'])) as Readonly<Record<string, number>>
  for (const row of ['one series, raw', 'sum of rates', 'mix', 'by the hour']) {
    for (const who of ['cinnabar', 'prometheus', 'victoria-metrics'])
      expect(figures[`${row}, ${who}: ms`], `${row}, ${who}`).toBeGreaterThan(0)
  }
})

it('alerts evaluates every rule, and asks for NOPs meanwhile', async () => {
  const short = ['--rules', '100', '--series', '500', '--interval', '2', '--seconds', '5']
  const figures = (await benchAlerts(short)) as Readonly<Record<string, number>>
  expect(figures['cinnabar: rules evaluated']).toBeGreaterThan(0)
  expect(figures['NOP longest, ms']).toBeGreaterThan(0)
  expect(figures['turn longest, ms on a core']).toBeGreaterThan(0)
})
