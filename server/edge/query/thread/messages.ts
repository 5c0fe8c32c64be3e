/** What the server and the thread of queries send each other. A job is one answer; a call is what a job asks of the history. */
import type { StatusName } from '../../../../protocol/monitor/status.ts'
import type { LossesAsked, RememberedSelection } from '../../../kit/history.ts'
import type { AnswerName } from '../../http/query/api.ts'
import type { Piece } from '../../http/query/pieces.ts'
import type { ScopedEngine } from '../asked-history.ts'
import type { QueryErrorType, QueryProblem } from '../problems.ts'
import type { AskedTimes } from '../run.ts'

/** A request to the HTTP API, which is answered with bytes. */
export interface AskedByHttp {
  readonly name: AnswerName
  /** Of the request, with its parameters. */
  readonly url: string
  /** The form that came with it; empty if none did. */
  readonly form: string
  /** The label that the path names. */
  readonly label: string | undefined
  /** What came with it that is no form. */
  readonly body: Uint8Array | undefined
}

/** What an expression comes to, as records of `producer.history.query`. */
export interface AskedRecords {
  readonly name: 'records'
  readonly text: string
  readonly times: AskedTimes
  readonly limit: number
  readonly withLosses: boolean
}

/** The names of labels, or the texts of one, after a text. */
export interface AskedTexts {
  readonly name: 'texts'
  readonly label: string | undefined
  /** A selector; empty: of all series. */
  readonly match: string
  readonly range: { readonly fromMs: number; readonly toMs: number }
  readonly after: string
}

export interface AskedAnswer {
  readonly asked: AskedByHttp | AskedRecords | AskedTexts
  readonly tenant: string
  readonly nowMs: number
  readonly maxSamples: number
  readonly timeoutMs: number
  /** How long it has waited for its turn. */
  readonly waitedMs: number
  /** Undefined if the history here is asked. */
  readonly elsewhere: Pick<ScopedEngine, 'scope'> | undefined
}

export type HistoryCall =
  | { readonly kind: 'select'; readonly selection: RememberedSelection }
  | { readonly kind: 'losses'; readonly asked: LossesAsked }
  /** Of another server: first comes its status, then its pieces. */
  | { readonly kind: 'ask'; readonly path: string; readonly form: string }

/** What went wrong in a call. */
export interface CallError {
  /** Undefined if it is no refusal. */
  readonly status: StatusName | undefined
  readonly message: string
}

export interface CallAnswer {
  readonly kind: 'item'
  readonly call: number
  /** `item` is what the kind of the call says. */
  readonly outcome: { readonly item: unknown } | { readonly error: CallError } | { readonly isOver: true }
}

export type ToQueries =
  | { readonly kind: 'begin'; readonly job: number; readonly answer: AskedAnswer }
  /** The next piece is wanted. */
  | { readonly kind: 'more'; readonly job: number }
  /** Nobody wants the answer any more, or it holds too much. */
  | { readonly kind: 'end'; readonly job: number; readonly isCrowded: boolean }
  | CallAnswer

/** A problem of a request, as far as it goes from thread to thread. */
export interface SentProblem extends Pick<QueryProblem, 'message' | 'range'> {
  readonly type: QueryErrorType
  readonly isCrowded: boolean
}

export type FromQueries =
  | { readonly kind: 'call'; readonly job: number; readonly call: number; readonly asked: HistoryCall }
  | { readonly kind: 'next'; readonly call: number }
  /** No more of it is wanted. */
  | { readonly kind: 'return'; readonly call: number }
  /** The job holds so many bytes more. */
  | { readonly kind: 'held'; readonly job: number; readonly bytes: number }
  /** `encoding`: what the bytes are encoded in already; undefined: nothing. */
  | {
      readonly kind: 'answer'
      readonly job: number
      readonly type: string
      readonly encoding: string | undefined
      /** Undefined if there is none. */
      readonly first: Piece | undefined
    }
  /** The next piece; undefined: there is no more. */
  | { readonly kind: 'piece'; readonly job: number; readonly piece: Piece | undefined }
  | { readonly kind: 'problem'; readonly job: number; readonly problem: SentProblem }
  /** The code of the thread has failed. */
  | { readonly kind: 'failed'; readonly job: number; readonly message: string; readonly stack: string }
