/** What the database of a server has of the channel through which values go upwards: the truth over all lives of the process. */
import { copyFileSync, existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Database } from 'better-sqlite3'
import { type DropCause, dropCauses } from '../../../server/kernel/channels/ledger.ts'
import { openSqlite } from '../../../storage/sqlite/driver.ts'
import { isOfTree, type Level } from './servers.ts'

const FILES = ['cinnabar.db', 'cinnabar.db-wal']

/** A ledger as it is stored, without what still waits. */
export interface ChannelRow {
  readonly accepted: number
  readonly committed: number
  readonly dropped: Readonly<Record<DropCause, number>>
}

export interface Rows {
  readonly channel: ChannelRow
  /** How far the channel of the server below was taken; 0 for the lowest. */
  readonly reached: number
}

const NOTHING: ChannelRow = {
  accepted: 0,
  committed: 0,
  dropped: { overflow: 0, superseded: 0, expired: 0, damaged: 0, purged: 0, stopped: 0, full: 0 },
}

/** To be called while the server does not run. It reads a copy: nothing is changed, and a full disk is no matter. */
export function rowsOf({ server }: Pick<Level, 'server'>): Rows {
  const directory = mkdtempSync(join(tmpdir(), 'cinnabar-rows-'))
  try {
    for (const name of FILES) {
      const file = join(server.directory, 'data', name)
      if (existsSync(file)) copyFileSync(file, join(directory, name))
    }
    const database = openSqlite(join(directory, 'cinnabar.db'))
    try {
      return read(database)
    } finally {
      database.close()
    }
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

type Row = Readonly<Record<string, number>> & { readonly id: number; readonly name: string }

function read(database: Database): Rows {
  const rows = database
    .prepare<unknown[], Row>('select id, name, numbers.* from channel join numbers on channel.id = numbers.channel')
    .all()
  const row = rows.find(({ name }) => isOfTree(name))
  const upstream = database.prepare<unknown[], { reached: number }>('select reached from upstream').get()
  const reached = upstream?.reached ?? 0
  if (row === undefined) return { channel: NOTHING, reached }
  const dropped = Object.fromEntries(dropCauses.map((cause) => [cause, row[cause]])) as Record<DropCause, number>
  const { accepted = 0, committed = 0 } = row
  return { channel: { accepted, committed, dropped }, reached }
}
