/**
 * On which line a key of a TOML text stands, which the parser does not tell. A statement is the shortest run of lines
 * that parses behind its section's header; so quoted and dotted keys, inline tables and strings that look like keys
 * need no rules of their own. The text as a whole must already have parsed.
 */
import { parse, type TomlTable } from 'smol-toml'

/** The line, from 1, of the section `path[0]` or the key `path[1]` in it; undefined where the text does not name it. */
export type LineOf = (...path: readonly string[]) => number | undefined

export function keyLines(text: string): LineOf {
  const lines = new Map<string, number>()
  let header = ''
  let statement = ''
  let start = 1
  for (const [index, line] of text.split('\n').entries()) {
    if (statement === '') start = index + 1
    statement += `${line}\n`
    const isHeader = /^\s*\[/.test(statement)
    const table = parsed(isHeader ? statement : header + statement)
    if (!table) continue
    if (isHeader) header = statement
    for (const path of paths(table)) if (!lines.has(path)) lines.set(path, start)
    statement = ''
  }
  return (...path) => lines.get(JSON.stringify(path))
}

function parsed(text: string): TomlTable | undefined {
  try {
    return parse(text, { integersAsBigInt: true })
  } catch {
    return undefined
  }
}

function paths(table: TomlTable): string[] {
  return Object.entries(table).flatMap(([section, value]) => [
    JSON.stringify([section]),
    ...(isTable(value) ? Object.keys(value).map((key) => JSON.stringify([section, key])) : []),
  ])
}

export function isTable(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date)
}
