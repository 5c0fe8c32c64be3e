/**
 * The contract between the history and whoever records and reads it: samples of series, each once, and how far they were taken
 * from the channel of their tenant. history.ts implements it, on a thread of its own: every call is synchronous, and whatever
 * may take long is a generator or has a budget of time.
 *
 * A value is 64 bits and not always a number that JavaScript keeps: the stale marker of Prometheus (0x7ff0000000000002) is a NaN
 * whose bits a variable may lose. Copy values with `set` or as 32-bit words, and compare them by words.
 */

import type { LogOptions } from '../replicated/options.ts'
import type { HistorySpace } from './history-room.ts'

/** Texts of labels, ascending by the name of the label; names and texts are not empty, and `__name__` is not among them. */
export type HistoryLabels = readonly (readonly [name: string, text: string])[]

/**
 * A tenant, a name and labels are the identity of a series. Where two metrics ask for the same identity, the one that came first has it, and the other the label `cinnabar_name` besides, with its native name, as in
 * GET /metrics.
 */
export interface HistorySeries {
  readonly tenant: string
  /** The name in Prometheus' terms, such as `host_load_one`. */
  readonly name: string
  readonly labels: HistoryLabels
  /** The name of the metric here, such as `host.load.one`. */
  readonly native: string
}

/** What is known of samples of one name, in Prometheus' terms; the parts of a histogram or summary are one family. */
export interface HistoryFamily {
  readonly name: string
  /** `counter`, `gauge`, `histogram`, `summary` or `unknown`. */
  readonly type: string
  readonly help: string
  readonly unit: string
}

/** What is known of a metric; its families follow from its native name. */
export interface HistoryMetric {
  readonly native: string
  readonly families: readonly HistoryFamily[]
}

/** A family where a list of them goes on. */
export type HistoryFamilyPlace = Pick<HistoryMetric, 'native'> & Pick<HistoryFamily, 'name'>

/** How far the channel of a tenant was taken. Nothing of it is interpreted here. */
export interface HistoryPosition {
  readonly generation: string
  readonly channel: number
  readonly transaction: number
  /** How many values the channel has counted as committed when everything up to there is; undefined if that is not known. */
  readonly committed: number | undefined
  /** When that was, milliseconds since 1970. */
  readonly takenMs: number
}

/** Values that are missing in a range of time, both ends included. */
export interface HistoryLoss {
  /** The native name of a metric, or a pattern of such names; '' if it may be all. */
  readonly native: string
  readonly fromMs: number
  readonly toMs: number
  /** How many values are missing; 0 if that is not known. */
  readonly count: number
  /** A few words for people. */
  readonly reason: string
}

/** What was taken from the channel of one tenant, in order. The columns are copied: the caller may use them again. */
export interface HistoryBatch {
  readonly tenant: string
  /** How far the channel is taken with this batch; undefined if it says nothing about that. */
  readonly position: HistoryPosition | undefined
  /** References of series of this tenant, as `seriesOf` gives them. */
  readonly series: Uint32Array
  /** Whole milliseconds since 1970. */
  readonly times: Float64Array
  readonly values: Float64Array
  /** How many of the columns' elements count. */
  readonly length: number
  readonly losses: readonly HistoryLoss[]
}

/** The share of a tenant. */
export interface HistoryQuota {
  /** Over it the oldest days of the tenant go. */
  readonly bytes: number
  /** How many series it may have that are not older than `keepMs`. */
  readonly series: number
}

export interface HistoryLimits {
  /** How long samples are kept. */
  readonly keepMs: number
  /** How long rollups are kept. */
  readonly keepRollupsMs: number
  /** All files together: over it the oldest days go first, then the oldest rollups. */
  readonly maxBytes: number
  /** By tenant; one that is not named has no limit of its own. */
  readonly quotas: ReadonlyMap<string, HistoryQuota>
}

export interface HistoryOptions {
  /** Made with mode 0700 if it is missing. One process may use it at a time: the lock of the data directory sees to that. */
  readonly directory: string
  /** Milliseconds since 1970. */
  readonly clock: () => number
  /** Milliseconds, never set. Nothing goes by its age while `clock` is not as steady as this; by default that of Node. */
  readonly monotonicMs?: () => number
  readonly limits: HistoryLimits
  /** How many samples of the last minutes are in memory, 20 bytes each, before pages are made of them. Default 1 M. */
  readonly headSamples?: number
  /** The disk of the directory; by default as the system says it. */
  readonly space?: () => HistorySpace
  /** How long the log of fresh.db may be while queries keep it from being written back; beyond that they end. Default 1 GiB. */
  readonly logBytes?: number
}

/** `label` may be `__name__`, which compares with the name and with the native name: one of the two has to match. */
export interface HistoryMatcher {
  readonly label: string
  readonly operator: '=' | '!=' | '=~' | '!~'
  /** A label that a series lacks has the text ''. Expressions are those of RE2, match as a whole, and a dot matches all. */
  readonly text: string
  /** All texts that an expression stands for, if it is no more than a list of them: these are looked up. */
  readonly texts?: readonly string[] | undefined
}

/** Characters of all texts of a query, and of its expressions, which take time to be compiled: each once. */
const [MAX_MATCHER_TEXT, MAX_EXPRESSION_TEXT] = [16_384, 5_000]

/** Why texts of matchers are too long, for people; undefined if they are not. Lists of texts are looked up, and do not count. */
export function matcherTextProblem(matchers: readonly HistoryMatcher[]): string | undefined {
  const own = matchers.filter(({ texts }) => texts === undefined)
  const all = own.reduce((sum, { text }) => sum + text.length, 0)
  if (all > MAX_MATCHER_TEXT) return `${all} characters together, and at most ${MAX_MATCHER_TEXT} are compared`
  const expressions = own.filter(({ operator }) => operator === '=~' || operator === '!~').map(({ text }) => text)
  const length = [...new Set(expressions)].reduce((sum, text) => sum + text.length, 0)
  if (length <= MAX_EXPRESSION_TEXT) return undefined
  return `patterns and expressions have ${length} characters together, and may have ${MAX_EXPRESSION_TEXT}`
}

/** Both ends of the range are included. */
export interface HistoryQuery {
  readonly tenant: string
  readonly matchers: readonly HistoryMatcher[]
  readonly fromMs: number
  readonly toMs: number
  /**
   * How far apart what is wanted may be. From `ROLLUP_MS` on there are windows in place of all samples, as long as the most whole
   * rollups that are not longer than this; below that, windows of one rollup on the days whose samples have gone. Windows are whole,
   * also where the range begins or ends within one. Undefined: only samples.
   */
  readonly stepMs?: number | undefined
  /** Only series after this place; undefined: all. What they are is looked for, and nothing is read of those before. */
  readonly after?: number | undefined
  /** Whether a series with very many samples may come in several pieces, one after the other. Default false. */
  readonly inPieces?: boolean | undefined
  /** What follows it from now on, as `following` has made it: it learns which series there are. */
  readonly following?: HistoryFollowing | undefined
}

/** A series with its samples: ascending by time, one for each time, with stale markers. The columns belong to the caller. */
export interface HistorySamples {
  readonly series: HistorySeries
  readonly times: Float64Array
  readonly values: Float64Array
  /** What there is in place of samples; undefined if there is none. */
  readonly windows?: HistoryWindows | undefined
  /** Its place among the series of its tenant, in whose order they come; undefined if nothing but series was asked for. */
  readonly place?: number | undefined
}

/**
 * Samples that have come of a selection: those of one series together, in the order in which they came, so that of two with the same time the
 * later one holds. One may be older than what was there before.
 */
export interface HistoryNews {
  /** Those of the series, as `select` gives them. */
  readonly places: Float64Array
  readonly times: Float64Array
  readonly values: Float64Array
}

/** A selection that is read again and again. */
export interface HistoryFollowing {
  /** What has come since the last call, or since the beginning; undefined if the selection has to be read anew, as a new one. */
  news(): HistoryNews | undefined
  /** Takes the places of its series, ascending, when these are found. */
  found(places: Float64Array): void
}

/** Rollups of `ROLLUP_MS` as they are stored. */
export interface HistoryRollups extends HistoryWindows {
  readonly series: HistorySeries
}

/** Windows of one length, open on the left, by their end. Stale markers and times without a sample are in none of them. */
export interface HistoryWindows {
  readonly stepMs: number
  readonly ends: Float64Array
  readonly min: Float64Array
  readonly max: Float64Array
  readonly sum: Float64Array
  readonly count: Float64Array
  readonly first: Float64Array
  readonly firstTimes: Float64Array
  readonly last: Float64Array
  readonly lastTimes: Float64Array
  /** The sum of the values before which the next one in the window was smaller: what a counter has lost by starting again. */
  readonly resets: Float64Array
}

/** One element of a result; undefined where a step ends without one. */
export type HistorySteps<Result> = Generator<Result | undefined, void, void>

export interface HistoryTenantFigures {
  /** Series that have samples, or had some not longer than rollups are kept. */
  readonly series: number
  /** Stored samples; those that replace others may count twice until pages are merged. */
  readonly samples: number
  readonly bytes: number
  /** The start of the oldest day with samples, in milliseconds since 1970; undefined if there is none. */
  readonly oldestMs: number | undefined
}

/** Counts without a tenant begin with the process. */
export interface HistoryFigures {
  readonly tenants: ReadonlyMap<string, HistoryTenantFigures>
  /** All files. */
  readonly bytes: number
  /** Merges of pages that were completed. */
  readonly merges: number
  /** Series that were refused over the quota of their tenant. */
  readonly refusedSeries: number
  /** Samples of references that are not, or no longer, valid. */
  readonly refusedSamples: number
  /** Samples that were older than they may be kept, or that came for a day whose samples have gone and left their rollups. */
  readonly tooOld: number
  /** Samples that came for a day whose file was made already. */
  readonly late: number
  /** Days that went over the limits of bytes before their time. */
  readonly daysOverBytes: number
  /** Pages that are not as they were written, or that the disk could not read for many minutes. */
  readonly damagedPages: number
}

export interface HistoryBackupOptions {
  /** Whether files that are never written again are linked, which takes no room: the copy is in the file system of the history. */
  readonly isLinked?: boolean
  /** Whether the copy is to be abandoned. */
  readonly isCancelled?: () => boolean
}

export interface HistoryStore {
  /**
   * A reference to a series for `append`, the same as before if the series is known; undefined if the tenant has as many series
   * as it may. It is valid in this process as long as the series is stored; using it (here or in `append`) at least once an hour
   * keeps it from being looked for.
   */
  seriesOf(series: HistorySeries): number | undefined
  /** The native name of the metric that has a name and labels; undefined if none has. */
  nativeOf(series: Pick<HistorySeries, 'tenant' | 'name' | 'labels'>): string | undefined
  /**
   * Says what a metric is from now on, with the next commit. What was said of it goes with its last series. What is said for a tenant
   * that has no series counts for nothing.
   */
  describe(tenant: string, metric: HistoryMetric): void
  /** Families that were described and are stored, by native name and name, from after a place on; at most `most`. */
  families(tenant: string, after: HistoryFamilyPlace | undefined, most: number): (HistoryFamily & HistoryFamilyPlace)[]
  /** What was said last of a metric; empty if nothing was. */
  familiesOf(tenant: string, native: string): readonly HistoryFamily[]
  /** How far the tenant's channel was taken, with everything appended; undefined if never. */
  positionOf(tenant: string): HistoryPosition | undefined
  /**
   * Takes what follows the stored position. A sample with a time that its series has already replaces that sample. Returns how many
   * samples were taken: the others are too old, or their references not valid any more.
   */
  append(batch: HistoryBatch): number
  /**
   * Makes everything appended durable in one transaction, and returns true; or, while many series are new, makes some of these durable
   * and returns false: to be called again, so that no call takes long. Throws StorageError: with FULL (no room but for the reserve) or LOCKED (another program
   * reads fresh.db) nothing was written, what was appended stays, and the next commit may succeed; with another code the history
   * may only be closed.
   */
  commit(): boolean
  /** Samples appended since the last commit. */
  readonly uncommitted: number
  /**
   * What matches, each series once, unless it is wanted in pieces, in the order of names. It shows one state, that of the first step, whatever happens meanwhile.
   * End it with `return()` if not all of it is wanted: until its end files stay that are not needed otherwise, and the log of
   * fresh.db grows. When that is too long it ends with HistoryReadError.
   * Throws HistoryExpressionError for an expression that is none, HistoryBoundError, and HistoryReadError.
   */
  select(query: HistoryQuery): HistorySteps<HistorySamples>
  /**
   * What comes of a selection of series from now on. To be given to a `select` of the same matchers that has `stepMs` and begins at once,
   * with nothing between the two: what that does not show is news.
   */
  following(query: Pick<HistoryQuery, 'tenant' | 'matchers'>): HistoryFollowing
  /** The rollups that are stored. They reach up to the last day that was merged. */
  selectRollups(query: Omit<HistoryQuery, 'stepMs'>): HistorySteps<HistoryRollups>
  /** The series that match, whether or not they have samples in the range. */
  series(query: Pick<HistoryQuery, 'tenant' | 'matchers'>): HistorySteps<HistorySeries>
  /** Losses that overlap the range, ascending. */
  losses(query: Pick<HistoryQuery, 'tenant' | 'fromMs' | 'toMs'>): HistoryLoss[]
  /**
   * Does one slice of the work in the background: pages, merges, days, rollups, retention. Returns whether there is more to do
   * now. It ends about when the budget does; single steps take a few milliseconds. Throws StorageError as `commit` does, and HistoryReadError
   * if something could not be read: the same work may succeed later.
   */
  work(budgetMs: number): boolean
  /**
   * Drops what a tenant, or some of its series, has up to the first step; queries that begin after the last step do not see it, and its
   * bytes go by `work`, which does nothing meanwhile. Whoever ends it early has dropped some series, or none, for good. Returns how many
   * series match, whether or not they had any samples.
   */
  drop(query: Pick<HistoryQuery, 'tenant' | 'matchers'>): Generator<undefined, number, void>
  /** Drops everything of a tenant, its position too. References to its series end. */
  removeTenant(tenant: string): void
  /** The limits from now on; what is over them goes by `work`. */
  limit(limits: HistoryLimits): void
  figures(): HistoryFigures
  /**
   * Copies everything that is committed to a directory that does not exist yet, as one state, in steps between which other calls
   * may come. Resolves to the bytes of the copy. Rejects with StorageError, and then there is no directory.
   */
  backUp(directory: string, options?: HistoryBackupOptions): Promise<number>
  /** Commits, and closes all files. */
  close(): void
}

/** The directory of the history, in the data directory and in a backup. */
export const HISTORY_DIRECTORY = 'history'

/** The length of the windows of rollups. */
export const ROLLUP_MS = 300_000

/**
 * Something that is stored could not be read: the disk failed, or a query took so long that its state was not kept. Another attempt
 * may succeed: nothing was changed.
 */
export class HistoryReadError extends Error {
  override readonly name = 'HistoryReadError'
}

/** More samples of one series are asked for than are read at once. */
export class HistoryBoundError extends Error {
  override readonly name = 'HistoryBoundError'

  constructor(samples: number, most: number) {
    super(
      `one series has about ${samples} samples in the time that is asked for, and at most ${most} are read at once: ask for a shorter time`,
    )
  }
}

/** A matcher whose text is no expression of RE2, or too long; the message says what is wrong with it. */
export class HistoryExpressionError extends Error {
  override readonly name = 'HistoryExpressionError'
}

/** How the log of the histories of a cluster is reached (log/). */
export interface HistoryLogOptions extends Omit<LogOptions, 'content'> {}

/** In which epoch of which log of the database a node leads. */
export interface HistoryLead {
  readonly log: number
  readonly epoch: number
}
