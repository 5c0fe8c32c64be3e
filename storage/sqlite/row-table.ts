/**
 * The table of a declared kind of rows (../rows.ts): its statements follow from the columns, which they name, and what they read is
 * checked against them. Blocks, GAPs and numbers have statements of their own (blocks.ts, state.ts, numbers.ts): a batch writes
 * thousands of them, straight from arrays of numbers, without an object for each.
 */
import { crc32 } from 'node:zlib'
import type { Database, Statement } from 'better-sqlite3'
import type { RowDeclaration } from '../row-declaration.ts'
import { declarationOf, type RowKind } from '../rows.ts'
import { refuse } from './errors.ts'
import { readColumns, type StoredValue, type TableColumn, tableColumns, UnfitError } from './table-columns.ts'

/** A row that is not what its declaration says. */
export interface DamagedRow {
  /** The values of its key. */
  readonly key: string
  readonly reason: string
}
export interface RowsFound<Row> {
  readonly sound: Row[]
  readonly damaged: DamagedRow[]
}

export class RowTable<Row extends object = object> {
  readonly #database: Database
  readonly #kind: RowKind
  readonly #declared: RowDeclaration
  readonly #columns: readonly TableColumn[]
  readonly #key: readonly TableColumn[]
  /** The names of all columns that are read, quoted. */
  readonly #names: readonly string[]
  readonly #put: Statement<unknown[]>
  readonly #remove: Statement<unknown[]>
  readonly #count: Statement<unknown[]> | undefined
  /** Reused for every row. */
  readonly #values: StoredValue[] = []

  constructor(database: Database, kind: RowKind) {
    const declared = declarationOf(kind)
    const { table, counter, hasChecksum, isAppendOnly } = declared
    this.#database = database
    this.#kind = kind
    this.#declared = declared
    this.#columns = tableColumns(declared.columns)
    this.#key = this.#named(declared.key)
    this.#names = [...this.#columns.flatMap(({ stored }) => stored), ...(hasChecksum ? ['checksum'] : [])]
    // The only row of its table has 1 as its key.
    const one = this.#key.length === 0
    const names = one ? ['one', ...this.#names] : this.#names
    const places = names.map((name) => (name === 'one' ? '1' : '?'))
    this.#put = database.prepare(
      `${isAppendOnly ? 'insert' : 'insert or replace'} into ${table} (${names}) values (${places})`,
    )
    this.#remove = database.prepare(`delete from ${table} where ${one ? 'one = 1' : equal(this.#key)}`)
    this.#count = counter && database.prepare(`update meta set ${counter} = max(${counter}, ? + 1)`)
  }

  put(row: Row): void {
    const values = this.#values
    values.length = 0
    for (const column of this.#columns) column.write(row[column.name as keyof Row], values)
    if (this.#declared.hasChecksum) values.push(checksum(values))
    this.#put.run(values)
    this.#count?.run(values[0])
  }

  /** Removes the row with the key that is in `row`; returns the key. */
  remove(row: object): unknown[] {
    const key = this.#key.map(({ name }) => row[name as keyof object])
    this.#remove.run(key)
    return key
  }

  /** Prepares the removal of the rows whose columns `by` hold the key of another row. */
  removalBy(by: readonly string[]): Statement<unknown[]> {
    return this.#database.prepare(`delete from ${this.#declared.table} where ${equal(this.#named(by))}`)
  }

  /** The same for some of them: it takes the key twice, and then the number of rows. */
  removalOfSome(by: readonly string[]): Statement<unknown[]> {
    const { table } = this.#declared
    const owner = this.#named(by)
    const rest = this.#key.filter((column) => !owner.includes(column)).flatMap(({ stored }) => stored)
    const where = equal(owner)
    return this.#database.prepare(
      `delete from ${table} where ${where} and (${rest}) in (select ${rest} from ${table} where ${where} limit ?)`,
    )
  }

  /** All rows in their order, but for those of an owner that was removed and is not gone yet. */
  all(): RowsFound<Row> {
    const { key, order = key, goesWith = [] } = this.#declared
    const kept = goesWith.flatMap(({ kind, by, isInPieces }) => {
      const columns = this.#named(by).flatMap(({ stored }) => stored)
      return isInPieces ? [`${columns} not in (select id from removal where subject = '${kind}')`] : []
    })
    const by = order === 'stored' ? ['rowid'] : this.#named(order).flatMap(({ stored }) => stored)
    return this.#read(this.#select(`where ${['true', ...kept].join(' and ')} order by ${by.join() || 'one'}`).iterate())
  }

  /** Prepares a read of some rows. It throws StorageError DAMAGED if one is not sound. */
  selection(clauses: string): (...parameters: readonly StoredValue[]) => Row[] {
    const statement = this.#select(clauses)
    return (...parameters) => this.sound(this.#read(statement.iterate(...parameters)))
  }

  /** Throws StorageError DAMAGED if a row is not sound. */
  sound({ sound, damaged: [first] }: RowsFound<Row>): Row[] {
    if (first === undefined) return sound
    throw refuse('DAMAGED', this.#database.name, `${this.#kind} ${first.key} ${first.reason}`)
  }

  #named(names: readonly string[]): TableColumn[] {
    return names.map((name) => this.#columns.find((column) => column.name === name)!)
  }

  #select(clauses: string): Statement<unknown[], unknown[]> {
    return this.#database
      .prepare<unknown[], unknown[]>(`select ${this.#names} from ${this.#declared.table} ${clauses}`)
      .raw()
  }

  #read(rows: Iterable<unknown[]>): RowsFound<Row> {
    const found: RowsFound<Row> = { sound: [], damaged: [] }
    for (const stored of rows) {
      try {
        found.sound.push(this.#rowOf(stored))
      } catch (error) {
        if (!(error instanceof UnfitError)) throw error
        const key = this.#key.map((column) => stored[this.#names.indexOf(column.stored[0]!)])
        found.damaged.push({ key: key.join(' '), reason: error.message })
      }
    }
    return found
  }

  #rowOf(stored: readonly unknown[]): Row {
    if (this.#declared.hasChecksum && stored.at(-1) !== checksum(stored.slice(0, -1))) {
      throw new UnfitError('does not match its checksum')
    }
    return readColumns(this.#columns, stored) as Row
  }
}

function equal(columns: readonly TableColumn[]): string {
  return columns.flatMap(({ stored }) => stored.map((name) => `${name} = ?`)).join(' and ')
}

/** The CRC-32 of the stored values as a JSON array, bytes as arrays of numbers. */
function checksum(values: readonly unknown[]): number {
  return crc32(JSON.stringify(values.map((value) => (value instanceof Uint8Array ? [...value] : value))))
}
