/** The writer on a disk of the test, which says what each transaction and each checkpoint meets, and a clock that it moves. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Database, Statement } from 'better-sqlite3'
import { afterEach, beforeEach, vi } from 'vitest'
import { recover } from '../../../storage/sqlite/damage/recovery.ts'
import { type OpenDatabase, openDatabase } from '../../../storage/sqlite/database.ts'
import { openTables, type Tables } from '../../../storage/sqlite/tables.ts'
import { Writer } from '../../../storage/sqlite/writer.ts'
import { batch, type TestBatch } from '../../contracts/store-batch.ts'

export const RETRY_MS = 250
export const IDLE_MS = 1_000
export const PLENTY = 2 ** 40
export const PLACE = { log: 1, epoch: 1, sequence: 1, hash: new Uint8Array(32) }

export const FULL = 'SQLITE_FULL'
export const BUSY = 'SQLITE_BUSY'
export const UNREADABLE = 'SQLITE_CORRUPT'
export const BROKEN = 'SQLITE_IOERR_FSYNC'

function meet(errors: string[]): void {
  const code = errors.shift()
  if (code !== undefined && code !== '') throw Object.assign(new Error(`the disk of the test: ${code}`), { code })
}

/** A writer whose steps are noted; each list has the errors that the next steps meet, '' for none. */
export class WriterBench {
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
  writer: Writer
  readonly #opened: OpenDatabase
  #number = 0

  constructor(directory: string) {
    this.#opened = openDatabase({ directory, synchronous: 'normal' })
    this.tables = openTables(this.#opened.database)
    recover(this.#opened, this.tables)
    this.#watch()
    this.writer = this.#open(1e6)
  }

  /** Goes on with another writer, which runs a checkpoint when the log has so many pages. */
  reopen(checkpointPages: number): void {
    this.writer.close()
    this.writer = this.#open(checkpointPages)
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

  #open(checkpointPages: number): Writer {
    const note = (event: string) => this.log.push(event)
    return new Writer({
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

/** Opens a bench for each test, with a clock that stands still. */
export function onBench(use: (bench: WriterBench) => void): void {
  let directory = ''
  let bench: WriterBench
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setImmediate', 'clearImmediate'] })
    directory = mkdtempSync(join(tmpdir(), 'writer-'))
    bench = new WriterBench(directory)
    use(bench)
  })
  afterEach(() => {
    bench.close()
    vi.useRealTimers()
    rmSync(directory, { recursive: true, force: true })
  })
}

export const wait = (ms: number): unknown => vi.advanceTimersByTime(ms)
/** Lets all pieces run that follow each other at once. */
export const soon = (): unknown => wait(20)
