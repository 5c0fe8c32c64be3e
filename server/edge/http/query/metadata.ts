/**
 * What is known of this server, and of metrics as Prometheus knows it of its targets: type, help and unit, by the names that they have
 * in the history. First come the metrics that there are now, then those that the history alone remembers.
 */
import type { Reader } from '../../../../auth/permissions.ts'
import type { FamilyMetadata } from '../../../../protocol/prometheus/samples.ts'
import { familiesOf } from '../../../kernel/metrics/families.ts'
import type { Sensor } from '../../../kernel/metrics/metric.ts'
import { type JudgingRights, ReadRights } from '../../../kernel/metrics/read-rights.ts'
import { metricsInOrder } from '../../../kernel/producer/catalogue.ts'
import type { RememberedHistory } from '../../../kit/history.ts'
import type { ShownRuleGroups } from '../../../kit/rules.ts'
import { QueryProblem } from '../../query/problems.ts'
import { successTexts } from './json.ts'
import { QueryParameters } from './parameters.ts'
import type { Sending } from './sending.ts'

/** What one answer holds at most. */
const MOST = 200_000

/** The language of an expression is that of this version. */
const PROMETHEUS_VERSION = '3.0.0'

/** Which metrics there are, and who may know of them. */
export interface MetricCatalogue {
  readonly sensors: () => readonly Sensor[]
  readonly rights: JudgingRights
}

/** What is asked of the server itself. */
export interface KnownRequest extends Sending {
  readonly reader: Reader
  readonly given: URLSearchParams
  readonly history: Pick<RememberedHistory, 'families'>
  /** `<product>/<version>` */
  readonly software: string
  /** Undefined if nothing evaluates rules. */
  readonly rules: readonly ShownRuleGroups[]
  /** The metrics that there are now. */
  readonly catalogue: MetricCatalogue
}

export async function buildInformation({ software }: KnownRequest): Promise<Iterable<string>> {
  const [application = '', revision = ''] = software.split('/')
  const facts = { version: PROMETHEUS_VERSION, revision, branch: '', buildUser: '', buildDate: '', goVersion: '' }
  return successTexts([JSON.stringify({ application, ...facts })])
}

export async function metadataFound(request: KnownRequest): Promise<Iterable<string>> {
  const parameters = new QueryParameters(request.given)
  const found = new Found(parameters.text('metric'), parameters.limit(), parameters.limit('limit_per_metric'))
  const { reader, catalogue, history, work, tenant } = request
  const rights = new ReadRights(reader, catalogue.rights)
  const steps = function* (): Generator<undefined, void, void> {
    const mine = catalogue.sensors().filter((sensor) => rights.maySee(sensor))
    for (const [metric, sensor] of metricsInOrder(mine, '', '')) {
      yield undefined
      if (found.isFull) return
      if (rights.isListed(sensor, metric.name))
        for (const { name, ...family } of familiesOf(metric)) found.add(name, family)
    }
  }
  await work.run({ tenant }, steps())
  // A metric that is there now is what it says of itself, whatever was said of it before.
  const isThere = found.names()
  for await (const families of history.families(reader)) {
    if (found.isFull) break
    for (const { name, ...family } of families) if (!isThere.has(name)) found.add(name, family)
  }
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

  names(): ReadonlySet<string> {
    return new Set(this.#found.keys())
  }

  /** Throws QueryProblem. */
  add(name: string, { type, help, unit }: FamilyMetadata): void {
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
