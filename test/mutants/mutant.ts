/**
 * A mutant is a defect made on purpose: a patch, and the test that has to fail with it. The lines of a patch are looked up
 * by what they say and not by their numbers, so a patch still fits after its file has changed elsewhere.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'

export interface Mutant {
  /** The name of its file, without the extension. */
  readonly name: string
  /** The test that has to fail. */
  readonly test: NamedTest
  /** A sentence that says what is broken. */
  readonly defect: string
  /** The file that is changed, from the root of the tree. */
  readonly file: string
  readonly hunks: readonly Hunk[]
}

export interface NamedTest {
  /** From the root of the tree. */
  readonly file: string
  /** Its full name: those of the groups around it, and its own, with spaces between. */
  readonly name: string
}

/** Whole lines, without the last newline. */
interface Hunk {
  readonly before: string
  readonly after: string
}

/** The mutants of a folder, by name. Throws if a patch cannot be read. */
export function mutantsIn(folder: string): Mutant[] {
  const files = readdirSync(folder).filter((file) => file.endsWith('.patch'))
  return files.sort().map((file) => parseMutant(basename(file, '.patch'), readFileSync(join(folder, file), 'utf8')))
}

export function parseMutant(name: string, text: string): Mutant {
  const header = /^# test: (test\/\S+\.test\.ts)\n# name: (.+)\n# (.+\.)\n/.exec(text)
  if (header === null) {
    throw new Error(`${name}: a patch begins with the lines "# test: FILE", "# name: NAME" and "# SENTENCE"`)
  }
  const [, testFile = '', testName = '', defect = ''] = header
  const files = [...text.matchAll(/^\+\+\+ b\/(.+)$/gm)].map(([, file]) => file as string)
  const [file] = files
  if (file === undefined || files.length > 1) throw new Error(`${name}: a patch changes one file`)
  const [, ...hunks] = text.split(/^@@.*\n/m)
  if (hunks.length === 0) throw new Error(`${name}: the patch changes nothing`)
  return { name, test: { file: testFile, name: testName }, defect, file, hunks: hunks.map(parseHunk) }
}

function parseHunk(text: string): Hunk {
  const lines = text.replace(/\n$/, '').split('\n')
  const without = (sign: string): string =>
    lines
      .filter((line) => !line.startsWith(sign))
      .map((line) => line.slice(1))
      .join('\n')
  return { before: without('+'), after: without('-') }
}

/** The source with the defect. Throws unless each hunk fits in exactly one place. */
export function applyMutant({ name, file, hunks }: Mutant, source: string): string {
  let mutated = `\n${source}`
  for (const { before, after } of hunks) {
    const places = mutated.split(`\n${before}\n`).length - 1
    if (places !== 1) {
      throw new Error(`${name}: these lines are in ${places} places of ${file}, make the patch anew:\n${before}`)
    }
    mutated = mutated.replace(`\n${before}\n`, () => `\n${after}\n`)
  }
  return mutated.slice(1)
}
