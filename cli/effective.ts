/** The configuration that is in force, written as the file would write it. */
import { parseDuration } from '../server/config/duration.ts'
import { type LoadOptions, load } from '../server/config/load.ts'
import { schema } from '../server/start/config.ts'

export type Sections = Readonly<Record<string, Readonly<Record<string, unknown>>>>

/** Every section with every key. Throws ConfigError. */
export function effectiveSections(options: LoadOptions): Sections {
  const values: Readonly<Record<string, unknown>> = load(schema, options).values
  const entries = schema.tables.map((section) => {
    const keys = schema.settings.filter((setting) => setting.section === section)
    return [
      section,
      Object.fromEntries(
        keys.map(({ key, byDefault }) => [key, written((values[section] as Sections[string])[key], byDefault)]),
      ),
    ]
  })
  return Object.fromEntries(entries)
}

/** `like` is the key's default, which tells a duration from a number. */
function written(value: unknown, like: unknown): unknown {
  if (value === undefined) return ''
  if (Array.isArray(value)) return value.map((item) => written(item, undefined))
  if (typeof value === 'number' && typeof like === 'string') return duration(value)
  if (!isObject(value)) return value
  if ('prefix' in value) return `${value['address']}/${value['prefix']}`
  const host = String(value['host'])
  return `${host.includes(':') ? `[${host}]` : host}:${value['port']}`
}

/** In the largest unit that it is whole in. */
function duration(ms: number): string {
  const unit = ['d', 'h', 'm', 's'].find((candidate) => ms % parseDuration(`1${candidate}`)! === 0 && ms > 0)
  return unit ? `${ms / parseDuration(`1${unit}`)!}${unit}` : `${ms}ms`
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null
}
