/** The server's configuration. It is imported only when a command needs it: loading its schema takes longer than most commands. */
import type { Config } from '../server/start/config.ts'
import { ExitCode, Failure } from './failure.ts'

export type Sections = Readonly<Record<string, Readonly<Record<string, unknown>>>>

/** Throws Failure with every problem. */
export async function readConfiguration(file: string | undefined, env: NodeJS.ProcessEnv): Promise<Config> {
  const { loadConfig } = await import('../server/start/config.ts')
  return orFailure(() => loadConfig({ file, env }))
}

/** Every section with every key, in the notation of the file. Throws Failure with every problem. */
export async function readSections(file: string | undefined, env: NodeJS.ProcessEnv): Promise<Sections> {
  const { configFileOf, load } = await import('../server/config/load.ts')
  const { schema } = await import('../server/start/config.ts')
  const { checkModules } = await import('../server/sources/plugin/module-file.ts')
  const { parseDuration } = await import('../server/config/duration.ts')

  /** `byDefault` is the default of the key, which distinguishes a duration from a number, also of a key that takes a share. */
  const toNotation = (value: unknown, byDefault?: unknown): unknown => {
    if (value === undefined) return ''
    if (Array.isArray(value)) return value.map((item) => toNotation(item))
    const isDuration = typeof byDefault === 'string' && !byDefault.endsWith('%')
    if (typeof value === 'number' && isDuration) return toDuration(value)
    if (!isObject(value)) return value
    if ('share' in value) return `${Math.round(Number(value['share']) * 100)}%`
    if ('prefix' in value) return `${value['address']}/${value['prefix']}`
    const host = String(value['host'])
    return `${host.includes(':') ? `[${host}]` : host}:${value['port']}`
  }
  /** Uses the largest unit in which the duration is a whole number. */
  const toDuration = (ms: number): string => {
    const unit = ['d', 'h', 'm', 's'].find((candidate) => ms % parseDuration(`1${candidate}`)! === 0 && ms > 0)
    return unit ? `${ms / parseDuration(`1${unit}`)!}${unit}` : `${ms}ms`
  }

  const values: Readonly<Record<string, unknown>> = orFailure(() => {
    const { values } = load(schema, { file, env })
    checkModules(values.plugin, configFileOf({ file, env }))
    return values
  })
  const sections = schema.tables.map((section) => {
    const keys = schema.settings.filter((setting) => setting.section === section)
    const entries = keys.map(({ key, byDefault }) => [
      key,
      toNotation((values[section] as Sections[string])[key], byDefault),
    ])
    return [section, Object.fromEntries(entries)]
  })
  return Object.fromEntries(sections)
}

function orFailure<T>(read: () => T): T {
  try {
    return read()
  } catch (error) {
    // The error is recognised by its code, because importing its class would load the schema.
    if (error instanceof Error && 'code' in error && error.code === 'BAD_CONFIG') {
      throw new Failure(ExitCode.USAGE, error.message, { cause: error })
    }
    throw error
  }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null
}
