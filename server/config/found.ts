/** A value of the configuration file in words: what was found where something else was expected. */
import { toml } from './kinds.ts'
import { isTable } from './lines.ts'

export function described(value: unknown): string {
  if (Array.isArray(value)) return 'a list'
  if (value instanceof Date) return 'a date'
  if (isTable(value)) return 'a table'
  if (typeof value === 'number') return `the float ${Number.isInteger(value) ? value.toFixed(1) : value}`
  const text = toml(value)
  return text.length <= 80 ? text : `${text.slice(0, 80)}...`
}
