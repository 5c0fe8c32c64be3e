/** The configuration file as text and table. That it cannot be read is a problem like any other, not an exception. */
import { parse, TomlError, type TomlTable } from 'smol-toml'
import type { ConfigProblem } from './errors.ts'
import { keyLines, type LineOf } from './lines.ts'

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
    return { name, table: parse(text, { integersAsBigInt: true }), lineOf: keyLines(text), problems: [] }
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
