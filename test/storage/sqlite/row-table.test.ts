/** The declared rows in their tables: with the columns that the migrations made, as they were given, or refused. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type Database from 'better-sqlite3'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { declarationOf, ROW_KINDS, type RowKind, type RowOf } from '../../../storage/rows.ts'
import { openSqlite } from '../../../storage/sqlite/driver.ts'
import { migrate } from '../../../storage/sqlite/migrations.ts'
import { RowTable } from '../../../storage/sqlite/row-table.ts'
import { tableColumns } from '../../../storage/sqlite/table-columns.ts'
import type { Recovered } from '../../../storage/store.ts'
import { EventLog } from '../../contracts/store-batch.ts'
import { hex } from '../../support/bytes.ts'
import { threadlessStore } from '../../support/threadless-store.ts'
import { CHANGES } from '../replicated/change-vectors.ts'

interface Info {
  readonly name: string
  readonly type: string
  readonly notnull: number
  readonly pk: number
}

const TYPES = {
  number: ['INTEGER', 'REAL'],
  flag: ['INTEGER'],
  text: ['TEXT'],
  word: ['TEXT'],
  bytes: ['BLOB'],
  group: [],
}

function migrated(): Database.Database {
  const database = openSqlite(':memory:')
  migrate(database)
  return database
}

/** The row of a kind in the vectors of the replicated log. */
function rowOf<Kind extends RowKind>(kind: Kind): RowOf<Kind> {
  const { change } = CHANGES[`put ${kind}`]
  if (!('row' in change)) throw new Error(`the vector of ${kind} puts no row`)
  return change.row as unknown as RowOf<Kind>
}

describe.each(ROW_KINDS)('the table of "%s"', (kind) => {
  const { table, columns, key, hasChecksum } = declarationOf(kind)
  const infos = migrated().pragma(`table_info(${table})`) as readonly Info[]

  test('has the declared columns and no others, with their types', () => {
    const declared = tableColumns(columns).flatMap(({ stored }) => stored.map((name) => name.replaceAll('"', '')))
    const more = [...(hasChecksum ? ['checksum'] : []), ...(key.length === 0 ? ['one'] : [])]
    expect(infos.map(({ name }) => name).sort()).toEqual([...declared, ...more].sort())
    for (const [name, { layout, isOptional }] of Object.entries(columns)) {
      if (layout.kind === 'group') continue
      const [stored = ''] = tableColumns({ [name]: columns[name]! })[0]!.stored
      const info = infos.find((one) => `"${one.name}"` === stored)
      expect(TYPES[layout.kind], stored).toContain(info?.type)
      expect([stored, info?.notnull === 1 || info?.pk !== 0]).toEqual([stored, !isOptional])
    }
  })

  test('has the declared key', () => {
    const keys = infos.filter(({ pk }) => pk > 0).sort((a, b) => a.pk - b.pk)
    expect(keys.map(({ name }) => name)).toEqual(key.length === 0 ? ['one'] : key)
  })

  test('gives a row back as it was, once', () => {
    const database = migrated()
    const rows = new RowTable(database, kind)
    rows.put(rowOf(kind))
    // Buffers become plain arrays of bytes.
    expect(structuredClone(rows.all())).toEqual({ sound: [rowOf(kind)], damaged: [] })
    if (declarationOf(kind).isAppendOnly) expect(() => rows.put(rowOf(kind))).toThrow('UNIQUE')
    else rows.put(rowOf(kind))
    expect(new RowTable(database, kind).all().sound).toHaveLength(1)
    rows.remove(rowOf(kind))
    expect(rows.all()).toEqual({ sound: [], damaged: [] })
  })
})

test('a row without one of its columns does not compile', () => {
  const rows = new RowTable<RowOf<'binding'>>(migrated(), 'binding')
  // @ts-expect-error: `since` is missing.
  expect(() => rows.put({ channel: 1, metric: 2, mode: 'buffer' })).toThrow('a row without since')
  // @ts-expect-error: the word is none of `mode`.
  const wrong: RowOf<'binding'> = { channel: 1, metric: 2, mode: 'other', since: 1 }
  rows.put(wrong)
  expect(rows.all()).toEqual({ sound: [], damaged: [{ key: '1 2', reason: 'has a damaged mode' }] })
})

/** `zlib.crc32` of Python over the JSON in the comment. */
describe('the checksum of a row', () => {
  test.each([
    // [1,"operator","deny","*","exec.*","{}"]
    ['rule', { number: 1, role: 'operator', effect: 'deny', command: '*', object: 'exec.*', where: '{}' }, 2044632978],
    // [9,3,"Ä",[0,255,16],"COLLECT a",1700000000000.5,null]
    [
      'token',
      { id: 9, user: 3, name: 'Ä', hash: hex('00ff10'), scope: 'COLLECT a', made: 1700000000000.5, expires: undefined },
      2005285696,
    ],
    // [2,3,"",[],"",1,9]
    ['token', { id: 2, user: 3, name: '', hash: hex(''), scope: '', made: 1, expires: 9 }, 3658343811],
  ] as const)('of "%s"', (kind, row, sum) => {
    const database = migrated()
    new RowTable(database, kind).put(row)
    expect(database.prepare(`select checksum from ${kind}`).pluck().all()).toEqual([sum])
  })
})

describe('a row that is damaged', () => {
  let directory = ''
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'rows-'))
    const database = openSqlite(join(directory, 'cinnabar.db'))
    migrate(database)
    for (const kind of ['user', 'channel', 'dial'] as const) new RowTable(database, kind).put(rowOf(kind))
    database.close()
  })
  afterEach(() => rmSync(directory, { recursive: true, force: true }))

  async function opened(damage: string): Promise<Recovered> {
    const database = openSqlite(join(directory, 'cinnabar.db'))
    expect(database.prepare(damage).run().changes).toBe(1)
    database.close()
    const store = threadlessStore({ directory, reserveBytes: 0 })
    const recovered = await store.open(new EventLog())
    await store.close()
    return recovered
  }

  test.each([
    ["update channel set overflow = 'drop-all'", 'channel 5 has a damaged overflow'],
    ['update channel set durable = 2', 'channel 5 has a damaged durable'],
    ['update user set loopback_only = -1', 'user 7 has a damaged loopbackOnly'],
    ['update user set scram_stored_key = null', 'user 7 has a damaged storedKey'],
  ])('keeps the server from starting: %s', async (damage, reason) => {
    await expect(opened(damage)).rejects.toMatchObject({ code: 'DAMAGED', message: expect.stringContaining(reason) })
  })

  test('is left out if it is a dial with half a verifier, which would let in whoever has a certificate', async () => {
    const { dials, warnings } = await opened("update dial set scram_salt = x'01', bearer = null")
    expect(dials).toEqual([])
    expect(warnings?.join()).toContain('dials are damaged (5): their channels are not connected')
  })
})
