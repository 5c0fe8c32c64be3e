/**
 * The kinds of columns of which rows.ts declares the stored rows, as data. The table of SQLite (sqlite/row-table.ts), the record of
 * the replicated log (replicated/changes.ts) and the store in memory of the tests interpret them; none of them names a column.
 */

/** A name of its own for the type of a column: TypeScript writes a bare Uint8Array as Uint8Array<…>, which compilers before 5.7 do not know. */
export interface Bytes extends Uint8Array {}

export type ValueLayout =
  | { readonly kind: 'number' | 'text' | 'bytes' | 'flag' }
  /** One of a few words: the text in the table, a number that never changes in a record. */
  | { readonly kind: 'word'; readonly numbers: Readonly<Record<string, number>> }
/** How a column is stored: as one value, or as several columns that are all there or all missing. */
export type ColumnLayout = ValueLayout | { readonly kind: 'group'; readonly columns: RowColumns }

export interface RowColumn<Value = unknown> {
  readonly layout: ColumnLayout
  /** The value may be undefined: null in the table. */
  readonly isOptional: boolean
  /** Its name in the table, unless that is its name in the row in snake case: `window_bytes` for `windowBytes`. */
  readonly sqlName?: string
  /** It is never there: only the compiler reads it. */
  readonly value?: Value
}

/** The columns of a row, in the order of its record and of its checksum. */
export type RowColumns = Readonly<Record<string, RowColumn>>

/** A row with these columns. */
export type ColumnValues<C> = { readonly [Name in keyof C]: C[Name] extends RowColumn<infer Value> ? Value : never }

function plain<Value>(kind: 'number' | 'text' | 'bytes' | 'flag'): RowColumn<Value> {
  return { layout: { kind }, isOptional: false }
}

export const columnKinds = {
  /** Any number but NaN. */
  number: plain<number>('number'),
  text: plain<string>('text'),
  bytes: plain<Bytes>('bytes'),
  flag: plain<boolean>('flag'),
  /** One of these words. The numbers are those of records, and never change. */
  word<const Word extends string>(numbers: Readonly<Record<Word, number>>): RowColumn<Word> {
    return { layout: { kind: 'word', numbers }, isOptional: false }
  },
  /** An object. Its columns in the table have the name of the group and an underscore before theirs. */
  group<const C extends RowColumns>(columns: C): RowColumn<ColumnValues<C>> {
    return { layout: { kind: 'group', columns }, isOptional: false }
  },
  optional<Value>(column: RowColumn<Value>): RowColumn<Value | undefined> {
    return { ...column, isOptional: true }
  },
  /** A column whose name is a word of SQL, or was another one. */
  named<Value>(sqlName: string, column: RowColumn<Value>): RowColumn<Value> {
    return { ...column, sqlName }
  },
} as const
