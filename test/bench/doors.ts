/**
 * `npm run bench -- doors [--peers] [--rows scrape,…] [--targets 50] [--seconds 20] [--warm-up 15]`: what a value costs that comes in by the doors of today, in a steady
 * state, beside those programs that people run there, in the same run. Debian: `apt-get install prometheus victoria-metrics
 * prometheus-node-exporter`.
 */
import { optionsIn } from '../rig/options.ts'
import { scrapeRow } from './doors/scrape.ts'

const ROWS = { scrape: scrapeRow }

export async function benchDoors(argv: string[]): Promise<object> {
  const defaults = { peers: false, rows: 'scrape', targets: 50, seconds: 20, 'warm-up': 15 } as const
  const { peers, rows, targets, seconds, 'warm-up': warmUp } = optionsIn(argv, defaults)
  const figures: Record<string, unknown> = {}
  for (const row of rows.split(',')) {
    if (!Object.hasOwn(ROWS, row)) throw new Error(`no row ${row}: there are ${Object.keys(ROWS).join(', ')}`)
    const costs = await ROWS[row as keyof typeof ROWS]({ targets, seconds, warmUp }, peers)
    for (const [who, cost] of Object.entries(costs)) {
      for (const [what, figure] of Object.entries(cost)) figures[`${row} ${who} ${what}`] = figure
    }
  }
  return figures
}
