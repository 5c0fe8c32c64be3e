/**
 * What became of the queries over the history: how many ended how is counted for each tenant, which `producer.queries` shows, and those that
 * took long are logged.
 */
import { maySee, type Reader } from '../../../auth/permissions.ts'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import type { Field } from '../../../protocol/monitor/value.ts'
import type { Clock } from '../../kernel/core/clock.ts'
import type { Logger } from '../../kernel/core/log.ts'
import { RareWarnings } from '../../kernel/core/rare-warnings.ts'
import { RecordList } from '../../kernel/metrics/measure.ts'
import type { Metric } from '../../kernel/metrics/metric.ts'
import { ProducerSensor } from '../../kernel/producer/sensor.ts'
import { CrowdedQuery, type QueryProblem } from './problems.ts'

const { ARRAY, STRING, UINT64 } = BasicType

/** Of each parameter, what is logged. */
const LOGGED_CHARACTERS = 1_000
/** Of so many tenants the queries are counted; the one that asked longest ago begins again at 0. */
const MOST_TENANTS = 10_000

/**
 * `failed`: it is wrong, or what it asks for is more than it may. `refused`: there was no turn, or no memory.
 * `cancelled`: the connection has ended before the answer was there.
 */
const OUTCOMES = ['served', 'failed', 'timed_out', 'refused', 'cancelled'] as const
export type QueryOutcome = (typeof OUTCOMES)[number]

/** `problem`: undefined if the server has failed. */
export function outcomeOf(problem: QueryProblem | undefined): QueryOutcome {
  if (problem instanceof CrowdedQuery) return 'refused'
  if (problem?.type === 'timeout') return 'timed_out'
  return problem?.type === 'canceled' ? 'cancelled' : 'failed'
}

type Counts = Record<QueryOutcome, number>

/** A query that has ended. */
export interface EndedQuery {
  readonly reader: Pick<Reader, 'tenant' | 'name'>
  readonly path: string
  /** Its parameters. */
  readonly given: () => URLSearchParams
  readonly outcome: QueryOutcome
  /** Until it had its turn, and from then on. */
  readonly waitedMs: number
  readonly tookMs: number
}

export interface QueryOutcomesServices {
  readonly log: Pick<Logger, 'warn'>
  readonly clock: Pick<Clock, 'monotonicMs'>
  /** Queries that take longer are logged; 0: none is. */
  readonly slowMs: () => number
}

export class QueryOutcomes {
  readonly #services: QueryOutcomesServices
  readonly #warnings: RareWarnings
  /** By tenant, the one that asked longest ago first. */
  readonly #counts = new Map<string, Counts>()

  constructor(services: QueryOutcomesServices) {
    this.#services = services
    this.#warnings = new RareWarnings(services.log, services.clock)
  }

  ended({ reader: { tenant, name }, path, given, outcome, waitedMs, tookMs }: EndedQuery): void {
    const counts = this.#counts.get(tenant) ?? { served: 0, failed: 0, timed_out: 0, refused: 0, cancelled: 0 }
    counts[outcome]++
    this.#counts.delete(tenant)
    this.#counts.set(tenant, counts)
    const [oldest] = this.#counts.keys()
    if (this.#counts.size > MOST_TENANTS && oldest !== undefined) this.#counts.delete(oldest)
    const slowMs = this.#services.slowMs()
    if (slowMs === 0 || tookMs <= slowMs) return
    const parameters = given()
    const asked = ['query', 'match[]', 'time', 'start', 'end', 'step'].flatMap((key) => {
      const text = parameters.get(key)
      return text === null ? [] : [[key, text.slice(0, LOGGED_CHARACTERS)] as const]
    })
    const took = { took_ms: Math.round(tookMs), waited_ms: Math.round(waitedMs) }
    this.#warnings.warn('slow query', { tenant, user: name, path, ...Object.fromEntries(asked), outcome, ...took })
  }

  /** Tenants that have asked, ascending. */
  counts(): (readonly [tenant: string, counts: Readonly<Counts>])[] {
    return [...this.#counts].sort(([a], [b]) => (a < b ? -1 : 1))
  }
}

const counter = (name: string, help: string) => ({ name, help, isCounter: true })

const metric: Metric = {
  name: 'producer.queries',
  kind: 'continuous',
  type: ARRAY,
  unit: '',
  description: 'Queries over the history by tenant, and how they ended.',
  parameters: [],
  exposition: {
    labels: { tenant: 'tenant' },
    fields: {
      served: counter('served', 'Queries that were answered.'),
      failed: counter('failed', 'Queries that were wrong, or needed more than they may.'),
      timed_out: counter('timed_out', 'Queries that took longer than they may.'),
      refused: counter('refused', 'Queries that got no turn, or no memory because all together held too much.'),
      cancelled: counter('cancelled', 'Queries whose connection ended before they were answered.'),
    },
  },
}

/** A tenant sees its own, an admin all. */
export function queriesSensor(
  outcomes: Pick<QueryOutcomes, 'counts'>,
  clock: Pick<Clock, 'microseconds'>,
): ProducerSensor {
  const show = (reader: Reader) => {
    const list = new RecordList()
    for (const [tenant, counts] of outcomes.counts()) {
      if (maySee(reader, { tenant }) && !list.add(fieldsOf(tenant, counts))) break
    }
    return list.value()
  }
  return new ProducerSensor([{ metric, show }], clock)
}

function fieldsOf(tenant: string, counts: Readonly<Counts>): Field[] {
  const counted = OUTCOMES.map((name): Field => ({ name, type: UINT64, value: BigInt(counts[name]) }))
  return [{ name: 'tenant', type: STRING, value: tenant }, ...counted]
}
