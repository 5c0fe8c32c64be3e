/**
 * `producer.history.select`: what is stored of metrics, page by page. A query that is not answered by one page goes on where it was:
 * all its pages show the state at its beginning. Rights are judged for each series, as for a QUERY of its metric.
 */
import { randomBytes } from 'node:crypto'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import { type Field, type Value, VOID } from '../../../protocol/monitor/value.ts'
import { prometheusLabel } from '../../../protocol/prometheus/names.ts'
import { type HistoryMatcher, type HistorySeries, matcherTextProblem } from '../../../storage/history/store.ts'
import type { Kit } from '../../kit/kit.ts'
import {
  type Arguments,
  type Measurement,
  type Metric,
  maySee,
  type Owner,
  type PolledSensor,
  RecordList,
  toForeign,
} from '../../kit/metrics.ts'
import { StatusError, type Steps } from '../../kit/running.ts'
import { SERVER } from './messages.ts'
import { type HistoryReader, mayReadSeries, ownerOf, readableLosses } from './readable.ts'
import type { HistoryReading } from './reading.ts'
import { type Shown, shownLoss, shownOf } from './select-records.ts'

const { ARRAY, BOOLEAN, STRING, UINT64 } = BasicType

const MICROSECONDS = 1_000
const HOUR_MS = 3_600_000
/** A year: no window is longer. */
const MOST_STEP_MS = 366n * 86_400_000n
/** A field `after` with a token. */
const AFTER_BYTES = 64
const TOKEN_BYTES = 16
/** A page that has taken so long ends. */
const PAGE_MS = 1_000
/** A query that nobody goes on with ends. */
const IDLE_MS = 60_000
/** Queries of one user, and of all, that may be gone on with; the oldest ends. */
const [MOST_OF_USER, MOST] = [4, 16]

const metric: Metric = {
  name: 'producer.history.select',
  kind: 'continuous',
  type: ARRAY,
  unit: '',
  description: 'What is stored of metrics: series with their samples.',
  parameters: [
    { name: 'metric', type: STRING, description: 'The name of a metric, here or in Prometheus, or a pattern.' },
    { name: 'from', type: UINT64, description: 'Not before this time, microseconds since 1970; an hour before `to`.' },
    { name: 'to', type: UINT64, description: 'Not after this time, microseconds since 1970; now.' },
    {
      name: 'step_ms',
      type: UINT64,
      description:
        'How far apart values may be: from 300,000 on windows, below that samples, and windows where they are gone.',
    },
    { name: 'with_losses', type: BOOLEAN, description: 'Whether ranges of loss are reported, too; false.' },
    {
      name: 'with_families',
      type: BOOLEAN,
      description: 'Whether it is reported what is known of metrics, too; false.',
    },
    { name: 'after', type: STRING, description: 'The next page of a query.' },
  ],
  takesLabels: true,
  exposition: 'none',
}
const ownArguments: ReadonlySet<string> = new Set(metric.parameters.map(({ name }) => name))

/** What it needs of the kit. */
export interface SelectServices {
  readonly clock: Pick<Kit['clock'], 'monotonicMs' | 'microseconds' | 'wallMs'>
  readonly poll: Pick<Kit['poll'], 'work'>
  readonly peer: { readonly view: Pick<Kit['peer']['view'], 'tenants' | 'readRights'> }
}

/** What is stored. */
export interface SelectedHistory {
  readonly reading: Pick<HistoryReading, 'select' | 'losses'>
  /** What has come is read by what is asked from now on. */
  freshen(): void
}

/** A query that is under way. */
interface Cursor {
  /** Another one for each page: one that comes again goes on with nothing. */
  token: string
  readonly userId: number
  readonly portions: AsyncGenerator<readonly Shown[], void, void>
  /** What has come and was not shown yet; of the first, the rows that were. */
  waiting: Shown[]
  shown: number
  usedMs: number
}

/** What is asked for, whoever's it is. */
interface Asked {
  readonly matchers: readonly HistoryMatcher[]
  readonly fromMs: number
  readonly toMs: number
  readonly stepMs: number | undefined
  readonly withLosses: boolean
  readonly withFamilies: boolean
}

export class SelectSensor implements PolledSensor {
  readonly polled = true
  readonly family = 'producer.'
  readonly owner: Owner = 'producer'
  readonly personal = true
  readonly #kit: SelectServices
  readonly #history: SelectedHistory
  /** By their tokens, the one that was used longest ago first. */
  readonly #cursors = new Map<string, Cursor>()

  constructor(kit: SelectServices, history: SelectedHistory) {
    this.#kit = kit
    this.#history = history
  }

  metrics(): Iterable<Metric> {
    return [metric]
  }

  metric(name: string): Metric | undefined {
    return name === metric.name ? metric : undefined
  }

  labels(): { readonly name: string } {
    return { name: metric.name }
  }

  check(_: Metric, args: Arguments): void {
    const after = args.get('after')
    if (after === undefined) {
      matchersOf(args)
      stepOf(args)
    } else if (!this.#cursors.has(String(after))) throw over()
  }

  /** VOID if the history is not there. */
  async measure(...[, args, reader]: Parameters<PolledSensor['measure']>): Promise<Measurement> {
    try {
      return { value: await this.#page(args, reader), time: this.#kit.clock.microseconds() }
    } catch (error) {
      if (!(error instanceof StatusError)) throw error
      return { value: VOID, time: this.#kit.clock.microseconds() }
    }
  }

  async #page(args: Arguments, reader: HistoryReader): Promise<Value> {
    const { clock, poll } = this.#kit
    const endMs = clock.monotonicMs() + PAGE_MS
    const after = args.get('after')
    const cursor = after === undefined ? this.#open(args, reader) : this.#take(String(after), reader)
    const list = new RecordList(AFTER_BYTES)
    while (!(await poll.work(reader, show(cursor, list)))) {
      const { done, value } = await cursor.portions.next()
      if (done === true) break
      for (const shown of value) cursor.waiting.push(shown)
      if (clock.monotonicMs() >= endMs && cursor.waiting.length === 0) list.more(afterOf(cursor))
    }
    if (list.isFull) this.#keep(cursor)
    return list.value()
  }

  /** Ends what nobody goes on with. To be called every second. */
  sweep(): void {
    const oldest = this.#kit.clock.monotonicMs() - IDLE_MS
    for (const cursor of this.#cursors.values()) if (cursor.usedMs < oldest) this.#end(cursor)
  }

  #open(args: Arguments, reader: HistoryReader): Cursor {
    const { clock, peer } = this.#kit
    const { tenants, readRights } = peer.view
    const toMs = timeOf(args, 'to') ?? clock.wallMs()
    const asked: Asked = {
      matchers: matchersOf(args),
      fromMs: timeOf(args, 'from') ?? toMs - HOUR_MS,
      toMs,
      stepMs: stepOf(args),
      withLosses: args.get('with_losses') === true,
      withFamilies: args.get('with_families') === true,
    }
    const owners = [...tenants(), SERVER].filter((tenant) => maySee(reader, ownerOf(tenant)))
    const rights = readRights(reader)
    this.#history.freshen()
    return {
      token: newCursorToken(),
      userId: reader.userId,
      portions: this.#portions(owners, asked, (tenant, series) => mayReadSeries(rights, tenant, series)),
      waiting: [],
      shown: 0,
      usedMs: clock.monotonicMs(),
    }
  }

  async *#portions(
    owners: readonly string[],
    { withLosses, ...range }: Asked,
    mayRead: (tenant: string, series: HistorySeries) => boolean,
  ): Cursor['portions'] {
    for (const tenant of owners) {
      if (withLosses) {
        const losses = await readableLosses(this.#history.reading, { tenant, ...range }, (series) =>
          mayRead(tenant, series),
        )
        yield losses.map((loss) => shownLoss(tenant, loss))
      }
      for await (const portion of this.#history.reading.select({ tenant, ...range, inPieces: true })) {
        yield portion.filter(({ series }) => mayRead(tenant, series)).flatMap((series) => shownOf(tenant, series))
      }
    }
  }

  /** It may be over since it was checked, or be another user's. An empty answer would look like the end of it. */
  #take(token: string, { userId }: HistoryReader): Cursor {
    const cursor = this.#cursors.get(token)
    if (cursor?.userId !== userId) throw over()
    this.#cursors.delete(token)
    cursor.token = newCursorToken()
    return cursor
  }

  #keep(cursor: Cursor): void {
    cursor.usedMs = this.#kit.clock.monotonicMs()
    this.#cursors.set(cursor.token, cursor)
    const ofUser = [...this.#cursors.values()].filter(({ userId }) => userId === cursor.userId)
    if (ofUser.length > MOST_OF_USER) this.#end(ofUser[0] as Cursor)
    for (const oldest of this.#cursors.values()) if (this.#cursors.size > MOST) this.#end(oldest)
  }

  #end(cursor: Cursor): void {
    this.#cursors.delete(cursor.token)
    // The thread may be gone, and with it the query.
    cursor.portions.return().catch(() => {})
  }
}

function newCursorToken(): string {
  return randomBytes(TOKEN_BYTES).toString('hex')
}

function over(): StatusError {
  return new StatusError('INVALID_ARGUMENT', '`after`: this query is over, or it was gone on with: begin again')
}

/** Adds what waits to a list. Returns whether that is full, or ends. */
function* show(cursor: Cursor, list: RecordList): Steps<boolean> {
  for (let first = cursor.waiting[0]; first !== undefined && !list.isFull; first = cursor.waiting[0]) {
    const end = Math.min(cursor.shown + first.most, first.rows)
    if (!list.add(first.record(cursor.shown, end), afterOf(cursor))) break
    cursor.shown = end
    if (end === first.rows) {
      cursor.waiting.shift()
      cursor.shown = 0
    }
    yield
  }
  return list.isFull
}

function afterOf({ token }: Cursor): Field[] {
  return [{ name: 'after', type: STRING, value: token }]
}

/** Milliseconds since 1970. */
function timeOf(args: Arguments, name: string): number | undefined {
  const given = args.get(name)
  return typeof given === 'bigint' ? Number(given / BigInt(MICROSECONDS)) : undefined
}

/** Throws StatusError INVALID_ARGUMENT. */
function stepOf(args: Arguments): number | undefined {
  const given = args.get('step_ms')
  if (typeof given !== 'bigint') return undefined
  if (given > MOST_STEP_MS)
    throw new StatusError('INVALID_ARGUMENT', `\`step_ms\`: ${given} is more than a year, which is ${MOST_STEP_MS}`)
  return Number(given)
}

/** Throws StatusError INVALID_ARGUMENT. */
function matchersOf(args: Arguments): HistoryMatcher[] {
  const name = args.get('metric')
  if (typeof name !== 'string' || name === '')
    throw new StatusError('INVALID_ARGUMENT', '`metric` is missing: the name of a metric, or a pattern')
  const labels = [...args].filter(([label]) => !ownArguments.has(label))
  const matchers = [matcherOf('__name__', name), ...labels.map(([label, text]) => labelMatcher(label, String(text)))]
  const problem = matcherTextProblem(matchers)
  if (problem === undefined) return matchers
  throw new StatusError('INVALID_ARGUMENT', `\`metric\` and labels: ${problem}`)
}

/** Of a label as it is named in Prometheus or at its source. */
export function labelMatcher(label: string, text: string): HistoryMatcher {
  return matcherOf(prometheusLabel(toForeign(label)), text)
}

/** A pattern of this protocol as an expression. */
export function matcherOf(label: string, text: string): HistoryMatcher {
  if (!text.includes('*')) return { label, operator: '=', text }
  const parts = text.split('*').map((part) => part.replace(/[\\^$.|?+()[\]{}]/g, '\\$&'))
  return { label, operator: '=~', text: parts.join('.*') }
}
