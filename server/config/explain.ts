/**
 * What the schema refused, in words: which line or variable, which key, what was expected, what was found.
 * zod's messages are not used: they know neither the file nor the key's kind.
 */
import type { z } from 'zod'
import type { Override } from './environment.ts'
import { explainTables, isTableList } from './explain-tables.ts'
import type { ConfigFile } from './file.ts'
import { described } from './found.ts'
import { isTable } from './lines.ts'
import { type ConfigProblem, didYouMean } from './problems.ts'
import { sectionNames, settings } from './schema.ts'

export function explain(
  issue: z.core.$ZodIssue,
  file: ConfigFile,
  overrides: readonly Override[],
): readonly ConfigProblem[] {
  const [section, key, index] = issue.path.map(String)
  if (isTableList(section)) return [explainTables(issue, file)]
  if (issue.code === 'unrecognized_keys' && key === undefined) {
    return issue.keys.map((unknown) => ({
      source: file.name,
      line: section === undefined ? file.lineOf(unknown) : file.lineOf(section, unknown),
      message: section === undefined ? unknownSection(unknown) : unknownKey(section, unknown),
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
  // Two keys that contradict each other: the schema has said it, and the place is whichever of them was written.
  if (typeof other === 'string') return [{ ...place, message: `${name}: ${issue.message}` }]
  const setting = settings.find((candidate) => candidate.section === section && candidate.key === key)
  const written = file.table[section]
  const value = overrideOf(key)?.value ?? (isTable(written) ? written[key] : undefined) ?? setting?.byDefault
  const found = index !== undefined && Array.isArray(value) ? value[Number(index)] : value
  return [{ ...place, message: `${name}: expected ${setting?.expected}, found ${foundIn(found, issue)}` }]
}

/** Of a table in a list: which of its keys is wrong. */
function foundIn(found: unknown, issue: z.core.$ZodIssue): string {
  const [, , index, key] = issue.path
  if (!isTable(found) || index === undefined) return described(found)
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

function unknownSection(section: string): string {
  const homes = settings.filter(({ key }) => key === section).map((home) => `\`${home.section}.${home.key}\``)
  if (homes.length > 0) return `unknown section \`${section}\`: did you mean ${homes.join(' or ')}?`
  return `unknown section \`${section}\`${didYouMean(section, sectionNames) || `: there are ${sectionNames.join(', ')}`}`
}

function unknownKey(section: string, key: string): string {
  const keys = settings.filter((setting) => setting.section === section).map((setting) => setting.key)
  return `unknown key \`${section}.${key}\`${didYouMean(key, keys) || `: [${section}] has ${keys.join(', ')}`}`
}
