/**
 * What the schema refused, in words: which line or variable, which key, what was expected, what was found.
 * zod's messages are not used: they know neither the file nor the value type of the key.
 */
import type { z } from 'zod'
import type { Override } from './environment.ts'
import { type ConfigProblem, didYouMean } from './errors.ts'
import type { ConfigFile } from './file.ts'
import { type ConfigSchema, tableKeys } from './schema.ts'
import { described, docs, isTomlTable } from './value-types.ts'

export function explainIssue(
  issue: z.core.$ZodIssue,
  schema: ConfigSchema,
  file: ConfigFile,
  overrides: readonly Override[],
): readonly ConfigProblem[] {
  const [section, key, index] = issue.path.map(String)
  if (section !== undefined && schema.lists.includes(section)) return [explainTable(issue, schema, file)]
  if (issue.code === 'unrecognized_keys' && key === undefined) {
    return issue.keys.map((unknown) => ({
      source: file.name,
      line: section === undefined ? file.lineOf(unknown) : file.lineOf(section, unknown),
      message: section === undefined ? unknownSection(unknown, schema) : unknownKey(section, unknown, schema),
    }))
  }
  if (section === undefined || key === undefined) return [notASection(section ?? '', file)]

  const overrideOf = (name: string | undefined) =>
    overrides.find(({ setting }) => setting.section === section && setting.key === name)
  const placeOf = (name: string) => {
    const override = overrideOf(name)
    if (override) return { source: override.setting.variable }
    const line = file.lineOf(section, name)
    return line === undefined ? undefined : { source: file.name, line }
  }
  const name = `\`${section}.${key}\``
  const other: unknown = issue.code === 'custom' ? issue.params?.['also'] : undefined
  const place = placeOf(key) ?? (typeof other === 'string' ? placeOf(other) : undefined) ?? { source: 'default' }
  // Two keys that contradict each other: the schema has the message, and the place is whichever of them was written.
  if (typeof other === 'string') return [{ ...place, message: `${name}: ${issue.message}` }]
  const setting = schema.settings.find((candidate) => candidate.section === section && candidate.key === key)
  const written = file.table[section]
  const value = overrideOf(key)?.value ?? (isTomlTable(written) ? written[key] : undefined) ?? setting?.byDefault
  const found = index !== undefined && Array.isArray(value) ? value[Number(index)] : value
  const shown = setting?.isSecret ? withoutText(found) : foundIn(found, issue)
  return [{ ...place, message: `${name}: expected ${setting?.expected}, found ${shown}` }]
}

/** Describes what was found; in a table of a list, which of its keys is wrong. */
function foundIn(found: unknown, issue: z.core.$ZodIssue): string {
  const [, , index, key] = issue.path
  if (!isTomlTable(found) || index === undefined) return described(found)
  const place = `number ${Number(index) + 1} with`
  if (issue.code === 'unrecognized_keys')
    return `${place} the key ${issue.keys.map((name) => `\`${name}\``).join(', ')}`
  if (key === undefined) return described(found)
  return String(key) in found
    ? `${place} ${String(key)} = ${described(found[String(key)])}`
    : `${place}out \`${String(key)}\``
}

function notASection(section: string, file: ConfigFile): ConfigProblem {
  const message = `\`${section}\`: expected a section [${section}], found ${described(file.table[section])}`
  return { source: file.name, line: file.lineOf(section), message }
}

function unknownSection(section: string, { settings, tables, lists }: ConfigSchema): string {
  const homes = settings.filter(({ key }) => key === section).map((home) => `\`${home.section}.${home.key}\``)
  if (homes.length > 0) return `unknown section \`${section}\`: did you mean ${homes.join(' or ')}?`
  const all = [...tables, ...lists.map((list) => `[[${list}]]`)].join(', ')
  return `unknown section \`${section}\`${didYouMean(section, [...tables, ...lists]) || `: there are ${all}`}`
}

function unknownKey(section: string, key: string, { settings }: ConfigSchema): string {
  const keys = settings.filter((setting) => setting.section === section).map((setting) => setting.key)
  return `unknown key \`${section}.${key}\`${didYouMean(key, keys) || `: [${section}] has ${keys.join(', ')}`}`
}

/** The path of a mistake in a list: `[[section]]`, the number of the table, perhaps a list in it with a number, a key. */
function explainTable(issue: z.core.$ZodIssue, { sections }: ConfigSchema, file: ConfigFile): ConfigProblem {
  const path = issue.path.map(String)
  const problem = { source: file.name, line: innermostLine(path, file) }
  const [section = '', number, list = '', index] = path
  if (number === undefined) return { ...problem, message: `\`${section}\`: ${wrongList(issue, section, file)}` }
  const table = `\`[[${section}]]\` ${nameOrNumber(valueAt(path.slice(0, 2), file), number)}`
  const keys = keysOf(sections[section]?.type)
  const inner = index === undefined ? undefined : tableKeys(keys[list] as z.ZodType)
  if (index === undefined || inner === undefined) {
    return { ...problem, message: `${table}: ${wrongTable(issue, path.slice(2), keys, section, file)}` }
  }
  const place = `${table}, ${list} ${nameOrNumber(valueAt(path.slice(0, 4), file), index)}`
  return { ...problem, message: `${place}: ${wrongTable(issue, path.slice(4), inner, section, file)}` }
}

function keysOf(type: z.ZodType | undefined): Readonly<Record<string, z.ZodType>> {
  return (type && tableKeys(type)) ?? {}
}

function wrongList(issue: z.core.$ZodIssue, section: string, file: ConfigFile): string {
  if (issue.code === 'custom') return issue.message
  const found = file.table[section]
  if (found === undefined) return `there is no table [[${section}]]`
  return `expected tables [[${section}]], found ${withoutText(found)}`
}

/** Describes the mistake in a table as a whole, or in one key of it. */
function wrongTable(
  issue: z.core.$ZodIssue,
  [key]: readonly string[],
  keys: Readonly<Record<string, z.ZodType>>,
  section: string,
  file: ConfigFile,
): string {
  if (issue.code === 'unrecognized_keys') {
    const known = Object.keys(keys)
    const first = issue.keys[0] ?? ''
    return `unknown key \`${first}\`${didYouMean(first, known) || `: there are ${known.join(', ')}`}`
  }
  const isInnerList = key !== undefined && tableKeys(keys[key] as z.ZodType) !== undefined
  if (issue.code === 'custom' && (key === undefined || isInnerList)) return issue.message
  // The schema has the message for a part of a key.
  if (issue.code === 'custom' && issue.params?.['also'] === key) return `\`${key}\`: ${issue.message}`
  if (key === undefined) return `expected a table, found ${withoutText(valueAt(issue.path.map(String), file))}`
  const depth = issue.path.lastIndexOf(key) + 1
  const value = valueAt(issue.path.slice(0, depth).map(String), file)
  const { expected, isSecret } = docs.get(keys[key] as z.ZodType) ?? {
    expected: `tables [[${section}.${key}]]`,
    isSecret: false,
  }
  if (value === undefined) return `it needs \`${key}\`: ${expected}`
  return `\`${key}\`: expected ${expected}, found ${isSecret ? withoutText(value) : described(value)}`
}

/** For a value that may hold a secret. */
function withoutText(value: unknown): string {
  return typeof value === 'string' ? 'another text (not shown)' : described(value)
}

/** The name of a table if it has one, else its number from 1. */
function nameOrNumber(table: unknown, number: string): string {
  const name = isTomlTable(table) ? table['name'] : undefined
  return typeof name === 'string' ? name : String(Number(number) + 1)
}

function valueAt(path: readonly string[], file: ConfigFile): unknown {
  return path.reduce<unknown>((at, name) => {
    if (Array.isArray(at)) return at[Number(name)]
    return isTomlTable(at) ? at[name] : undefined
  }, file.table)
}

/** The line of the innermost part of the path that stands in the file. */
function innermostLine(path: readonly string[], file: ConfigFile): number | undefined {
  for (let length = path.length; length > 0; length--) {
    const line = file.lineOf(...path.slice(0, length))
    if (line !== undefined) return line
  }
  return undefined
}
