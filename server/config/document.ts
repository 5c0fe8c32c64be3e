/** The tables of docs/configuration.md. The page around them is written by hand; a test keeps the tables true. */
import type { z } from 'zod'
import { execKeys, parameterKeys } from '../controls/exec/config.ts'
import { qmfKeys } from '../sources/qmf/config.ts'
import { notes } from './kinds.ts'
import { type Setting, sectionAbout, sectionNames, settings } from './schema.ts'

const BEGIN =
  '<!-- tables: from server/config/schema.ts; `npx vitest run -u --config test/vitest.config.ts config/document` -->\n'
const END = '<!-- end of tables -->'

/** `page` with the tables between its two marks made anew. */
export function withConfigurationTables(page: string): string {
  const begin = page.indexOf(BEGIN)
  const end = page.indexOf(END)
  if (begin < 0 || end < begin)
    throw new Error(`the page has no ${JSON.stringify(BEGIN)} before ${JSON.stringify(END)}`)
  return `${page.slice(0, begin)}${BEGIN}\n${[...sectionNames.map(sectionTable), execTables(), qmfTables()].join('\n')}\n${page.slice(end)}`
}

const HEAD = '| key | default | expected | what it is |\n|---|---|---|---|\n'

function sectionTable(section: string): string {
  const rows = settings.filter((setting) => setting.section === section).map(row)
  return `### [${section}]\n\n${sectionAbout(section)}\n\n${HEAD}${rows.join('')}`
}

function execTables(): string {
  return (
    '### [[exec]]\n\nPrograms that may be run as controls, one table each; only in the file. How to write one: ' +
    `[controls.md](controls.md#exec).\n\n${HEAD}${listRows(execKeys)}\n` +
    `### [[exec.parameter]]\n\nThe parameters of the \`[[exec]]\` above it.\n\n${HEAD}${listRows(parameterKeys)}`
  )
}

function qmfTables(): string {
  return (
    '### [[qmf]]\n\nQpid brokers that the server connects to, one table each; only in the file. What they give: ' +
    `[sensors.md](sensors.md#qmf).\n\n${HEAD}${listRows(qmfKeys)}`
  )
}

function listRows(keys: Readonly<Record<string, z.ZodType>>): string {
  const rows = Object.entries(keys).map(([key, type]) => {
    const noted = notes.get(type)
    return noted === undefined ? '' : row({ key, ...noted })
  })
  return rows.join('')
}

function row({ key, shown, expected, about }: Pick<Setting, 'key' | 'shown' | 'expected' | 'about'>): string {
  return `| \`${key}\` | ${shown} | ${expected} | ${about} |\n`
}
