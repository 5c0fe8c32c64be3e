import { beforeEach, describe, expect, it } from 'vitest'
import { ConnectionError, type Consumer, StatusError } from '../../client/browser.ts'
import { COLUMNS, type ColumnCells, Columns } from '../../console/columns.ts'
import { joinSeries } from '../../console/joined-series.ts'
import { HistoryReads, hasHistory, LineHistory } from '../../console/line-history.ts'
import { Samples } from '../../console/samples.ts'
import type { LineArguments, WatchedSeries } from '../../console/series-watch.ts'

const DAY = 86_400
const NOW = 1_700_000_000
const RANGE = { from: NOW - DAY, to: NOW }
const PAGE = 1_000

interface Stored {
  readonly metric: string
  readonly labels: LineArguments
  readonly times: readonly number[]
  readonly values: readonly number[]
}

/** A server that remembers, and answers in pages. */
class FakeConsumer {
  stored: readonly Stored[] = []
  /** In windows, and with which losses. */
  windows: readonly object[] = []
  losses: readonly { readonly from: number; readonly to: number }[] = []
  isOff = false
  refusal: Error | undefined
  /** How often a question is forgotten before its second page. */
  forgets = 0
  pages = 0
  readonly asked: Readonly<Record<string, unknown>>[] = []
  capabilities = { producer: { id: '01', name: 'main' }, below: [] as { id: string; name: string }[] }
  readonly #cursors = new Map<string, readonly object[]>()

  on(): () => void {
    return () => {}
  }

  async query(_: string, args: Readonly<Record<string, unknown>>): Promise<{ plain: unknown }> {
    await Promise.resolve()
    if (this.refusal !== undefined) throw this.refusal
    if (this.isOff) return { plain: null }
    this.pages++
    const after = args['after']
    if (typeof after === 'string') return { plain: this.#page(this.#taken(after)) }
    this.asked.push(args)
    const losses = this.losses.filter(({ from, to }) => to >= Number(args['from']) && from <= Number(args['to']))
    const samples = this.#select(Number(args['from']) / 1e6, Number(args['to']) / 1e6)
    return { plain: this.#page([...losses, ...this.windows, ...samples]) }
  }

  #taken(after: string): readonly object[] {
    const left = this.#cursors.get(after)
    this.#cursors.delete(after)
    if (left === undefined || this.forgets-- > 0) throw new StatusError('QUERY', 6, 'this query is over')
    return left
  }

  #select(from: number, to: number): readonly object[] {
    return this.stored.flatMap(({ metric, labels, times, values }) => {
      const chosen = times.map((_, index) => index).filter((index) => times[index]! >= from && times[index]! <= to)
      const records: object[] = []
      for (let at = 0; at < chosen.length; at += PAGE) {
        const part = chosen.slice(at, at + PAGE)
        records.push({
          tenant: '',
          metric,
          name: metric,
          labels,
          times: part.map((index) => times[index]! * 1e6),
          values: part.map((index) => values[index]),
          ended: [],
        })
      }
      return records
    })
  }

  /** Two records at once. */
  #page(records: readonly object[]): readonly object[] {
    if (records.length <= 2) return records
    const after = `cursor${this.pages}`
    this.#cursors.set(after, records.slice(2))
    return [...records.slice(0, 2), { more: true, after }]
  }
}

function every(
  seconds: number,
  from: number,
  to: number,
  of: (time: number) => number = () => 1,
): Pick<Stored, 'times' | 'values'> {
  const times = Array.from({ length: Math.floor((to - from) / seconds) }, (_, index) => from + index * seconds)
  return { times, values: times.map(of) }
}

function lineOf(columns: Columns | undefined): (number | null)[] {
  const cells: ColumnCells = { line: [], low: [], high: [] }
  columns?.draw(cells, false)
  return cells.line.filter((cell) => cell !== undefined)
}

describe('LineHistory', () => {
  let consumer: FakeConsumer
  const clock = { nowMs: NOW * 1_000 }
  const historyOf = (metric = 'test.a', args: LineArguments = {}): LineHistory =>
    new LineHistory(consumer as unknown as Consumer, metric, args, clock, new HistoryReads())
  beforeEach(() => {
    consumer = new FakeConsumer()
    clock.nowMs = NOW * 1_000
  })

  it('reads a range page by page, the newest part first, each column once', async () => {
    consumer.stored = [{ metric: 'test.a', labels: { host: 'h1' }, ...every(10, RANGE.from, RANGE.to) }]
    const history = historyOf()
    await history.read(RANGE)
    const { value: state } = history.state
    expect(state).toMatchObject({ kind: 'read', more: 0, since: undefined })
    const [series] = state.kind === 'read' ? state.series : []
    expect(series).toMatchObject({ metric: 'test.a', labels: { host: 'h1' } })
    expect(lineOf(series?.columns)).toEqual(Array(COLUMNS).fill(1))
    const froms = consumer.asked.map(({ from }) => Number(from))
    expect(froms).toEqual(froms.toSorted((a, b) => b - a))
    expect(froms.at(-1)).toBe(RANGE.from * 1e6)
    // Some of it needed several pages.
    expect(consumer.pages).toBeGreaterThan(consumer.asked.length)
  })

  it('asks for nothing finer than a column, and draws windows in their places, each once', async () => {
    const length = 2 * 365 * DAY
    const range = { from: NOW - length, to: NOW }
    const starts = Array.from({ length: 2 * COLUMNS }, (_, index) => range.from + (index * length) / (2 * COLUMNS))
    const each = (of: (start: number) => number): number[] => starts.map(of)
    consumer.windows = [
      {
        ...{ tenant: '', metric: 'test.a', name: 'test_a', labels: {}, step_ms: 300_000, ends: each((start) => start) },
        ...{ min: each(() => 1), max: each(() => 9), sum: each(() => 40), count: each(() => 10) },
        ...{ first: each(() => 1), first_times: each((start) => (start + 10) * 1e6) },
        ...{ last: each(() => 2), last_times: each((start) => (start + 60) * 1e6), resets: each(() => 0) },
      },
    ]
    const history = historyOf()
    await history.read(range)
    expect(consumer.asked.length).toBeGreaterThan(1)
    expect(consumer.asked[0]).toMatchObject({
      step_ms: BigInt(Math.floor((1e3 * length) / COLUMNS)),
      with_losses: true,
    })
    const { value: state } = history.state
    const columns = state.kind === 'read' ? state.series[0]?.columns : undefined
    const cells: ColumnCells = { line: [], low: [], high: [] }
    columns?.draw(cells, false)
    const numbers = (all: ColumnCells['line']) => all.filter((cell) => typeof cell === 'number')
    expect([numbers(cells.line), numbers(cells.low), numbers(cells.high)].map((all) => [all.length, all[0]])).toEqual([
      [COLUMNS, 4],
      [COLUMNS, 1],
      [COLUMNS, 9],
    ])
  })

  it('knows what is missing, once, also of what was read before', async () => {
    const loss = (from: number, count: number) => {
      const range = { from: from * 1e6, to: (from + 7_200) * 1e6, lost: count }
      return { tenant: 'acme', metric: 'test.*', ...range, reason: 'overflow' }
    }
    consumer.losses = [loss(RANGE.from - 3_600, 1), loss(NOW - 40_000, 7)]
    const history = historyOf()
    await history.read(RANGE)
    const { value: state } = history.state
    const losses = state.kind === 'read' ? state.losses : []
    const reason = 'test.*: overflow'
    expect(losses.toSorted((a, b) => a.from - b.from)).toEqual([
      { from: RANGE.from - 3_600, to: RANGE.from + 3_600, count: 1, reason },
      { from: NOW - 40_000, to: NOW - 32_800, count: 7, reason },
    ])
    consumer.stored = []
    clock.nowMs += (DAY / 10) * 1_000
    await history.read({ from: RANGE.from + DAY / 10, to: RANGE.to + DAY / 10 })
    expect(history.state.value).toMatchObject({ kind: 'read', losses: [{ from: NOW - 40_000 }] })
  })

  it('reads only what is new when the range has moved on', async () => {
    consumer.stored = [{ metric: 'test.a', labels: {}, ...every(10, RANGE.from, RANGE.to + DAY) }]
    const history = historyOf()
    await history.read(RANGE)
    const [series] = history.state.value.kind === 'read' ? history.state.value.series : []
    consumer.asked.length = 0
    clock.nowMs += (DAY / 10) * 1_000
    await history.read({ from: RANGE.from + DAY / 10, to: RANGE.to + DAY / 10 })
    expect(consumer.asked.length).toBe(1)
    expect(Number(consumer.asked[0]?.['from']) / 1e6).toBeGreaterThan(NOW - DAY / COLUMNS - 60)
    // It is the same object, so that a chart may hold on to it.
    expect(history.state.value).toMatchObject({ kind: 'read' })
    expect(history.state.value.kind === 'read' && history.state.value.series[0]).toBe(series)
    expect(lineOf(series?.columns).length).toBe(COLUMNS)
    expect(new Set(lineOf(series?.columns))).toEqual(new Set([1]))
  })

  it('counts each sample once, also where two parts meet and the place of a sample is rounded', async () => {
    // A column is 0.55 s: of 495 of them, 272.25 s, the quotient is less than 495.
    const range = { from: NOW - 286, to: NOW }
    const times = Array.from({ length: 286 * 20 }, (_, index) => range.from + index / 20)
    consumer.stored = [{ metric: 'test.a', labels: {}, times, values: times.map((_, index) => index) }]
    const history = historyOf()
    await history.read(range)
    const [series] = history.state.value.kind === 'read' ? history.state.value.series : []
    const whole = new Columns({ from: range.from - 1, to: range.from - 1 + COLUMNS * 1_000 })
    if (series !== undefined) whole.take(series.columns)
    expect(lineOf(whole)).toEqual([(times.length - 1) / 2])
  })

  it('reads nothing while those who draw it have what has come since', async () => {
    consumer.stored = [{ metric: 'test.a', labels: {}, ...every(10, RANGE.from, RANGE.to) }]
    const history = historyOf()
    const until = (tenths: number) => ({ from: RANGE.from + (tenths * DAY) / 10, to: RANGE.to + (tenths * DAY) / 10 })
    await history.read(until(1))
    consumer.asked.length = 0
    clock.nowMs += 1_000_000
    await history.read(until(1))
    await history.read(until(2))
    expect(consumer.asked).toEqual([])
    // The connection was lost meanwhile.
    await history.read(until(2), true)
    expect(consumer.asked.length).toBe(1)
    clock.nowMs += 2_000_000
    await history.read(until(3))
    expect(consumer.asked.length).toBe(2)
  })

  it('reads what follows a time that was over', async () => {
    consumer.stored = [{ metric: 'test.a', labels: {}, ...every(10, RANGE.from - DAY, RANGE.to) }]
    const history = historyOf()
    for (const days of [-1, -0.5, 0]) {
      await history.read({ from: RANGE.from + days * DAY, to: RANGE.to + days * DAY })
      const [series] = history.state.value.kind === 'read' ? history.state.value.series : []
      expect(lineOf(series?.columns)).toEqual(Array(COLUMNS).fill(1))
    }
  })

  it('reads all of it again when another time is shown', async () => {
    consumer.stored = [{ metric: 'test.a', labels: {}, ...every(10, RANGE.from, RANGE.to) }]
    const history = historyOf()
    await history.read(RANGE)
    consumer.asked.length = 0
    const range = { from: NOW - 7_200, to: NOW - 3_600 }
    await history.read(range)
    expect(Number(consumer.asked.at(-1)?.['from']) / 1e6).toBe(range.from)
  })

  it('says where it stopped if there is more than it may read, and shows what is newer', async () => {
    const many = Array.from({ length: 100 }, (_, index) => ({
      metric: 'test.a',
      labels: { index: String(index) },
      ...every(10, RANGE.from, RANGE.from + DAY / 100),
    }))
    // A series that seems to have a hundred thousand samples in each record.
    const times = Array(100_000).fill((NOW - 10 * 3_600) * 1e6)
    consumer.query = ((query) => async (name: string, args: Readonly<Record<string, unknown>>) => {
      const { plain } = await query(name, args)
      const isOld = Number(args['from']) / 1e6 < NOW - 12 * 3_600
      return {
        plain: isOld
          ? Array.from({ length: 50 }, () => ({
              metric: 'test.a',
              name: 'a',
              labels: {},
              times,
              values: times,
              ended: [],
            }))
          : plain,
      }
    })(consumer.query.bind(consumer))
    consumer.stored = [...many, { metric: 'test.a', labels: { index: 'new' }, ...every(10, NOW - 3_600, NOW) }]
    const history = historyOf()
    await history.read(RANGE)
    const state = history.state.value
    expect(state.kind).toBe('read')
    expect(state.kind === 'read' && state.since).toBeGreaterThan(RANGE.from)
    const series = state.kind === 'read' ? state.series : []
    expect(series.map(({ labels }) => labels)).toEqual([{ index: 'new' }])
    // It stays so when the range moves on, until the range is newer than that.
    const since = state.kind === 'read' ? state.since : undefined
    clock.nowMs += 1_000 * (DAY / 10)
    await history.read({ from: RANGE.from + DAY / 10, to: RANGE.to + DAY / 10 })
    expect(history.state.value).toMatchObject({ kind: 'read', since })
  })

  it('begins a part again that the server has forgotten, and adds nothing twice', async () => {
    consumer.stored = [{ metric: 'test.a', labels: {}, ...every(1, NOW - 3_600, NOW, (time) => time % 2) }]
    consumer.forgets = 1
    const history = historyOf()
    await history.read({ from: NOW - 3_600, to: NOW })
    const [series] = history.state.value.kind === 'read' ? history.state.value.series : []
    expect(lineOf(series?.columns).length).toBe(COLUMNS)
    expect(history.state.value).toMatchObject({ kind: 'read' })
  })

  it('says why it cannot be read', async () => {
    consumer.refusal = new StatusError('QUERY', 11, 'no')
    const history = historyOf()
    await history.read(RANGE)
    expect(history.state.value.kind).toBe('refused')
  })

  it('gives up for another range, and when it ends', async () => {
    consumer.stored = [{ metric: 'test.a', labels: {}, ...every(10, RANGE.from, RANGE.to) }]
    const history = historyOf()
    const [first, second] = [history.read(RANGE), history.read({ from: NOW - 3_600, to: NOW })]
    await Promise.all([first, second])
    expect(history.state.value).toMatchObject({ kind: 'read' })
    expect(Math.min(...consumer.asked.map(({ from }) => Number(from) / 1e6))).toBe(NOW - 3_600)
    history.end()
  })

  it('asks for the whole of what the machine of the server measures, or for its parts', async () => {
    consumer.stored = [
      { metric: 'host.cpu.user', labels: { host: 'main' }, ...every(10, NOW - 100, NOW) },
      { metric: 'host.cpu.user', labels: { host: 'main', cpu: '0' }, ...every(10, NOW - 100, NOW) },
    ]
    await historyOf('host.cpu.user', { host: 'main', interval_ms: '1000' }).read(RANGE)
    expect(consumer.asked[0]).toMatchObject({ host: 'main', cpu: '', mount: '' })
    expect(consumer.asked[0]).not.toHaveProperty('interval_ms')
    const parts = historyOf('host.cpu.user', { cpu: '*' })
    await parts.read(RANGE)
    const { value } = parts.state
    expect(value.kind === 'read' && value.series.map(({ labels }) => labels['cpu'])).toEqual(['0'])
  })

  it('asks another server for what that remembers, and several for nothing', async () => {
    const history = historyOf('test.a', { producer: 'rack1' })
    await history.read(RANGE)
    expect(history.state.value.kind).toBe('read')
    expect(consumer.asked.length).toBeGreaterThan(0)
    expect(consumer.asked.every(({ producer }) => producer === 'rack1')).toBe(true)
    const before = consumer.pages
    const all = historyOf('test.a', { producer: '*' })
    await all.read(RANGE)
    expect([all.state.value.kind, consumer.pages]).toEqual(['elsewhere', before])
  })

  it('leaves out what a server remembers for those below it', async () => {
    const series = (labels: Record<string, string>) => ({ metric: 'test.a', labels, ...every(10, NOW - 100, NOW) })
    consumer.capabilities.below.push({ id: '02', name: 'rack1' })
    consumer.stored = [series({ host: 'a' }), series({ host: 'b', producer: 'rack1' }), series({ producer: 'kafka' })]
    const history = historyOf('test.a', {})
    await history.read(RANGE)
    const { value } = history.state
    expect(value.kind === 'read' && value.series.map(({ labels }) => labels)).toEqual([
      { host: 'a' },
      { producer: 'kafka' },
    ])
  })

  it('is there if the server answers with a list', async () => {
    const { signal } = new AbortController()
    const ask = () => hasHistory(consumer as unknown as Consumer, signal)
    expect(await ask()).toBe(true)
    consumer.isOff = true
    expect(await ask()).toBe(false)
    consumer.refusal = new StatusError('QUERY', 7, 'no')
    expect(await ask()).toBe(false)
    consumer.refusal = new ConnectionError('CLOSED', 'over')
    const abort = new AbortController()
    abort.abort(new Error('left'))
    await expect(hasHistory(consumer as unknown as Consumer, abort.signal)).rejects.toThrow()
  })
})

describe('the series of a chart', () => {
  const live = (labels: LineArguments, metric = 'test.a'): WatchedSeries =>
    ({ metric, labels, samples: new Samples(), holes: [] }) as unknown as WatchedSeries
  const past = (labels: LineArguments, metric = 'test.a') => ({
    metric,
    name: metric,
    labels,
    columns: new Columns(RANGE),
  })

  it('are those of now with what is remembered of each, and those that are remembered alone', () => {
    const remembered = [
      past({ host: 'h1', job_name: 'x' }),
      past({ host: 'h2', job_name: 'x' }),
      past({ host: 'h1' }, 'test.b'),
    ]
    const joined = joinSeries([live({ 'job.name': 'x', host: 'h1' })], remembered, {})
    expect(joined.map(({ past }) => past)).toEqual(remembered)
    expect(joined.map(({ series }) => series.labels)).toEqual([
      { 'job.name': 'x', host: 'h1' },
      { host: 'h2', job_name: 'x' },
      { host: 'h1' },
    ])
  })

  it('have labels that an argument fixes on neither side', () => {
    const [only, ...others] = joinSeries([live({})], [past({ host: 'main' })], { host: 'main', interval_ms: '1000' })
    expect([only?.past?.labels, others.length]).toEqual([{ host: 'main' }, 0])
    const [silent] = joinSeries([], [past({ host: 'main', cpu: '0' })], { host: 'main', cpu: '*' })
    expect(silent?.series.labels).toEqual({ cpu: '0' })
  })
})
