/**
 * Samples of a text, OpenMetrics with times, become samples of the history, in the thread of it. They do not pass a channel: they are
 * stored at their own times, whatever else is known of their series, and the same text again changes nothing. What the text says of
 * families, their types, helps and units, is kept where nothing else is known.
 */
import { ProtocolError } from '../../../protocol/errors.ts'
import { TextParser, type TextSink } from '../../../protocol/prometheus/text.ts'
import { readSeries } from '../../../protocol/prometheus/text-line.ts'
import type { HistoryLabels, HistoryStore } from '../../../storage/history/store.ts'
import { isAhead } from '../../kit/samples.ts'
import { ColumnsByTenant } from './columns.ts'
import { ImportedFamilies } from './families.ts'
import { type ImportCounts, type ImportedText, SERVER } from './messages.ts'

/** A sample with its name and labels. */
const LINE_BYTES = 16_384
/** More than lines that say something of one fit into a text: each has ten bytes and more. */
const MAX_FAMILIES = 65_536
const MICROSECONDS = 1_000
/** What is not the series of a metric of this server is called as what programs write by remote write. */
const FAMILY = 'prometheus.'

export type ImportStore = Pick<HistoryStore, 'seriesOf' | 'nativeOf' | 'familiesOf' | 'describe' | 'append' | 'commit'>

interface ImportedSeries {
  readonly tenant: string
  readonly reference: number | undefined
}

/** Stores the samples, in steps; what is wrong with the text stores none of them. Throws ProtocolError, StorageError. */
export function* importText(store: ImportStore, imported: ImportedText, nowMs: number): Generator<void, ImportCounts> {
  const sink = new ImportSink(store, imported, nowMs)
  const parser: TextParser<ImportedSeries> = new TextParser(
    'openmetrics',
    { lineBytes: LINE_BYTES, families: MAX_FAMILIES },
    sink,
  )
  try {
    yield* parser.push(new TextEncoder().encode(imported.text))
    // The last line may have no end; there may be more parts.
    yield* parser.push(new TextEncoder().encode('\n'))
  } catch (error) {
    if (error instanceof NoTime) throw new ProtocolError('BAD_NUMBER', `line ${parser.line}: a sample without a time`)
    throw error
  }
  const { counts } = sink
  for (const [tenant, { series, times, values, length }] of sink.columns) {
    const taken = store.append({ tenant, position: undefined, series, times, values, length, losses: [] })
    counts.stored += taken
    counts.tooOld += length - taken
  }
  sink.families.describe(parser.families)
  while (!store.commit()) yield
  return counts
}

class NoTime extends Error {}

class ImportSink implements TextSink<ImportedSeries> {
  readonly counts: ImportCounts = { stored: 0, tooOld: 0, ahead: 0, refused: 0 }
  readonly columns = new ColumnsByTenant()
  readonly families: ImportedFamilies
  readonly #store: ImportStore
  readonly #imported: ImportedText
  readonly #nowMs: number
  /** The text of the last series: a dump has all samples of one, one after the other. */
  #lastText = ''
  #last: ImportedSeries | undefined

  constructor(store: ImportStore, imported: ImportedText, nowMs: number) {
    this.#store = store
    this.families = new ImportedFamilies(store)
    this.#imported = imported
    this.#nowMs = nowMs
  }

  series(text: string): ImportedSeries {
    if (this.#last !== undefined && text === this.#lastText) return this.#last
    this.#lastText = text
    this.#last = this.#find(text)
    return this.#last
  }

  take({ tenant, reference }: ImportedSeries, value: number, time: number | undefined): void {
    if (time === undefined) throw new NoTime()
    if (isAhead(time, this.#nowMs * MICROSECONDS)) this.counts.ahead++
    else if (reference === undefined) this.counts.refused++
    else this.columns.of(tenant).add(reference, Math.floor(time / MICROSECONDS), value)
  }

  /** Throws ProtocolError. */
  #find(text: string): ImportedSeries {
    const { name, labels: given } = readSeries(text)
    const labels: HistoryLabels = given.filter(([, value]) => value !== '').sort(([a], [b]) => (a < b ? -1 : 1))
    const { tenant: own, ofServer } = this.#imported
    const nativeIn = (tenant: string) => this.#store.nativeOf({ tenant, name, labels })
    const ofNone = nativeIn(SERVER)
    // In a query it would be there twice.
    if (ofNone !== undefined && !ofServer) return { tenant: SERVER, reference: undefined }
    const tenant = ofNone === undefined ? own : SERVER
    const native = ofNone ?? nativeIn(own) ?? `${FAMILY}${name}`
    const reference = this.#store.seriesOf({ tenant, name, labels, native })
    if (reference !== undefined) this.families.has(tenant, native, name)
    return { tenant, reference }
  }
}
