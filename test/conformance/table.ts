/**
 * The table of docs/conformance.md: clause by clause the scripts that try it. `npx tsx test/conformance/table.ts` writes it;
 * the test beside this file tells when that is due.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { readScripts, type Script } from './script.ts'

export const DOCUMENT = new URL('../../docs/conformance.md', import.meta.url)
const TABLE = /(<!-- table: scripts -->\n)[\s\S]*?(<!-- end -->)/

/** The document with its table as the scripts are. Throws Error if it has no place for one. */
export function refresh(document: string, scripts: readonly Script[]): string {
  if (!TABLE.test(document)) throw new Error('docs/conformance.md has no <!-- table: scripts --> with its <!-- end -->')
  return document.replace(TABLE, (_, begin: string, end: string) => `${begin}\n${tableOf(scripts)}\n${end}`)
}

function tableOf(scripts: readonly Script[]): string {
  const clauses = new Map<string, string[]>()
  for (const { name, clauses: tried } of scripts) {
    for (const clause of tried) clauses.set(clause, [...(clauses.get(clause) ?? []), name])
  }
  const rows = [...clauses]
    .sort(([a], [b]) => orderOf(a) - orderOf(b))
    .map(([clause, names]) => `| ${clause} | ${names.map((name) => `\`${name}\``).join(', ')} |\n`)
  return `| clause | scripts |\n|---|---|\n${rows.join('')}`
}

function orderOf(clause: string): number {
  const [section = 0, part = 0] = clause.split('.').map(Number)
  return section * 100 + part
}

if (import.meta.url === `file://${process.argv[1]}`) {
  const scripts = readScripts(new URL('scripts/', import.meta.url))
  writeFileSync(DOCUMENT, refresh(readFileSync(DOCUMENT, 'utf8'), scripts))
}
