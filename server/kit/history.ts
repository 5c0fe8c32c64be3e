/** What is remembered, for those who ask for it by HTTP or by the Monitoring Protocol: the wing of the history gives it, and the edge asks. */
import type { Reader } from '../../auth/permissions.ts'
import type { FamilyMetadata } from '../../protocol/prometheus/samples.ts'
import type {
  HistoryLead,
  HistoryLogOptions,
  HistoryMatcher,
  HistorySeries,
  HistoryWindows,
} from '../../storage/history/store.ts'

export { type HistoryMatcher, type HistoryWindows, ROLLUP_MS } from '../../storage/history/store.ts'

export interface RememberedSelection {
  readonly matchers: readonly HistoryMatcher[]
  /** Milliseconds since 1970; both ends are included. */
  readonly fromMs: number
  readonly toMs: number
  /** Whether only the series are wanted, with empty columns; those of all times are found without reading what they have. */
  readonly isWithoutSamples?: boolean
  /** Where, and how long, windows are wanted in place of samples; undefined: nowhere. As `HistoryQuery` has it. */
  readonly stepMs?: number | undefined
  /** Whether it is asked for again and again: what was read is remembered then. */
  readonly isRecurring?: boolean
  /** Before that the last two samples of each series are enough; undefined: all are wanted. */
  readonly twoBeforeMs?: number | undefined
}

/** A series, and its samples in the range: ascending by time, one for each time, with stale markers. */
export interface RememberedSeries {
  readonly series: Pick<HistorySeries, 'name' | 'labels'>
  readonly times: Float64Array
  readonly values: Float64Array
  readonly windows?: HistoryWindows | undefined
  /** Whether the reader may read it by the rules of now. */
  readonly mayRead: () => boolean
}

/** What is remembered of a selection that is asked for again and again, as it was when that was asked for, and maybe later. */
export interface CurrentSelection {
  /**
   * The series that the reader may read, each as the rules are then; no two have the same name and labels. A step may end without one.
   * Undefined if they are not there any more, and have to be selected.
   */
  series(): Generator<Omit<RememberedSeries, 'mayRead'> | undefined, void, void> | undefined
}

/** What is known of a metric that has series. */
export interface RememberedFamily extends FamilyMetadata {
  readonly name: string
}

/** A range of time in which values are missing: milliseconds since 1970, both ends included. */
export interface RememberedLoss {
  /** Empty: of no tenant. */
  readonly tenant: string
  /** The name of a metric, or a pattern; empty if it may be any. */
  readonly metric: string
  readonly fromMs: number
  readonly toMs: number
  /** How many values are missing; 0 if that is not known. */
  readonly count: number
  readonly reason: string
}

/** What of a metric is asked for, in a range of time of which both ends are included. */
export type LossesAsked = Pick<RememberedSelection, 'matchers' | 'fromMs' | 'toMs'>

export interface EngineAnswer {
  readonly status: number
  readonly pieces: AsyncIterable<Uint8Array>
}

/** Another server that answers expressions in place of this one, by Prometheus' HTTP API. */
export interface HistoryEngine {
  /** The label, and its text, of all that a reader may read; undefined if no label says what that is. */
  scopeOf(reader: Reader): { readonly label: string; readonly text: string } | undefined
  /** Asks at a path below /api/v1. Rejects with an error for people. */
  ask(path: string, form: URLSearchParams, signal: AbortSignal): Promise<EngineAnswer>
}

/** What the nodes of a cluster record together. */
export interface SharedHistory {
  readonly log: HistoryLogOptions
  /** Where this node leads. */
  readonly lead: () => HistoryLead
  /** Settled when nothing else of this node has the files open. */
  readonly released: () => Promise<void>
}

export interface RememberedHistory {
  /** Undefined if what is remembered here is asked. */
  readonly engine?: HistoryEngine | undefined
  /** Why nothing can be asked, and what to do about it; undefined if it can. */
  readonly problem: string | undefined
  /** Why nothing that is stored here can be read, whoever answers what is asked; undefined if it can. */
  readonly unreadable: string | undefined
  /**
   * What matches of the tenant of a reader and of the server, portion by portion; one may be empty. No two series have the
   * same name and labels. Ask `mayRead` of each before it is used. End it with `return()` if not all of it is wanted. Throws StatusError.
   */
  select(reader: Reader, selection: RememberedSelection): AsyncGenerator<readonly RememberedSeries[], void, void>
  /** What was read before of a selection, as it is now, so that only what has come since is fetched; undefined if it has to be selected. */
  current(reader: Reader, selection: RememberedSelection): Promise<CurrentSelection | undefined>
  /** What is known of the metrics that a reader may read, portion by portion; nothing while nothing can be read. Throws StatusError. */
  families(reader: Reader): AsyncGenerator<readonly RememberedFamily[], void, void>
  /** The ranges of loss, ascending, of the metrics of all series that match and may be read, whether or not these have samples there. */
  losses(reader: Reader, asked: LossesAsked): Promise<readonly RememberedLoss[]>
  /**
   * Settles when everything is stored that was accepted up to now of a tenant and of the server, so that `select` finds it. Rejects if
   * it will not be.
   */
  caughtUp(tenant: string): Promise<void>
  /**
   * Copies what is stored, whether or not it can be asked for, to a directory that does not exist yet, and resolves to its bytes;
   * undefined if nothing is stored. Rejects with an error for people.
   */
  backUp(directory: string): Promise<number | undefined>
}
