/** The writer on a disk of the test, which says what each transaction and each checkpoint meets, and a clock that it moves. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Database, Statement } from 'better-sqlite3'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { recover } from '../../../storage/sqlite/damage/recovery.ts'
import { type OpenDatabase, openDatabase } from '../../../storage/sqlite/database.ts'
import { openTables, type Tables } from '../../../storage/sqlite/tables.ts'
import { Writer } from '../../../storage/sqlite/writer.ts'
import { batch, frames, type TestBatch } from '../../contracts/store-batch.ts'

const RETRY_MS = 250
const IDLE_MS = 1_000
const PLENTY = 2 ** 40
const PLACE = { log: 1, epoch: 1, sequence: 1, hash: new Uint8Array(32) }

const FULL = 'SQLITE_FULL'
const BUSY = 'SQLITE_BUSY'
const UNREADABLE = 'SQLITE_CORRUPT'
const BROKEN = 'SQLITE_IOERR_FSYNC'

function meet(errors: string[]): void {
  const code = errors.shift()
  if (code !== undefined && code !== '') throw Object.assign(new Error(`the disk of the test: ${code}`), { code })
}

/** A writer whose steps are noted; each list has the errors that the next steps meet, '' for none. */
class Bench {
  readonly log: string[] = []
  readonly onStore: string[] = []
  readonly onCommit: string[] = []
  readonly onPiece: string[] = []
  readonly onCheckpoint: string[] = []
  readonly onProgress: string[] = []
  /** Blocks that an examination finds damaged, one each time. */
  readonly damaged: number[] = []
  /** What else a checkpoint does. */
  atCheckpoint = (): void => {}
  free = PLENTY
  hasReserve = true
  /** Whether the reserve can be made again. */
  canMake = true
  readonly tables: Tables
  readonly writer: Writer
  readonly #opened: OpenDatabase
  #number = 0

  constructor(directory: string, checkpointPages = 1e6) {
    this.#opened = openDatabase({ directory, synchronous: 'normal' })
    this.tables = openTables(this.#opened.database)
    recover(this.#opened, this.tables)
    this.#watch()
    const note = (event: string) => this.log.push(event)
    this.writer = new Writer({
      database: this.#database(),
      freeBytes: () => this.free,
      tables: this.tables,
      generation: { advanced: () => meet(this.onProgress), adopt() {} },
      reserve: this.#reserve(),
      events: {
        durable: ({ number }) => note(`durable ${number}`),
        full: () => note('full'),
        room: () => note('room'),
        failed: ({ code }) => note(`failed ${code}`),
      },
      retryMs: RETRY_MS,
      idleMs: IDLE_MS,
      checkpointPages,
    })
  }

  write(parts: TestBatch = {}, isInLog = true): void {
    this.writer.write(batch(++this.#number, parts), isInLog ? undefined : { place: undefined })
  }

  /** What was noted since the last call. */
  get noted(): string[] {
    return this.log.splice(0)
  }

  close(): void {
    this.writer.close()
    if (this.#opened.database.inTransaction) this.#opened.database.exec('rollback')
    this.#opened.close()
  }

  #watch(): void {
    const { state, removals, blocks } = this.tables
    const { log } = this
    const [store, begin, step, examine] = [state.store, removals.begin, removals.step, blocks.examine]
    removals.begin = (rows) => {
      log.push(rows === 0 ? 'marks' : `removes ${rows}`)
      begin.call(removals, rows)
    }
    state.store = (...args) => {
      meet(this.onStore)
      store.apply(state, args)
    }
    removals.step = () => {
      log.push('piece')
      meet(this.onPiece)
      step.call(removals)
    }
    blocks.examine = (ids) => {
      log.push('examines')
      examine.call(blocks, ids)
      blocks.neglect(this.damaged.splice(0, 1))
    }
  }

  #reserve() {
    const bench = this
    return {
      get bytes() {
        return bench.hasReserve ? 2 ** 20 : 0
      },
      make() {
        bench.hasReserve ||= bench.canMake
        return bench.hasReserve
      },
      release() {
        const held = bench.hasReserve
        bench.hasReserve = false
        if (held) bench.log.push('releases')
        return held
      },
    }
  }

  #database(): Pick<Database, 'name' | 'inTransaction' | 'prepare' | 'pragma' | 'transaction'> {
    const { database } = this.#opened
    const pragma = (sql: string, ...rest: never[]): unknown => {
      if (!sql.startsWith('busy_timeout')) this.log.push(sql)
      return database.pragma(sql, ...rest)
    }
    const prepare = (sql: string): Statement => {
      const statement = database.prepare(sql)
      const errors = { commit: this.onCommit, 'pragma wal_checkpoint(passive)': this.onCheckpoint }[sql]
      if (errors === undefined) return statement
      const name = sql === 'commit' ? 'commit' : 'checkpoint'
      const work = (): unknown => {
        if (name === 'checkpoint') this.log.push(name)
        meet(errors)
        if (name === 'checkpoint') this.atCheckpoint()
        return name === 'commit' ? statement.run() : statement.get()
      }
      return Object.assign(Object.create(statement), { run: work, get: work, raw: () => ({ get: work }) })
    }
    return {
      name: database.name,
      get inTransaction() {
        return database.inTransaction
      },
      prepare: prepare as Database['prepare'],
      pragma: pragma as Database['pragma'],
      transaction: database.transaction.bind(database) as Database['transaction'],
    }
  }
}

let directory = ''
let bench: Bench
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setImmediate', 'clearImmediate'] })
  directory = mkdtempSync(join(tmpdir(), 'writer-'))
  bench = new Bench(directory)
})
afterEach(() => {
  bench.close()
  vi.useRealTimers()
  rmSync(directory, { recursive: true, force: true })
})

const wait = (ms: number): unknown => vi.advanceTimersByTime(ms)
/** Lets all pieces run that follow each other at once. */
const soon = (): unknown => wait(20)

describe('a batch', () => {
  test('is stored at once if nothing is in its way', () => {
    bench.write()
    expect(bench.noted).toEqual(['removes 4096', 'durable 1'])
  })

  test('that finds no room is tried again at once: with the space of the reserve, and only marking what it removes', () => {
    bench.canMake = false
    bench.onStore.push(FULL)
    bench.write()
    expect(bench.noted.slice(0, 6)).toEqual(['removes 4096', 'full', 'releases', 'checkpoint', 'marks', 'durable 1'])
  })

  test('is tried again at once without a reserve, too, as long as it has not left its removals', () => {
    bench.hasReserve = false
    bench.onStore.push(FULL)
    bench.write()
    expect(bench.noted.slice(0, 5)).toEqual(['removes 4096', 'full', 'checkpoint', 'marks', 'durable 1'])
  })

  test('that finds none after that waits, and is reported once however often it is tried', () => {
    bench.canMake = false
    bench.onStore.push(FULL, FULL, FULL, FULL)
    bench.write()
    expect(bench.noted).toEqual(['removes 4096', 'full', 'releases', 'checkpoint', 'marks', 'checkpoint'])
    wait(RETRY_MS - 1)
    expect(bench.noted).toEqual([])
    wait(1)
    expect(bench.noted).toEqual(['marks', 'checkpoint'])
    wait(2 * RETRY_MS)
    expect(bench.noted).toContain('durable 1')
    expect(bench.onStore).toEqual([])
  })

  test('finds none when it is committed: the same', () => {
    bench.onCommit.push(FULL)
    bench.write()
    expect(bench.noted.slice(0, 6)).toEqual(['removes 4096', 'full', 'releases', 'checkpoint', 'marks', 'durable 1'])
  })

  test('waits for another reader, as it is, and nothing is reported', () => {
    bench.onStore.push(BUSY)
    bench.write()
    expect(bench.noted).toEqual(['removes 4096'])
    wait(RETRY_MS)
    expect(bench.noted).toEqual(['removes 4096', 'durable 1'])
  })

  test('that touches a damaged row is tried again once, after what it touches was examined', () => {
    bench.onStore.push(UNREADABLE)
    bench.write({ blocks: [{ id: 1, frames: frames(1) }] })
    expect(bench.noted).toEqual(['removes 4096', 'examines', 'marks', 'durable 1'])
  })

  test('that was examined and finds no room gets the space of the reserve', () => {
    bench.onStore.push(UNREADABLE, FULL)
    bench.write()
    const noted = bench.noted.slice(0, 8)
    expect(noted).toEqual(['removes 4096', 'examines', 'marks', 'full', 'releases', 'checkpoint', 'marks', 'durable 1'])
  })

  test('that was examined and is still unreadable fails', () => {
    bench.onStore.push(UNREADABLE, UNREADABLE)
    bench.write()
    expect(bench.noted).toEqual(['removes 4096', 'examines', 'marks', 'failed DAMAGED'])
  })

  test('that was examined and finds no room waits without the reserve, and is not examined again', () => {
    bench.hasReserve = false
    bench.onStore.push(UNREADABLE, FULL, UNREADABLE)
    bench.write()
    expect(bench.noted).toEqual(['removes 4096', 'examines', 'marks', 'full', 'checkpoint'])
    wait(RETRY_MS)
    expect(bench.noted).toEqual(['marks', 'failed DAMAGED'])
  })

  test('that meets any other error fails, and nothing happens any more', () => {
    bench.onCommit.push(BROKEN)
    bench.write()
    expect(bench.noted).toEqual(['removes 4096', 'failed IO'])
    bench.write()
    bench.writer.start()
    wait(10 * IDLE_MS)
    expect([bench.noted, vi.getTimerCount(), bench.writer.failed]).toEqual([[], 0, true])
  })

  test('whose progress cannot be noted outside the database fails, and is not said to be durable', () => {
    bench.onProgress.push(BROKEN)
    bench.write({ reserves: true })
    expect(bench.noted).toEqual(['removes 4096', 'failed IO'])
  })
})

describe('a batch of a cluster', () => {
  test('is held until the log has it', () => {
    bench.write({}, false)
    wait(10 * RETRY_MS)
    expect(bench.noted).toEqual(['removes 4096'])
    bench.writer.inLog(PLACE)
    expect(bench.noted).toEqual(['durable 1'])
    expect(bench.tables.log.place).toMatchObject({ sequence: 1 })
  })

  test('whose record comes into the log while it waits for room is stored without being held', () => {
    bench.onStore.push(BUSY)
    bench.write({}, false)
    bench.writer.inLog(PLACE)
    expect(bench.noted).toEqual(['removes 4096'])
    wait(RETRY_MS)
    expect(bench.noted).toEqual(['removes 4096', 'durable 1'])
  })

  test('that finds no room when it is committed is not held a second time', () => {
    bench.onCommit.push(FULL)
    bench.write({}, false)
    bench.writer.inLog(PLACE)
    expect(bench.noted.slice(0, 6)).toEqual(['removes 4096', 'full', 'releases', 'checkpoint', 'marks', 'durable 1'])
  })

  test('that meets another reader when it is committed runs again later', () => {
    bench.onCommit.push(BUSY)
    bench.write({}, false)
    bench.writer.inLog(PLACE)
    expect(bench.noted).toEqual(['removes 4096'])
    wait(RETRY_MS)
    expect(bench.noted).toEqual(['removes 4096', 'durable 1'])
  })

  test('that is abandoned is rolled back, and nothing is written any more', () => {
    bench.write({ gaps: [] }, false)
    bench.writer.abandon()
    bench.writer.inLog(PLACE)
    bench.write()
    wait(10 * IDLE_MS)
    expect([bench.noted, bench.writer.failed, vi.getTimerCount()]).toEqual([['removes 4096'], true, 0])
    expect(bench.tables.log.place).toMatchObject({ sequence: 0 })
  })
})

describe('closing', () => {
  test('tries a batch that waits a last time, and stores it', () => {
    bench.onStore.push(BUSY)
    bench.write()
    bench.writer.close()
    expect([bench.noted, vi.getTimerCount()]).toEqual([['removes 4096', 'removes 4096', 'durable 1'], 0])
  })

  test('leaves a batch that still finds no room, and nothing is tried or written afterwards', () => {
    bench.hasReserve = false
    bench.canMake = false
    bench.onStore.push(FULL, FULL, FULL)
    bench.write()
    bench.writer.close()
    expect(bench.noted).toEqual(['removes 4096', 'full', 'checkpoint', 'marks', 'checkpoint', 'marks', 'checkpoint'])
    bench.write()
    wait(10 * IDLE_MS)
    expect([bench.noted, vi.getTimerCount(), bench.writer.failed]).toEqual([[], 0, false])
  })

  test('keeps the failure', () => {
    bench.onStore.push(BROKEN)
    bench.write()
    bench.writer.close()
    expect(bench.writer.failed).toBe(true)
  })
})

describe('a piece', () => {
  /** Leaves ten blocks to remove, none of which is removed yet. */
  beforeEach(() => {
    const ids = Array.from({ length: 10 }, (_, index) => index + 1)
    bench.write({ blocks: ids.map((id) => ({ id, frames: frames(id) })) })
    bench.hasReserve = false
    bench.onStore.push(FULL)
    bench.write({ removed: ids })
    expect(bench.noted).toContain('durable 2')
  })

  test('is removed after the batch, and then nothing is left', () => {
    soon()
    expect(bench.noted).toEqual(['removes 256', 'piece'])
    soon()
    expect([bench.noted, bench.tables.removals.isPending]).toEqual([[], false])
  })

  test('that finds no room is halved at once, and a single row waits', () => {
    bench.canMake = false
    bench.hasReserve = false
    bench.onPiece.push(...Array<string>(9).fill(FULL))
    soon()
    const rows = bench.noted.filter((entry) => entry.startsWith('removes'))
    expect(rows).toEqual([256, 128, 64, 32, 16, 8, 4, 2, 1].map((count) => `removes ${count}`))
    wait(RETRY_MS - 20)
    expect(bench.noted).toEqual([])
    soon()
    expect(bench.noted.slice(0, 2)).toContain('removes 1')
    wait(RETRY_MS)
    expect(bench.tables.removals.isPending).toBe(false)
  })

  test('that finds no room is reported, and gets the space of the reserve', () => {
    bench.canMake = false
    bench.onPiece.push(FULL)
    soon()
    const noted = bench.noted.slice(0, 7)
    expect(noted).toEqual(['removes 256', 'piece', 'full', 'releases', 'checkpoint', 'removes 128', 'piece'])
  })

  test('that meets another reader is halved, and nothing is reported', () => {
    bench.onPiece.push(BUSY)
    soon()
    expect(bench.noted).toEqual(['removes 256', 'piece', 'checkpoint', 'removes 128', 'piece'])
  })

  test('with a damaged row is tried again as long as more of them are set aside', () => {
    bench.damaged.push(3, 5)
    bench.onPiece.push(UNREADABLE, UNREADABLE)
    soon()
    const piece = ['removes 256', 'piece']
    expect(bench.noted).toEqual([...piece, 'examines', ...piece, 'examines', ...piece])
  })

  test('that is unreadable for another reason fails', () => {
    bench.onPiece.push(UNREADABLE)
    soon()
    expect(bench.noted).toEqual(['removes 256', 'piece', 'examines', 'failed DAMAGED'])
    expect(vi.getTimerCount()).toBe(0)
  })

  test('that meets any other error fails', () => {
    bench.onPiece.push(BROKEN)
    soon()
    expect(bench.noted).toEqual(['removes 256', 'piece', 'failed IO'])
  })

  test('that was removed lets a batch that waits try again at once', () => {
    bench.onStore.push(BUSY)
    bench.write()
    expect(bench.noted).toEqual(['removes 4096'])
    soon()
    expect(bench.noted).toEqual(['removes 256', 'piece', 'removes 4096', 'durable 3'])
  })

  test('is not removed while a batch is held, but after it', () => {
    bench.write({}, false)
    wait(10)
    expect(bench.noted).toEqual(['removes 4096'])
    bench.writer.inLog(PLACE)
    soon()
    expect(bench.noted).toEqual(['durable 3', 'removes 256', 'piece'])
  })
})

describe('the disk', () => {
  test('counts as full when space is low, until the reserve is there and there is enough', () => {
    bench.free = 2 ** 20
    bench.hasReserve = false
    bench.canMake = false
    bench.write()
    expect(bench.noted.slice(1, 4)).toEqual(['durable 1', 'checkpoint', 'full'])
    bench.free = PLENTY
    wait(RETRY_MS)
    expect(bench.noted).not.toContain('room')
    bench.canMake = true
    wait(RETRY_MS)
    expect(bench.noted.filter((entry) => entry === 'room')).toHaveLength(1)
    wait(10 * RETRY_MS)
    expect(bench.noted).not.toContain('room')
  })

  test('does not count as full if a checkpoint makes enough space', () => {
    bench.free = 2 ** 20
    bench.hasReserve = false
    bench.canMake = false
    bench.atCheckpoint = () => {
      bench.free = PLENTY
    }
    bench.write()
    expect(bench.noted.slice(1)).toEqual(['durable 1', 'checkpoint'])
  })

  test('that is low and then has no room for a batch is reported for each such batch', () => {
    bench.free = 2 ** 20
    bench.hasReserve = false
    bench.canMake = false
    bench.write()
    for (let number = 2; number <= 3; number++) {
      expect(bench.noted.filter((entry) => entry === 'full')).toHaveLength(1)
      bench.onStore.push(FULL, FULL)
      bench.write()
      wait(RETRY_MS)
    }
    expect(bench.noted.filter((entry) => entry === 'full' || entry === 'durable 3')).toEqual(['full', 'durable 3'])
  })

  test('without room for a checkpoint is reported after its batch, and the reserve makes room for it', () => {
    reopen()
    bench.canMake = false
    bench.onCheckpoint.push(FULL)
    bench.write({ blocks: large() })
    expect(bench.noted.slice(1, 6)).toEqual(['durable 1', 'checkpoint', 'full', 'releases', 'checkpoint'])
  })

  test('that fails in a checkpoint ends the writing: nothing is tried, reported or planned any more', () => {
    reopen()
    bench.onCheckpoint.push(BROKEN)
    bench.free = 2 ** 20
    bench.write({ blocks: large() })
    expect(bench.noted.slice(1)).toEqual(['durable 1', 'checkpoint', 'failed IO'])
    wait(10 * IDLE_MS)
    expect([bench.noted, vi.getTimerCount()]).toEqual([[], 0])
  })

  /** Opens it again with a checkpoint for each 16 pages of the log. */
  function reopen(): void {
    bench.close()
    bench = new Bench(directory, 16)
  }

  /** Blocks that take up more of the log than runs a checkpoint. */
  function large() {
    return [1, 2, 3].map((id) => ({ id, frames: frames(id, 90_000) }))
  }
})

describe('at rest', () => {
  const TRUNCATES = 'wal_checkpoint(truncate)'

  test('the log is truncated once no batch has come for a whole interval', () => {
    bench.write()
    wait(IDLE_MS)
    expect(bench.noted).not.toContain(TRUNCATES)
    wait(IDLE_MS)
    expect(bench.noted).toContain(TRUNCATES)
    expect(vi.getTimerCount()).toBe(0)
  })

  test('each batch puts it off', () => {
    for (let number = 0; number < 5; number++) {
      bench.write()
      wait(IDLE_MS)
    }
    expect(bench.noted).not.toContain(TRUNCATES)
  })

  test('a batch in flight puts it off until it is stored', () => {
    bench.write()
    bench.write({}, false)
    wait(10 * IDLE_MS)
    expect(bench.noted).not.toContain(TRUNCATES)
    bench.writer.inLog(PLACE)
    wait(2 * IDLE_MS)
    expect(bench.noted).toContain(TRUNCATES)
  })
})
