/** The server's configuration. It is imported only when a command needs it: loading its schema takes longer than most commands. */
import { readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { OTHER_VARIABLES } from '../server/kernel/config/environment.ts'
import { type Address, parseAddress } from '../server/kernel/core/address.ts'
import type { Config } from '../server/start/config.ts'
import { ExitCode, errorCode, Failure } from './failure.ts'

export type Sections = Readonly<Record<string, Readonly<Record<string, unknown>>>>

/** Throws Failure with every problem. */
export async function readConfiguration(file: string | undefined, env: NodeJS.ProcessEnv): Promise<Config> {
  const { loadConfig } = await import('../server/start/config.ts')
  return orFailure(() => loadConfig({ file, env }))
}

/** Where a server on this machine is found. */
export interface ServerPlace {
  /** Undefined if the listener is switched off. */
  readonly tcp: Address | undefined
  readonly dataDir: string
}

/** These two keys are read without loading the schema, unless a variable is set that may be a mistake. Throws Failure. */
export async function findServer(file: string | undefined, env: NodeJS.ProcessEnv): Promise<ServerPlace> {
  const place = await plainPlace(file ?? (env['CINNABAR_CONFIG'] || undefined), env)
  if (place !== undefined) return place
  const { listen, producer } = await readConfiguration(file, env)
  return { tcp: listen.tcp, dataDir: producer.dataDir }
}

/** The default of `listen.tcp`. */
export const DEFAULT_TCP = '127.0.0.1:7650'

/** `keys` are all of the section: another one may be one of them, misspelt. */
const KEYS = {
  tcp: {
    variable: 'CINNABAR_LISTEN_TCP',
    section: 'listen',
    key: 'tcp',
    keys: ['tcp', 'tls', 'http', 'https'],
    byDefault: DEFAULT_TCP,
  },
  dataDir: {
    variable: 'CINNABAR_PRODUCER_DATA_DIR',
    section: 'producer',
    key: 'data_dir',
    keys: ['name', 'data_dir'],
    byDefault: './data',
  },
} as const

/** Undefined if something is not plain: the whole configuration says then what is wrong, if anything is. */
async function plainPlace(file: string | undefined, env: NodeJS.ProcessEnv): Promise<ServerPlace | undefined> {
  const plain = [...OTHER_VARIABLES, KEYS.tcp.variable, KEYS.dataDir.variable]
  if (Object.keys(env).some((name) => name.startsWith('CINNABAR_') && !plain.includes(name))) return undefined
  const table = file === undefined ? {} : await parsed(file)
  if (table === undefined) return undefined
  const read = ({ variable, section, key, keys, byDefault }: (typeof KEYS)[keyof typeof KEYS]): unknown => {
    const written = table[section]
    if (written !== undefined && !isObject(written)) return undefined
    if (Object.keys(written ?? {}).some((name) => !keys.some((known) => known === name))) return undefined
    return env[variable] ?? written?.[key] ?? byDefault
  }
  const [tcp, dataDir] = [read(KEYS.tcp), read(KEYS.dataDir)]
  const address = typeof tcp === 'string' ? parseAddress(tcp) : undefined
  if (address === undefined && tcp !== '') return undefined
  if (typeof dataDir !== 'string' || dataDir === '') return undefined
  // As the whole configuration has it: a relative path of the file starts at its directory.
  const isOfFile = file !== undefined && env[KEYS.dataDir.variable] === undefined
  return { tcp: address, dataDir: isOfFile ? resolve(dirname(file), dataDir) : dataDir }
}

/** Undefined if it cannot be read. */
async function parsed(file: string): Promise<Readonly<Record<string, unknown>> | undefined> {
  const { parse } = await import('smol-toml')
  try {
    return parse(readFileSync(file, 'utf8'))
  } catch {
    return undefined
  }
}

/** Every section with every key, in the notation of the file. Throws Failure with every problem. */
export async function readSections(file: string | undefined, env: NodeJS.ProcessEnv): Promise<Sections> {
  const { configFileOf, load } = await import('../server/kernel/config/load.ts')
  const { schema } = await import('../server/start/config.ts')
  const { checkModules } = await import('../server/wings/plugin/module-file.ts')
  const { parseDuration } = await import('../server/kernel/config/duration.ts')

  /** `byDefault` is the default of the key, which distinguishes a duration from a number, also of a key that takes a share. */
  const toNotation = (value: unknown, byDefault?: unknown): unknown => {
    if (value === undefined) return ''
    if (Array.isArray(value)) return value.map((item) => toNotation(item))
    const isDuration = typeof byDefault === 'string' && (byDefault === '0' || parseDuration(byDefault) !== undefined)
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
    if (error instanceof Error && errorCode(error) === 'BAD_CONFIG') {
      throw new Failure(ExitCode.USAGE, error.message, { cause: error })
    }
    throw error
  }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null
}
