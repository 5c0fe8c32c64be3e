/**
 * `npm run bench -- doors [--peers] [--rows scrape,…] [--seconds 20]`: what a value costs that comes in by the doors of today, in a steady
 * state, beside those programs that people run there, in the same run. Debian: `apt-get install prometheus victoria-metrics
 * prometheus-node-exporter`.
 */
import { optionsIn } from '../rig/options.ts'
import { scrapeRow } from './doors/scrape.ts'

const ROWS = { scrape: scrapeRow }

export async function benchDoors(argv: string[]): Promise<object> {
  const { peers, rows, targets, seconds } = optionsIn(argv, { peers: false, rows: 'scrape', targets: 50, seconds: 20 })
  const figures: Record<string, unknown> = {}
  for (const row of rows.split(',')) {
    if (!Object.hasOwn(ROWS, row)) throw new Error(`no row ${row}: there are ${Object.keys(ROWS).join(', ')}`)
    const costs = await ROWS[row as keyof typeof ROWS]({ targets, seconds }, peers)
    for (const [who, cost] of Object.entries(costs)) {
      for (const [what, figure] of Object.entries(cost)) figures[`${row} ${who} ${what}`] = figure
    }
  }
  return figures
}
