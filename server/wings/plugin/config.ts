/** The tables `[[plugin]]`: modules that the server loads, and how much of it each of them may use. */
import { z } from 'zod'
import {
  ALL_TENANTS,
  duration,
  integer,
  key,
  needed,
  type SectionConfig,
  tableList,
  tenantOrAll,
  toggle,
} from '../../kit/config.ts'

const moduleName = () => ({
  type: z.string().regex(/^[^\0]+$/),
  expected: 'a path that begins with "./", "../" or "/", or the name of a package',
})
const options = () => ({
  type: z.record(z.string(), z.unknown()).transform((table) => withNumbers(table) as Readonly<Record<string, unknown>>),
  expected: 'a table',
  isSecret: true,
})

const pluginTable = z
  .strictObject({
    module: needed(
      moduleName(),
      'The module: a path, which starts at the directory of this file, or the name of a package that is found from there.',
    ),
    tenant: key(
      tenantOrAll(),
      'default',
      `The tenant that its metrics and controls belong to, or \`"${ALL_TENANTS}"\`: every tenant sees them.`,
    ),
    options: key(options(), {}, 'What the module gets as `options`.', '`{}`'),
    timeout: key(
      duration('10ms', '10m'),
      '10s',
      'How long it may take to load, to measure, and to run a control. A measurement that takes longer is VOID.',
    ),
    values_per_second: key(
      integer(1, 1_000_000),
      10_000n,
      'Values that it may bring in without being asked, besides the quota of the tenant; others are dropped and counted.',
    ),
    max_series: key(
      integer(1, 1_000_000),
      10_000n,
      'Series that its sensors may have, and metrics that each may list.',
    ),
    anywhere: key(
      toggle(),
      false,
      'In a cluster: whether it may be loaded on whichever node leads. Without this it is refused there.',
    ),
  })
  .transform(({ values_per_second, max_series, timeout, ...rest }) => ({
    ...rest,
    timeoutMs: timeout,
    valuesPerSecond: values_per_second,
    maxSeries: max_series,
  }))

export const pluginSection = tableList(
  z
    .array(pluginTable)
    .max(100)
    .default([])
    .describe(
      'Modules that the server loads at its start, one table each; only in the file. How to write one, and what it may do: ' +
        '[plugin.md](sources/plugin.md).',
    ),
)
export type PluginTable = SectionConfig<typeof pluginSection>[number]

/** Integers of TOML are read as bigints. */
function withNumbers(value: unknown): unknown {
  if (typeof value === 'bigint') return Number.isSafeInteger(Number(value)) ? Number(value) : value
  if (Array.isArray(value)) return value.map(withNumbers)
  if (typeof value !== 'object' || value === null || value instanceof Date) return value
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, withNumbers(inner)]))
}
