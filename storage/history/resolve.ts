/**
 * Finds the series that matchers select, by the terms of the index. A matcher that the empty text satisfies selects all series but
 * those with a text of the label that it refuses; any other selects those with a text that it takes.
 */
import { createRequire } from 'node:module'
import type { Database, Statement } from 'better-sqlite3'
import { placeOf, seriesAt } from './codec/page.ts'
import { labelsOf, NAME_TERM_LABEL, type SeriesRow } from './series-table.ts'
import { HistoryExpressionError, type HistoryMatcher, type HistorySeries, matcherTextProblem } from './store.ts'

/** Loaded with the first expression: a thread that has none is smaller by it. */
const regularExpressions = (): typeof import('re2js') => createRequire(import.meta.url)('re2js')

/** Rows of the index between two steps. */
const ROWS_PER_STEP = 2_000
/** So few series are looked up in the lists of further matchers, which are not read then: that of a name may have all series. */
const LOOKED_UP = 500
/** In the lists of so many texts at most. */
const TEXTS_LOOKED_UP = 16
/** Texts that are looked up between two steps. */
const TEXTS_PER_STEP = 200
/** How often a part of an expression looks at a character in the time that a row takes. */
const LOOKS_PER_ROW = 50

/** Series that match, by their places, ascending. What they are is read when it is wanted: their texts would be most of a query. */
export interface ResolvedSeries {
  readonly places: Float64Array
  at(place: number): HistorySeries
}

/** A matcher that is ready: whether it takes a text. */
export interface CompiledMatcher {
  readonly label: string
  /** All texts that it takes, or refuses; undefined if it is an expression. */
  readonly texts: ReadonlySet<string> | undefined
  /** `!=` and `!~`. */
  readonly isNegative: boolean
  /** Whether the text is one of them, or matches the expression, whatever `isNegative` says. */
  readonly has: (text: string) => boolean
  /** Parts of the expression, each of which may be looked at for each character of a text; 0 if it is a comparison. */
  readonly size: number
}

type Expression = Pick<CompiledMatcher, 'has' | 'size'>

/** Throws HistoryExpressionError. */
export function compileMatchers(matchers: readonly HistoryMatcher[]): CompiledMatcher[] {
  const problem = matcherTextProblem(matchers)
  if (problem !== undefined) throw new HistoryExpressionError(`the texts of the matchers: ${problem}`)
  const expressions = new Map<string, Expression>()
  return matchers.map((matcher) => compileMatcher(matcher, expressions))
}

/** `expressions`: those that are compiled already. */
function compileMatcher(
  { label, operator, text, texts }: HistoryMatcher,
  expressions: Map<string, Expression>,
): CompiledMatcher {
  const isNegative = operator === '!=' || operator === '!~'
  const all = operator === '=' || operator === '!=' ? [text] : texts
  if (all !== undefined) {
    const listed = new Set(all)
    return { label, texts: listed, isNegative, has: (other) => listed.has(other), size: 0 }
  }
  const expression = expressions.get(text) ?? compiled(text)
  expressions.set(text, expression)
  return { label, texts: undefined, isNegative, ...expression }
}

function compiled(text: string): Expression {
  const { RE2JS, RE2JSException } = regularExpressions()
  try {
    // By itself: the parentheses around it must not close those that are missing in it.
    if (text.includes(')')) RE2JS.compile(text)
    const expression = RE2JS.compile(`^(?s:${text})$`)
    return { has: (other) => expression.test(other), size: expression.programSize() }
  } catch (error) {
    if (!(error instanceof RE2JSException)) throw error
    throw new HistoryExpressionError(`\`${text}\` is no regular expression of RE2: ${error.message}`)
  }
}

interface Term {
  readonly id: number
  readonly text: string
}

/** The index, as a connection to fresh.db has it. */
export class SeriesResolver {
  readonly #term: Statement<unknown[], number>
  readonly #terms: Statement<unknown[], Term>
  readonly #postings: Statement<unknown[], number>
  readonly #count: Statement<unknown[], number>
  readonly #posting: Statement<unknown[], number>
  readonly #tenantSeries: Statement<unknown[], number>
  readonly #name: Statement<unknown[], number>
  readonly #series: Statement<unknown[], Pick<SeriesRow, 'text' | 'labels' | 'native'>>

  constructor(database: Database) {
    this.#term = database
      .prepare<unknown[], number>('select id from term where tenant = ? and label = ? and text = ?')
      .pluck()
    this.#terms = database.prepare<unknown[], Term>(
      `select id, text from term where tenant = ? and label = ? and text > ? order by text limit ${ROWS_PER_STEP}`,
    )
    this.#postings = database
      .prepare<unknown[], number>(
        `select series from posting where term = ? and series > ? order by series limit ${ROWS_PER_STEP}`,
      )
      .pluck()
    this.#count = database
      .prepare<unknown[], number>(`select count(*) from (select 1 from posting where term = ? limit ${LOOKED_UP + 1})`)
      .pluck()
    this.#posting = database
      .prepare<unknown[], number>('select series from posting where term = ? and series = ?')
      .pluck()
    this.#tenantSeries = database
      .prepare<unknown[], number>(
        `select id from series where tenant = ? and id > ? order by id limit ${ROWS_PER_STEP}`,
      )
      .pluck()
    this.#name = database.prepare<unknown[], number>('select name from series where id = ?').pluck()
    this.#series = database.prepare<unknown[], Pick<SeriesRow, 'text' | 'labels' | 'native'>>(
      'select text, labels, native from series join name on name.id = series.name where series.id = ?',
    )
  }

  *resolve(
    tenant: { readonly id: number; readonly name: string },
    matchers: readonly CompiledMatcher[],
  ): Generator<undefined, ResolvedSeries, void> {
    const found = yield* this.#numbers(tenant.id, matchers)
    const places = new Float64Array(found.size)
    let count = 0
    for (const id of found) {
      const name = this.#name.get(id)
      if (name !== undefined) places[count++] = placeOf(name, id)
      if (count % 1_024 === 0) yield
    }
    return { places: places.subarray(0, count).sort(), at: (place) => this.at(tenant, place) }
  }

  /** What is at a place, which has something. */
  at(tenant: { readonly name: string }, place: number): HistorySeries {
    const { text, labels, native } = this.#series.get(seriesAt(place))!
    return { tenant: tenant.name, name: text, labels: labelsOf(labels), native }
  }

  *#numbers(tenant: number, matchers: readonly CompiledMatcher[]): Generator<undefined, Set<number>, void> {
    let found: Set<number> | undefined
    const refused: Set<number>[] = []
    // The fewest series first, and last what needs a list of all texts of its label.
    const sizes = new Map(matchers.map((matcher) => [matcher, this.#sizeOf(tenant, matcher)]))
    for (const matcher of matchers.toSorted((a, b) => Math.sign(sizes.get(a)! - sizes.get(b)!) || 0)) {
      if (found?.size === 0) return found
      const { isNegative, has } = matcher
      if (matcher.label === NAME_TERM_LABEL ? isNegative : has('') !== isNegative) {
        refused.push(yield* this.#having(tenant, matcher, (text) => has(text) === isNegative))
        continue
      }
      const wants = matcher.label === NAME_TERM_LABEL ? has : (text: string): boolean => has(text) !== isNegative
      if (found !== undefined && found.size <= LOOKED_UP && isLookedUp(matcher, wants)) {
        found = this.#thoseHaving(tenant, matcher, found)
        continue
      }
      const series = yield* this.#having(tenant, matcher, wants)
      found = found === undefined ? series : intersection(found, series)
    }
    found ??= yield* this.#all(tenant)
    for (const series of refused) for (const id of series) found.delete(id)
    return found
  }

  /** How many series have a text of the matcher, if these are few. */
  #sizeOf(tenant: number, matcher: CompiledMatcher): number {
    const { label, texts, has, isNegative } = matcher
    if (texts === undefined) return Number.MAX_VALUE
    if (isNegative || texts.size > TEXTS_LOOKED_UP || (label !== NAME_TERM_LABEL && has(''))) return LOOKED_UP + 1
    const terms = [...texts].flatMap((text) => this.#term.all(tenant, label, text))
    return terms.reduce((sum, term) => sum + (this.#count.get(term) ?? 0), 0)
  }

  #thoseHaving(tenant: number, { label, texts }: CompiledMatcher, series: ReadonlySet<number>): Set<number> {
    const terms = [...(texts ?? [])].flatMap((text) => this.#term.all(tenant, label, text))
    return new Set([...series].filter((id) => terms.some((term) => this.#posting.get(term, id) !== undefined)))
  }

  /** The series with a text of the matcher's label that is wanted. */
  *#having(
    tenant: number,
    matcher: CompiledMatcher,
    wants: (text: string) => boolean,
  ): Generator<undefined, Set<number>, void> {
    const series = new Set<number>()
    const terms =
      matcher.texts !== undefined && wants([...matcher.texts][0] ?? '')
        ? yield* this.#listed(tenant, matcher.label, matcher.texts)
        : yield* this.#matching(tenant, matcher, wants)
    for (const id of terms) {
      for (let last = -1; ; ) {
        const some = this.#postings.all(id, last)
        for (const each of some) series.add(each)
        if (some.length < ROWS_PER_STEP) break
        last = some.at(-1)!
        yield
      }
    }
    return series
  }

  /** The terms of texts. */
  *#listed(tenant: number, label: string, texts: ReadonlySet<string>): Generator<undefined, readonly number[], void> {
    const found: number[] = []
    let looked = 0
    for (const text of texts) {
      found.push(...this.#term.all(tenant, label, text))
      if (++looked % TEXTS_PER_STEP === 0) yield
    }
    return found
  }

  *#matching(
    tenant: number,
    { label, size }: CompiledMatcher,
    wants: (text: string) => boolean,
  ): Generator<undefined, readonly number[], void> {
    const matching: number[] = []
    let work = 0
    for (let last = ''; ; ) {
      const some = this.#terms.all(tenant, label, last)
      for (const { id, text } of some) {
        work += 1 + (size * text.length) / LOOKS_PER_ROW
        if (work > ROWS_PER_STEP) {
          work = 0
          yield
        }
        if (wants(text)) matching.push(id)
      }
      if (some.length < ROWS_PER_STEP) return matching
      last = some.at(-1)!.text
      yield
    }
  }

  *#all(tenant: number): Generator<undefined, Set<number>, void> {
    const all = new Set<number>()
    for (let last = -1; ; ) {
      const some = this.#tenantSeries.all(tenant, last)
      for (const id of some) all.add(id)
      if (some.length < ROWS_PER_STEP) return all
      last = some.at(-1)!
      yield
    }
  }
}

/** Whether the series that a matcher wants are those in the lists of a few texts. */
function isLookedUp({ texts }: CompiledMatcher, wants: (text: string) => boolean): boolean {
  return texts !== undefined && texts.size <= TEXTS_LOOKED_UP && wants([...texts][0] ?? '')
}

function intersection(a: Set<number>, b: Set<number>): Set<number> {
  const [smaller, larger] = a.size < b.size ? [a, b] : [b, a]
  const both = new Set<number>()
  for (const id of smaller) if (larger.has(id)) both.add(id)
  return both
}
