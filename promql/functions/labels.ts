/** `label_replace` and `label_join`: other labels for each series; and the series that have the same labels after that are one. */
import { executionError } from '../errors.ts'
import { collected, type Evaluation, type StepSeries } from '../evaluate/grid.ts'
import { mergedSeries } from '../evaluate/merged-series.ts'
import { type CompiledRegex, compiledRegex, RegexError } from '../label-matcher.ts'
import { isLabelName, type LabelSet, METRIC_NAME_LABEL } from '../label-set.ts'
import { expansion } from '../regex-expansion.ts'
import type { Stream } from '../series-source.ts'

/** What a change costs, in elements of columns, and a part of a regular expression for each character that it looks at. */
const [WORK_OF_CHANGE, WORK_OF_PART] = [500, 1]
/** Compiling takes up to 17 ms for so many characters. */
const MAX_REGEX_CHARACTERS = 1_000
/** Parts of a regular expression for each character of a text: these take up to 15 ms. */
const MOST_WORK = 250_000
/** Each text may be made of several others, and of that one the next. */
const MAX_TEXT_CHARACTERS = 10_000
/** A text, and the keys that it is a part of. */
const BYTES_PER_CHARACTER = 4

export interface LabelChange {
  readonly target: string
  /** The text of the label; undefined if it stays as it is. Throws PromqlError. */
  text(labels: LabelSet): string | undefined
  /** What it costs to make one, in elements of columns. */
  work(labels: LabelSet): number
}

/** `label_replace(v, target, replacement, source, regex)`; throws PromqlError. */
export function replacement([target = '', template = '', source = '', regex = '']: readonly string[]): LabelChange {
  if (!isLabelName(target)) throw executionError(`invalid destination label name in label_replace(): ${target}`)
  const compiled = compiledFor(regex)
  const size = compiled.programSize()
  const work = (labels: LabelSet): number => WORK_OF_CHANGE + WORK_OF_PART * size * labels.get(source).length
  return {
    target,
    work,
    text(labels) {
      if (work(labels) > MOST_WORK)
        throw executionError(
          `label_replace() would match an expression of ${size} parts with a text of ${labels.get(source).length} characters`,
        )
      const matcher = compiled.matcher(labels.get(source))
      if (!matcher.matches()) return undefined
      return bounded(expansion(template, compiled, matcher)).join('')
    },
  }
}

/** `label_join(v, target, separator, source…)`; throws PromqlError. */
export function joining([target = '', separator = '', ...sources]: readonly string[]): LabelChange {
  const bad = sources.find((name) => !isLabelName(name))
  if (bad !== undefined) throw executionError(`invalid source label name in label_join(): ${bad}`)
  if (!isLabelName(target)) throw executionError(`invalid destination label name in label_join(): ${target}`)
  return {
    target,
    text: (labels) => bounded(sources.map((name) => labels.get(name))).join(separator),
    work: ({ size }) => WORK_OF_CHANGE + sources.length * size,
  }
}

/** `changeOf` is called in a step of its own, since an expression is compiled by it. */
export function* relabelled(
  stream: Stream<StepSeries>,
  changeOf: () => LabelChange,
  { budget }: Evaluation,
): Stream<StepSeries> {
  yield undefined
  const { target, text, work } = changeOf()
  yield undefined
  const all = yield* collected(stream, budget)
  for (const series of all) {
    if (budget.isStepOver(work(series.labels))) yield undefined
    const changed = text(series.labels)
    if (changed === undefined) continue
    // It stays with whatever comes of the series.
    budget.holdBytes(BYTES_PER_CHARACTER * changed.length)
    series.labels = series.labels.with([[target, changed]])
    // A name that was given stays.
    if (target === METRIC_NAME_LABEL) series.dropsName = false
  }
  yield* yield* mergedSeries(all, budget)
  budget.release(
    all.length,
    all.reduce((sum, { values }) => sum + values.length, 0),
  )
}

function compiledFor(regex: string): CompiledRegex {
  try {
    return compiledRegex(regex, { mostCharacters: MAX_REGEX_CHARACTERS, mostParts: MAX_REGEX_CHARACTERS })
  } catch (error) {
    if (!(error instanceof RegexError)) throw error
    throw executionError(`invalid regular expression in label_replace(): ${regex.slice(0, MAX_REGEX_CHARACTERS)}`)
  }
}

/** Throws PromqlError if the parts are too long together. */
function bounded(parts: readonly string[]): readonly string[] {
  const length = parts.reduce((sum, part) => sum + part.length, 0)
  if (length > MAX_TEXT_CHARACTERS)
    throw executionError(`a label would have ${length} characters, at most ${MAX_TEXT_CHARACTERS} are allowed`)
  return parts
}
