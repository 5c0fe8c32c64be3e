/** `label_replace` and `label_join`: other labels for each series; and the series that have the same labels after that are one. */
import { executionError } from '../errors.ts'
import { collected, type Evaluation, type StepSeries } from '../evaluate/grid.ts'
import { mergedSeries } from '../evaluate/merged-series.ts'
import { type CompiledRegex, compiledRegex, RegexError } from '../label-matcher.ts'
import { isLabelName, type LabelSet, METRIC_NAME_LABEL } from '../label-set.ts'
import type { Stream } from '../series-source.ts'

/** What a regular expression costs, in elements of columns. */
const WORK_OF_REGEX = 500

export interface LabelChange {
  readonly target: string
  /** The text of the label; undefined if it stays as it is. */
  text(labels: LabelSet): string | undefined
}

/** `label_replace(v, target, replacement, source, regex)`; throws PromqlError. */
export function replacement([target = '', template = '', source = '', regex = '']: readonly string[]): LabelChange {
  if (!isLabelName(target)) throw executionError(`invalid destination label name in label_replace(): ${target}`)
  const compiled = compiledFor(regex)
  return {
    target,
    text(labels) {
      const matcher = compiled.matcher(labels.get(source))
      if (!matcher.matches()) return undefined
      return expanded(template, (group) => {
        const number = /^\d+$/.test(group) ? Number(group) : compiled.namedGroups()[group]
        return number === undefined || number > compiled.groupCount() ? '' : (matcher.group(number) ?? '')
      })
    },
  }
}

/** `label_join(v, target, separator, source…)`; throws PromqlError. */
export function joining([target = '', separator = '', ...sources]: readonly string[]): LabelChange {
  const bad = sources.find((name) => !isLabelName(name))
  if (bad !== undefined) throw executionError(`invalid source label name in label_join(): ${bad}`)
  if (!isLabelName(target)) throw executionError(`invalid destination label name in label_join(): ${target}`)
  return { target, text: (labels) => sources.map((name) => labels.get(name)).join(separator) }
}

export function* relabelled(
  stream: Stream<StepSeries>,
  { target, text }: LabelChange,
  { budget }: Evaluation,
): Stream<StepSeries> {
  const all = yield* collected(stream, budget)
  for (const series of all) {
    if (budget.isStepOver(WORK_OF_REGEX)) yield undefined
    const changed = text(series.labels)
    if (changed === undefined) continue
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
    return compiledRegex(regex)
  } catch (error) {
    if (!(error instanceof RegexError)) throw error
    throw executionError(`invalid regular expression in label_replace(): ${regex}`)
  }
}

/** Go's templates: `$1`, `$name`, `${1}` and `$$`; the longest name counts, and one that does not exist is empty. */
function expanded(template: string, textOf: (group: string) => string): string {
  return template.replace(
    /\$(?:\$|(\w+)|\{(\w+)\})/g,
    (found, plain: string | undefined, braced: string | undefined) =>
      found === '$$' ? '$' : textOf(plain ?? braced ?? ''),
  )
}
