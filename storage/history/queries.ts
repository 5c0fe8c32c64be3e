/**
 * Queries. Each has a connection of its own to fresh.db, whose transaction keeps the state that it began with, and the number of
 * that state: files that were forgotten since stay until it ends.
 */
import type { Database, Statement } from 'better-sqlite3'
import { type CatalogueFile, type Run, RunCatalogue } from './catalogue.ts'
import type { ChunkColumns } from './codec/chunk.ts'
import { FRESH_FILE, type HistoryDisk, openReader, readFailure } from './database.ts'
import type { DroppedSeries } from './dropped.ts'
import { FollowedSelection } from './followed-selection.ts'
import { rowsOfSeries } from './head-parts.ts'
import { type HistoryFiles, RunPages } from './history-files.ts'
import type { HistoryTenant } from './history-tenants.ts'
import { KeptSelections } from './kept-selections.ts'
import type { NameChanges } from './name-changes.ts'
import { PageTable } from './page-table.ts'
import { columnsOf } from './period-file.ts'
import type { RunKind } from './periods.ts'
import { type CompiledMatcher, compileMatchers, type ResolvedSeries, SeriesResolver } from './resolve.ts'
import { joinParts, type MsRange, type Part, RunReader, rowsOf } from './select.ts'
import {
  type HistoryLoss,
  type HistoryMatcher,
  type HistoryQuery,
  HistoryReadError,
  type HistoryRollups,
  type HistorySamples,
  type HistorySeries,
  type HistorySteps,
  ROLLUP_MS,
} from './store.ts'
import { summaryOf } from './summary.ts'
import { windowsOf } from './windows.ts'

/** Connections that wait for the next query. */
const IDLE_READERS = 4
/** A piece of a series has whole days, and not many more samples than these. */
const PIECE_ROWS = 1 << 20
const TOO_LONG = 'too much was stored since the query began to keep what it shows: ask again, or for less'

interface Reader {
  readonly database: Database
  readonly catalogue: RunCatalogue
  readonly pages: PageTable
  readonly resolver: SeriesResolver
  readonly losses: Statement<unknown[], HistoryLoss>
}

/** A query that has a state of its own. */
interface OpenRead {
  readonly reader: Reader
  /** Files may go then. */
  readonly release: () => void
}

export interface HistoryQueriesParts {
  readonly disk: HistoryDisk
  readonly directory: string
  readonly files: HistoryFiles
  readonly dropped: DroppedSeries
  readonly changes: NameChanges
  /** Removes a file that no query needs. */
  readonly remove: (file: CatalogueFile) => void
}

export class HistoryQueries {
  readonly #parts: HistoryQueriesParts
  readonly #idle: Reader[] = []
  readonly #kept: KeptSelections
  /** Numbers of the queries that are under way, and of what else needs files. */
  readonly #numbers = new Set<number>()
  readonly #reads = new Set<OpenRead>()
  #next = 1
  /** Files that are forgotten, and the first query that does not need them. */
  #forgotten: { readonly file: CatalogueFile; readonly before: number }[] = []

  constructor(parts: HistoryQueriesParts) {
    this.#parts = parts
    this.#kept = new KeptSelections(parts.changes)
  }

  *samples(tenant: HistoryTenant, query: HistoryQuery): HistorySteps<HistorySamples> {
    if (query.stepMs !== undefined) {
      yield* this.#summed(tenant, query, query.stepMs)
      return
    }
    for (const found of this.#columns(tenant, query, 'samples')) {
      if (found === undefined) yield
      else {
        const { series, columns, place } = found
        yield { series, times: columns.times, values: columns.values[0]!, place }
      }
    }
  }

  *rollups(tenant: HistoryTenant, query: HistoryQuery): HistorySteps<HistoryRollups> {
    for (const found of this.#columns(tenant, query, 'rollups')) {
      if (found === undefined) yield
      else yield { series: found.series, ...windowsOf(found.columns, ROLLUP_MS) }
    }
  }

  *series(tenant: HistoryTenant, { matchers }: Pick<HistoryQuery, 'matchers'>): HistorySteps<HistorySeries> {
    const compiled = compileMatchers(matchers)
    yield* this.#reading(function* ({ resolver }) {
      const { places, at } = yield* resolver.resolve(tenant, compiled)
      for (const place of places) yield at(place)
    })
  }

  /** `tenant`: that of now. */
  following(tenant: () => HistoryTenant | undefined, matchers: readonly HistoryMatcher[]): FollowedSelection {
    return new FollowedSelection({ matchers, tenant, changes: this.#parts.changes })
  }

  losses(tenant: HistoryTenant, { fromMs, toMs }: Pick<HistoryQuery, 'fromMs' | 'toMs'>): HistoryLoss[] {
    let reader: Reader | undefined
    try {
      reader = this.#begin()
      return reader.losses.all(tenant.id, fromMs, toMs)
    } catch (error) {
      throw readFailure(error, FRESH_FILE) ?? error
    } finally {
      if (reader !== undefined) this.#end(reader)
    }
  }

  /** A file that the catalogue does not name any more. It goes when no query that may read it is left. */
  forget(file: CatalogueFile): void {
    this.#forgotten.push({ file, before: this.#next })
    this.#removeForgotten()
  }

  /** Files stay until the function that is returned is called. */
  hold(): () => void {
    const number = this.#next++
    this.#numbers.add(number)
    return () => {
      this.#numbers.delete(number)
      this.#removeForgotten()
    }
  }

  /** A connection that keeps the log of fresh.db from being written back when the other one is closed. */
  holdLog(): () => void {
    const { database } = this.#idle.pop() ?? this.#reader()
    database.pragma('schema_version')
    return () => database.close()
  }

  /** Ends all queries, each of which says so when it is gone on with. */
  endAll(): void {
    for (const read of this.#reads) this.#endRead(read)
  }

  close(): void {
    for (const { database } of this.#idle.splice(0)) database.close()
  }

  *#columns(
    tenant: HistoryTenant,
    { matchers, fromMs, toMs, after, inPieces: isInPieces = false }: HistoryQuery,
    kind: RunKind,
  ): HistorySteps<{ readonly series: HistorySeries; readonly columns: ChunkColumns; readonly place: number }> {
    const compiled = compileMatchers(matchers)
    const blocks = kind === 'samples' ? [...tenant.head.blocks] : []
    const runsOf = (reader: Reader): RunReader[] => this.#runs(reader, tenant.id, kind, { fromMs, toMs })
    yield* this.#reading(function* (reader) {
      const readers = runsOf(reader)
      const { places, at } = yield* reader.resolver.resolve(tenant, compiled)
      const wanted = placesAfter(places, after)
      const head = yield* rowsOfSeries(tenant.head, blocks, wanted, { fromMs, toMs })
      for (const [index, place] of wanted.entries()) {
        const last = head.part(index)
        const latest = last === undefined ? [] : [last]
        let [parts, dayMs, sinceMs]: [Part[], number, number] = [[], 0, fromMs]
        for (const each of readers) {
          const { period } = each.run
          if (isInPieces && period !== dayMs && rowsOf(parts) >= PIECE_ROWS) {
            const columns = joinParts([...parts, ...latest], sinceMs, Math.min(period, toMs))
            if (columns !== undefined) yield { series: at(place), columns, place }
            ;[parts, sinceMs] = [[], Math.max(period + 1, fromMs)]
          }
          dayMs = period
          yield* each.read(place, parts)
        }
        const columns = joinParts([...parts, ...latest], sinceMs, toMs)
        if (columns !== undefined) yield { series: at(place), columns, place }
      }
    })
  }

  *#summed(
    tenant: HistoryTenant,
    { matchers, fromMs, toMs, after, following }: HistoryQuery,
    stepMs: number,
  ): HistorySteps<HistorySamples> {
    const compiled = compileMatchers(matchers)
    const kept = this.#kept.find(tenant.id, matchers)
    // Most rules look at few of the owners of series: of the others nothing is opened.
    if (kept?.places.length === 0) {
      following?.found(kept.places)
      return
    }
    const blocks = [...tenant.head.blocks]
    const { goneMs } = tenant
    const selected = (reader: Reader) => this.#selected(reader, tenant, matchers, compiled)
    const open = (reader: Reader, kind: RunKind, range: MsRange) => this.#runs(reader, tenant.id, kind, range)
    yield* this.#reading(function* (reader) {
      const { places, at } = yield* selected(reader)
      following?.found(places)
      const runs = (kind: RunKind, range: MsRange): RunReader[] => open(reader, kind, range)
      const summary = summaryOf({ fromMs, toMs }, { stepMs, goneMs, runs })
      const wanted = placesAfter(places, after)
      const head = yield* rowsOfSeries(tenant.head, blocks, wanted, summary.range)
      for (const [index, place] of wanted.entries()) {
        const found = yield* summary.read(place, head.part(index))
        if (found !== undefined) yield { series: at(place), ...found, place }
      }
    })
  }

  /** To be called when the state has just begun. */
  *#selected(
    { resolver }: Reader,
    tenant: HistoryTenant,
    matchers: readonly HistoryMatcher[],
    compiled: readonly CompiledMatcher[],
  ): Generator<undefined, ResolvedSeries, void> {
    const then = this.#parts.changes.now
    const known = this.#kept.find(tenant.id, matchers)
    const { places, described } =
      known ?? this.#kept.keep(tenant.id, matchers, (yield* resolver.resolve(tenant, compiled)).places, then)
    const at = (place: number): HistorySeries => {
      const series = described.get(place) ?? resolver.at(tenant, place)
      described.set(place, series)
      return series
    }
    return { places, at }
  }

  /** Reads one state in steps, between any two of which it may be ended. */
  *#reading<Result>(work: (reader: Reader) => HistorySteps<Result>): HistorySteps<Result> {
    const read = this.#open()
    try {
      for (const result of work(read.reader)) {
        yield result
        if (!this.#reads.has(read)) throw new HistoryReadError(TOO_LONG)
      }
    } catch (error) {
      throw readFailure(error, FRESH_FILE) ?? error
    } finally {
      this.#endRead(read)
    }
  }

  #open(): OpenRead {
    const release = this.hold()
    try {
      const read: OpenRead = { reader: this.#begin(), release }
      this.#reads.add(read)
      return read
    } catch (error) {
      release()
      throw readFailure(error, FRESH_FILE) ?? error
    }
  }

  /** Does nothing if it has ended. */
  #endRead(read: OpenRead): void {
    if (!this.#reads.delete(read)) return
    this.#end(read.reader)
    read.release()
  }

  #runs({ catalogue, pages }: Reader, tenant: number, kind: RunKind, range: MsRange): RunReader[] {
    const { files, dropped } = this.#parts
    const runs: Run[] = catalogue.overlapping(tenant, kind, range.fromMs, range.toMs)
    return runs.map((run) => {
      const of = new RunPages(run, files, { catalogue, fresh: pages })
      return new RunReader(of, dropped.hidden(run), range, columnsOf(kind))
    })
  }

  #begin(): Reader {
    const reader = this.#idle.pop() ?? this.#reader()
    try {
      reader.database.exec('begin')
      // The state is that of the first read.
      reader.database.pragma('schema_version')
      return reader
    } catch (error) {
      reader.database.close()
      throw error
    }
  }

  #end(reader: Reader): void {
    reader.database.exec('commit')
    if (this.#idle.length < IDLE_READERS) this.#idle.push(reader)
    else reader.database.close()
  }

  #reader(): Reader {
    const database = openReader(this.#parts.disk, this.#parts.directory)
    return {
      database,
      catalogue: new RunCatalogue(database),
      pages: new PageTable(database),
      resolver: new SeriesResolver(database),
      losses: database.prepare<unknown[], HistoryLoss>(
        'select native, from_ms as fromMs, to_ms as toMs, count, reason from loss ' +
          'where tenant = ? and to_ms >= ? and from_ms <= ? order by from_ms, id',
      ),
    }
  }

  #removeForgotten(): void {
    const oldest = Math.min(this.#next, ...this.#numbers)
    const removable = this.#forgotten.filter(({ before }) => before <= oldest)
    this.#forgotten = this.#forgotten.filter(({ before }) => before > oldest)
    for (const { file } of removable) this.#parts.remove(file)
  }
}

function placesAfter(places: Float64Array, after: number | undefined): Float64Array {
  return after === undefined ? places : places.filter((place) => place > after)
}
