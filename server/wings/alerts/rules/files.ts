/** Rule files on the disk: those that patterns stand for, each read as a whole or not at all. */
import { readdir, readFile, stat } from 'node:fs/promises'
import { basename, dirname, resolve } from 'node:path'
import { type RuleFileProblem, type RuleGroupDefinition, readRuleFile } from './rule-file.ts'

/** A file is parsed in one step. */
const MAX_FILE_BYTES = 4 << 20

export interface RuleFile {
  readonly path: string
  readonly groups: readonly RuleGroupDefinition[]
  readonly problems: readonly RuleFileProblem[]
}

export async function readRules(path: string): Promise<RuleFile> {
  const text = await fileText(path)
  if ('problem' in text) return { path, groups: [], problems: [{ message: text.problem, line: undefined }] }
  const file = await readRuleFile(text.text)
  return 'groups' in file ? { path, groups: file.groups, problems: [] } : { path, groups: [], problems: file.problems }
}

export async function fileText(path: string): Promise<{ readonly text: string } | { readonly problem: string }> {
  try {
    const { size } = await stat(path)
    if (size > MAX_FILE_BYTES) return { problem: `it has ${size} bytes, at most ${MAX_FILE_BYTES} are read` }
    return { text: new TextDecoder('utf-8', { fatal: true }).decode(await readFile(path)) }
  } catch (error) {
    if (error instanceof TypeError) return { problem: 'it is not UTF-8' }
    return { problem: `cannot be read: ${(error as Error).message}` }
  }
}

/** The files that a pattern stands for, whose last part may have stars and question marks. Rejects if its directory cannot be read. */
export async function pathsOf(pattern: string): Promise<readonly string[]> {
  const last = basename(pattern)
  if (!/[*?]/.test(last)) return [pattern]
  const parts = last
    .replace(/[^*?\w]/g, '\\$&')
    .replaceAll('*', '[^/]*')
    .replaceAll('?', '[^/]')
  const expression = new RegExp(`^${parts}$`)
  const names = await readdir(dirname(pattern))
  return names
    .filter((name) => expression.test(name))
    .sort()
    .map((name) => resolve(dirname(pattern), name))
}

/** Where a group is among all, whichever directory its file is in. */
export function groupPlace(tenant: string, path: string, group: string): readonly [string, string, string] {
  return [tenant, nameOf(path), group]
}

/** The last part of a path, by which alerts are stored: a directory may be moved. */
export function nameOf(path: string): string {
  return basename(path)
}
