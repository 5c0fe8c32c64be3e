/** Which series, names of labels and texts of labels there are, of those that match and may be read. */
import { PromqlError } from '../../../../promql/errors.ts'
import { RegexMemory } from '../../../../promql/label-matcher.ts'
import { compareLabelSets, isLabelName, LabelSet } from '../../../../promql/label-set.ts'
import { PARSE_LIMITS } from '../../../../promql/parse/parse.ts'
import { textsElsewhere } from '../../query/engine.ts'
import { compareTexts, eachSeries, type LabelPairs, type Matchers, matchersOf, ordered } from '../../query/labels.ts'
import { invalidParameter, QueryProblem } from '../../query/problems.ts'
import { jsonLabels, listTexts, successTexts } from './json.ts'
import { type ApiRequest, QueryParameters } from './parameters.ts'

const NEVER_MS = 8.64e15

export async function seriesFound(request: ApiRequest): Promise<Iterable<string>> {
  const parameters = new QueryParameters(request.given)
  const selections = selectionsOf(parameters)
  if (selections.length === 0) throw new QueryProblem('bad_data', 'no match[] parameter provided')
  const found = new Map<string, LabelSet>()
  await eachSeries(request, selections, rangeOf(parameters), 'series', (pairs) => {
    const labels = LabelSet.of(pairs)
    found.set(labels.key, labels)
    return found.size
  })
  const { work, tenant } = request.run
  const sorted = await work.run({ tenant }, ordered([...found.values()], compareLabelSets))
  return limitedList(sorted, jsonLabels, parameters.limit())
}

export function labelNamesFound(request: ApiRequest): Promise<Iterable<string>> {
  return textsFound(request, undefined, (pairs, found) => {
    for (const [name] of pairs) found.add(name)
  })
}

export async function labelValuesFound(request: ApiRequest): Promise<Iterable<string>> {
  const label = unescaped(request.label ?? '')
  if (!isLabelName(label)) throw new QueryProblem('bad_data', `invalid label name: ${JSON.stringify(label)}`)
  return textsFound(request, label, (pairs, found) => {
    for (const [name, text] of pairs) if (name === label) found.add(text)
  })
}

async function textsFound(
  request: ApiRequest,
  label: string | undefined,
  take: (pairs: LabelPairs, found: Set<string>) => void,
): Promise<Iterable<string>> {
  const parameters = new QueryParameters(request.given)
  const selections = selectionsOf(parameters)
  const found = new Set<string>()
  const all = selections.length === 0 ? [[]] : selections
  const { elsewhere } = request.history
  if (elsewhere !== undefined) {
    for (const text of await textsElsewhere(request, elsewhere, label, all, rangeOf(parameters))) found.add(text)
  } else {
    await eachSeries(request, all, rangeOf(parameters), 'text', (pairs) => {
      take(pairs, found)
      return found.size
    })
  }
  const { work, tenant } = request.run
  const sorted = await work.run({ tenant }, ordered([...found], compareTexts))
  return limitedList(sorted, (text) => JSON.stringify(text), parameters.limit())
}

/** Throws QueryProblem. */
function rangeOf(parameters: QueryParameters): { readonly fromMs: number; readonly toMs: number } {
  const [fromMs, toMs] = [parameters.timeMs('start', 0), parameters.timeMs('end', NEVER_MS)]
  if (toMs < fromMs) throw invalidParameter('end', 'end timestamp must not be before start time')
  parameters.limit()
  return { fromMs, toMs }
}

function limitedList<T>(sorted: readonly T[], text: (element: T) => string, limit: number): Iterable<string> {
  const isCut = sorted.length > limit
  const shown = isCut ? sorted.slice(0, limit) : sorted
  return successTexts(listTexts(eachText(shown, text)), isCut ? { warnings: ['results truncated due to limit'] } : {})
}

function* eachText<T>(elements: readonly T[], text: (element: T) => string): Generator<string> {
  for (const element of elements) yield text(element)
}

/** What `match[]` selects. Throws QueryProblem. */
function selectionsOf(parameters: QueryParameters): Matchers[] {
  const all = parameters.all('match[]')
  const length = all.reduce((sum, text) => sum + text.length, 0)
  const { maxLength } = PARSE_LIMITS
  if (length > maxLength)
    throw invalidParameter('match[]', `all have ${length} characters together, at most ${maxLength} are allowed`)
  const regexes = new RegexMemory()
  return all.map((text) => {
    try {
      const matchers = matchersOf(text, regexes)
      if (matchers !== undefined) return matchers
    } catch (error) {
      if (!(error instanceof PromqlError)) throw error
      throw invalidParameter('match[]', error.message)
    }
    throw invalidParameter('match[]', `${text} is no selector of series such as up{job="a"}`)
  })
}

/** A name in the form that Prometheus has for names in URLs: `U__` and, for other characters, their number in hexadecimal. */
function unescaped(name: string): string {
  if (!name.startsWith('U__')) return name
  return name.slice(3).replace(/__|_([0-9a-f]{1,6})_/gi, (all, code: string | undefined) => {
    if (code === undefined) return '_'
    const point = Number.parseInt(code, 16)
    return point <= 0x10_ff_ff ? String.fromCodePoint(point) : all
  })
}
