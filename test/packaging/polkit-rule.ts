/** packaging/cinnabar.rules as an operator would change it. */
import { readFileSync } from 'node:fs'

const SHIPPED = readFileSync(new URL('../../packaging/cinnabar.rules', import.meta.url), 'utf8')

/** The rule with these units in its list. */
export function listing(units: readonly string[]): string {
  const lines = SHIPPED.split('\n')
  const begin = lines.findIndex((line) => line.trim() === 'var units = [')
  if (begin === -1) throw new Error('packaging/cinnabar.rules has no list of units')
  lines.splice(begin + 1, 0, ...units.map((unit) => `    '${unit}',`))
  return lines.join('\n')
}
