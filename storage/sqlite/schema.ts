/**
 * Whether a database has exactly the tables and indexes that the migrations make. Whoever could write to a backup might otherwise
 * bring in triggers that run with every batch, or a view in the place of a table, which is found at the first write.
 */
import type { Database } from 'better-sqlite3'
import { openSqlite } from './driver.ts'
import { MIGRATIONS, migrate } from './migrations.ts'

interface SchemaRow {
  readonly type: string
  readonly name: string
  readonly tbl_name: string
  /** Null for an index that a constraint makes. */
  readonly sql: string | null
}

/** What `analyze` makes; the migrations do not. It only affects how queries are run. */
const STATISTICS = /^sqlite_stat[14]$/

/** What is different, for people; undefined if nothing is. The database may have an older format. */
export function schemaProblem(database: Database): string | undefined {
  const format = Number(database.pragma('user_version', { simple: true }))
  const [found, expected] = [schemaOf(database), expectedSchema(format)]
  for (const [key, { type, name, sql }] of found) {
    if (type === 'trigger' || type === 'view')
      return `it has the ${type} ${name}, and no version of the server makes one`
    const same = expected.get(key)
    if (same === undefined && !(type === 'table' && STATISTICS.test(name))) {
      return `it has the ${type} ${name}, which format ${format} does not have`
    }
    if (same !== undefined && normal(same.sql) !== normal(sql)) {
      return `its ${type} ${name} is not that of format ${format}`
    }
  }
  for (const [key, { type, name }] of expected) {
    if (!found.has(key)) return `it has no ${type} ${name}, which format ${format} has`
  }
  return undefined
}

function expectedSchema(format: number): Map<string, SchemaRow> {
  const database = openSqlite(':memory:')
  try {
    migrate(database, MIGRATIONS.slice(0, format))
    return schemaOf(database)
  } finally {
    database.close()
  }
}

function schemaOf(database: Database): Map<string, SchemaRow> {
  const rows = database
    .prepare<unknown[], SchemaRow>('select type, name, tbl_name, sql from sqlite_schema order by type desc, name')
    .all()
  return new Map(rows.map((row) => [`${row.type} ${row.name} ${row.tbl_name}`, row]))
}

/** Versions of SQLite differ in the white space that `alter table` leaves. */
function normal(sql: string | null): string | undefined {
  return sql?.replaceAll(/\s+/g, ' ').replaceAll(/ ?([(),]) ?/g, '$1')
}
