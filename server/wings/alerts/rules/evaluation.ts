/** The evaluation of rules at one time: what their expressions and templates see. */
import type { LabelSet } from '../../../../promql/label-set.ts'
import { NO_LABELS } from '../../../../promql/label-set.ts'
import { finished } from '../../../../promql/memory-source.ts'
import { PreparedQuery } from '../../../../promql/query.ts'
import type { SeriesSource } from '../../../../promql/series-source.ts'
import type { TemplateSurroundings } from '../template/functions.ts'
import type { TemplateData } from '../template/template.ts'

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

export class RuleEvaluation {
  readonly timeMs: number
  readonly external: External
  readonly surroundings: TemplateSurroundings
  readonly #source: SeriesSource
  readonly #offsetMs: number

  /** Expressions see the source as it is `offsetMs` before the time. */
  constructor(source: SeriesSource, timeMs: number, external: External, offsetMs = 0) {
    this.timeMs = timeMs
    this.external = external
    this.#source = source
    this.#offsetMs = offsetMs
    this.surroundings = {
      timeMs,
      externalUrl: external.externalUrl,
      query: (expression) =>
        this.vector(new PreparedQuery(expression)).map(({ labels, value }) => ({
          Labels: new Map(labels),
          Value: value,
        })),
    }
  }

  /** The samples of an expression; a scalar is one without labels. Throws RuleError. */
  vector(query: PreparedQuery): readonly EvaluatedSample[] {
    const atMs = this.timeMs - this.#offsetMs
    try {
      const { data } = finished(query.instant(this.#source, atMs))
      if (data.type === 'vector') return data.samples
      if (data.type === 'scalar') return [{ labels: NO_LABELS, value: data.value }]
    } catch (error) {
      throw new RuleError((error as Error).message, { cause: error })
    }
    throw new RuleError('rule result is not a vector or scalar')
  }
}
