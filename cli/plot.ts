/**
 * Lines drawn in the terminal: each character has two by four dots. With colours each line has one; without, several lines are drawn
 * with the letters that the legend gives them.
 */
import type { Colors } from './terminal.ts'
import { cutToWidth, safeText } from './width.ts'

export interface PlottedLine {
  readonly name: string
  /** Seconds, ascending. */
  readonly times: readonly number[]
  readonly values: readonly number[]
}

export interface PlotOptions {
  /** Characters of a line of text. */
  readonly columns: number
  /** Lines of text of the drawing itself. */
  readonly rows: number
  /** Seconds. */
  readonly from: number
  readonly to: number
  readonly colors: Colors
}

/** Lines that are drawn; of the others there is a count. */
const MOST_LINES = 12
const HUES = ['cyan', 'yellow', 'magenta', 'green', 'red', 'blue'] as const
const BRAILLE = 0x2800
/** The bit of each dot, by its place in the column and row of a character. */
const DOTS = [
  [0x01, 0x02, 0x04, 0x40],
  [0x08, 0x10, 0x20, 0x80],
] as const

export function plot(lines: readonly PlottedLine[], options: PlotOptions): string {
  const { columns, rows, from, to, colors } = options
  const drawn = lines.slice(0, MOST_LINES)
  const finite = drawn.flatMap(({ values }) => values.filter(Number.isFinite))
  if (finite.length === 0) return 'nothing to draw: there is no finite value'
  const [low, high] = boundsOf(finite)
  const labels = [high, low / 2 + high / 2, low].map(shortValue)
  const margin = Math.max(...labels.map(({ length }) => length))
  const width = Math.max(10, columns - margin - 2)
  const canvas = new Canvas(width, rows)
  for (const [index, line] of drawn.entries()) {
    const across = (time: number): number => ((time - from) / (to - from || 1)) * (2 * width - 1)
    // By halves: the difference of two numbers may be larger than a number can be.
    const down = (value: number): number => (1 - (value / 2 - low / 2) / (high / 2 - low / 2)) * (4 * rows - 1)
    let before: readonly [number, number] | undefined
    for (const [at, time] of line.times.entries()) {
      const value = line.values[at] ?? Number.NaN
      const dot = Number.isFinite(value) ? ([across(time), down(value)] as const) : undefined
      if (dot !== undefined) canvas.line(before ?? dot, dot, index)
      before = dot
    }
  }
  const isLettered = drawn.length > 1 && !colors.isColorSupported
  const paint = (text: string, index: number): string => colors[HUES[index % HUES.length] ?? 'cyan'](text)
  const picture = canvas.rows().map((cells, row) => {
    const label = row === 0 ? labels[0] : row === rows - 1 ? labels[2] : row === rows >> 1 ? labels[1] : ''
    const text = cells.map(({ dots, line }) => {
      if (dots === 0) return ' '
      return isLettered ? letterOf(line) : paint(String.fromCharCode(BRAILLE + dots), line)
    })
    return `${(label ?? '').padStart(margin)} ${colors.dim('┤')}${text.join('').trimEnd()}`.trimEnd()
  })
  const legend = drawn.map(({ name }, index) => {
    const sign = isLettered ? letterOf(index) : paint('━', index)
    return cutToWidth(`${sign} ${safeText(name)}`, columns + (isLettered ? 0 : sign.length - 1))
  })
  const more = lines.length > MOST_LINES ? [`and ${lines.length - MOST_LINES} more, which are not drawn`] : []
  return [...picture, timeLine(from, to, margin + 2, width), ...legend, ...more].join('\n')
}

function letterOf(line: number): string {
  return String.fromCharCode(0x61 + line)
}

/** The lowest and the highest value, or some room around the only one. */
function boundsOf(values: readonly number[]): [number, number] {
  let [low, high] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]
  for (const value of values) {
    low = Math.min(low, value)
    high = Math.max(high, value)
  }
  if (low < high) return [low, high]
  const room = Math.abs(low) / 2 || 1
  return [low - room, high + room]
}

function shortValue(value: number): string {
  return String(Number(value.toPrecision(4)))
}

function timeLine(from: number, to: number, indent: number, width: number): string {
  const [first, last] = [from, to].map((seconds) => new Date(seconds * 1_000).toISOString().replace(/\.\d+Z/, 'Z'))
  const space = Math.max(1, width - (first?.length ?? 0) - (last?.length ?? 0))
  return `${' '.repeat(indent)}${first}${' '.repeat(space)}${last}`
}

interface Cell {
  dots: number
  line: number
}

class Canvas {
  readonly #cells: Cell[][]
  readonly #width: number

  constructor(width: number, rows: number) {
    this.#width = width
    this.#cells = Array.from({ length: rows }, () => Array.from({ length: width }, () => ({ dots: 0, line: 0 })))
  }

  /** From one dot to another; both are given with fractions. */
  line([x, y]: readonly [number, number], [toX, toY]: readonly [number, number], line: number): void {
    const steps = Math.max(1, Math.ceil(Math.abs(toX - x)), Math.ceil(Math.abs(toY - y)))
    for (let step = 0; step <= steps; step++) {
      this.#dot(Math.round(x + ((toX - x) * step) / steps), Math.round(y + ((toY - y) * step) / steps), line)
    }
  }

  rows(): readonly (readonly Cell[])[] {
    return this.#cells
  }

  #dot(x: number, y: number, line: number): void {
    const cell = x < 0 || x >= 2 * this.#width ? undefined : this.#cells[y >> 2]?.[x >> 1]
    if (cell === undefined) return
    cell.dots |= DOTS[x & 1]?.[y & 3] ?? 0
    cell.line = line
  }
}
