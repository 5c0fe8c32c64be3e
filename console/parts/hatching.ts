/** What is hatched in a chart, since values are missing there, and what is said of it. */
import type { PastLoss } from '../losses.ts'
import type { Hole } from '../series-watch.ts'
import { formatCount } from '../units.ts'
import type { TimeRange } from './chart-page.ts'

/** What is hatched is at least so many pixels wide, to each side of its middle. */
export const HATCHED = 1

/** Holes of several series that overlap are one. */
export function joined(holes: readonly Hole[]): readonly Hole[] {
  const all: Hole[] = []
  for (const hole of holes.toSorted((a, b) => a.from - b.from)) {
    const last = all.at(-1)
    if (last === undefined || hole.from > last.to) all.push(hole)
    else all[all.length - 1] = { ...last, to: Math.max(last.to, hole.to), count: Math.max(last.count, hole.count) }
  }
  return all
}

/** What is missing in a range, in words; empty if nothing is. `losses` are those holes of which more is known. */
export function missingText(losses: readonly PastLoss[], holes: readonly Hole[], range: TimeRange): string {
  const isIn = ({ from, to }: Hole): boolean => from <= range.to && to >= range.from
  const known = losses.filter(isIn)
  if (known.length === 0) return holes.some(isIn) ? 'values are missing' : ''
  const count = known.reduce((sum, loss) => sum + loss.count, 0)
  const reasons = [...new Set(known.map(({ reason }) => reason))].join(', ')
  const values =
    count === 0 ? 'values are missing' : `${formatCount(count)} ${count === 1 ? 'value is' : 'values are'} missing`
  return `${values}: ${reasons}`
}

/** A pattern for a canvas. */
export function hatch(ink: string): CanvasPattern | null {
  const size = 8 * devicePixelRatio
  const tile = document.createElement('canvas')
  tile.width = tile.height = size
  const drawing = tile.getContext('2d')
  if (drawing === null) return null
  drawing.strokeStyle = ink
  drawing.globalAlpha = 0.5
  drawing.lineWidth = devicePixelRatio
  for (const shift of [-size, 0, size]) {
    drawing.moveTo(shift, size)
    drawing.lineTo(shift + size, 0)
  }
  drawing.stroke()
  return drawing.createPattern(tile, 'repeat')
}
