/** What the thread of queries answers to QUERYs of the Monitoring Protocol: records, and texts of labels, in lists. */
import type { Field } from '../../../../protocol/monitor/value.ts'
import type { PiecedAnswer } from '../../http/query/pieces.ts'
import { evaluateText, lossesOf } from '../evaluate.ts'
import { compareTexts, eachSeries, matchersOf, ordered } from '../labels.ts'
import { QueryProblem } from '../problems.ts'
import { resultRecords } from '../records.ts'
import type { QueryRequest } from '../run.ts'
import type { AskedRecords, AskedTexts } from './messages.ts'

/** A list has no more elements; a record may be as long as thousands of texts. */
const [MOST_RECORDS, MOST_TEXTS] = [16, 512]

/** Rejects with what `problemOf` takes. */
export async function expressionRecords(
  request: QueryRequest,
  { text, times, limit, withLosses }: AskedRecords,
): Promise<PiecedAnswer<readonly Field[][]>> {
  const { clock } = request.run
  const begunMs = clock.monotonicMs()
  const result = await evaluateText(request, text, times, { limit })
  const tookMs = clock.monotonicMs() - begunMs
  const losses = withLosses ? await lossesOf(request, text, times) : []
  return asLists(resultRecords(result, tookMs, losses), MOST_RECORDS)
}

/** Ascending. Rejects with what `problemOf` takes. */
export async function foundTexts(
  request: QueryRequest,
  { label, match, range, after }: AskedTexts,
): Promise<PiecedAnswer<readonly string[]>> {
  const found = new Set<string>()
  const matchers = match === '' ? [] : matchersOf(match)
  if (matchers === undefined) throw new QueryProblem('bad_data', '`match` is no selector such as up{job="a"}')
  await eachSeries(request, [matchers], range, 'text', (pairs) => {
    for (const [name, text] of pairs) {
      if (label === undefined) found.add(name)
      else if (name === label) found.add(text)
    }
    return found.size
  })
  const { work, tenant } = request.run
  const sorted = await work.run({ tenant }, ordered([...found], compareTexts))
  return asLists(
    sorted.filter((text) => text > after),
    MOST_TEXTS,
  )
}

function asLists<Element>(
  elements: Iterable<Element>,
  most: number,
): PiecedAnswer<never> & { pieces: Iterator<never> } {
  return { type: '', encoding: undefined, pieces: lists(elements, most) as Iterator<never, void, void> }
}

function* lists<Element>(elements: Iterable<Element>, most: number): Generator<Element[], void, void> {
  let list: Element[] = []
  for (const element of elements) {
    list.push(element)
    if (list.length < most) continue
    yield list
    list = []
  }
  yield list
}
