/** What a disk may do to a history: no room, failing fsyncs; and copies of it. */
import { existsSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Database } from 'better-sqlite3'
import { afterEach, describe, expect, it } from 'vitest'
import { type HistoryDisk, realDisk } from '../../../storage/history/database.ts'
import { History } from '../../../storage/history/history.ts'
import { reserveOn } from '../../../storage/history/history-room.ts'
import { openSqlite } from '../../../storage/sqlite/driver.ts'
import { Random } from '../../support/random.ts'
import { append, DAY_MS, HOUR_MS, query, type Sample, series, UNLIMITED } from './history-model.ts'
import { TestHistory } from './test-history.ts'
import { watchedDisk } from './watched-disk.ts'

const FLEET = Array.from({ length: 20 }, (_, index) => series('load', { host: `h${index}` }))

let test: TestHistory
afterEach(() => test.end())

function someSamples({ now }: TestHistory, random: Random, count = 1000): Sample[] {
  return Array.from({ length: count }, (_, index) => [random.pick(FLEET), now - count + index, random.next()])
}

describe('a disk without room', () => {
  /** Databases that are made on it may have so many pages. */
  function smallDisk(): { readonly disk: HistoryDisk; grow(pages: number): void } {
    const databases: Database[] = []
    let most = 60
    const limit = (database: Database): void => void database.pragma(`max_page_count = ${most}`)
    return {
      disk: {
        ...realDisk,
        open(path, options) {
          const database = realDisk.open(path, options)
          if (options?.readonly === true) return database
          limit(database)
          databases.push(database)
          return database
        },
      },
      grow(pages) {
        most = pages
        for (const database of databases) if (database.open) limit(database)
      },
    }
  }

  it('fails a commit, which succeeds when there is room, with nothing lost and nothing twice', () => {
    const { disk, grow } = smallDisk()
    test = new TestHistory(disk)
    const random = new Random(1)
    let lines: string[] = []
    for (;;) {
      append(test.history, someSamples(test, random), {
        position: { generation: 'g', channel: 1, transaction: test.now, committed: 5, takenMs: test.now },
      })
      try {
        test.history.commit()
      } catch (error) {
        expect(error).toMatchObject({ name: 'StorageError', code: 'FULL' })
        expect(String(error)).toMatch(/no space left on the disk of the history/)
        break
      }
      lines = test.lines()
      test.now += 2000
    }
    expect(lines.length).toBeGreaterThan(1000)
    expect(test.lines()).toEqual(lines)
    expect(test.history.uncommitted).toBe(1000)
    // A file that cannot be made, or pages, are tried again, too.
    test.now += 2 * DAY_MS
    expect(() => test.pass(0)).toThrow(expect.objectContaining({ code: 'FULL' }))
    expect(() => test.history.commit()).toThrow(expect.objectContaining({ code: 'FULL' }))
    expect(test.lines()).toEqual(lines)
    grow(10_000)
    test.history.commit()
    const whole = test.lines()
    expect(whole.length).toBe(lines.length + 1000)
    test.pass(0)
    expect(test.lines()).toEqual(whole)
    test.pass(2 * DAY_MS)
    expect(test.periods).toHaveLength(2)
    expect(test.lines()).toEqual(whole)
    expect(test.history.positionOf('acme')).toMatchObject({ generation: 'g' })
    test.reopen()
    expect(test.lines()).toEqual(whole)
  })

  it('but for what is left to the database has nothing stored or merged on it, until there is room again', () => {
    test = new TestHistory()
    const random = new Random(1)
    test.store(someSamples(test, random))
    test.pass(DAY_MS)
    test.store(someSamples(test, random))
    const [lines, periods] = [test.lines(), test.periods]
    test.now += 2000
    append(test.history, someSamples(test, random))
    // A disk of 1 TiB has a reserve of 1 GiB.
    test.freeBytes = 2 ** 30 - 1
    const full = expect.objectContaining({ code: 'FULL', message: expect.stringMatching(/less than 1024 MiB free/) })
    expect(() => test.history.commit()).toThrow(full)
    test.pass(2 * DAY_MS)
    expect([test.periods, test.lines()]).toEqual([periods, lines])
    // A little more would soon be used up again.
    test.freeBytes = 2 ** 30 + 1
    expect(() => test.history.commit()).toThrow(full)
    // What is too old goes meanwhile.
    test.history.limit({ ...UNLIMITED, keepMs: DAY_MS })
    test.pass(2 * HOUR_MS)
    expect(test.lines().length).toBeLessThan(lines.length)
    test.history.limit(UNLIMITED)
    test.freeBytes = 2 ** 31
    const left = test.lines().length
    test.history.commit()
    expect(test.lines()).toHaveLength(left + 1000)
    test.pass(DAY_MS)
    expect(test.periods.length).toBeGreaterThan(0)
    expect(test.lines()).toHaveLength(left + 1000)
  })

  it.each([
    [100, 25],
    [1_000, 64],
    [2_000, 100],
    [100_000, 1_024],
  ])('of %i MiB has a reserve of %i MiB', (size, reserve) => {
    test = new TestHistory()
    expect(reserveOn(size * 2 ** 20)).toBe(reserve * 2 ** 20)
  })

  it('has room again when what is too old goes, which comes before anything that needs room', () => {
    const { disk } = smallDisk()
    test = new TestHistory(disk)
    const random = new Random(1)
    const isFull = (): boolean => {
      try {
        test.store(someSamples(test, random))
        test.pass(400_000)
        return false
      } catch (error) {
        expect(error).toMatchObject({ code: 'FULL' })
        return true
      }
    }
    while (!isFull());
    expect(test.lines().length).toBeGreaterThan(1000)
    test.history.limit({ ...UNLIMITED, keepMs: DAY_MS })
    test.now += 3 * DAY_MS
    for (let tries = 0; tries < 3; tries++) {
      try {
        test.pass(HOUR_MS)
      } catch (error) {
        expect(error).toMatchObject({ code: 'FULL' })
      }
    }
    expect(test.lines()).toEqual([])
    test.store(someSamples(test, random))
    expect(test.lines()).not.toEqual([])
  })
})

describe('very many series', () => {
  const MANY = Array.from({ length: 2_000 }, (_, index) => series('born', { index: String(index) }))

  /** The most rows that one transaction has written. */
  function countingDisk(): { readonly disk: HistoryDisk; most(): number } {
    let [rows, most] = [0, 0]
    const disk = watchedDisk((what) => {
      if (what === 'begin') rows = 0
      else most = Math.max(most, ++rows)
    })
    return { disk, most: () => most }
  }

  it('that are new are stored in several calls, each of which takes little, and their samples after them', () => {
    const { disk, most } = countingDisk()
    test = new TestHistory(disk)
    append(
      test.history,
      MANY.map((of, index): Sample => [of, test.now, index]),
      { position: { generation: 'g', channel: 1, transaction: 2, committed: 3, takenMs: 4 } },
    )
    let calls = 1
    for (; !test.history.commit(); calls++) {
      expect(test.lines()).toEqual([])
      // Whatever ends now, a series without its tenant would be that of the next one.
      const copy = openSqlite(join(test.directory, 'fresh.db'))
      const strays = 'select count(*) from series where tenant not in (select id from tenant where generation is null)'
      expect(copy.prepare(strays).pluck().get()).toBe(0)
      copy.close()
    }
    expect(calls).toBe(4)
    expect(test.lines()).toHaveLength(MANY.length)
    // Of a series: itself, its name and labels, and where they lead.
    expect(most()).toBeLessThan(6 * 512)
    test.reopen()
    expect(test.lines()).toHaveLength(MANY.length)
    expect(test.history.positionOf('acme')).toMatchObject({ transaction: 2 })
  })

  it('of a day are entered in several transactions, and dropped in several steps', () => {
    const { disk, most } = countingDisk()
    test = new TestHistory(disk)
    const many = [...MANY, ...MANY.map((of) => ({ ...of, name: 'other', native: 'other' }))]
    append(
      test.history,
      many.map((of, index): Sample => [of, test.now, index]),
    )
    while (!test.history.commit());
    test.pass(2 * DAY_MS)
    expect(test.periods).toContain('2026-08-31')
    expect(most()).toBeLessThan(6 * 512)
    expect(test.lines()).toHaveLength(many.length)
    // What is merged while some are dropped would have a number of its own.
    test.store(MANY.slice(0, 100).map((of): Sample => [of, test.now, 1]))
    test.pass(HOUR_MS)
    const dropping = test.history.drop({
      tenant: 'acme',
      matchers: [{ label: '__name__', operator: '=', text: 'born' }],
    })
    let steps = 0
    for (const _ of dropping) {
      steps++
      test.now += DAY_MS
      expect(test.history.work(1000)).toBe(false)
    }
    expect(steps).toBeGreaterThan(2)
    expect(test.lines()).toHaveLength(MANY.length)
    test.pass(DAY_MS)
    test.reopen()
    expect(test.lines()).toHaveLength(MANY.length)
  })
})

describe('a query that nobody goes on with', () => {
  const LOG_BYTES = 1 << 20

  it('ends when the log that it keeps is too long, and another one may be asked', () => {
    test = new TestHistory(undefined, LOG_BYTES)
    const random = new Random(1)
    test.store(someSamples(test, random))
    const forgotten = test.history.select(query('acme'))
    forgotten.next()
    const log = (): number => statSync(join(test.directory, 'fresh.db-wal')).size
    for (let round = 0; round < 100; round++) {
      test.now += 1000
      test.store(someSamples(test, random))
    }
    expect(log()).toBeLessThan(2 * LOG_BYTES)
    expect(() => [...forgotten]).toThrow(/too much was stored since the query began .*: ask again, or for less/)
    expect(forgotten.next()).toMatchObject({ done: true })
    expect(test.lines().length).toBeGreaterThan(1000)
    // One that goes on shows its state to the end.
    const steps = test.history.select(query('acme'))
    steps.next()
    test.store(someSamples(test, random, 10))
    expect([...steps].length).toBeGreaterThan(0)
  })
})

describe('a disk that fails', () => {
  it('ends the history, and what was committed is there afterwards', () => {
    let fails = false
    test = new TestHistory(
      watchedDisk((what) => {
        if (fails && what === 'commit') throw Object.assign(new Error('disk I/O error'), { code: 'SQLITE_IOERR_FSYNC' })
      }),
    )
    test.store([[FLEET[0]!, test.now, 1]])
    append(test.history, [[FLEET[0]!, test.now + 1, 1]])
    fails = true
    expect(() => test.history.commit()).toThrow(expect.objectContaining({ code: 'IO' }))
    fails = false
    for (const call of [
      () => test.history.commit(),
      () => test.history.work(0),
      () => test.history.seriesOf(FLEET[1]!),
      () => [...test.history.drop({ tenant: 'acme', matchers: [] })],
    ]) {
      expect(call).toThrow(/check the disk and the system log/)
    }
    const log = join(test.directory, 'fresh.db-wal')
    const { size } = statSync(log)
    test.reopen()
    // No attempt was made to write the log back.
    expect(size).toBeGreaterThan(0)
    expect(test.lines()).toHaveLength(1)
  })

  it('that cannot remove a file does so at the next start', () => {
    let fails = false
    test = new TestHistory(
      watchedDisk((what) => {
        if (fails && what === 'remove') throw Object.assign(new Error('read-only'), { code: 'EROFS' })
      }),
    )
    test.store(someSamples(test, new Random(1)))
    test.pass(DAY_MS)
    fails = true
    test.history.limit({ ...UNLIMITED, keepMs: HOUR_MS })
    test.pass(DAY_MS)
    expect(test.lines()).toEqual([])
    expect(test.periods).toContain('2026-08-31')
    fails = false
    test.reopen()
    expect(test.periods.filter((name) => name.length > 7)).toEqual([])
  })
})

describe('a new directory', () => {
  it('is synced with its name before anything is committed', () => {
    const done: string[] = []
    test = new TestHistory()
    const parent = join(test.directory, 'data')
    const disk = {
      ...watchedDisk((what) => void done.push(what)),
      syncDirectory: (path: string) => void done.push(path),
    }
    const open = (): void =>
      History.open({ directory: join(parent, 'history'), clock: () => test.now, limits: UNLIMITED }, disk).close()
    open()
    expect(done.indexOf(test.directory)).toBe(0)
    done.length = 0
    open()
    expect(done).not.toContain(test.directory)
  })
})

describe('a program that looks at fresh.db', () => {
  it('and holds a lock on it fails a commit, which succeeds afterwards', () => {
    test = new TestHistory({
      ...realDisk,
      open: (path, options) => realDisk.open(path, { ...options, timeout: 0 }),
    })
    append(test.history, [[FLEET[0]!, test.now, 1]])
    const other = openSqlite(join(test.directory, 'fresh.db'))
    other.exec('begin immediate')
    expect(() => test.history.commit()).toThrow(expect.objectContaining({ code: 'LOCKED' }))
    other.close()
    test.history.commit()
    expect(test.lines()).toHaveLength(1)
  })
})

describe('a copy', () => {
  const directories: string[] = []
  afterEach(() => {
    for (const directory of directories.splice(0)) rmSync(directory, { recursive: true, force: true })
  })

  function place(): string {
    const directory = mkdtempSync(join(tmpdir(), 'history-copy-'))
    directories.push(directory)
    return join(directory, 'history')
  }

  it('is one state, whatever happens meanwhile', async () => {
    test = new TestHistory()
    const random = new Random(1)
    test.store(someSamples(test, random, 6000))
    test.pass(DAY_MS)
    test.store(someSamples(test, random, 6000))
    const before = test.lines()
    const to = place()
    const copying = test.history.backUp(to)
    // The day is made anew, and its former file is not needed any more.
    test.store([[FLEET[0]!, test.now - DAY_MS, 1]])
    test.pass(DAY_MS)
    test.pass(DAY_MS)
    const after = test.lines()
    expect(await copying).toBeGreaterThan(50_000)
    expect(readdirSync(to)).toContain('fresh.db')
    const { directory } = test
    const copy = History.open({ directory: to, clock: () => test.now, limits: UNLIMITED })
    const found = [...copy.select(query('acme'))].filter((step) => step !== undefined)
    const count = found.reduce((sum, { times }) => sum + times.length, 0)
    expect([before.length, after.length]).toContain(count)
    expect(copy.figures().damagedPages).toBe(0)
    copy.close()
    expect(test.periods.filter((name) => name === '2026-08-31')).toHaveLength(1)
    expect(directory).not.toBe(to)
  })

  it('that is abandoned, or has no place, leaves nothing', async () => {
    test = new TestHistory()
    test.store(someSamples(test, new Random(1)))
    const to = place()
    await expect(test.history.backUp(to, { isCancelled: () => true })).rejects.toThrow(/was abandoned/)
    expect(existsSync(to)).toBe(false)
    expect(readdirSync(join(to, '..'))).toEqual([])
    await test.history.backUp(to)
    await expect(test.history.backUp(to)).rejects.toThrow(/exists already/)
    expect(readdirSync(to)).toEqual(['fresh.db'])
  })
})
