/** What an expression comes to over what a producer remembers [MON 9.19], read answer by answer. */
import { ExpressionError } from './errors.ts'
import type { LossRange } from './history.ts'
import type { Arguments, PlainRecord } from './values.ts'

const MICROSECONDS = 1_000

export interface ExpressionOptions {
  /** The time of an instant query: microseconds since 1970, or a Date; now if neither it nor `since` is given. */
  readonly at?: number | Date | undefined
  /** The first time of a range query. */
  readonly since?: number | Date | undefined
  /** No time of it is later; now if it is not given. */
  readonly until?: number | Date | undefined
  /** Between two times of it, in microseconds: whole milliseconds. */
  readonly step?: number | undefined
  /** The most series of the result; a warning says if there are more. */
  readonly limit?: number | undefined
  /** Is called with each range in which values of the selected metrics are missing, if it overlaps the time or the range asked for. */
  readonly onLoss?: ((loss: LossRange) => void) | undefined
  /** Gives up: the promise rejects with the reason, and the producer ends the query. */
  readonly signal?: AbortSignal | undefined
}

/** Labels and values of a series of a result. Times are microseconds since 1970, ascending. */
export interface ExpressionSeries {
  /** The name of the metric; empty if the expression takes it away, as `rate` does. */
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly times: readonly number[]
  /** As many as `times`. */
  readonly values: readonly number[]
}

export interface ExpressionResult {
  /** A `scalar` is one series without labels, a `string` none: it is `text`. */
  readonly type: 'vector' | 'matrix' | 'scalar' | 'string'
  readonly series: readonly ExpressionSeries[]
  readonly text: string
  /** Samples that were read for it. */
  readonly samples: number
  /** How long it was evaluated, in microseconds. */
  readonly took: number
  readonly warnings: readonly string[]
  readonly infos: readonly string[]
}

/** `pageOf` gives the records of one answer. */
export async function readExpression(
  pageOf: (args: Arguments) => Promise<readonly PlainRecord[]>,
  expr: string,
  options: ExpressionOptions,
): Promise<ExpressionResult> {
  let summary: PlainRecord | undefined
  const series: Piece[] = []
  let args: Arguments | undefined = argumentsOf(expr, options)
  while (args !== undefined) {
    const records: readonly PlainRecord[] = await pageOf(args)
    args = undefined
    for (const record of records) {
      if (record['more'] === true) args = { after: String(record['after']) }
      else if (record['error'] !== undefined) throw errorOf(record)
      else if (record['from'] !== undefined) options.onLoss?.(lossOf(record))
      else if (record['times'] === undefined) summary = record
      else add(series, record)
    }
  }
  return {
    type: String(summary?.['type']) as ExpressionResult['type'],
    series,
    text: String(summary?.['text'] ?? ''),
    samples: Number(summary?.['samples']),
    took: Number(summary?.['took']),
    warnings: textsOf(summary?.['warnings']),
    infos: textsOf(summary?.['infos']),
  }
}

function argumentsOf(expr: string, { at, since, until, step, limit, onLoss }: ExpressionOptions): Arguments {
  return {
    expr,
    ...(at !== undefined && { at: microseconds(at, 'at') }),
    ...(since !== undefined && { from: microseconds(since, 'since') }),
    ...(until !== undefined && { to: microseconds(until, 'until') }),
    ...(step !== undefined && { step_ms: Math.floor(step / MICROSECONDS) }),
    ...(limit !== undefined && { limit }),
    ...(onLoss !== undefined && { with_losses: true }),
  }
}

function microseconds(time: number | Date, name: string): number {
  const given = typeof time === 'number' ? time : time.getTime() * MICROSECONDS
  if (Number.isSafeInteger(given) && given >= 0) return given
  throw new RangeError(`\`${name}\`: ${given} is no time in whole microseconds since 1970`)
}

interface Piece extends ExpressionSeries {
  readonly times: number[]
  readonly values: number[]
}

/** A long series comes in several records. */
function add(series: Piece[], record: PlainRecord): void {
  const piece: Piece = {
    name: String(record['name']),
    labels: record['labels'] as Record<string, string>,
    times: [...(record['times'] as readonly number[])],
    values: [...(record['values'] as readonly number[])],
  }
  const last = series.at(-1)
  const isSame = last?.name === piece.name && JSON.stringify(last.labels) === JSON.stringify(piece.labels)
  if (last === undefined || !isSame) series.push(piece)
  else {
    for (const time of piece.times) last.times.push(time)
    for (const value of piece.values) last.values.push(value)
  }
}

function lossOf(record: PlainRecord): LossRange {
  const [tenant, metric, reason] = [String(record['tenant']), String(record['metric']), String(record['reason'])]
  return {
    tenant,
    metric,
    from: Number(record['from']),
    to: Number(record['to']),
    count: Number(record['lost']),
    reason,
  }
}

function errorOf(record: PlainRecord): ExpressionError {
  const [from, to] = [record['error_from'], record['error_to']]
  const position = typeof from === 'number' && typeof to === 'number' ? { from, to } : undefined
  return new ExpressionError(String(record['error_type']), String(record['error']), position)
}

function textsOf(list: unknown): readonly string[] {
  return Array.isArray(list) ? list.map(String) : []
}
