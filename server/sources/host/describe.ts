/** Renders the table of host metrics for docs/sensors.md; a test compares the two. */
import { BasicType } from '../../../protocol/monitor/constants.ts'
import { HOST_DEFINITIONS } from './definitions.ts'

const PLATFORMS = { all: 'all', unix: 'all but Windows', linux: 'Linux' } as const

/** A Markdown table, one line per metric, ending in a newline. */
export function describeHost(): string {
  const typeNames = new Map(Object.entries(BasicType).map(([name, type]) => [type, name]))
  const lines = HOST_DEFINITIONS.map(
    ({ name, type, unit, parameter, platforms, description }) =>
      `| \`${name}\` | ${typeNames.get(type)} | ${unit} | ${parameter ? `\`${parameter}\`` : ''} | ` +
      `${PLATFORMS[platforms]} | ${description} |\n`,
  )
  return `| metric | type | unit | parameter | on | what it says |\n|---|---|---|---|---|---|\n${lines.join('')}`
}
