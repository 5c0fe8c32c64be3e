/** A chart of lines over a logarithmic scale as SVG, which a browser and a page of documentation show in light and dark. */
export interface Line {
  readonly name: string
  /** x above 0, ascending; y from 0. */
  readonly points: readonly (readonly [x: number, y: number])[]
}

export interface Chart {
  readonly title: string
  readonly xTitle: string
  readonly yTitle: string
  readonly lines: readonly Line[]
}

const [WIDTH, HEIGHT] = [640, 360]
const [LEFT, RIGHT, TOP, BOTTOM] = [60, 150, 40, 50]
/** Colours that are told apart on white and on black. */
const COLORS = ['#3b82f6', '#f97316', '#22a55d', '#c04ad6', '#b08900', '#d9465f']
const GREY = '#808080'
const GRID_LINES = 4

export function curveSvg({ title, xTitle, yTitle, lines }: Chart): string {
  const points = lines.flatMap((line) => line.points)
  if (points.length === 0) throw new Error('a chart needs points')
  const xs = points.map(([x]) => Math.log10(x))
  const [least, most] = [Math.min(...xs), Math.max(...xs)]
  const top = niceAbove(Math.max(...points.map(([, y]) => y)))
  const right = WIDTH - RIGHT
  const atX = (x: number): number => LEFT + ((Math.log10(x) - least) / (most - least || 1)) * (right - LEFT)
  const atY = (y: number): number => HEIGHT - BOTTOM - (y / top) * (HEIGHT - BOTTOM - TOP)
  const parts: string[] = []
  for (let index = 0; index <= GRID_LINES; index++) {
    const y = (top * index) / GRID_LINES
    parts.push(
      `<line x1="${LEFT}" y1="${place(atY(y))}" x2="${right}" y2="${place(atY(y))}" stroke="${GREY}" stroke-opacity="0.3"/>`,
    )
    parts.push(text(LEFT - 8, atY(y) + 4, label(y), 'end'))
  }
  for (const x of new Set(points.map(([each]) => each)))
    parts.push(text(atX(x), HEIGHT - BOTTOM + 18, label(x), 'middle'))
  for (const [index, { name, points: places }] of lines.entries()) {
    const color = COLORS[index % COLORS.length]
    const path = places.map(([x, y]) => `${place(atX(x))},${place(atY(y))}`).join(' ')
    parts.push(`<polyline points="${path}" fill="none" stroke="${color}" stroke-width="2"/>`)
    for (const [x, y] of places)
      parts.push(`<circle cx="${place(atX(x))}" cy="${place(atY(y))}" r="3" fill="${color}"/>`)
    const row = TOP + 12 + index * 20
    parts.push(
      `<line x1="${right + 16}" y1="${row}" x2="${right + 36}" y2="${row}" stroke="${color}" stroke-width="2"/>`,
    )
    parts.push(text(right + 42, row + 4, name, 'start'))
  }
  parts.push(text(LEFT, 22, title, 'start'), text((LEFT + right) / 2, HEIGHT - 10, xTitle, 'middle'))
  parts.push(`<g transform="rotate(-90)">${text(-(TOP + HEIGHT - BOTTOM) / 2, 16, yTitle, 'middle')}</g>`)
  const attributes = `viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="sans-serif" font-size="12"`
  return `<svg xmlns="http://www.w3.org/2000/svg" ${attributes}>\n${parts.join('\n')}\n</svg>\n`
}

/** 1, 2 or 5 times a power of ten, not below `value`. */
function niceAbove(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value || 1))
  const factor = [1, 2, 5, 10].find((each) => each * power >= value) as number
  return factor * power
}

function label(value: number): string {
  return String(Number(value.toPrecision(3)))
}

function place(value: number): number {
  return Number(value.toFixed(1))
}

function text(x: number, y: number, words: string, anchor: 'start' | 'middle' | 'end'): string {
  const escaped = words.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
  return `<text x="${place(x)}" y="${place(y)}" text-anchor="${anchor}" fill="${GREY}">${escaped}</text>`
}
