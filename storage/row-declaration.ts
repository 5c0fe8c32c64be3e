/** What the declaration of a kind of rows says (rows.ts). */
import type { ColumnValues, RowColumns } from './columns.ts'

/** A row of another kind, with which the row goes. */
export interface RowOwner {
  readonly kind: 'user' | 'channel' | 'binding'
  /** The columns that hold the key of the owner, in the order of its key. */
  readonly by: readonly string[]
  /** There may be many: a store may mark them, and remove them later in pieces. */
  readonly isInPieces?: true
}

/** A form of the row that an earlier version writes to the log. It is read as the row of today, and never written. */
interface EarlierForm<C extends RowColumns = RowColumns> {
  readonly tag: number
  /** The columns that it lacks, with what they are in its rows. None of them is in the key or the removal. */
  readonly lacks: Partial<ColumnValues<C>>
}

export interface RowDeclaration<C extends RowColumns = RowColumns> {
  readonly columns: C
  /** The number of the kind in records; that of its removal is 128 more. */
  readonly tag: number
  readonly earlier?: readonly EarlierForm[]
  readonly table: string
  /** The columns by which rows are told apart. Without any, there is one row or none. */
  readonly key: readonly string[]
  /** The order in which rows are recovered, if it is not that of the key: by these columns, or as they were stored. */
  readonly order?: readonly string[] | 'stored'
  /** The columns of a removal: those of the key, or columns of its own if it removes several rows. Without it none is removed. */
  readonly removal?: 'key' | RowColumns
  /** The list of Recovered in which the rows are; without it the store reads them otherwise. */
  readonly recoveredAs?: string
  readonly goesWith?: readonly RowOwner[]
  /** The column of `meta` that is above all ids ever given: none is given twice. */
  readonly counter?: 'next_user' | 'next_rule' | 'next_token' | 'next_board'
  /** Each row has a checksum over its columns, since it decides who may do what. */
  readonly hasChecksum?: true
  /** A row with a key that is stored is refused, not replaced. */
  readonly isAppendOnly?: true
  /** What follows for people if a row is left out because it is damaged; without it the store is not opened. */
  readonly leftOut?: string
}

/** Everything of a declaration but its columns, whose names it may use. */
type Described<C extends RowColumns> = Omit<RowDeclaration, 'columns' | 'earlier' | 'key' | 'order' | 'goesWith'> & {
  readonly earlier?: readonly EarlierForm<C>[]
  readonly key: readonly (keyof C & string)[]
  readonly order?: readonly (keyof C & string)[] | 'stored'
  readonly goesWith?: readonly (RowOwner & { readonly by: readonly (keyof C & string)[] })[]
}

export function row<const C extends RowColumns, const D extends Described<C>>(columns: C, described: D) {
  return { ...described, columns }
}
