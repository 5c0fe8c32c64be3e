/** What the server and the thread of the history send each other. The thread does nothing of its own accord. */

import type { ArgumentList } from '../../../protocol/monitor/arguments.ts'
import type {
  HistoryFamily,
  HistoryFamilyPlace,
  HistoryLead,
  HistoryLimits,
  HistoryLogOptions,
  HistoryLoss,
  HistoryMatcher,
  HistoryMetric,
  HistoryOptions,
  HistoryQuery,
  HistorySamples,
  HistorySeries,
} from '../../../storage/history/store.ts'
import type { Label } from '../../kit/delivered-values.ts'

/** What the thread is started with. */
export interface ThreadOptions extends Pick<HistoryOptions, 'directory' | 'limits' | 'headSamples'> {
  /** Of a node of a cluster; undefined without one. */
  readonly shared?: SharedOptions | undefined
}

export interface SharedOptions {
  readonly log: HistoryLogOptions
  /** Where this node leads; undefined: it follows, and takes nothing but `tick`, `limit` and `close`. */
  readonly lead: HistoryLead | undefined
}

/** A metric that is bound on a recorded channel. */
export interface RecordedMetric {
  readonly id: number
  /** A name or pattern. */
  readonly name: string
  readonly args: ArgumentList
  readonly carriesLabels: boolean
  /** The tenant that its series belong to; `SERVER` for those of the server, which all tenants share. */
  readonly tenant: string
  /** The labels of what is measured here, by the beginning of its names: they stand in no value. */
  readonly own: readonly (readonly [family: string, labels: readonly Label[]])[]
}

/** The tenant of series that belong to none. */
export const SERVER = ''

/** The tenant whose channel has them recorded, once for all of them. */
export const FIRST_TENANT = 'default'

/** Values of a channel follow, from the first on that was not committed. */
export interface Beginning {
  readonly kind: 'begin'
  /** Another number for each connection: what the thread says of one that is over concerns nobody. */
  readonly connection: number
  readonly channel: number
  readonly tenant: string
  readonly generation: string
  /** The id of the user that the channel belongs to: a tenant of the same name that is another one has another. */
  readonly owner: number
  /** Values, and bytes of them, that may be sent and not committed. */
  readonly window: number
  readonly windowBytes: number
  /** Values that the channel has counted as committed, and that are neither committed nor dropped. */
  readonly committed: number
  readonly unsettled: number
}

/** Metrics whose series are recorded. */
export interface DescribedNames {
  readonly tenant: string
  readonly natives: readonly string[]
}

export type ToThread =
  | Beginning
  | { readonly kind: 'bind'; readonly connection: number; readonly metrics: readonly RecordedMetric[] }
  /** Whole frames of VALUE and GAP. */
  | { readonly kind: 'values'; readonly connection: number; readonly bytes: Uint8Array<ArrayBuffer> }
  /** Everything that was taken is to be stored. */
  | { readonly kind: 'commit' }
  /** It is stored, and then there is time for work in the background. */
  | { readonly kind: 'tick' }
  /** What the history has of other tenants goes: they were removed. */
  | { readonly kind: 'tenants'; readonly tenants: readonly string[]; readonly generation: string }
  | { readonly kind: 'limit'; readonly limits: HistoryLimits }
  | { readonly kind: 'figures' }
  /** What metrics are, which the thread has asked for. */
  | { readonly kind: 'described'; readonly tenant: string; readonly metrics: readonly HistoryMetric[] }
  | { readonly kind: 'close' }
  | ThreadRequest
  | QueryMessage
  | NewsAsked
  /** What was asked in one turn. */
  | { readonly kind: 'queries'; readonly queries: readonly QueryMessage[] }

export type FromThread =
  /** It may have more values. The memory of these is given back. */
  | { readonly kind: 'taken'; readonly connection: number; readonly bytes: number; readonly piece: ArrayBuffer }
  /** Everything up to this transaction is on the disk. */
  | { readonly kind: 'stored'; readonly connection: number; readonly transaction: number }
  /** Why nothing can be stored now, for people; empty when it can again. */
  | { readonly kind: 'state'; readonly problem: string }
  | { readonly kind: 'figures'; readonly figures: Figures }
  /** Where a node follows: what the log had when the thread began is applied. */
  | { readonly kind: 'reached' }
  /** What are these? */
  | ({ readonly kind: 'describe' } & DescribedNames)
  | ThreadAnswer
  | QueryAnswer
  | QueryAnswers
  | NewsAnswer

export interface ImportedText {
  readonly tenant: string
  /** Whether series that belong to no tenant are taken, if there are such; otherwise they are refused. */
  readonly ofServer: boolean
  /** Whole lines. */
  readonly text: string
}

/** What became of the samples. */
export interface ImportCounts {
  stored: number
  /** Older than samples are kept, or of a day that has gone already. */
  tooOld: number
  /** More than a minute ahead of the clock. */
  ahead: number
  /** Of series over the quota of the tenant, or that belong to no tenant and are not taken. */
  refused: number
}

/** What is done once. */
export type ThreadTask =
  | { readonly kind: 'drop'; readonly tenants: readonly string[]; readonly matchers: readonly HistoryMatcher[] }
  /** To a directory that does not exist yet. */
  | { readonly kind: 'backUp'; readonly directory: string }
  | ({ readonly kind: 'import' } & ImportedText)

export interface ThreadRequest {
  readonly kind: 'request'
  readonly request: number
  readonly task: ThreadTask
}

export interface ThreadAnswer {
  readonly kind: 'answer'
  readonly request: number
  /** The bytes of a copy, or the series that were dropped. */
  readonly count: number
  readonly imported?: ImportCounts | undefined
  /** For people; empty if it is done. */
  readonly problem: string
}

export interface HistorySelection extends HistoryQuery {
  /** Whether only the series are wanted, with empty columns. */
  readonly isWithoutSamples?: boolean
  /** Whether it is wanted what is known of the metrics, too. */
  readonly withFamilies?: boolean
  /** Whether it is asked for again and again: each series comes as a text then, by which it is known from the last time. */
  readonly isRecurring?: boolean
  /** Before that the last two samples of each series are enough; undefined: all are wanted. */
  readonly twoBeforeMs?: number | undefined
  /** A number by which what comes of it is asked for from then on; undefined if that is not wanted. */
  readonly follow?: number | undefined
}

/** What goes from thread to thread. */
export interface SentSamples extends Omit<SelectedSamples, 'series'> {
  /** As a text it is JSON. */
  readonly series: HistorySeries | string
}

export interface SelectedSamples extends HistorySamples {
  /** What is known of its samples, if that was asked for. */
  readonly family?: HistoryFamily | undefined
}

/** The losses of a tenant that overlap a range of time. */
export type LossSelection = Pick<HistoryQuery, 'tenant' | 'fromMs' | 'toMs'>

/** The families of a tenant after a place. */
export interface FamilySelection {
  readonly tenant: string
  readonly after: HistoryFamilyPlace | undefined
}

/** What is asked of what is stored. Each portion is asked for, so that a slow reader holds up nobody. */
export type QueryMessage =
  | { readonly kind: 'losses'; readonly query: number; readonly selection: LossSelection }
  | ({ readonly kind: 'families'; readonly query: number } & FamilySelection)
  | { readonly kind: 'select'; readonly query: number; readonly selection: HistorySelection }
  | { readonly kind: 'next'; readonly query: number }
  | { readonly kind: 'cancel'; readonly query: number }

/** What has come of selections that are followed, by their numbers? */
export interface NewsAsked {
  readonly kind: 'news'
  readonly follows: readonly number[]
  /** Those that are followed no more. */
  readonly over: readonly number[]
}

export interface NewsAnswer {
  readonly kind: 'news'
  /** Those of some of the selections that were asked about, in that order. */
  readonly follows: readonly number[]
  /** How many samples have come of each; `ANEW` if it has to be read anew. */
  readonly counts: readonly number[]
  /** Of all samples the places, then their times, and then their values. */
  readonly columns: Float64Array
}

export const ANEW = -1

export type QueryAnswer =
  | {
      readonly kind: 'portion'
      readonly query: number
      readonly series: readonly SentSamples[]
      readonly isLast: boolean
    }
  /** None are left when there are none. */
  | {
      readonly kind: 'families'
      readonly query: number
      readonly families: readonly (HistoryFamily & HistoryFamilyPlace)[]
    }
  | { readonly kind: 'lost'; readonly query: number; readonly losses: readonly HistoryLoss[] }
  /** A matcher is no expression, or what is stored could not be read; for people. */
  | {
      readonly kind: 'refused'
      readonly query: number
      readonly status: 'INVALID_ARGUMENT' | 'INTERNAL'
      readonly detail: string
    }

/** Those that were there at the same time. */
export interface QueryAnswers {
  readonly kind: 'answers'
  readonly answers: readonly QueryAnswer[]
}

/** What was taken from the channel of a tenant since the thread began. */
export interface RecordedCounts {
  /** Samples that were given to the store. */
  samples: number
  /** Values that are no samples, such as texts. */
  unsupported: number
  /** Values that were stored already, and came again. */
  repeated: number
  /** Values that the channel has lost before they could be stored. */
  lost: number
  /** Samples of series that are over the quota of the tenant. */
  refused: number
  /** Values with a time that only a wrong clock can have given. */
  ahead: number
}

export interface TenantFigures extends RecordedCounts {
  readonly series: number
  readonly stored: number
  readonly bytes: number
  /** Milliseconds since 1970; undefined if there is no sample. */
  readonly oldestMs: number | undefined
}

export interface Figures {
  readonly tenants: ReadonlyMap<string, TenantFigures>
  readonly bytes: number
  readonly merges: number
  readonly tooOld: number
  readonly late: number
  readonly daysOverBytes: number
  readonly damagedPages: number
}

export function noRecorded(): RecordedCounts {
  return { samples: 0, unsupported: 0, repeated: 0, lost: 0, refused: 0, ahead: 0 }
}
