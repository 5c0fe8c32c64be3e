/**
 * `npm run bench -- doors [--peers] [--rows scrape,remote-write] [--targets 50] [--seconds 20] [--warm-up 15]`: what a value costs
 * that comes in by the doors of today, in a steady state, beside those programs that people run there, in the same run. Debian:
 * `apt-get install prometheus victoria-metrics prometheus-node-exporter`.
 */
import { optionsIn } from '../rig/options.ts'
import { fleetRow } from './doors/fleet.ts'
import { otlpGaugesRow, otlpHistogramsRow } from './doors/otlp.ts'
import { remoteWriteRow } from './doors/remote-write.ts'
import { figuresOf, type Row, rowsIn } from './doors/row.ts'
import { scrapeRow } from './doors/scrape.ts'
import { statsdCountersRow, statsdTimersRow } from './doors/statsd.ts'

const ROWS: Readonly<Record<string, Row>> = {
  scrape: scrapeRow,
  'remote-write': remoteWriteRow,
  'otlp-gauges': otlpGaugesRow,
  'otlp-histograms': otlpHistogramsRow,
  'statsd-counters': statsdCountersRow,
  'statsd-timers': statsdTimersRow,
  fleet: fleetRow,
}
const DEFAULTS = { peers: false, rows: Object.keys(ROWS).join(','), targets: 50, seconds: 20, 'warm-up': 15 } as const

export async function benchDoors(argv: string[]): Promise<object> {
  const { peers, rows, targets, seconds, 'warm-up': warmUp } = optionsIn(argv, DEFAULTS)
  const figures: Record<string, unknown> = {}
  for (const [name, row] of rowsIn(rows, ROWS)) {
    Object.assign(figures, figuresOf(name, await row({ targets, seconds, warmUp }, peers)))
  }
  return figures
}
