/**
 * The connections to files of days and months, of which a few stay open, and the pages of runs wherever they are. Damage is
 * counted once for each page, and costs that page alone.
 */
import { join } from 'node:path'
import type { Database } from 'better-sqlite3'
import type { CatalogueFile, Run, RunCatalogue } from './catalogue.ts'
import { type HistoryPage, ReadPage } from './codec/page.ts'
import { DamagedPage } from './codec/varints.ts'
import {
  damagedHistory,
  FRESH_FILE,
  type HistoryDisk,
  historyError,
  isOfDisk,
  openFile,
  readFailure,
} from './database.ts'
import { type PageKey, PageTable } from './page-table.ts'

/** More than a month of days. */
const MAX_OPEN = 40
/** Damage that is remembered, so that it is counted once. */
const MAX_REMEMBERED = 10_000
/** What the disk could not read for so long, however often that was tried, counts as damaged: nothing else would come to its turn. */
const UNREADABLE_MS = 600_000

interface OpenFile {
  readonly database: Database
  readonly pages: PageTable
}

/** A page, or what is left of a run, that cannot be read. */
export interface Damage {
  readonly run: Run
  readonly fromMs: number
  readonly toMs: number
  readonly samples: number
}

/** When something could not be read, first and last: monotonic milliseconds. */
interface Unread {
  readonly firstMs: number
  lastMs: number
}

export class HistoryFiles {
  readonly #disk: HistoryDisk
  readonly #directory: string
  readonly #monotonicMs: () => number
  /** The one that was used last is the last. */
  readonly #open = new Map<number, OpenFile>()
  readonly #reported = new Set<string>()
  readonly #unread = new Map<string, Unread>()
  /** Damage that was found and is not stored as a loss yet. */
  found: Damage[] = []
  damagedPages = 0

  constructor(disk: HistoryDisk, directory: string, monotonicMs: () => number) {
    this.#disk = disk
    this.#directory = directory
    this.#monotonicMs = monotonicMs
  }

  /** The pages of a file. Throws StorageError. */
  pages({ id, name }: Pick<CatalogueFile, 'id' | 'name'>): PageTable {
    const open = this.#open.get(id)
    if (open !== undefined) {
      this.#open.delete(id)
      this.#open.set(id, open)
      return open.pages
    }
    const path = join(this.#directory, name)
    const database = openFile(this.#disk, path)
    const pages = pagesOf(database, path)
    this.#open.set(id, { database, pages })
    for (const [oldest] of this.#open) {
      if (this.#open.size <= MAX_OPEN) break
      this.close(oldest)
    }
    return pages
  }

  close(id: number): void {
    this.#open.get(id)?.database.close()
    this.#open.delete(id)
  }

  closeAll(): void {
    for (const id of [...this.#open.keys()]) this.close(id)
  }

  damaged(run: Run, page: PageKey | undefined): void {
    const name = nameOf(run, page)
    this.#unread.delete(name)
    if (this.#reported.has(name)) return
    if (this.#reported.size < MAX_REMEMBERED) this.#reported.add(name)
    this.damagedPages++
    const { from: fromMs, to: toMs, samples } = page ?? { from: run.fromMs, to: run.toMs, samples: 0 }
    this.found.push({ run, fromMs, toMs, samples })
  }

  /** The disk could not read a page, or which ones a run has. Returns whether that counts as damage by now. */
  couldNotRead(run: Run, page: PageKey | undefined): boolean {
    const name = nameOf(run, page)
    const nowMs = this.#monotonicMs()
    const before = this.#unread.get(name)
    if (before === undefined || nowMs - before.lastMs >= UNREADABLE_MS) {
      this.#unread.delete(name)
      if (this.#unread.size < MAX_REMEMBERED) this.#unread.set(name, { firstMs: nowMs, lastMs: nowMs })
      return false
    }
    before.lastMs = nowMs
    return nowMs - before.firstMs >= UNREADABLE_MS
  }
}

function nameOf(run: Run, page: PageKey | undefined): string {
  return `${run.id} ${page?.id ?? ''}`
}

/** A file whose tables are damaged is read by nobody. */
function pagesOf(database: Database, path: string): PageTable {
  try {
    return new PageTable(database)
  } catch (error) {
    database.close()
    throw damagedHistory(path, error instanceof Error ? error.message : String(error))
  }
}

/** The pages of one run, as a connection to fresh.db and the files have them. */
export class RunPages {
  readonly run: Run
  readonly #files: HistoryFiles
  readonly #file: CatalogueFile | undefined
  readonly #fresh: PageTable

  constructor(run: Run, files: HistoryFiles, { catalogue, fresh }: { catalogue: RunCatalogue; fresh: PageTable }) {
    this.run = run
    this.#files = files
    this.#fresh = fresh
    this.#file = run.file === null ? undefined : catalogue.file(run.file)
  }

  /** The next page; undefined after the last one. */
  after(last: PageKey | undefined): PageKey | undefined {
    return this.#guarded(undefined, (pages) => ordered(pages.after(this.run.id, last), last?.hi ?? 0))
  }

  /** The first page with this place, or one after it, and something in a range of time; undefined if there is none. */
  holding(place: number, fromMs: number, toMs: number): PageKey | undefined {
    return this.#guarded(undefined, (pages) => ordered(pages.holding(this.run.id, place, fromMs, toMs), place))
  }

  /** The bytes of a page; undefined if it is damaged. */
  page(key: PageKey): HistoryPage | undefined {
    return this.#guarded(key, (pages) => pages.page(key))
  }

  /** A page; undefined if it is damaged. */
  read(key: PageKey): ReadPage | undefined {
    return this.#guarded(key, (pages) => new ReadPage(pages.page(key)))
  }

  /** A chunk could not be decoded. */
  damaged(key: PageKey): void {
    this.#files.damaged(this.run, key)
  }

  #guarded<Result>(key: PageKey | undefined, work: (pages: PageTable) => Result): Result | undefined {
    try {
      return work(this.#file === undefined ? this.#fresh : this.#files.pages(this.#file))
    } catch (error) {
      if (!(error instanceof DamagedPage)) this.#failed(error, key)
      this.#files.damaged(this.run, key)
      return undefined
    }
  }

  /** Throws what is no damage. */
  #failed(error: unknown, key: PageKey | undefined): void {
    if (historyError(error, '').code === 'DAMAGED') return
    const failure = readFailure(error, this.#file?.name ?? FRESH_FILE)
    if (failure === undefined) throw error
    if (!isOfDisk(error) || !this.#files.couldNotRead(this.run, key)) throw failure
  }
}

/** What an index leads to, if it is what was looked for: otherwise whoever reads on would not come to an end. */
function ordered(key: PageKey | undefined, hi: number): PageKey | undefined {
  if (key !== undefined && !(key.hi >= hi)) throw new DamagedPage('an index leads to another page')
  return key
}
