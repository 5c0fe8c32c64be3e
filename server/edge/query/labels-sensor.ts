/**
 * `producer.history.labels` [MON 9.20]: which names of labels there are, or which texts of a label, of the series that match. What
 * completes an expression asks it while somebody types.
 */
import type { Reader } from '../../../auth/permissions.ts'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import { type Value, VOID } from '../../../protocol/monitor/value.ts'
import { RecordList } from '../../kernel/metrics/measure.ts'
import type { Arguments, Labels, Measurement, Metric, PolledSensor } from '../../kernel/metrics/metric.ts'
import type { RememberedHistory } from '../../kit/history.ts'
import type { MemoryPlace } from '../memory-room.ts'
import { outcomeOf, type QueryOutcome } from './outcomes.ts'
import { QueryProblem } from './problems.ts'
import { problemRecord } from './records.ts'
import type { RunOptions } from './run.ts'
import type { QuerySensorServices } from './sensor.ts'

const { ARRAY, STRING, UINT64 } = BasicType

/** It is answered before a QUERY without a deadline of its own is. */
const MOST_MS = 8_000
const EVER = { fromMs: 0, toMs: 8.64e15 }

const metric: Metric = {
  name: 'producer.history.labels',
  kind: 'continuous',
  type: ARRAY,
  unit: '',
  description: 'Names of labels, or texts of one, of the series that are stored.',
  parameters: [
    {
      name: 'label',
      type: STRING,
      description: 'A label, of which the texts are shown; without it, the names of labels.',
    },
    { name: 'match', type: STRING, description: 'Only of the series that this selects, such as up{job="a"}.' },
    { name: 'from', type: UINT64, description: 'Only of series with a sample then or later, microseconds since 1970.' },
    { name: 'to', type: UINT64, description: 'Only of series with a sample then or earlier, microseconds since 1970.' },
    { name: 'after', type: STRING, description: 'Only what comes after this text.' },
  ],
  exposition: 'none',
}

export class LabelsSensor implements PolledSensor {
  readonly polled = true
  readonly family = 'producer.'
  readonly owner = 'producer'
  readonly personal = true
  readonly #services: QuerySensorServices

  constructor(services: QuerySensorServices) {
    this.#services = services
  }

  metrics(): Iterable<Metric> {
    return [metric]
  }

  metric(name: string): Metric | undefined {
    return name === metric.name ? metric : undefined
  }

  labels(): Labels {
    return { name: metric.name }
  }

  check(): void {
    // What is wrong with a selector, the answer says.
  }

  /** VOID if the history is not there. */
  async measure(_: Metric, args: Arguments, reader: Reader): Promise<Measurement> {
    const { history, clock } = this.#services
    const isThere = history !== undefined && history.problem === undefined
    return { value: isThere ? await this.#answer(args, reader, history) : VOID, time: clock.microseconds() }
  }

  async #answer(args: Arguments, reader: Reader, history: RememberedHistory): Promise<Value> {
    const { turns, work } = this.#services
    const ended = new AbortController().signal
    let found: readonly string[] | QueryProblem = new QueryProblem(
      'unavailable',
      'too many queries of the tenant wait for their turn',
    )
    const act = async (memory: MemoryPlace): Promise<void> => {
      found = await this.#found(args, reader, history, { ended, memory })
    }
    if (!(await turns.take(reader.tenant, ended, act))) this.#count(args, reader, 'refused', 0)
    const list = new RecordList()
    const answer: readonly string[] | QueryProblem = found
    if (answer instanceof QueryProblem) list.add(problemRecord(answer, String(args.get('match') ?? '')))
    else await work.run(reader, filled(list, answer, String(args.get('after') ?? '')))
    return list.value()
  }

  /** Rejects with faults alone. */
  async #found(
    args: Arguments,
    reader: Reader,
    history: RememberedHistory,
    ending: Pick<RunOptions, 'ended' | 'memory'>,
  ): Promise<readonly string[] | QueryProblem> {
    const { section, clock, work } = this.#services
    const begunMs = clock.monotonicMs()
    const [{ compareTexts, eachSeries, matchersOf, ordered }, { problemOf }] = await Promise.all([
      import('./labels.ts'),
      import('./evaluate.ts'),
    ])
    const { maxSamples, timeout } = section()
    const run = { tenant: reader.tenant, work, clock, timeoutMs: Math.min(timeout, MOST_MS), ...ending }
    const request = { reader, history, nowMs: clock.wallMs(), maxSamples, run }
    const label = args.get('label')
    const found = new Set<string>()
    try {
      const match = args.get('match')
      const matchers = typeof match === 'string' && match !== '' ? matchersOf(match) : []
      if (matchers === undefined) throw new QueryProblem('bad_data', '`match` is no selector such as up{job="a"}')
      await eachSeries(request, [matchers], rangeOf(args), 'text', (pairs) => {
        for (const [name, text] of pairs) {
          if (label === undefined) found.add(name)
          else if (name === label) found.add(text)
        }
        return found.size
      })
      this.#count(args, reader, 'served', clock.monotonicMs() - begunMs)
      return await work.run(reader, ordered([...found], compareTexts))
    } catch (error) {
      const problem = problemOf(error)
      this.#count(args, reader, outcomeOf(problem), clock.monotonicMs() - begunMs)
      if (problem === undefined) throw error
      return problem
    }
  }

  #count(args: Arguments, reader: Reader, outcome: QueryOutcome, tookMs: number): void {
    const given = new URLSearchParams({ 'match[]': String(args.get('match') ?? '') })
    this.#services.outcomes.ended({ reader, path: metric.name, given, outcome, waitedMs: 0, tookMs })
  }
}

function* filled(list: RecordList, found: readonly string[], after: string): Generator<void, void, void> {
  for (const text of found) {
    if (text <= after) continue
    if (!list.add([{ name: 'text', type: STRING, value: text }])) return
    yield
  }
}

function rangeOf(args: Arguments): { readonly fromMs: number; readonly toMs: number } {
  const [from, to] = [args.get('from'), args.get('to')]
  return {
    fromMs: typeof from === 'bigint' ? Number(from / 1_000n) : EVER.fromMs,
    toMs: typeof to === 'bigint' ? Number(to / 1_000n) : EVER.toMs,
  }
}
