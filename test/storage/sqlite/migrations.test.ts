import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Database } from 'better-sqlite3'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { RowSum } from '../../../storage/sqlite/damage/checksum.ts'
import { openSqlite } from '../../../storage/sqlite/driver.ts'
import { APPLICATION_ID, MIGRATIONS, migrate } from '../../../storage/sqlite/migrations.ts'
import type { SqliteStore } from '../../../storage/sqlite/store.ts'
import { BLOCK_WIDTH, type Recovered } from '../../../storage/store.ts'
import { batch, directoryRow, EventLog, frames, gapRow } from '../../contracts/store-batch.ts'
import { threadlessStore } from '../../support/threadless-store.ts'

const one = (database: Database): void => {
  database.exec('create table one (x)')
}
const two = (database: Database): void => {
  database.exec('create table two (x)')
}

function tables(database: Database): unknown[] {
  return database.prepare('select name from sqlite_schema order by name').pluck().all()
}

test('each step is taken once, also when later versions add more', () => {
  const database = openSqlite(':memory:')
  migrate(database, [one])
  expect([tables(database), database.pragma('user_version', { simple: true })]).toEqual([['one'], 1])
  migrate(database, [one, two])
  migrate(database, [one, two])
  expect([tables(database), database.pragma('user_version', { simple: true })]).toEqual([['one', 'two'], 2])
  expect(database.pragma('application_id', { simple: true })).toBe(APPLICATION_ID)
})

test('the package says which format it has, by which an upgrade knows whether there is a way back without a backup', () => {
  const { databaseFormat } = JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8'))
  expect(databaseFormat).toBe(MIGRATIONS.length)
})

test('a step that fails leaves the version before it, whole', () => {
  const database = openSqlite(':memory:')
  const failing = (target: Database): void => {
    two(target)
    target.exec('create table one (x)')
  }
  expect(() => migrate(database, [one, failing])).toThrow('already exists')
  expect([tables(database), database.pragma('user_version', { simple: true })]).toEqual([['one'], 1])
})

test('the secret is made once and differs from database to database', () => {
  const secrets = [1, 2].map(() => {
    const database = openSqlite(':memory:')
    migrate(database)
    migrate(database)
    expect(database.pragma('user_version', { simple: true })).toBe(MIGRATIONS.length)
    return database.prepare<unknown[], Buffer>('select secret from meta').pluck().get()?.toString('hex')
  })
  expect(secrets[0]).toHaveLength(64)
  expect(secrets[0]).not.toBe(secrets[1])
})

test('channels of format 8 have no names, and none is lost; those that were defined may have been given settings', () => {
  const database = openSqlite(':memory:')
  migrate(database, MIGRATIONS.slice(0, 8))
  database.exec("insert into channel values (7, 3, '', 1, 0, 1, 1, 1, 1, 1, 1, 'drop-oldest', 9, 0)")
  database.exec("insert into channel values (8, 3, '', 0, 0, 1, 1, 1, 1, 1, 1, 'drop-oldest', 9, 0)")
  migrate(database)
  expect(database.prepare('select id, origin, name, configured, paused from channel').all()).toEqual([
    { id: 7, origin: 9, name: '', configured: 1, paused: 0 },
    { id: 8, origin: 9, name: '', configured: 0, paused: 0 },
  ])
  expect(database.prepare('select * from lost_name').all()).toEqual([])
})

test('dials of format 9 have no bearer', () => {
  const database = openSqlite(':memory:')
  migrate(database, MIGRATIONS.slice(0, 9))
  database.exec('insert into dial values (7, null, null, null, null)')
  migrate(database)
  expect(database.prepare('select * from dial').all()).toMatchObject([{ channel: 7, bearer: null }])
})

test('a database of format 11 has no agents of QMF: they were in a file', () => {
  const database = openSqlite(':memory:')
  migrate(database, MIGRATIONS.slice(0, 11))
  expect(tables(database)).not.toContain('qmf_agent')
  migrate(database)
  expect(database.prepare('select * from qmf_agent').all()).toEqual([])
})

test('a database of format 13 keeps how far upstreams were taken, and does not know yet what they bind', () => {
  const database = openSqlite(':memory:')
  migrate(database, MIGRATIONS.slice(0, 13))
  database.exec("insert into upstream values ('default/east', 'a1', 7, 99)")
  migrate(database)
  expect(database.pragma('user_version', { simple: true })).toBe(MIGRATIONS.length)
  expect(database.prepare('select * from upstream').all()).toEqual([
    { name: 'default/east', generation: 'a1', channel: 7, reached: 99 },
  ])
  expect(database.prepare('select * from upstream_binding').all()).toEqual([])
})

test('a database of format 14 has no boards', () => {
  const database = openSqlite(':memory:')
  migrate(database, MIGRATIONS.slice(0, 14))
  expect(tables(database)).not.toContain('board')
  migrate(database)
  expect(database.prepare('select * from board').all()).toEqual([])
  expect(database.prepare('select next_board from meta').pluck().get()).toBe(1)
})

test('a database of format 15 has no alerts', () => {
  const database = openSqlite(':memory:')
  migrate(database, MIGRATIONS.slice(0, 15))
  expect(tables(database)).not.toContain('alert')
  migrate(database)
  expect(database.prepare('select * from alert').all()).toEqual([])
  expect(database.prepare('select * from alert_group').all()).toEqual([])
})

test('a database of format 16 has no notifiers', () => {
  const database = openSqlite(':memory:')
  migrate(database, MIGRATIONS.slice(0, 16))
  expect(tables(database)).not.toContain('notify_group')
  migrate(database)
  for (const table of ['notify_group', 'notify_alert', 'notification', 'silence'])
    expect(database.prepare(`select * from ${table}`).all()).toEqual([])
})

test('a database of format 17 keeps its alerts, and each has its data', () => {
  const database = openSqlite(':memory:')
  migrate(database, MIGRATIONS.slice(0, 17))
  database.exec("insert into alert values ('r', '[]', '[]', 'firing', '1', 5, 7, null, null)")
  migrate(database)
  expect(database.prepare('select * from alert').get()).toMatchObject({ rule: 'r', active: 5, fired: 7, missing: null })
})

test('in a database of format 18 nobody has put rule files, nothing waits for approval, and no rule needs any', () => {
  const database = openSqlite(':memory:')
  migrate(database, MIGRATIONS.slice(0, 18))
  for (const table of ['rule_file', 'approval']) expect(tables(database)).not.toContain(table)
  migrate(database)
  for (const table of ['rule_file', 'approval']) expect(database.prepare(`select * from ${table}`).all()).toEqual([])
})

test('in a database of format 19 nobody has put a notifier', () => {
  const database = openSqlite(':memory:')
  migrate(database, MIGRATIONS.slice(0, 19))
  expect(tables(database)).not.toContain('notifier')
  migrate(database)
  expect(database.prepare('select * from notifier').all()).toEqual([])
})

test('a database of format 20 keeps its rule files, of which nobody knows with which token they were put', () => {
  const database = openSqlite(':memory:')
  migrate(database, MIGRATIONS.slice(0, 20))
  for (const name of ['a.yml', 'b.yml'])
    database.exec(`insert into rule_file values ('ops', '${name}', 7, 'olga', 'COLLECT *', 5, 'groups: []', 0)`)
  migrate(database)
  const rows = database.prepare<unknown[], number[]>('select * from rule_file order by name').raw().all()
  expect(rows.map((row) => row.slice(0, -1))).toEqual([
    ['ops', 'a.yml', 7, 'olga', 'COLLECT *', 5, 'groups: []', 0],
    ['ops', 'b.yml', 7, 'olga', 'COLLECT *', 5, 'groups: []', 0],
  ])
  for (const row of rows) expect(row.at(-1)).toBe(new RowSum(row.length - 1).of(row))
})

test('a database of format 21 keeps its notifications, of which nobody knows what alerts they had', () => {
  const database = openSqlite(':memory:')
  migrate(database, MIGRATIONS.slice(0, 21))
  database.exec("insert into notification values ('o/n', 'k', 5, '[]', 7, 0, 1, 'delivered', '204')")
  migrate(database)
  expect(database.prepare('select * from notification').get()).toMatchObject({ key: 'k', firing: 7, alerts: '[]' })
})

describe('a database of format 1', () => {
  let directory = ''
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'migrations-'))
    const old = openSqlite(join(directory, 'cinnabar.db'))
    old.exec(readFileSync(new URL('format-1.sql', import.meta.url), 'utf8'))
    old.close()
  })
  afterEach(() => rmSync(directory, { recursive: true, force: true }))

  const origin = 2 ** 51 + 1
  async function open(): Promise<{ store: SqliteStore; events: EventLog; recovered: Recovered }> {
    const store = threadlessStore({ directory, reserveBytes: 0 })
    const events = new EventLog()
    return { store, events, recovered: await store.open(events) }
  }

  test('is upgraded with all that is in it', async () => {
    for (let time = 1; time <= 2; time++) {
      const { store, recovered } = await open()
      expect(recovered.warnings).toBeUndefined()
      expect(recovered.channels.map(({ id }) => id)).toEqual([1, 2])
      expect([...recovered.numbers]).toEqual([
        1,
        origin,
        origin + 4,
        origin + 4 + 2 ** 20,
        8,
        1,
        3,
        0,
        0,
        0,
        0,
        0,
        0,
        1,
      ])
      expect([...recovered.blocks]).toEqual([
        ...directoryRow({ id: 1, first: origin, values: 3, stamp: 12.5, frames: frames(1, 96) }),
        ...directoryRow({ id: 2, lane: 40, first: 0, values: 2, frames: frames(2, 64) }),
      ])
      expect([...recovered.settled].map(([id, bits]) => [id, ...bits])).toEqual([[1, 0b010]])
      expect([...recovered.gaps]).toEqual(gapRow(3, 1, 0, origin + 3))
      expect([recovered.age, recovered.wall, recovered.nextBlockId]).toEqual([77, 1_700_000_000_000, 4])
      const read = await store.read([1, 2])
      expect(read.map(({ bytes }) => bytes && [...bytes])).toEqual([[...frames(1, 96)], [...frames(2, 64)]])
      await store.close()
    }
    const look = openSqlite(join(directory, 'cinnabar.db'), { readonly: true })
    expect(look.pragma('user_version', { simple: true })).toBe(MIGRATIONS.length)
    look.close()
  })

  test('has checksums of everything but the places of its blocks, which get theirs when they are released', async () => {
    const { store, events } = await open()
    store.write(batch(1, { moved: [[2, 0, origin + 4]] }))
    await events.durable(1)
    await store.close()
    const other = openSqlite(join(directory, 'cinnabar.db'))
    other.exec('update block set metric = 9; update numbers set committed = 2 where channel = 1')
    other.exec('delete from numbers where channel = 2; update gap set count = 1; delete from settled')
    other.close()
    const { store: again, recovered } = await open()
    expect(recovered.blocks[0]).toBe(1)
    expect(recovered.blocks.length).toBe(BLOCK_WIDTH)
    expect(recovered.gaps.length).toBe(0)
    expect(recovered.warnings?.join()).toContain('of channels do not match their checksums (2: 1, 2)')
    await again.close()
  })
})

describe('a database of format 2', () => {
  let directory = ''
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'migrations-'))
    const old = openSqlite(join(directory, 'cinnabar.db'))
    old.exec(readFileSync(new URL('format-2.sql', import.meta.url), 'utf8'))
    old.close()
  })
  afterEach(() => rmSync(directory, { recursive: true, force: true }))

  test('is upgraded with all that is in it; tenants have no quota of their own, and nothing else is there yet', async () => {
    const store = threadlessStore({ directory, reserveBytes: 0 })
    const recovered = await store.open(new EventLog())
    const origin = 2 ** 51 + 1
    expect(recovered.warnings).toBeUndefined()
    expect(recovered.tenants).toEqual([
      { name: 'acme', quota: '{}' },
      { name: 'default', quota: '{}' },
    ])
    expect(recovered.users.map(({ id, tenant, name, role }) => [id, tenant, name, role])).toEqual([
      [1, 'default', 'ada', 'admin'],
      [6, 'acme', 'bob', 'consumer'],
    ])
    const [ada, bob] = recovered.users
    expect([...(ada?.scram?.storedKey ?? [])]).toEqual([...frames(2, 32)])
    expect([bob?.bcrypt, bob?.scram, bob?.loopbackOnly]).toEqual([undefined, undefined, true])
    expect([recovered.nextUserId, recovered.nextRule, recovered.nextTokenId, recovered.nextBlockId]).toEqual([
      10, 1, 1, 4,
    ])
    expect(recovered.channels.map(({ id, user }) => [id, user])).toEqual([
      [1, 1],
      [2, 6],
    ])
    expect(recovered.bindings).toEqual([{ channel: 1, metric: 40, mode: 'buffer', since: 0 }])
    expect(recovered.stops).toEqual([{ channel: 1, metric: 40, through: origin }])
    expect(recovered.results).toEqual([{ id: 50, channel: 1, user: 1, control: 'user.list', transaction: 0 }])
    expect([...recovered.numbers].slice(0, 6)).toEqual([1, origin, origin + 4, origin + 4 + 2 ** 20, 8, 1])
    expect([...recovered.blocks]).toEqual([
      ...directoryRow({ id: 1, first: origin, values: 3, stamp: 12.5, frames: frames(1, 96) }),
      ...directoryRow({ id: 2, lane: 40, first: 0, values: 2, frames: frames(2, 64) }),
    ])
    expect([...recovered.gaps]).toEqual(gapRow(3, 1, 0, origin + 3))
    const { rules, tokens, dials, executions, fences, places, audited } = recovered
    expect([rules, tokens, dials, executions, fences, places, audited]).toEqual([[], [], [], [], [], [], undefined])
    expect(await store.audit(0, 10)).toEqual([])
    await store.close()
  })
})

describe('a database of format 3', () => {
  let directory = ''
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'migrations-'))
    const old = openSqlite(join(directory, 'cinnabar.db'))
    old.exec(readFileSync(new URL('format-3.sql', import.meta.url), 'utf8'))
    old.close()
  })
  afterEach(() => rmSync(directory, { recursive: true, force: true }))

  test('keeps everything but the time of the last connection of its dialled channels', async () => {
    for (let time = 1; time <= 2; time++) {
      const store = threadlessStore({ directory, reserveBytes: 0 })
      const recovered = await store.open(new EventLog())
      expect(recovered.warnings).toBeUndefined()
      const [dial, plainDial] = recovered.dials
      expect(recovered.dials).toHaveLength(2)
      expect(plainDial).toEqual({ channel: 2, scram: undefined })
      expect(Object.keys(dial ?? {})).toEqual(['channel', 'scram', 'bearer'])
      expect(dial?.bearer).toBeUndefined()
      expect([dial?.channel, dial?.scram?.iterations]).toEqual([1, 4096])
      const keys = [dial?.scram?.salt, dial?.scram?.storedKey, dial?.scram?.serverKey]
      expect(keys.map((key) => [...(key ?? [])])).toEqual([[...frames(1, 16)], [...frames(2, 32)], [...frames(3, 32)]])
      expect(recovered.places).toEqual([{ channel: 1, metric: 40, reached: 7 }])
      expect(recovered.fences).toEqual(['host'])
      const [execution] = recovered.executions
      expect(recovered.executions).toHaveLength(1)
      expect([execution?.user, execution?.control, execution?.key, execution?.at]).toEqual([1, 'user.list', 'key', 5.5])
      expect([...(execution?.result ?? [])]).toEqual([...frames(5, 8)])
      expect(recovered.channels.map(({ id, user }) => [id, user])).toEqual([
        [1, 1],
        [2, 6],
      ])
      await store.close()
    }
    const look = openSqlite(join(directory, 'cinnabar.db'), { readonly: true })
    const columns = look.prepare<unknown[], string>("select name from pragma_table_info('dial')").pluck().all()
    expect(columns).toEqual([
      'channel',
      'scram_salt',
      'scram_iterations',
      'scram_stored_key',
      'scram_server_key',
      'bearer',
    ])
    expect(look.pragma('user_version', { simple: true })).toBe(MIGRATIONS.length)
    look.close()
  })
})

test('a database of format 4 keeps its users, who were added at no known time', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'migrations-'))
  const old = openSqlite(join(directory, 'cinnabar.db'))
  old.exec(readFileSync(new URL('format-4.sql', import.meta.url), 'utf8'))
  old.close()
  for (let time = 1; time <= 2; time++) {
    const store = threadlessStore({ directory, reserveBytes: 0 })
    const { users, dials } = await store.open(new EventLog())
    expect(users.map(({ id, tenant, name, role, created }) => [id, tenant, name, role, created])).toEqual([
      [1, 'default', 'ada', 'admin', 0],
      [6, 'acme', 'bob', 'consumer', 0],
    ])
    expect(dials.map(({ channel }) => channel)).toEqual([1, 2])
    await store.close()
  }
  rmSync(directory, { recursive: true, force: true })
})

test.each(['salt', 'iterations', 'stored_key', 'server_key'])(
  'a dial has no row at all if the %s of its verifier is lost: a certificate is not enough then',
  async (lost) => {
    const directory = mkdtempSync(join(tmpdir(), 'migrations-'))
    const old = openSqlite(join(directory, 'cinnabar.db'))
    old.exec(readFileSync(new URL('format-6.sql', import.meta.url), 'utf8'))
    const row = 'select count(*) from dial where scram_salt is not null'
    expect(old.prepare(row).pluck().get()).toBe(1)
    old.exec(`update dial set scram_${lost} = null`)
    old.close()
    const store = threadlessStore({ directory, reserveBytes: 0 })
    const { dials } = await store.open(new EventLog())
    expect(dials.map(({ scram }) => scram)).toEqual([undefined])
    await store.close()
    rmSync(directory, { recursive: true, force: true })
  },
)

describe('a database of format 5', () => {
  test('keeps everything, and has nothing to remove', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'migrations-'))
    const old = openSqlite(join(directory, 'cinnabar.db'))
    old.exec(readFileSync(new URL('format-5.sql', import.meta.url), 'utf8'))
    old.close()
    const store = threadlessStore({ directory, reserveBytes: 0 })
    const recovered = await store.open(new EventLog())
    expect(recovered.warnings).toBeUndefined()
    expect(recovered.channels.map(({ id }) => id)).toEqual([1, 2])
    expect(recovered.bindings).toEqual([{ channel: 1, metric: 40, mode: 'buffer', since: 0 }])
    expect(recovered.dials.map(({ channel }) => channel)).toEqual([1, 2])
    expect(recovered.blocks.length).toBe(2 * BLOCK_WIDTH)
    expect(recovered.executions).toHaveLength(1)
    expect(recovered.users.map(({ created }) => created)).toEqual([1690000000000, 1690000000000])
    await store.close()
    const look = openSqlite(join(directory, 'cinnabar.db'), { readonly: true })
    expect(look.prepare('select count(*) from removal').pluck().get()).toBe(0)
    expect(look.pragma('user_version', { simple: true })).toBe(MIGRATIONS.length)
    look.close()
    rmSync(directory, { recursive: true })
  })
})

test('a database of format 6 keeps its bindings, which are older than every value', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'migrations-'))
  const old = openSqlite(join(directory, 'cinnabar.db'))
  old.exec(readFileSync(new URL('format-6.sql', import.meta.url), 'utf8'))
  old.close()
  const store = threadlessStore({ directory, reserveBytes: 0 })
  const recovered = await store.open(new EventLog())
  expect(recovered.warnings).toBeUndefined()
  expect(recovered.bindings).toEqual([{ channel: 1, metric: 40, mode: 'buffer', since: 0 }])
  await store.close()
  rmSync(directory, { recursive: true })
})
