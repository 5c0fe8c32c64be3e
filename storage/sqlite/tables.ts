/** The tables of an open database, each with its statements. */
import type { Database } from 'better-sqlite3'
import { Audit } from './audit.ts'
import { Blocks } from './blocks.ts'
import { Rights } from './rights.ts'
import { State } from './state.ts'
import { UserRows } from './users.ts'

export interface Tables {
  readonly blocks: Blocks
  readonly state: State
  readonly users: UserRows
  readonly rights: Rights
  readonly audit: Audit
}

export function openTables(database: Database): Tables {
  return {
    blocks: new Blocks(database),
    state: new State(database),
    users: new UserRows(database),
    rights: new Rights(database),
    audit: new Audit(database),
  }
}
