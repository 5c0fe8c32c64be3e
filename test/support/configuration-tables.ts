/** The tables of docs/configuration.md. The page around them is written by hand; a test keeps the tables true. */
import type { z } from 'zod'
import { type Section, tableKeys } from '../../server/kernel/config/schema.ts'
import { docs } from '../../server/kernel/config/value-types.ts'
import { schema } from '../../server/start/config.ts'

const BEGIN =
  '<!-- tables: from the schema; `npx vitest run -u --config test/vitest.config.ts config/configuration-tables` -->\n'
const END = '<!-- end of tables -->'

/** `page` with the tables between its two marks made anew. */
export function withConfigurationTables(page: string): string {
  const begin = page.indexOf(BEGIN)
  const end = page.indexOf(END)
  if (begin < 0 || end < begin)
    throw new Error(`the page has no ${JSON.stringify(BEGIN)} before ${JSON.stringify(END)}`)
  return `${page.slice(0, begin)}${BEGIN}\n${[...schema.tables.map(tableOf), ...schema.lists.flatMap(tablesOfList)].join('\n')}\n${page.slice(end)}`
}

const HEAD = '| key | default | expected | what it is |\n|---|---|---|---|\n'

function tableOf(section: string): string {
  const type = schema.sections[section as keyof typeof schema.sections].type
  return `### [${section}]\n\n${rowsOf(type)}`
}

/** The table of a list, and those of the lists in its tables, but for keys whose line says what their lists look like. */
function tablesOfList(section: string): string[] {
  const { type, isLive = false } = schema.sections[section as keyof typeof schema.sections] as Section
  const inner = Object.entries(tableKeys(type) ?? {}).filter(([, of]) => tableKeys(of) !== undefined && !docs.has(of))
  return [
    `### [[${section}]]\n\n${rowsOf(type, isLive ? ' *Live* as a whole.' : '')}`,
    ...inner.map(([key, of]) => `### [[${section}.${key}]]\n\n${rowsOf(of)}`),
  ]
}

function rowsOf(type: z.ZodType, more = ''): string {
  const rows = Object.entries(tableKeys(type) ?? {}).map(([key, of]) => {
    const found = docs.get(of)
    return found === undefined
      ? ''
      : `| \`${key}\` | ${found.shown} | ${found.expected} | ${found.about}${found.isLive ? ' *Live.*' : ''} |\n`
  })
  return `${type.description}${more}\n\n${HEAD}${rows.join('')}`
}
