/**
 * How the columns of a row lie in a table: a flag is 0 or 1, undefined is null, and a group is one column for each of its own.
 * Whatever is read is checked: the tables are STRICT, but SQLite does not know words and flags, and a page may be damaged.
 */
import type { RowColumn, RowColumns, ValueLayout } from '../columns.ts'

/** A value as SQLite gives and takes it. */
export type StoredValue = number | string | Uint8Array | null

/** A stored value is not one of its column. */
export class UnfitError extends Error {}

export interface TableColumn {
  /** Its name in the row. */
  readonly name: string
  /** The names of its columns in the table, quoted. */
  readonly stored: readonly string[]
  /** Appends what is stored for a value. */
  write(value: unknown, to: StoredValue[]): void
  /** Returns the value that is stored from `at` on. Throws UnfitError. */
  read(from: readonly unknown[], at: number): unknown
}

export function tableColumns(columns: RowColumns, prefix = ''): TableColumn[] {
  return Object.entries(columns).map(([name, column]) => {
    const stored = `${prefix}${column.sqlName ?? snakeCase(name)}`
    return column.layout.kind === 'group'
      ? groupOf(name, tableColumns(column.layout.columns, `${stored}_`), column)
      : singleOf(name, `"${stored}"`, column.layout, column)
  })
}

function singleOf(name: string, stored: string, layout: ValueLayout, { isOptional }: RowColumn): TableColumn {
  const read = reader(layout)
  return {
    name,
    stored: [stored],
    write(value, to) {
      // SQLite would replace null by the default of the column.
      if (value === undefined && !isOptional) throw new TypeError(`a row without ${name}`)
      to.push(typeof value === 'boolean' ? Number(value) : ((value ?? null) as StoredValue))
    },
    read(from, at) {
      const value = from[at]
      if (value === null && isOptional) return undefined
      const found = read(value)
      if (found === undefined) throw new UnfitError(`has a damaged ${name}`)
      return found
    },
  }
}

function groupOf(name: string, parts: readonly TableColumn[], { isOptional }: RowColumn): TableColumn {
  const stored = parts.flatMap((part) => part.stored)
  return {
    name,
    stored,
    write(value, to) {
      if (value === undefined && isOptional) to.push(...stored.map(() => null))
      else for (const part of parts) part.write((value as Record<string, unknown>)[part.name], to)
    },
    read(from, at) {
      if (isOptional && stored.every((_, index) => from[at + index] === null)) return undefined
      return readColumns(parts, from, at)
    },
  }
}

/** The object whose columns are stored from `at` on. Throws UnfitError. */
export function readColumns(columns: readonly TableColumn[], from: readonly unknown[], at = 0): object {
  const found: Record<string, unknown> = {}
  let next = at
  for (const column of columns) {
    found[column.name] = column.read(from, next)
    next += column.stored.length
  }
  return found
}

/** Returns what reads a stored value, and gives undefined for one that is none. */
function reader(layout: ValueLayout): (value: unknown) => unknown {
  switch (layout.kind) {
    case 'number':
      return (value) => (typeof value === 'number' ? value : undefined)
    case 'text':
      return (value) => (typeof value === 'string' ? value : undefined)
    case 'bytes':
      return (value) => (value instanceof Uint8Array ? value : undefined)
    case 'flag':
      return (value) => (value === 0 || value === 1 ? value === 1 : undefined)
    case 'word': {
      const words = new Set<unknown>(Object.keys(layout.numbers))
      return (value) => (words.has(value) ? value : undefined)
    }
  }
}

function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}
