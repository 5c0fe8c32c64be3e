/** The tables of docs/configuration.md. The page around them is written by hand; a test keeps the tables true. */
import { sectionAbout, sectionNames, settings } from './schema.ts'

const BEGIN =
  '<!-- tables: from server/config/schema.ts; `npx vitest run -u --config test/vitest.config.ts config/document` -->\n'
const END = '<!-- end of tables -->'

/** `page` with the tables between its two marks made anew. */
export function withConfigurationTables(page: string): string {
  const begin = page.indexOf(BEGIN)
  const end = page.indexOf(END)
  if (begin < 0 || end < begin)
    throw new Error(`the page has no ${JSON.stringify(BEGIN)} before ${JSON.stringify(END)}`)
  return `${page.slice(0, begin)}${BEGIN}\n${sectionNames.map(sectionTable).join('\n')}\n${page.slice(end)}`
}

function sectionTable(section: string): string {
  const rows = settings
    .filter((setting) => setting.section === section)
    .map(({ key, shown, expected, about }) => `| \`${key}\` | ${shown} | ${expected} | ${about} |\n`)
  return `### [${section}]\n\n${sectionAbout(section)}\n\n| key | default | expected | what it is |\n|---|---|---|---|\n${rows.join('')}`
}
