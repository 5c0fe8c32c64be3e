/**
 * File and environment to checked values. Everything wrong is collected before anything is thrown: who starts a server
 * on a bad file learns all of it at once.
 */
import { readFileSync } from 'node:fs'
import type { TomlTable } from 'smol-toml'
import type { z } from 'zod'
import type { ReadExec } from '../controls/exec/config.ts'
import type { ReadQmf } from '../sources/qmf/config.ts'
import { type Override, readEnvironment } from './environment.ts'
import { explain } from './explain.ts'
import { NO_FILE, type ReadFile, readConfigFile } from './file.ts'
import { isTable } from './lines.ts'
import { ConfigError } from './problems.ts'
import { schema, sectionNames } from './schema.ts'

export interface LoadOptions {
  /** What `--config` names; without it CINNABAR_CONFIG; without both, all defaults. */
  readonly file?: string | undefined
  readonly env: NodeJS.ProcessEnv
  readonly readFile?: ReadFile
}

export interface Loaded {
  /** By section. */
  readonly values: Omit<z.output<typeof schema>, 'exec' | 'qmf'>
  readonly exec: readonly ReadExec[]
  readonly qmf: readonly ReadQmf[]
  /** What file and environment say, before defaults: whether a key was named at all. */
  readonly named: Readonly<Record<string, unknown>>
  /** Sections that the file has, be they empty, or the environment names a key of. */
  readonly sections: ReadonlySet<string>
}

/** Throws ConfigError. */
export function load({ file, env, readFile = readFileSync }: LoadOptions): Loaded {
  const name = file ?? (env['CINNABAR_CONFIG'] || undefined)
  const written = name === undefined ? NO_FILE : readConfigFile(name, readFile)
  const { overrides, problems } = readEnvironment(env)
  const named = overlay(written.table, overrides)
  const result = schema.safeParse(named)
  const wrong = result.error?.issues.flatMap((issue) => explain(issue, written, overrides)) ?? []
  const all = [...written.problems, ...wrong, ...problems]
  if (!result.success || all.length > 0) {
    throw new ConfigError(all.sort((a, b) => (a.line ?? Number.MAX_VALUE) - (b.line ?? Number.MAX_VALUE)))
  }
  const { exec, qmf, ...values } = result.data
  const sections = new Set([...Object.keys(written.table), ...overrides.map(({ setting }) => setting.section)])
  return { values, exec, qmf, named, sections }
}

/** Every section present, the environment's values over the file's. A section that is no table stays wrong, as null. */
function overlay(table: TomlTable, overrides: readonly Override[]): Record<string, unknown> {
  const named: Record<string, unknown> = { ...table }
  for (const section of sectionNames) {
    const written = table[section] ?? {}
    const over = overrides.filter(({ setting }) => setting.section === section)
    const values = Object.fromEntries(over.map(({ setting, value }) => [setting.key, value]))
    named[section] = isTable(written) ? { ...written, ...values } : null
  }
  return named
}
