/** Ranges in which values are missing that an expression would have seen, as far as the reader may read their metrics. */
import { selectorsOf } from '../../../promql/expression.ts'
import { PreparedQuery } from '../../../promql/query.ts'
import type { RememberedLoss } from '../../kit/history.ts'
import { plainMatchers } from './history-source.ts'
import type { AskedTimes, QueryRequest } from './run.ts'

/** Each loss once, ascending. Another server, where one answers expressions, knows of none. Throws PromqlError. */
export async function lossesOf(
  { reader, history, run }: QueryRequest,
  text: string,
  times: AskedTimes,
): Promise<readonly RememberedLoss[]> {
  if (history.engine !== undefined) return []
  const [fromMs, toMs] = 'timeMs' in times ? [times.timeMs, times.timeMs] : [times.startMs, times.endMs]
  const found = new Map<string, RememberedLoss>()
  const asked = new Set<string>()
  for (const selector of selectorsOf(new PreparedQuery(text).expression)) {
    const matchers = plainMatchers(selector.matchers)
    const key = JSON.stringify(matchers)
    if (asked.has(key) || run.ended.aborted) continue
    asked.add(key)
    for (const loss of await history.losses(reader, { matchers, fromMs, toMs })) found.set(JSON.stringify(loss), loss)
  }
  return [...found.values()].sort((a, b) => a.fromMs - b.fromMs)
}
