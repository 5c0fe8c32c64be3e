/**
 * A relative path of the configuration file starts at the directory of the file, so that the file means the same wherever the
 * server or a command is started. A path in a variable of the environment, or in an option, starts at the current directory.
 */
import { dirname, resolve } from 'node:path'
import { z } from 'zod'
import type { ConfigSchema, Setting } from './schema.ts'
import { isTomlTable, pathTypes } from './value-types.ts'

/** The directory at which the relative paths of the file start. */
export function configDirectoryOf(file: string | undefined): string {
  return resolve(dirname(file ?? '.'))
}

/** What stands in the file, by section. */
export type WrittenTables = Readonly<Record<string, unknown>>

/** Every path of the file as an absolute one; without a file nothing is relative to one. */
export function inDirectory(
  { sections }: ConfigSchema,
  table: WrittenTables,
  directory: string | undefined,
): WrittenTables {
  if (directory === undefined) return table
  const entries = Object.entries(table).map(([name, values]) => {
    const section = Object.hasOwn(sections, name) ? sections[name] : undefined
    return [name, section === undefined ? values : absolutePaths(section.type, values, directory)]
  })
  return Object.fromEntries(entries)
}

/** Where the file leaves out a path whose default is not empty, the default is relative to the file, too. */
export function withDefaultPaths(
  settings: readonly Setting[],
  tables: WrittenTables,
  directory: string | undefined,
): WrittenTables {
  if (directory === undefined) return tables
  const all: Record<string, unknown> = { ...tables }
  for (const { section, key, isPath, byDefault } of settings) {
    const table = all[section]
    if (!isPath || !byDefault || !isTomlTable(table) || Object.hasOwn(table, key)) continue
    all[section] = { ...table, [key]: resolve(directory, String(byDefault)) }
  }
  return all
}

/** `value` as it stands in the file, with every path in it made absolute. What has the wrong type stays as it is. */
function absolutePaths(type: z.core.$ZodType, value: unknown, directory: string): unknown {
  if (pathTypes.has(type)) return typeof value === 'string' && value !== '' ? resolve(directory, value) : value
  if (type instanceof z.ZodObject) {
    if (!isTomlTable(value)) return value
    const entries = Object.entries(value).map(([key, inner]) => {
      const inside = Object.hasOwn(type.shape, key) ? (type.shape[key] as z.core.$ZodType) : undefined
      return [key, inside === undefined ? inner : absolutePaths(inside, inner, directory)]
    })
    return Object.fromEntries(entries)
  }
  if (type instanceof z.ZodArray) {
    return Array.isArray(value) ? value.map((item) => absolutePaths(type.element, item, directory)) : value
  }
  if (type instanceof z.ZodPipe) return absolutePaths(type.in, value, directory)
  const isWrapped = type instanceof z.ZodPrefault || type instanceof z.ZodDefault || type instanceof z.ZodOptional
  return isWrapped ? absolutePaths(type.unwrap(), value, directory) : value
}
