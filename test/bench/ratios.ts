/**
 * What a benchmark printed on two trees, as ratios. A ratio above 1 means that this tree is the better one: for rates it is
 * ours by theirs, for CPU seconds per million it is theirs by ours.
 */

const RATE = /((?<!Bytes)PerSecond|values\/s)$/
const COST = /(cpuPerMillion|CPU s\/million)$/i

/** What a benchmark measured, by name. */
export type Figures = Readonly<Record<string, unknown>>

/** Ratios by the name of the figure. */
export type Ratios = Readonly<Record<string, number>>

export interface Spread {
  readonly median: number
  readonly least: number
  readonly most: number
}

/** Spreads by the name of the figure. */
export type Spreads = Readonly<Record<string, Spread>>

/** The figures of the JSON line with which the benchmark `name` ends. Throws an Error if there is no such line. */
export function figuresIn(name: string, output: string): Figures {
  for (const line of output.split('\n').reverse()) {
    const figures = line.startsWith('{') ? objectIn(line) : undefined
    if (figures?.['bench'] === name) return figures
  }
  throw new Error(`the benchmark ${name} printed no line of JSON with its figures:\n${output}`)
}

function objectIn(line: string): Record<string, unknown> | undefined {
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}

/** Of every rate and every cost that both trees print. */
export function ratiosOf(ours: Figures, theirs: Figures): Ratios {
  const ratios: Record<string, number> = {}
  for (const [figure, value] of Object.entries(ours)) {
    const [our, their] = [Number(value), Number(theirs[figure])]
    if (!(our > 0 && their > 0)) continue
    if (RATE.test(figure)) ratios[figure] = our / their
    else if (COST.test(figure)) ratios[figure] = their / our
  }
  return ratios
}

/** The spread of each figure over all pairs. */
export function spreadsOf(pairs: readonly Ratios[]): Spreads {
  const [first = {}] = pairs
  const ratiosOf = (figure: string): number[] => pairs.flatMap((ratios) => ratios[figure] ?? [])
  return Object.fromEntries(Object.keys(first).map((figure) => [figure, spreadOf(ratiosOf(figure))]))
}

/** The figures that are no objects, a line for each, with its ratio to the limit if `ofLimit` has it. */
export function shownFigures(figures: Figures): string[] {
  const ofLimit = (figures['ofLimit'] ?? {}) as Spreads
  return Object.entries(figures).flatMap(([figure, value]) => {
    if (typeof value === 'object') return []
    const line = `${figure.padEnd(24)} ${value}`
    const ratio = ofLimit[figure]
    if (ratio === undefined) return line
    return COST.test(figure)
      ? `${line}, of which the limit needs ${shownSpread(ratio)}`
      : `${line}, ${shownSpread(ratio)} of the limit`
  })
}

export function shownSpread({ median, least, most }: Spread, digits = 2): string {
  if (least === most) return median.toFixed(digits)
  return `${median.toFixed(digits)} (${least.toFixed(digits)} to ${most.toFixed(digits)})`
}

function spreadOf(ratios: readonly number[]): Spread {
  const sorted = ratios.toSorted((a, b) => a - b)
  const [lower, upper] = [sorted[(sorted.length - 1) >> 1]!, sorted[sorted.length >> 1]!]
  return { median: (lower + upper) / 2, least: sorted[0]!, most: sorted.at(-1)! }
}
