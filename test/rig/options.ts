/** The options of a benchmark, by their defaults: a number takes a number, text takes text, and `false` is a flag. */
import { parseArgs } from 'node:util'

type Defaults = Readonly<Record<string, number | string | boolean>>
type Options<D extends Defaults> = {
  readonly [K in keyof D]: D[K] extends number ? number : D[K] extends boolean ? boolean : string
}

/** Throws at an option that is unknown, and at one whose number is none. */
export function optionsIn<const D extends Defaults>(argv: string[], defaults: D): Options<D> {
  const options = Object.entries(defaults).map(([name, value]) => {
    const type = typeof value === 'boolean' ? ('boolean' as const) : ('string' as const)
    return [name, { type }] as const
  })
  const { values } = parseArgs({ args: argv, options: Object.fromEntries(options) })
  const given = Object.entries(defaults).map(([name, value]) => {
    const said = values[name]
    return [name, said === undefined ? value : typeof value === 'number' ? numberOf(name, said) : said] as const
  })
  return Object.fromEntries(given) as Options<D>
}

function numberOf(name: string, said: unknown): number {
  const number = said === '' ? Number.NaN : Number(said)
  if (Number.isNaN(number)) throw new Error(`--${name} ${said}: a number is needed`)
  return number
}
