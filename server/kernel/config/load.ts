/**
 * Reads file and environment and checks them against a schema. Everything wrong is collected before anything is thrown:
 * whoever starts a server with a bad file sees every problem at once.
 */
import { readFileSync } from 'node:fs'
import { type Override, readEnvironment } from './environment.ts'
import { ConfigError } from './errors.ts'
import { explainIssue } from './explain.ts'
import { NO_FILE, type ReadFile, readConfigFile } from './file.ts'
import { configDirectoryOf, inDirectory, type WrittenTables, withDefaultPaths } from './paths.ts'
import type { ConfigOf, ConfigSchema, ConfigSections, ValuesOf } from './schema.ts'
import { isTomlTable } from './value-types.ts'

export interface LoadOptions {
  /** The file of `--config`; else that of CINNABAR_CONFIG; without both, all defaults. */
  readonly file?: string | undefined
  readonly env: NodeJS.ProcessEnv
  readonly readFile?: ReadFile
}

export interface Loaded<S extends ConfigSections> {
  /** What the server sees. */
  readonly config: ConfigOf<S>
  /** The same with the keys of the file. */
  readonly values: ValuesOf<S>
  /** For each section the keys that the file or the environment names; undefined if neither has the section. */
  readonly written: Written<S>
}

type Written<S extends ConfigSections> = { readonly [Name in keyof S]: ReadonlySet<string> | undefined }

/** The path of the file; undefined if there is none. */
export function configFileOf({ file, env }: LoadOptions): string | undefined {
  return file ?? (env['CINNABAR_CONFIG'] || undefined)
}

/** Throws ConfigError. */
export function load<S extends ConfigSections>(
  schema: ConfigSchema<S>,
  { file, env, readFile = readFileSync }: LoadOptions,
): Loaded<S> {
  const name = configFileOf({ file, env })
  const read = name === undefined ? NO_FILE : readConfigFile(name, readFile)
  const { overrides, problems } = readEnvironment(env, schema.settings)
  const directory = name === undefined ? undefined : configDirectoryOf(name)
  const written = overlay(inDirectory(schema, read.table, directory), overrides)
  const tables = tablesOf(written, schema.tables)
  const result = schema.type.safeParse({ ...written, ...withDefaultPaths(schema.settings, tables, directory) })
  const wrong = result.error?.issues.flatMap((issue) => explainIssue(issue, schema, read, overrides)) ?? []
  const all = [...read.problems, ...wrong, ...problems]
  if (!result.success || all.length > 0) {
    throw new ConfigError(all.sort((a, b) => (a.line ?? Number.MAX_VALUE) - (b.line ?? Number.MAX_VALUE)))
  }
  const keysOf = (section: string): ReadonlySet<string> | undefined => {
    const keys = written[section]
    return isTomlTable(keys) ? new Set(Object.keys(keys)) : undefined
  }
  const names = Object.keys(schema.sections)
  return loaded(
    schema,
    result.data as ValuesOf<S>,
    Object.fromEntries(names.map((name) => [name, keysOf(name)])) as Written<S>,
  )
}

/** Checked values as the server sees them. */
export function loaded<S extends ConfigSections>(
  { sections }: ConfigSchema<S>,
  values: ValuesOf<S>,
  written: Written<S>,
): Loaded<S> {
  const config = Object.entries(sections).map(([name, { read }]) => [name, read(values[name], written[name])])
  return { config: Object.fromEntries(config) as ConfigOf<S>, values, written }
}

/** Every section that is a table, empty if it is absent; null if it is something else, since zod takes a date for a table. */
function tablesOf(written: WrittenTables, names: readonly string[]): WrittenTables {
  const tableOf = (name: string): unknown => (Object.hasOwn(written, name) ? written[name] : {})
  return Object.fromEntries(names.map((name) => [name, isTomlTable(tableOf(name)) ? tableOf(name) : null]))
}

/** The environment's values over the file's. A section of the file that is no table stays wrong. */
function overlay(table: WrittenTables, overrides: readonly Override[]): WrittenTables {
  const written: Record<string, unknown> = { ...table }
  for (const { setting, value } of overrides) {
    const section = Object.hasOwn(written, setting.section) ? written[setting.section] : {}
    written[setting.section] = isTomlTable(section) ? { ...section, [setting.key]: value } : section
  }
  return written
}
