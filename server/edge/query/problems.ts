/** What is wrong with a request, as Prometheus' HTTP API says it: a type, a sentence, and the status that belongs to the type. */

import { PromqlError } from '../../../promql/errors.ts'
import { StatusError } from '../../kernel/core/errors.ts'

/** `canceled` reaches nobody, because the connection has ended; `unauthorized` and `forbidden` are ours: Prometheus knows no users. */
export type QueryErrorType =
  | 'bad_data'
  | 'execution'
  | 'timeout'
  | 'canceled'
  | 'unavailable'
  | 'internal'
  | 'not_found'
  | 'unauthorized'
  | 'forbidden'

const STATUSES: Readonly<Record<QueryErrorType, number>> = {
  bad_data: 400,
  unauthorized: 401,
  forbidden: 403,
  not_found: 404,
  execution: 422,
  canceled: 499,
  internal: 500,
  timeout: 503,
  unavailable: 503,
}

export class QueryProblem extends Error {
  override readonly name = 'QueryProblem'
  readonly type: QueryErrorType
  /** Where in the text of an expression it is, if it is there: in UTF-16 code units. */
  readonly range: { readonly start: number; readonly end: number } | undefined

  constructor(type: QueryErrorType, message: string, range?: QueryProblem['range']) {
    super(message)
    this.type = type
    this.range = range
  }

  get status(): number {
    return STATUSES[this.type]
  }

  /** The body of the answer. */
  get body(): string {
    return JSON.stringify({ status: 'error', errorType: this.type, error: this.message })
  }
}

/** All queries together hold too much, and the tenant of this one holds most of it. */
export class CrowdedQuery extends QueryProblem {
  constructor() {
    super('unavailable', 'queries hold too much memory together: ask again later, or for less')
  }
}

export function invalidParameter(name: string, problem: string): QueryProblem {
  return new QueryProblem('bad_data', `invalid parameter ${JSON.stringify(name)}: ${problem}`)
}

/** As far as an error is one of the request, or of its evaluation; undefined if it is a fault. */
export function problemOf(error: unknown): QueryProblem | undefined {
  if (error instanceof QueryProblem) return error
  if (error instanceof PromqlError) return new QueryProblem(error.type, error.message, error.range)
  if (!(error instanceof StatusError)) return undefined
  return new QueryProblem(error.status === 'INVALID_ARGUMENT' ? 'bad_data' : 'unavailable', error.message)
}
