/** Secrets that stand in a file: its first line, so that a newline behind it does no harm. Never an argument, never said. */
import { readFileSync, statSync } from 'node:fs'
import { ExitCode, Failure } from './failure.ts'
import type { Terminal } from './terminal.ts'

/** Longer is no line that a secret stands in. */
const MAX_LINE = 65_536
/** In the place of a file's name. */
export const STDIN = '-'
const READABLE_BY_ALL = 0o004

/** The first line of a file that was named for it, of the standard input with `-`. Throws Failure. */
export async function readSecret(file: string, terminal: Pick<Terminal, 'input' | 'note'>): Promise<string> {
  try {
    if (file === STDIN) return lineOf(await readInput(terminal.input))
    const line = firstLine(file)
    warnIfOpen(file, terminal)
    return line
  } catch (error) {
    const from = file === STDIN ? 'the standard input' : file
    throw new Failure(ExitCode.USAGE, `no secret can be read from ${from}: ${(error as Error).message}`, {
      cause: error,
    })
  }
}

/** Throws the system's error, or that there is none. */
export function firstLine(file: string): string {
  return lineOf(readFileSync(file, 'utf8'))
}

/** Says so where everybody on this machine can read what only its owner should. */
export function warnIfOpen(file: string, { note }: Pick<Terminal, 'note'>): void {
  const stats = statSync(file)
  if (stats.isFile() && (stats.mode & READABLE_BY_ALL) !== 0) {
    note(`warning: everybody on this machine can read ${file}; better: chmod 600 ${file}`)
  }
}

function lineOf(text: string): string {
  const [line = ''] = text.split(/\r?\n/)
  if (line === '') throw new Error('it is empty, or begins with an empty line')
  return line
}

async function readInput(input: Terminal['input']): Promise<string> {
  let text = ''
  for await (const chunk of input) {
    text += String(chunk)
    if (text.includes('\n') || text.length > MAX_LINE) break
  }
  return text
}
