/** The tables of an open database with their prepared statements. */
import type { Database } from 'better-sqlite3'
import { AuditTable } from './audit.ts'
import { BlockTables } from './blocks.ts'
import { LogPlaces } from './log-places.ts'
import { Removals } from './removals.ts'
import { RightsTables } from './rights.ts'
import { StateTables } from './state.ts'
import { UserTables } from './users.ts'

export interface Tables {
  readonly blocks: BlockTables
  readonly state: StateTables
  readonly users: UserTables
  readonly rights: RightsTables
  readonly audit: AuditTable
  readonly removals: Removals
  readonly log: LogPlaces
}

export function openTables(database: Database): Tables {
  const blocks = new BlockTables(database)
  return {
    blocks,
    state: new StateTables(database),
    users: new UserTables(database),
    rights: new RightsTables(database),
    audit: new AuditTable(database),
    removals: new Removals(database, blocks),
    log: new LogPlaces(database),
  }
}
