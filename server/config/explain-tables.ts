/**
 * What the schema refused of the tables `[[exec]]` and `[[qmf]]`, in words: as explain.ts, but a table has a number before
 * it has a name.
 */
import type { z } from 'zod'
import { execKeys, parameterKeys } from '../controls/exec/config.ts'
import { qmfKeys } from '../sources/qmf/config.ts'
import type { ConfigFile } from './file.ts'
import { described } from './found.ts'
import { notes } from './kinds.ts'
import { isTable } from './lines.ts'
import { type ConfigProblem, didYouMean } from './problems.ts'

const tables: Readonly<Record<string, Readonly<Record<string, z.ZodType>>>> = { exec: execKeys, qmf: qmfKeys }
/** They may hold a secret. */
const NOT_SHOWN = ['url']

/** Whether a section is a list of tables. */
export function isTableList(section: string | undefined): boolean {
  return section !== undefined && Object.hasOwn(tables, section)
}

export function explainTables(issue: z.core.$ZodIssue, file: ConfigFile): ConfigProblem {
  const path = issue.path.map(String)
  const problem = { source: file.name, line: lineOf(path, file) }
  const [section = '', number, list, index] = path
  if (number === undefined) return { ...problem, message: `\`${section}\`: ${wrongList(issue, section, file)}` }
  const table = `\`[[${section}]]\` ${named(valueAt(path.slice(0, 2), file), number)}`
  const isParameter = list === 'parameter' && index !== undefined
  const place = isParameter ? `${table}, parameter ${named(valueAt(path.slice(0, 4), file), index)}` : table
  const keys = isParameter ? parameterKeys : (tables[section] ?? {})
  return { ...problem, message: `${place}: ${wrong(issue, path.slice(isParameter ? 4 : 2), keys, file)}` }
}

function wrongList(issue: z.core.$ZodIssue, section: string, file: ConfigFile): string {
  if (issue.code === 'custom') return issue.message
  return `expected tables [[${section}]], found ${shown(file.table[section])}`
}

/** What is wrong with a table, or with `rest[0]` of it. */
function wrong(
  issue: z.core.$ZodIssue,
  [key]: readonly string[],
  keys: Readonly<Record<string, z.ZodType>>,
  file: ConfigFile,
): string {
  if (issue.code === 'unrecognized_keys') {
    const known = Object.keys(keys)
    const first = issue.keys[0] ?? ''
    return `unknown key \`${first}\`${didYouMean(first, known) || `: there are ${known.join(', ')}`}`
  }
  if (issue.code === 'custom' && (key === undefined || key === 'parameter')) return issue.message
  if (key === undefined) return `expected a table, found ${shown(valueAt(issue.path.map(String), file))}`
  const depth = issue.path.lastIndexOf(key) + 1
  const value = valueAt(issue.path.slice(0, depth).map(String), file)
  const expected = notes.get(keys[key] as z.ZodType)?.expected ?? 'tables [[exec.parameter]]'
  if (value === undefined) return `it needs \`${key}\`: ${expected}`
  return `\`${key}\`: expected ${expected}, found ${NOT_SHOWN.includes(key) ? shown(value) : described(value)}`
}

/** Where a URL may stand. */
function shown(value: unknown): string {
  return typeof value === 'string' ? 'another text (not shown)' : described(value)
}

/** By its name if it has one, else by its number from 1. */
function named(table: unknown, number: string): string {
  const name = isTable(table) ? table['name'] : undefined
  return typeof name === 'string' ? name : String(Number(number) + 1)
}

function valueAt(path: readonly string[], file: ConfigFile): unknown {
  return path.reduce<unknown>((at, name) => {
    if (Array.isArray(at)) return at[Number(name)]
    return isTable(at) ? at[name] : undefined
  }, file.table)
}

/** Of the innermost thing that stands in the file. */
function lineOf(path: readonly string[], file: ConfigFile): number | undefined {
  for (let length = path.length; length > 0; length--) {
    const line = file.lineOf(...path.slice(0, length))
    if (line !== undefined) return line
  }
  return undefined
}
