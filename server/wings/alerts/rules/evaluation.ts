/** The evaluation of rules at one time: what their expressions and templates see. It goes in steps, between which a source may wait. */
import type { LabelSet } from '../../../../promql/label-set.ts'
import { NO_LABELS } from '../../../../promql/label-set.ts'
import { PreparedQuery, QUERY_OPTIONS, type QueryOptions } from '../../../../promql/query.ts'
import type { SeriesSource } from '../../../../promql/series-source.ts'
import { type TemplateSurroundings, Unanswered } from '../../../../promql/template/functions.ts'
import type { TemplateSample } from '../../../../promql/template/go-format.ts'
import type { TemplateData, TextTemplate } from '../../../../promql/template/template.ts'

export interface EvaluatedSample {
  readonly labels: LabelSet
  readonly value: number
}

/** A rule that could not be evaluated. */
export class RuleError extends Error {
  override readonly name = 'RuleError'
}

/** What templates get of whoever evaluates. */
export type External = Pick<TemplateData, 'externalLabels' | 'externalUrl'>

/** Steps, and what they come to. */
export type RuleSteps<T> = Generator<undefined, T, void>

/** Expressions that one template may ask for. */
const MAX_QUERIES = 32

type Answer = readonly TemplateSample[] | RuleError

export class RuleEvaluation {
  readonly timeMs: number
  readonly external: External
  readonly #source: SeriesSource
  readonly #offsetMs: number
  readonly #options: QueryOptions
  /** What templates have asked for, by expression. */
  readonly #answers = new Map<string, Answer>()
  readonly #surroundings: TemplateSurroundings

  /** Expressions see the source as it is `offsetMs` before the time. */
  constructor(
    source: SeriesSource,
    timeMs: number,
    external: External,
    offsetMs = 0,
    options: QueryOptions = QUERY_OPTIONS,
  ) {
    this.timeMs = timeMs
    this.external = external
    this.#source = source
    this.#offsetMs = offsetMs
    this.#options = options
    this.#surroundings = {
      timeMs,
      externalUrl: external.externalUrl,
      query: (expression) => {
        const answer = this.#answers.get(expression)
        if (answer === undefined) throw new Unanswered(expression)
        if (answer instanceof RuleError) throw answer
        return answer
      },
    }
  }

  /** The samples of an expression; a scalar is one without labels. Its steps throw RuleError. */
  *vector(query: PreparedQuery): RuleSteps<readonly EvaluatedSample[]> {
    const atMs = this.timeMs - this.#offsetMs
    try {
      const { data } = yield* query.instant(this.#source, atMs, this.#options)
      if (data.type === 'vector') return data.samples
      if (data.type === 'scalar') return [{ labels: NO_LABELS, value: data.value }]
    } catch (error) {
      throw new RuleError((error as Error).message, { cause: error })
    }
    throw new RuleError('rule result is not a vector or scalar')
  }

  /**
   * The text of a template, which is executed again whenever something that it asks for has been answered. A template that fails is no
   * reason not to alert: its text says what is wrong, as that of Prometheus does.
   */
  *text(template: TextTemplate, data: TemplateData): RuleSteps<string> {
    for (let asked = 0; ; asked++) {
      try {
        return template.execute(data, this.#surroundings)
      } catch (error) {
        if (!(error instanceof Unanswered)) return failedText((error as Error).message)
        if (asked === MAX_QUERIES) return failedText(`it asks for more than ${MAX_QUERIES} expressions`)
        this.#answers.set(error.expression, yield* this.#answered(error.expression))
      }
    }
  }

  *#answered(expression: string): RuleSteps<Answer> {
    try {
      const samples = yield* this.vector(new PreparedQuery(expression))
      return samples.map(({ labels, value }) => ({ Labels: new Map(labels), Value: value }))
    } catch (error) {
      return error instanceof RuleError ? error : new RuleError((error as Error).message, { cause: error })
    }
  }
}

function failedText(message: string): string {
  return `<error expanding template: ${message}>`
}
