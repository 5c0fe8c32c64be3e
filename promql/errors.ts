/**
 * What goes wrong with an expression: the one error that this folder throws. Its types are those of Prometheus' HTTP API, its
 * messages are worded as Prometheus words them; `feature` names what Prometheus has and this server has not.
 */

/** `errorType` in a response of the HTTP API. */
export type PromqlErrorType = 'bad_data' | 'execution' | 'timeout' | 'canceled'

/** What is refused by its name: native histograms, or something that Prometheus has behind a feature flag. */
export type UnsupportedFeature =
  | 'native histograms'
  | 'promql-experimental-functions'
  | 'promql-duration-expr'
  | 'promql-extended-range-selectors'
  | 'promql-binop-fill-modifiers'

/** A part of the text of an expression, in UTF-16 code units. */
export interface TextRange {
  readonly start: number
  readonly end: number
}

export class PromqlError extends Error {
  override readonly name = 'PromqlError'
  readonly type: PromqlErrorType
  /** Where in the text it is, if it is in the text. */
  readonly range: TextRange | undefined
  readonly feature: UnsupportedFeature | undefined

  constructor(
    type: PromqlErrorType,
    message: string,
    {
      range,
      feature,
    }: { readonly range?: TextRange | undefined; readonly feature?: UnsupportedFeature | undefined } = {},
  ) {
    super(message)
    this.type = type
    this.range = range
    this.feature = feature
  }
}

/** An error of the text, with its position in front, as Prometheus shows it: `1:5: parse error: …`. */
export function parseError(text: string, range: TextRange, problem: string, feature?: UnsupportedFeature): PromqlError {
  return new PromqlError('bad_data', `${lineAndColumn(text, range.start)}: parse error: ${problem}`, { range, feature })
}

/** An error of the evaluation. */
export function executionError(problem: string): PromqlError {
  return new PromqlError('execution', problem)
}

/** `line:column`, both from 1. */
export function lineAndColumn(text: string, offset: number): string {
  const before = text.slice(0, offset)
  const lines = before.split('\n')
  return `${lines.length}:${(lines.at(-1)?.length ?? 0) + 1}`
}
