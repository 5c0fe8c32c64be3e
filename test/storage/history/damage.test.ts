import { copyFileSync, existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { realDisk } from '../../../storage/history/database.ts'
import { HistoryReadError } from '../../../storage/history/store.ts'
import { openSqlite } from '../../../storage/sqlite/driver.ts'
import { StorageError } from '../../../storage/store.ts'
import { times } from '../../support/long.ts'
import { Random } from '../../support/random.ts'
import { all, append, DAY_MS, HOUR_MS, query, series, UNLIMITED } from './history-model.ts'
import { TestHistory } from './test-history.ts'
import { unreadableDisk } from './watched-disk.ts'

const FLEET = Array.from({ length: 40 }, (_, index) => series('load', { host: `h${index}` }))
const SAMPLES = 400

let test: TestHistory
beforeEach(() => {
  test = new TestHistory()
})
afterEach(() => test.end())

/** A day of several pages, in a file. */
function storeDay(): void {
  const random = new Random(1)
  for (const of of FLEET) test.storeMany(of, SAMPLES, () => random.next())
  test.pass(DAY_MS)
}

const path = (begin: string): string =>
  join(test.directory, readdirSync(test.directory).find((name) => name.startsWith(begin))!)

/** Changes the database of a file while nobody has it open. */
function change(name: string, sql: string): void {
  test.history.close()
  const database = openSqlite(path(name))
  database.exec(sql)
  database.close()
  test.history = test.open()
}

const losses = () => test.history.losses({ tenant: 'acme', fromMs: 0, toMs: Number.MAX_SAFE_INTEGER })

describe('a damaged page', () => {
  const HALF = 'update page set data = zeroblob(length(data)) where id = (select min(id) + 1 from page)'

  it('of a day costs its samples, which are reported as a loss', () => {
    storeDay()
    const before = test.lines()
    change('2026-08-31', HALF)
    const left = test.lines()
    expect(test.lines()).toEqual(left)
    expect(left.length).toBeLessThan(before.length)
    expect(left.length).toBeGreaterThan(before.length / 2)
    const whole = new Set(before)
    expect(left.filter((line) => !whole.has(line))).toEqual([])
    expect(test.history.figures().damagedPages).toBe(1)
    test.history.commit()
    const [loss, ...others] = losses()
    expect(others).toEqual([])
    expect(loss).toMatchObject({ native: '', count: before.length - left.length, reason: 'damaged in the history' })
    // What is late is merged with the rest.
    test.store([[FLEET[39]!, test.now - DAY_MS, 1]])
    test.pass(2 * DAY_MS)
    test.pass(2 * DAY_MS)
    expect(test.lines()).toHaveLength(left.length + 1)
  })

  it('of fresh.db costs its samples, and merges go on', () => {
    test.storeMany(FLEET[0]!, SAMPLES)
    test.pass(HOUR_MS)
    test.storeMany(FLEET[1]!, SAMPLES)
    test.pass(HOUR_MS)
    change('fresh.db', 'update page set checksum = checksum + 1 where id = (select min(id) from page)')
    expect(test.lines()).toHaveLength(SAMPLES)
    test.pass(2 * DAY_MS)
    expect(test.lines()).toHaveLength(SAMPLES)
    expect(test.history.figures().damagedPages).toBe(1)
    test.history.commit()
    expect(losses()).toHaveLength(1)
  })

  it('of rows costs them', () => {
    test.storeMany(FLEET[0]!, SAMPLES)
    test.storeMany(FLEET[1]!, SAMPLES)
    change('fresh.db', 'update columns set data = zeroblob(length(data)) where id = (select min(id) from columns)')
    expect(test.lines()).toHaveLength(SAMPLES)
    expect(test.history.figures().damagedPages).toBe(1)
    test.history.commit()
    expect(losses()).toMatchObject([{ count: SAMPLES }])
    test.pass(DAY_MS)
    test.reopen()
    expect(test.history.figures().damagedPages).toBe(0)
    expect(test.lines()).toHaveLength(SAMPLES)
  })
})

describe('a page that the disk cannot read', () => {
  let isFailing = false

  beforeEach(() => {
    test.end()
    isFailing = false
    test = new TestHistory(unreadableDisk(() => isFailing))
    for (const of of FLEET) test.storeMany(of, SAMPLES)
    test.pass(HOUR_MS)
  })

  it('is no damage: the merge is tried again, and what comes is stored meanwhile', () => {
    const before = test.lines()
    isFailing = true
    expect(() => test.pass(DAY_MS)).toThrow(HistoryReadError)
    test.store([[FLEET[0]!, test.now, 1]])
    test.now += 60_000
    expect(() => test.pass(0)).toThrow(/the disk could not read the history in fresh\.db \(disk I\/O error\)/)
    isFailing = false
    test.pass(60_000)
    expect(test.periods).toHaveLength(1)
    expect(test.lines().slice(0, SAMPLES)).toEqual(before.slice(0, SAMPLES))
    expect(test.lines()).toHaveLength(before.length + 1)
    expect(test.history.figures().damagedPages).toBe(0)
    expect(losses()).toEqual([])
  })

  it('fails a query, which may be asked again', () => {
    isFailing = true
    expect(() => test.lines()).toThrow(HistoryReadError)
    isFailing = false
    expect(test.lines()).toHaveLength(FLEET.length * SAMPLES)
  })

  it('for many minutes is damaged, and what else there is goes on', () => {
    isFailing = true
    let failures = 0
    for (let minute = 0; minute < 60; minute++) {
      try {
        test.pass(minute === 0 ? DAY_MS : 60_000)
      } catch (error) {
        expect(error).toBeInstanceOf(HistoryReadError)
        failures++
      }
    }
    expect(failures).toBeGreaterThanOrEqual(10)
    expect(failures).toBeLessThan(60)
    expect(test.history.figures().damagedPages).toBeGreaterThan(0)
    test.history.commit()
    expect(losses().length).toBeGreaterThan(0)
    test.store([[FLEET[0]!, test.now, 1]])
    expect(test.lines()).toHaveLength(1)
  })
})

describe('a file', () => {
  it.each([
    ['is missing', (file: string) => rmSync(file)],
    ['is none', (file: string) => writeFileSync(file, 'what is this')],
    ['is empty', (file: string) => writeFileSync(file, '')],
  ])('that %s costs its day', (_, damage) => {
    storeDay()
    test.store([[FLEET[0]!, test.now, 1]])
    test.history.close()
    damage(path('2026-08-31'))
    test.history = test.open()
    expect(test.lines()).toHaveLength(1)
    expect(all(test.history.selectRollups(query('acme')))).toHaveLength(FLEET.length)
    expect(test.history.figures().damagedPages).toBe(1)
    test.history.commit()
    expect(losses()).toHaveLength(1)
    test.pass(2 * DAY_MS)
    expect(test.lines()).toHaveLength(1)
  })

  it('with any bytes changed costs parts of its day, and nothing else', () => {
    storeDay()
    test.storeMany(FLEET[0]!, 5)
    const whole = new Set(test.lines())
    const file = path('2026-08-31')
    const random = new Random(3)
    copyFileSync(file, `${file}.whole`)
    let damaged = 0
    for (let round = 0; round < times({ short: 15, long: 100 }); round++) {
      test.history.close()
      const bytes = readFileSync(`${file}.whole`)
      for (let count = 1 + random.below(20); count > 0; count--) bytes[random.below(bytes.length)] = random.below(256)
      writeFileSync(file, random.below(5) === 0 ? bytes.subarray(0, random.below(bytes.length)) : bytes)
      test.history = test.open()
      const lines = test.lines()
      expect(lines.length).toBeGreaterThanOrEqual(5)
      expect(lines.filter((line) => !whole.has(line))).toEqual([])
      damaged += test.history.figures().damagedPages
    }
    expect(damaged).toBeGreaterThan(10)
  })
})

describe('a history', () => {
  it('of a newer version is not touched', () => {
    test.storeMany(FLEET[0]!, 5)
    test.history.close()
    const database = openSqlite(path('fresh.db'))
    database.pragma('user_version = 99')
    database.close()
    const before = readFileSync(path('fresh.db'))
    expect(() => test.open()).toThrow(StorageError)
    expect(() => test.open()).toThrow(/newer version \(format 99; this version supports formats up to 4\)/)
    expect(readFileSync(path('fresh.db')).equals(before)).toBe(true)
    const again = openSqlite(path('fresh.db'))
    again.pragma('user_version = 4')
    again.close()
    test.history = test.open()
    expect(test.lines()).toHaveLength(5)
  })

  it('of format 1 is brought to this one, with its samples and positions', () => {
    append(test.history, [[FLEET[0]!, test.now, 1]], {
      position: { generation: 'g', channel: 1, transaction: 2, committed: 3, takenMs: 4 },
    })
    test.history.commit()
    test.history.close()
    const database = openSqlite(path('fresh.db'))
    database.exec('alter table tenant drop column committed; alter table tenant drop column gone_ms')
    database.exec('drop table family; drop table log')
    database.pragma('user_version = 1')
    database.close()
    test.history = test.open()
    expect(test.lines()).toHaveLength(1)
    expect(test.history.positionOf('acme')).toEqual({
      generation: 'g',
      channel: 1,
      transaction: 2,
      committed: undefined,
      takenMs: 4,
    })
  })

  it('that is none is refused with what it is', () => {
    test.history.close()
    writeFileSync(path('fresh.db'), 'x'.repeat(5000))
    expect(() => test.open()).toThrow(/does not begin like an SQLite database/)
    rmSync(path('fresh.db'))
    const other = openSqlite(join(test.directory, 'fresh.db'))
    other.pragma('application_id = 7')
    other.pragma('user_version = 1')
    other.close()
    expect(() => test.open()).toThrow(expect.objectContaining({ code: 'DAMAGED' }))
    rmSync(path('fresh.db'))
    test.history = test.open()
  })

  it('whose fresh.db is missing is refused, and its files stay', () => {
    storeDay()
    test.history.close()
    const name = path('2026-08-31')
    renameSync(path('fresh.db'), join(test.directory, 'aside'))
    expect(() => test.open()).toThrow(/fresh\.db is missing in .*move the files of days and months away/)
    expect(existsSync(name)).toBe(true)
    renameSync(join(test.directory, 'aside'), join(test.directory, 'fresh.db'))
    test.history = test.open()
    expect(test.lines()).toHaveLength(FLEET.length * SAMPLES)
  })

  it('removes files that nobody names at its start, and no others', () => {
    storeDay()
    const before = readdirSync(test.directory).toSorted()
    test.history.close()
    for (const name of [
      '2026-08-31.999999.db',
      '2026-08.7.db',
      '2026-08-31.999999.db-journal',
      'notes.db',
      '2026.db',
    ]) {
      writeFileSync(join(test.directory, name), 'x')
    }
    test.history = test.open()
    const left = readdirSync(test.directory).filter((name) => !before.includes(name))
    expect(left.toSorted()).toEqual(['2026.db', 'notes.db'])
    expect(test.lines()).toHaveLength(FLEET.length * SAMPLES)
  })
})

describe('a file of a day that cannot be opened', () => {
  it.each([
    ['EMFILE', 'too many open files'],
    ['SQLITE_CANTOPEN', 'unable to open database file'],
  ])('for now (%s) fails queries, costs nothing, and the history goes on', (code, message) => {
    test.end()
    let isFailing = false
    test = new TestHistory({
      ...realDisk,
      open(path, options) {
        if (isFailing && path.includes('2026-08-31')) throw Object.assign(new Error(message), { code })
        return realDisk.open(path, options)
      },
    })
    storeDay()
    const before = test.lines()
    test.reopen()
    isFailing = true
    for (let minute = 0; minute < 30; minute++) {
      expect(() => test.lines()).toThrow(HistoryReadError)
      test.now += 60_000
    }
    expect(() => test.lines()).toThrow(/2026-08-31.*cannot be opened.*let the user/)
    test.store([[FLEET[0]!, test.now, 1]])
    isFailing = false
    expect(test.lines()).toHaveLength(before.length + 1)
    expect(test.history.figures().damagedPages).toBe(0)
  })

  it('since a newer version has written it fails queries and says so', () => {
    storeDay()
    change('2026-08-31', 'pragma user_version = 99')
    expect(() => test.lines()).toThrow(/2026-08-31.*written by a newer version/)
    test.store([[FLEET[0]!, test.now, 1]])
    expect(test.history.figures().damagedPages).toBe(0)
  })

  it('leaves no query open when fresh.db itself cannot be', () => {
    test.end()
    let isFailing = false
    test = new TestHistory({
      ...realDisk,
      open(path, options) {
        if (isFailing && options?.readonly === true) throw Object.assign(new Error('no more'), { code: 'EMFILE' })
        return realDisk.open(path, options)
      },
    })
    storeDay()
    isFailing = true
    expect(() => test.lines()).toThrow(HistoryReadError)
    expect(losses).toThrow(HistoryReadError)
    isFailing = false
    expect(test.lines()).toHaveLength(FLEET.length * SAMPLES)
    // A file that nobody needs goes: no query holds it.
    const [former] = readdirSync(test.directory).filter((name) => name.startsWith('2026-08-31'))
    test.history.limit({ ...UNLIMITED, keepMs: HOUR_MS })
    test.pass(HOUR_MS)
    test.pass(3 * DAY_MS)
    expect(readdirSync(test.directory)).not.toContain(former)
  })
})
