/** Which series there are of those that match and may be read, without their samples. */
import type { RegexMemory } from '../../../promql/label-matcher.ts'
import { PARSE_LIMITS } from '../../../promql/parse/parse.ts'
import { PreparedQuery } from '../../../promql/query.ts'
import type { RememberedSelection } from '../../kit/history.ts'
import { seriesElsewhere } from './engine.ts'
import { HistorySource, pairsOf, plainMatchers, SAMPLES_MS } from './history-source.ts'
import { QueryProblem } from './problems.ts'
import { type QueryRequest, runQuery } from './run.ts'

/** What one answer holds at most: it is in memory, to be sorted. */
const MOST = 200_000
/** What each takes, about. */
const BYTES_EACH = { series: 1_000, text: 200 }

export type Matchers = RememberedSelection['matchers']
export type LabelPairs = ReturnType<typeof pairsOf>

/** `take` returns how much is held by then, of what `kind` says. Rejects with QueryProblem and StatusError. */
export async function eachSeries(
  request: QueryRequest,
  selections: readonly Matchers[],
  range: { readonly fromMs: number; readonly toMs: number },
  kind: keyof typeof BYTES_EACH,
  take: (pairs: LabelPairs) => number,
): Promise<void> {
  const { history, run } = request
  let held = 0
  const counted = (pairs: LabelPairs): void => {
    const now = take(pairs)
    if (now > held) run.memory?.took((now - held) * BYTES_EACH[kind])
    held = now
    if (now > MOST) throw new QueryProblem('execution', `more than ${MOST} match: choose fewer with match[]`)
  }
  const { elsewhere } = history
  if (elsewhere !== undefined) return seriesElsewhere(request, elsewhere, selections, range, counted)
  const source = new HistorySource((selection) => history.select(selection))
  const steps = function* (): Generator<undefined, void, void> {
    for (const matchers of selections) {
      for (const series of source.remembered({ matchers, ...range, stepMs: SAMPLES_MS, isWithoutSamples: true })) {
        if (series !== undefined) counted(pairsOf(series))
        yield undefined
      }
    }
  }
  await runQuery(steps(), source, run)
}

export { ordered } from '../../../promql/evaluate/merged-series.ts'

export function compareTexts(left: string, right: string): number {
  return left < right ? -1 : left > right ? 1 : 0
}

/**
 * What a selector such as `up{job="a"}` selects; undefined if the text is another expression. `regexes`: those of others that are asked
 * for together with it. Throws PromqlError.
 */
export function matchersOf(text: string, regexes?: RegexMemory): Matchers | undefined {
  const { expression } = new PreparedQuery(text, PARSE_LIMITS, regexes)
  if (expression.kind !== 'selector' || expression.at !== undefined || expression.offsetMs !== 0) return undefined
  return plainMatchers(expression.matchers)
}
