/** A row of `doors`: what it is run with, and what it gives for each of those who take values. */
export interface Sizes {
  readonly targets: number
  readonly seconds: number
  /** Seconds before that: what is new, and what is not compiled yet, is not what is measured. */
  readonly warmUp: number
}

/** CPU seconds per million values, and the memory at the end, or what else a row measures. */
export type Cost = Readonly<Record<string, string | number>>

/** The costs by who takes the values. */
export type Row = (sizes: Sizes, withPeers: boolean) => Promise<Readonly<Record<string, Cost>>>

/** All rows' figures by their names. */
export function figuresOf(row: string, costs: Readonly<Record<string, Cost>>): Record<string, string | number> {
  const figures: Record<string, string | number> = {}
  for (const [who, cost] of Object.entries(costs)) {
    for (const [what, figure] of Object.entries(cost)) figures[`${row} ${who} ${what}`] = figure
  }
  return figures
}

/** The rows that a list names. Throws an Error if there is no such row. */
export function rowsIn(list: string, rows: Readonly<Record<string, Row>>): [name: string, row: Row][] {
  return list.split(',').map((name) => {
    const row = Object.hasOwn(rows, name) ? rows[name] : undefined
    if (row === undefined) throw new Error(`no row ${name}: there are ${Object.keys(rows).join(', ')}`)
    return [name, row]
  })
}
