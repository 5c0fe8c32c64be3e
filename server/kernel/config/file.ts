/** The configuration file as text and table. That it cannot be read is a problem like any other, not an exception. */
import { parse, TomlError, type TomlTable } from 'smol-toml'
import type { ConfigProblem } from './errors.ts'
import { isTomlTable } from './value-types.ts'

/** Throws as `readFileSync` does. */
export type ReadFile = (file: string) => Uint8Array

export interface ConfigFile {
  readonly name: string
  /** Empty where the file could not be read. Integers are bigint. */
  readonly table: TomlTable
  readonly lineOf: LineOf
  readonly problems: readonly ConfigProblem[]
}

export const NO_FILE: ConfigFile = { name: '', table: {}, lineOf: () => undefined, problems: [] }

export function readConfigFile(name: string, readFile: ReadFile): ConfigFile {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(readFile(name))
    return { name, table: parse(text, { integersAsBigInt: true }), lineOf: whenNeeded(text), problems: [] }
  } catch (error) {
    return { ...NO_FILE, problems: [{ source: name, ...reason(error) }] }
  }
}

function reason(error: unknown): Omit<ConfigProblem, 'source'> {
  if (error instanceof TomlError) {
    // Only the first line: below it the parser quotes the file, and with it whatever is secret there.
    const what = error.message.split('\n')[0]?.replace('Invalid TOML document: ', '')
    return { line: error.line, message: `not TOML: ${what} (column ${error.column})` }
  }
  if (!(error instanceof Error)) throw error
  if ('code' in error && error.code === 'ERR_ENCODING_INVALID_ENCODED_DATA') {
    return { message: 'not UTF-8 text: save the file as UTF-8' }
  }
  return { message: `cannot be read: ${error.message}` }
}

/**
 * The line, from 1, of the section `path[0]` or the key `path[1]` in it; for the tables of a list `path` continues with their
 * number from 0: ['exec', '2', 'parameter', '0', 'type']. undefined where the text does not name it.
 */
type LineOf = (...path: readonly string[]) => number | undefined

/** Only mistakes have lines, and a running server may read a large file again: the text is searched when the first is asked for. */
function whenNeeded(text: string): LineOf {
  let lineOf: LineOf | undefined
  return (...path) => {
    lineOf ??= keyLines(text)
    return lineOf(...path)
  }
}

/** A statement of several lines ends in one of these, so a list of thousands of lines is not parsed at each of them. */
const LAST_LINE = /([\]}]|"""|''')\s*(#.*)?$/

/**
 * Finds the lines of keys, which the parser does not report. A statement is the shortest run of lines that parses after its
 * section's header; so quoted and dotted keys, inline tables and strings that look like keys need no rules of their own. The
 * text as a whole must already have parsed.
 */
export function keyLines(text: string): LineOf {
  const lines = new Map<string, number>()
  const tables = new Tables()
  let header = ''
  let statement = ''
  let start = 1
  for (const [index, line] of text.split('\n').entries()) {
    const isFirst = statement === ''
    if (isFirst) start = index + 1
    statement += `${line}\n`
    if (!isFirst && !LAST_LINE.test(line)) continue
    const isHeader = /^\s*\[/.test(statement)
    const table = parsed(isHeader ? statement : header + statement)
    if (!table) continue
    if (isHeader) header = statement
    const numbered = isHeader ? tables.open(table) : tables.keys(table)
    for (const path of [...paths(table), ...numbered]) if (!lines.has(path)) lines.set(path, start)
    statement = ''
  }
  return (...path) => lines.get(JSON.stringify(path))
}

/** Where a statement stands among the tables of lists, which a header opens one by one. */
class Tables {
  readonly #counts = new Map<string, number>()
  /** The names of the last header, and where it is. */
  #names: readonly string[] = []
  #path: readonly string[] = []

  /** `table`: what the header alone parses to. */
  open(table: TomlTable): string[] {
    const names: string[] = []
    let inner: unknown = table
    let isList = false
    while (isTomlTable(inner) && Object.keys(inner).length > 0) {
      const [name = ''] = Object.keys(inner)
      names.push(name)
      inner = inner[name]
      isList = Array.isArray(inner)
    }
    this.#names = names
    this.#path = this.#resolve(names, isList)
    return [JSON.stringify(this.#path)]
  }

  keys(table: TomlTable): string[] {
    const inner = this.#names.reduce<unknown>((at, name) => {
      const next = isTomlTable(at) ? at[name] : undefined
      return Array.isArray(next) ? next[0] : next
    }, table)
    return isTomlTable(inner) ? Object.keys(inner).map((key) => JSON.stringify([...this.#path, key])) : []
  }

  #resolve(names: readonly string[], isList: boolean): string[] {
    const path: string[] = []
    for (const [index, name] of names.entries()) {
      path.push(name)
      const isLast = index === names.length - 1
      const key = JSON.stringify(path)
      const count = this.#counts.get(key) ?? 0
      if (isLast && isList) {
        this.#counts.set(key, count + 1)
        path.push(String(count))
      } else if (count > 0) path.push(String(count - 1))
    }
    return path
  }
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
    ...(isTomlTable(value) ? Object.keys(value).map((key) => JSON.stringify([section, key])) : []),
  ])
}
