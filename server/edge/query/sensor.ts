/**
 * `producer.history.query` [MON 9.19]: an expression of Prometheus' language over the history, evaluated as for the HTTP API. Its
 * evaluation goes on while the consumer asks for the answer again and again, and ends when it does not: so a query that nobody
 * waits for any more is no work for anybody.
 */
import { randomBytes } from 'node:crypto'
import type { Owner, Reader } from '../../../auth/permissions.ts'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import { type Field, type Value, VOID } from '../../../protocol/monitor/value.ts'
import type { Clock, Timer } from '../../kernel/core/clock.ts'
import { StatusError } from '../../kernel/core/errors.ts'
import type { FairWork, Steps } from '../../kernel/core/fair-work.ts'
import { RecordList } from '../../kernel/metrics/measure.ts'
import type { Arguments, Labels, Measurement, Metric, PolledSensor } from '../../kernel/metrics/metric.ts'
import type { RememberedHistory } from '../../kit/history.ts'
import type { QuerySection } from '../config.ts'
import type { MemoryPlace } from '../memory-room.ts'
import { ReadersHistory } from './asked-history.ts'
import { outcomeOf, type QueryOutcome, type QueryOutcomes } from './outcomes.ts'
import { problemOf, QueryProblem } from './problems.ts'
import { problemRecord } from './records.ts'
import type { AskedTimes } from './run.ts'
import type { QueryThread } from './thread/query-thread.ts'
import type { QueryTurns } from './turns.ts'

const { ARRAY, BOOLEAN, STRING, UINT32, UINT64 } = BasicType

const MICROSECONDS = 1_000n
/** Expressions are no longer than this. */
const MAX_CHARACTERS = 50_000
/** A field `after` with a token. */
const AFTER_BYTES = 64
const TOKEN_BYTES = 16
/** An answer says after this time that there is none yet. */
const PATIENCE_MS = 1_000
/** A query that nobody asks for again ends: one that is evaluated soon, one whose answer is there later. */
const [ASKED_WITHIN_MS, IDLE_MS] = [10_000, 60_000]
/** Queries of one user, and of all, that may be gone on with, and what their results take in memory; the oldest ends. */
const [MOST_OF_USER, MOST, MOST_BYTES] = [16, 64, 64 * 2 ** 20]

const metric: Metric = {
  name: 'producer.history.query',
  kind: 'continuous',
  type: ARRAY,
  unit: '',
  description: "What an expression of Prometheus' language comes to over what is stored.",
  parameters: [
    { name: 'expr', type: STRING, description: 'The expression.' },
    { name: 'at', type: UINT64, description: 'The time of an instant query, microseconds since 1970; now.' },
    { name: 'from', type: UINT64, description: 'The first time of a range query, microseconds since 1970.' },
    { name: 'to', type: UINT64, description: 'Not after this time, microseconds since 1970; now.' },
    { name: 'step_ms', type: UINT64, description: 'The time between two values of a range query.' },
    { name: 'limit', type: UINT32, description: 'The most series of the answer; without it, all.' },
    { name: 'with_losses', type: BOOLEAN, description: 'Whether ranges of loss are reported, too; false.' },
    { name: 'after', type: STRING, description: 'The next part of an answer.' },
  ],
  exposition: 'none',
}

export interface QuerySensorServices {
  /** Undefined if nothing here remembers anything. */
  readonly history: RememberedHistory | undefined
  readonly turns: QueryTurns
  readonly thread: Pick<QueryThread, 'answer'>
  readonly outcomes: Pick<QueryOutcomes, 'ended'>
  /** The section in force. */
  readonly section: () => QuerySection
  readonly clock: Clock
  readonly work: Pick<FairWork, 'run'>
}

/** What a query has come to, in lists of records, and what it holds. */
interface Answered {
  readonly records: AsyncIterator<readonly Field[][]>
  readonly bytes: number
}

/** A query that is under way. */
interface Cursor {
  /** Another one for each answer: one that comes again goes on with nothing. */
  token: string
  readonly userId: number
  /** Aborted when nobody wants it any more. */
  readonly ended: AbortController
  /** Settles when it has been evaluated. */
  readonly evaluated: Promise<unknown>
  /** Lists of them; undefined until it has been evaluated. */
  records: AsyncIterator<readonly Field[][]> | undefined
  /** Records that have come and do not stand in an answer yet. */
  readonly come: Field[][]
  bytes: number
  timer: Timer | undefined
}

export class QuerySensor implements PolledSensor {
  readonly polled = true
  readonly family = 'producer.'
  readonly owner: Owner = 'producer'
  readonly personal = true
  readonly #services: QuerySensorServices
  /** By their tokens, the one that was used longest ago first. */
  readonly #cursors = new Map<string, Cursor>()

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

  check(_: Metric, args: Arguments): void {
    const after = args.get('after')
    if (after === undefined) {
      expressionOf(args)
      this.#timesOf(args)
    } else if (!this.#cursors.has(String(after))) throw over()
  }

  /** VOID if the history is not there. */
  async measure(_: Metric, args: Arguments, reader: Reader): Promise<Measurement> {
    const { history, clock } = this.#services
    const isThere = history !== undefined && history.problem === undefined
    const value = isThere ? await this.#answer(args, reader, history) : VOID
    return { value, time: clock.microseconds() }
  }

  async #answer(args: Arguments, reader: Reader, history: RememberedHistory): Promise<Value> {
    const { clock } = this.#services
    const after = args.get('after')
    const cursor = after === undefined ? this.#open(args, reader, history) : this.#take(String(after), reader)
    if (cursor === undefined) return VOID
    let timer: Timer | undefined
    const patience = new Promise<void>((resolve) => {
      timer = clock.setTimeout(resolve, PATIENCE_MS)
    })
    await Promise.race([cursor.evaluated, patience])
    clock.clear(timer)
    const list = new RecordList(AFTER_BYTES)
    if (cursor.records === undefined) list.more(afterOf(cursor.token))
    else await this.#fill(cursor, cursor.records, list, reader)
    if (list.isFull) this.#keep(cursor)
    return list.value()
  }

  /** Adds what there is to a list, until that is full. */
  async #fill(
    { come, token }: Cursor,
    records: AsyncIterator<readonly Field[][]>,
    list: RecordList,
    reader: Reader,
  ): Promise<void> {
    while (await this.#services.work.run(reader, filled(list, come, afterOf(token)))) {
      const { done, value } = await records.next()
      if (done === true) return
      come.push(...value)
    }
  }

  #open(args: Arguments, reader: Reader, history: RememberedHistory): Cursor {
    const ended = new AbortController()
    const evaluating = this.#evaluate(args, reader, history, ended.signal)
    const cursor: Cursor = {
      token: newToken(),
      userId: reader.userId,
      ended,
      evaluated: evaluating.then(({ records, bytes }) => {
        cursor.records = records
        cursor.bytes = bytes
      }),
      records: undefined,
      come: [],
      bytes: 0,
      timer: undefined,
    }
    // Whoever waits for it sees the fault.
    cursor.evaluated.catch(() => {})
    return cursor
  }

  /** Rejects with faults alone. */
  async #evaluate(args: Arguments, reader: Reader, history: RememberedHistory, ended: AbortSignal): Promise<Answered> {
    const { turns, thread, outcomes, section, clock, work } = this.#services
    const { tenant } = reader
    const { maxSamples, timeout: timeoutMs } = section()
    const text = expressionOf(args)
    const times = this.#timesOf(args)
    const limit = args.get('limit')
    const arrivedMs = clock.monotonicMs()
    let begunMs: number | undefined
    const count = (outcome: QueryOutcome): void => {
      const since = begunMs ?? clock.monotonicMs()
      const spent = { waitedMs: since - arrivedMs, tookMs: clock.monotonicMs() - since }
      outcomes.ended({ reader, path: metric.name, given: () => givenBy(text, times), outcome, ...spent })
    }
    const asked = {
      name: 'records',
      text,
      times,
      limit: typeof limit === 'number' && limit > 0 ? limit : Number.POSITIVE_INFINITY,
      withLosses: args.get('with_losses') === true,
    } as const
    let answer: Answered | undefined
    const act = async (place: MemoryPlace): Promise<void> => {
      begunMs = clock.monotonicMs()
      let bytes = 0
      const memory = {
        refused: place.refused,
        took(more: number): void {
          bytes += more
          place.took(more)
        },
      }
      try {
        const { pieces } = await thread.answer<readonly Field[][]>(
          { asked, tenant, nowMs: clock.wallMs(), maxSamples, timeoutMs, waitedMs: begunMs - arrivedMs },
          { history: new ReadersHistory(history, reader, work), ended, memory },
        )
        count('served')
        answer = { records: pieces[Symbol.asyncIterator](), bytes }
      } catch (error) {
        const problem = problemOf(error)
        count(outcomeOf(problem))
        if (problem === undefined) throw error
        answer = refused(problem, text)
      }
    }
    if (!(await turns.take(tenant, ended, act))) count(ended.aborted ? 'cancelled' : 'refused')
    return (
      answer ?? refused(new QueryProblem('unavailable', 'too many queries of the tenant wait for their turn'), text)
    )
  }

  /** Throws StatusError INVALID_ARGUMENT. */
  #timesOf(args: Arguments): AskedTimes {
    const { clock } = this.#services
    const [atMs, fromMs, toMs] = [timeOf(args, 'at'), timeOf(args, 'from'), timeOf(args, 'to')]
    const step = args.get('step_ms')
    if (fromMs === undefined && step === undefined && toMs === undefined) return { timeMs: atMs ?? clock.wallMs() }
    if (atMs !== undefined) throw invalid('`at` is of an instant query, `from`, `to` and `step_ms` are of a range')
    if (fromMs === undefined || typeof step !== 'bigint') throw invalid('a range needs both `from` and `step_ms`')
    if (step === 0n || step > BigInt(Number.MAX_SAFE_INTEGER)) throw invalid('`step_ms` is no length of time')
    const endMs = toMs ?? clock.wallMs()
    if (endMs < fromMs) throw invalid('`to` is before `from`')
    return { startMs: fromMs, endMs, stepMs: Number(step) }
  }

  /** It may be over since it was checked, or be another user's: an empty answer would look like the end of it. */
  #take(token: string, { userId }: Reader): Cursor | undefined {
    const cursor = this.#cursors.get(token)
    if (cursor?.userId !== userId) return undefined
    this.#forget(cursor)
    cursor.token = newToken()
    return cursor
  }

  #keep(cursor: Cursor): void {
    const { clock } = this.#services
    const waitsMs = cursor.records === undefined ? ASKED_WITHIN_MS : IDLE_MS
    cursor.timer = clock.setTimeout(() => this.#end(cursor), waitsMs)
    this.#cursors.set(cursor.token, cursor)
    const ofUser = [...this.#cursors.values()].filter(({ userId }) => userId === cursor.userId)
    if (ofUser.length > MOST_OF_USER) this.#end(ofUser[0] as Cursor)
    let bytes = [...this.#cursors.values()].reduce((sum, one) => sum + one.bytes, 0)
    for (const oldest of this.#cursors.values()) {
      if (this.#cursors.size <= MOST && (bytes <= MOST_BYTES || oldest === cursor)) break
      bytes -= oldest.bytes
      this.#end(oldest)
    }
  }

  #forget(cursor: Cursor): void {
    this.#cursors.delete(cursor.token)
    this.#services.clock.clear(cursor.timer)
  }

  #end(cursor: Cursor): void {
    this.#forget(cursor)
    cursor.ended.abort()
  }
}

/** Moves records to a list, until that is full; returns whether there is room for more. */
function* filled(list: RecordList, come: Field[][], after: Field[]): Steps<boolean> {
  for (let next = come[0]; next !== undefined; next = come[0]) {
    if (!list.add(next, after)) return false
    come.shift()
    yield
  }
  return true
}

async function* inOneList(record: Field[]): AsyncGenerator<readonly Field[][], void, void> {
  yield [record]
}

function refused(problem: QueryProblem, text: string): Answered {
  return { records: inOneList(problemRecord(problem, text)), bytes: 0 }
}

function newToken(): string {
  return randomBytes(TOKEN_BYTES).toString('hex')
}

function afterOf(token: string): Field[] {
  return [{ name: 'after', type: STRING, value: token }]
}

function over(): StatusError {
  return invalid('`after`: this query is over, or it was gone on with: begin again')
}

function invalid(problem: string): StatusError {
  return new StatusError('INVALID_ARGUMENT', problem)
}

/** Throws StatusError INVALID_ARGUMENT. */
function expressionOf(args: Arguments): string {
  const text = args.get('expr')
  if (typeof text !== 'string' || text === '') throw invalid('`expr` is missing: an expression such as rate(up[5m])')
  if (text.length > MAX_CHARACTERS) throw invalid(`\`expr\` has more than ${MAX_CHARACTERS} characters`)
  return text
}

/** Milliseconds since 1970. */
function timeOf(args: Arguments, name: string): number | undefined {
  const given = args.get(name)
  return typeof given === 'bigint' ? Number(given / MICROSECONDS) : undefined
}

/** What the log says was asked for. */
function givenBy(query: string, times: AskedTimes): URLSearchParams {
  if ('timeMs' in times) return new URLSearchParams({ query, time: String(times.timeMs / 1_000) })
  const { startMs, endMs, stepMs } = times
  const [start, end, step] = [startMs, endMs, stepMs].map((ms) => String(ms / 1_000)) as [string, string, string]
  return new URLSearchParams({ query, start, end, step })
}
