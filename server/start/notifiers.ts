/** Files with tables `[[notify]]`, and the files that these name, read for the command line, which puts them. */

import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { stringify } from 'smol-toml'
import { ConfigError, type ConfigProblem } from '../kernel/config/errors.ts'
import { type ConfigFile, readConfigFile } from '../kernel/config/file.ts'
import { load } from '../kernel/config/load.ts'
import { camelCased } from '../kernel/config/schema.ts'
import { withBodies } from '../wings/notify/bodies.ts'
import type { NotifyTable } from '../wings/notify/config.ts'
import { checkMatchers } from '../wings/notify/notifiers.ts'
import { FILE_KEYS, MAX_CONTENTS, OWN_KEYS, putSchema } from '../wings/notify/put/tables.ts'

/** The arguments of `notify.put`. */
export interface PutArguments {
  readonly notifiers: string
  readonly secrets: string
}

export interface NotifierFiles {
  readonly names: readonly string[]
  /** What puts those of them that are named. */
  only(names: readonly string[]): PutArguments
}

interface ReadNotifier {
  readonly name: string
  readonly path: string
  readonly written: Readonly<Record<string, unknown>>
  readonly contents: Readonly<Record<string, string>>
}

/** Reads files as the configuration is read. `problems` are whole lines, with the file and the line in it. */
export async function readNotifierFiles(
  paths: readonly string[],
): Promise<NotifierFiles | { readonly problems: readonly string[] }> {
  const problems: string[] = []
  const found = new Map<string, ReadNotifier>()
  for (const path of paths) {
    try {
      for (const notifier of await readOne(path)) {
        const other = found.get(notifier.name)
        if (other !== undefined) problems.push(`${path}: ${other.path} has a notifier ${notifier.name}, too`)
        found.set(notifier.name, notifier)
      }
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error
      problems.push(error.message)
    }
  }
  if (problems.length > 0) return { problems: problems.join('\n').split('\n') }
  return {
    names: [...found.keys()],
    only(names) {
      const some = [...found.values()].filter(({ name }) => names.includes(name))
      const contents = some.filter((one) => Object.keys(one.contents).length > 0)
      return {
        notifiers: stringify({ notify: some.map(({ written }) => written) }),
        secrets: JSON.stringify(Object.fromEntries(contents.map((one) => [one.name, one.contents]))),
      }
    },
  }
}

/** Rejects with ConfigError. */
async function readOne(path: string): Promise<readonly ReadNotifier[]> {
  const bytes = readConfigFile(path, readFileSync)
  const { notify } = load(putSchema, { file: path, env: {} }).config as { readonly notify: readonly NotifyTable[] }
  const written = (bytes.table['notify'] ?? []) as readonly Readonly<Record<string, unknown>>[]
  const problems = written.flatMap((table, at) => ownProblems(bytes, table, at))
  if (problems.length > 0) throw new ConfigError(problems)
  await checkTables(bytes, notify)
  await withBodies(notify, Date.now())
  return Promise.all(
    notify.map(async (table, at) => ({
      ...{ name: table.name, path, written: written[at] ?? {} },
      contents: await contentsOf(bytes, table, at),
    })),
  )
}

function ownProblems(file: ConfigFile, table: Readonly<Record<string, unknown>>, at: number): ConfigProblem[] {
  return Object.entries(OWN_KEYS).flatMap(([key, why]) =>
    key in table ? [problemOf(file, at, key, `${why}: leave this out`)] : [],
  )
}

/** Rejects with ConfigError for matchers, with their lines. */
async function checkTables(file: ConfigFile, tables: readonly NotifyTable[]): Promise<void> {
  for (const [at, table] of tables.entries())
    try {
      await checkMatchers([table])
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error
      throw new ConfigError(
        error.problems.map(({ message }) => {
          const [, key = ''] = /^`(\w+)`: /.exec(message) ?? []
          return problemOf(file, at, key, message.replace(/^`\w+`: /, ''))
        }),
      )
    }
}

/** What the files of a table have, by key. Rejects with ConfigError. */
async function contentsOf(file: ConfigFile, table: NotifyTable, at: number): Promise<Readonly<Record<string, string>>> {
  const named = camelCased(Object.fromEntries(FILE_KEYS.map((key) => [key, key])))
  const contents: Record<string, string> = {}
  for (const [seen, key] of Object.entries(named)) {
    const path = (table as Readonly<Record<string, unknown>>)[seen]
    if (typeof path !== 'string') continue
    const text = await readFile(path, 'utf8').catch((error: Error) => {
      throw new ConfigError([problemOf(file, at, key, `cannot be read: ${error.message}`)])
    })
    if (text.length > MAX_CONTENTS)
      throw new ConfigError([problemOf(file, at, key, `${path} has more than ${MAX_CONTENTS} characters`)])
    contents[key] = text
  }
  return contents
}

function problemOf({ name, table, lineOf }: ConfigFile, at: number, key: string, message: string): ConfigProblem {
  const tables = table['notify'] as readonly Readonly<Record<string, unknown>>[]
  const number = String(at)
  return {
    source: name,
    line: lineOf('notify', number, key) ?? lineOf('notify', number),
    message: `\`[[notify]]\` ${String(tables[at]?.['name'])}: \`${key}\`: ${message}`,
  }
}
