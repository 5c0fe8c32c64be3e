/** The tables of an open database with their prepared statements. */
import type { Database } from 'better-sqlite3'
import { AuditTable } from './audit.ts'
import { BlockTables } from './blocks.ts'
import { LogPlaces } from './log-places.ts'
import { Removals } from './removals.ts'
import { RowTables } from './row-tables.ts'
import { StateTables } from './state.ts'

export interface Tables {
  readonly blocks: BlockTables
  readonly state: StateTables
  readonly audit: AuditTable
  readonly removals: Removals
  readonly log: LogPlaces
}

export function openTables(database: Database): Tables {
  const blocks = new BlockTables(database)
  const rows = new RowTables(database)
  return {
    blocks,
    state: new StateTables(database, rows),
    audit: new AuditTable(database),
    removals: new Removals(database, blocks, rows),
    log: new LogPlaces(database),
  }
}
