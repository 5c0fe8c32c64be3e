/**
 * `producer.history.labels` [MON 9.20]: which names of labels there are, or which texts of a label, of the series that match. What
 * completes an expression asks it while somebody types.
 */
import type { Reader } from '../../../auth/permissions.ts'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import { type Value, VOID } from '../../../protocol/monitor/value.ts'
import type { Steps } from '../../kernel/core/fair-work.ts'
import { RecordList } from '../../kernel/metrics/measure.ts'
import type { Arguments, Labels, Measurement, Metric, PolledSensor } from '../../kernel/metrics/metric.ts'
import type { RememberedHistory } from '../../kit/history.ts'
import type { MemoryPlace } from '../memory-room.ts'
import { ReadersHistory } from './asked-history.ts'
import { outcomeOf, type QueryOutcome } from './outcomes.ts'
import { problemOf, QueryProblem } from './problems.ts'
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
    const { turns } = this.#services
    const list = new RecordList()
    const ended = new AbortController()
    const refuse = (problem: QueryProblem): void => {
      list.add(problemRecord(problem, String(args.get('match') ?? '')))
    }
    try {
      const act = async (memory: MemoryPlace): Promise<void> => {
        const problem = await this.#fill(list, args, reader, history, { ended: ended.signal, memory })
        if (problem !== undefined) refuse(problem)
      }
      if (await turns.take(reader.tenant, ended.signal, act)) return list.value()
      this.#count(args, reader, 'refused', 0)
      refuse(new QueryProblem('unavailable', 'too many queries of the tenant wait for their turn'))
      return list.value()
    } finally {
      // What has no room is not wanted.
      ended.abort()
    }
  }

  /** Returns what is wrong with the request. Rejects with faults alone. */
  async #fill(
    list: RecordList,
    args: Arguments,
    reader: Reader,
    history: RememberedHistory,
    ending: Pick<RunOptions, 'ended' | 'memory'>,
  ): Promise<QueryProblem | undefined> {
    const { section, clock, work, thread } = this.#services
    const begunMs = clock.monotonicMs()
    const { maxSamples, timeout } = section()
    const label = args.get('label')
    const asked = {
      name: 'texts',
      label: label === undefined ? undefined : String(label),
      match: String(args.get('match') ?? ''),
      range: rangeOf(args),
      after: String(args.get('after') ?? ''),
    } as const
    const limits = { maxSamples, timeoutMs: Math.min(timeout, MOST_MS) }
    try {
      const { pieces } = await thread.answer<readonly string[]>(
        { asked, tenant: reader.tenant, nowMs: clock.wallMs(), ...limits, waitedMs: 0 },
        { history: new ReadersHistory(history, reader, work), ...ending },
      )
      this.#count(args, reader, 'served', clock.monotonicMs() - begunMs)
      for await (const texts of pieces as AsyncIterable<readonly string[]>)
        if (!(await work.run(reader, filled(list, texts)))) break
      return undefined
    } catch (error) {
      const problem = problemOf(error)
      this.#count(args, reader, outcomeOf(problem), clock.monotonicMs() - begunMs)
      if (problem === undefined) throw error
      return problem
    }
  }

  #count(args: Arguments, reader: Reader, outcome: QueryOutcome, tookMs: number): void {
    const given = () => new URLSearchParams({ 'match[]': String(args.get('match') ?? '') })
    this.#services.outcomes.ended({ reader, path: metric.name, given, outcome, waitedMs: 0, tookMs })
  }
}

/** Returns whether all of them had room. */
function* filled(list: RecordList, texts: readonly string[]): Steps<boolean> {
  for (const text of texts) {
    if (!list.add([{ name: 'text', type: STRING, value: text }])) return false
    yield
  }
  return true
}

function rangeOf(args: Arguments): { readonly fromMs: number; readonly toMs: number } {
  const [from, to] = [args.get('from'), args.get('to')]
  return {
    fromMs: typeof from === 'bigint' ? Number(from / 1_000n) : EVER.fromMs,
    toMs: typeof to === 'bigint' ? Number(to / 1_000n) : EVER.toMs,
  }
}
