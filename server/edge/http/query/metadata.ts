/**
 * What is known of the metrics that there are now, as Prometheus knows it of its targets: type, help and unit, by the names that they
 * have in the history.
 */
import type { FamilyMetadata } from '../../../../protocol/prometheus/samples.ts'
import type { Metric, RecordExposition } from '../../../kernel/metrics/metric.ts'
import { familyType, nameForPrometheus } from '../../../kernel/metrics/prometheus-samples.ts'
import { ReadRights } from '../../../kernel/metrics/read-rights.ts'
import { metricsInOrder } from '../../../kernel/producer/catalogue.ts'
import { QueryProblem } from '../../query/problems.ts'
import { successTexts } from './json.ts'
import { type ApiRequest, QueryParameters } from './parameters.ts'

/** What one answer holds at most. */
const MOST = 200_000
/** What a sample of a histogram or summary has after the name of its family. */
const PART = /_(?:bucket|sum|count)$/

export async function metadataFound(request: ApiRequest): Promise<Iterable<string>> {
  const parameters = new QueryParameters(request.given)
  const found = new Found(parameters.text('metric'), parameters.limit(), parameters.limit('limit_per_metric'))
  const { reader, catalogue, run } = request
  const rights = new ReadRights(reader, catalogue.rights)
  const steps = function* (): Generator<undefined, void, void> {
    const mine = catalogue.sensors().filter((sensor) => rights.maySee(sensor))
    for (const [metric, sensor] of metricsInOrder(mine, '', '')) {
      yield undefined
      if (found.isFull) return
      if (rights.isListed(sensor, metric.name)) found.add(metric)
    }
  }
  await run.work.run({ tenant: run.tenant }, steps())
  return successTexts(found.texts())
}

class Found {
  /** By name, each as text. */
  readonly #found = new Map<string, Set<string>>()
  readonly #only: string
  readonly #limit: number
  readonly #perMetric: number
  #count = 0

  constructor(only: string, limit: number, perMetric: number) {
    this.#only = only
    this.#limit = limit
    this.#perMetric = perMetric
  }

  get isFull(): boolean {
    return this.#found.size >= this.#limit
  }

  /** Throws QueryProblem. */
  add({ name, unit, description, isCounter, distribution, exposition }: Metric): void {
    if (exposition === 'none') return
    const own = nameForPrometheus(name)
    if (exposition !== undefined) this.#declared(own.name, exposition)
    else if (own.isNative && distribution !== undefined)
      this.#one(own.name.replace(PART, ''), { type: distribution, help: description, unit })
    else this.#one(own.name, { type: familyType(isCounter), help: description, unit })
  }

  /** A record, and the lists in it: each of its fields is a family. */
  #declared(name: string, { fields, lists = {} }: RecordExposition): void {
    for (const field of Object.values(fields))
      this.#one(`${name}_${field.name}`, { type: familyType(field.isCounter), help: field.help, unit: '' })
    for (const list of Object.values(lists)) this.#declared(name, list)
  }

  #one(name: string, { type, help, unit }: FamilyMetadata): void {
    if (this.#only !== '' && name !== this.#only) return
    const known = this.#found.get(name) ?? new Set()
    if (known.size >= this.#perMetric || (known.size === 0 && this.isFull)) return
    const text = JSON.stringify({ type, help, unit })
    if (known.has(text)) return
    if (++this.#count > MOST) throw new QueryProblem('execution', `more than ${MOST} are known: choose one with metric`)
    this.#found.set(name, known.add(text))
  }

  *texts(): Generator<string> {
    let before = '{'
    for (const [name, known] of this.#found) {
      yield `${before}${JSON.stringify(name)}:[${[...known].join(',')}]`
      before = ','
    }
    yield before === '{' ? '{}' : '}'
  }
}
