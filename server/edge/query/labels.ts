/** Which series there are of those that match and may be read, without their samples. */
import { PreparedQuery } from '../../../promql/query.ts'
import type { RememberedSelection } from '../../kit/history.ts'
import { seriesElsewhere } from './engine.ts'
import { HistorySource, pairsOf, plainMatchers, SAMPLES_MS } from './history-source.ts'
import { QueryProblem } from './problems.ts'
import { type QueryRequest, runQuery } from './run.ts'

/** What one answer holds at most: it is in memory, to be sorted. */
const MOST = 200_000

export type Matchers = RememberedSelection['matchers']
export type LabelPairs = ReturnType<typeof pairsOf>

/** `take` returns how much is held by then. Rejects with QueryProblem and StatusError. */
export async function eachSeries(
  request: QueryRequest,
  selections: readonly Matchers[],
  range: { readonly fromMs: number; readonly toMs: number },
  take: (pairs: LabelPairs) => number,
): Promise<void> {
  const { reader, history, run } = request
  const counted = (pairs: LabelPairs): void => {
    if (take(pairs) > MOST) throw new QueryProblem('execution', `more than ${MOST} match: choose fewer with match[]`)
  }
  if (history.engine !== undefined) return seriesElsewhere(request, history.engine, selections, range, counted)
  const source = new HistorySource((selection) => history.select(reader, selection))
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

/** What a selector such as `up{job="a"}` selects; undefined if the text is another expression. Throws PromqlError. */
export function matchersOf(text: string): Matchers | undefined {
  const { expression } = new PreparedQuery(text)
  if (expression.kind !== 'selector' || expression.at !== undefined || expression.offsetMs !== 0) return undefined
  return plainMatchers(expression.matchers)
}
