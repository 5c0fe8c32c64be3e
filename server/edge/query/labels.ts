/** Which series there are of those that match and may be read, without their samples. */
import { PreparedQuery } from '../../../promql/query.ts'
import type { RememberedSelection } from '../../kit/history.ts'
import { HistorySource, pairsOf, plainMatchers, SAMPLES_MS } from './history-source.ts'
import { QueryProblem } from './problems.ts'
import { type QueryRequest, runQuery } from './run.ts'

/** What one answer holds at most: it is in memory, to be sorted. */
const MOST = 200_000

export type Matchers = RememberedSelection['matchers']
export type LabelPairs = ReturnType<typeof pairsOf>

/** `take` returns how much is held by then. Rejects with QueryProblem and StatusError. */
export async function eachSeries(
  { reader, history, run }: QueryRequest,
  selections: readonly Matchers[],
  range: { readonly fromMs: number; readonly toMs: number },
  take: (pairs: LabelPairs) => number,
): Promise<void> {
  const source = new HistorySource((selection) => history.select(reader, selection))
  const steps = function* (): Generator<undefined, void, void> {
    for (const matchers of selections) {
      for (const series of source.remembered({ matchers, ...range, stepMs: SAMPLES_MS, isWithoutSamples: true })) {
        if (series !== undefined && take(pairsOf(series)) > MOST)
          throw new QueryProblem('execution', `more than ${MOST} match: choose fewer with match[]`)
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
