/** Expressions over the protocol: what they come to, for whom, what is wrong with one, and how a long answer goes on. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Reader } from '../../../../auth/permissions.ts'
import { XdrWriter } from '../../../../protocol/bytes/writer.ts'
import { BasicType } from '../../../../protocol/monitor/constants.ts'
import { writeTyped } from '../../../../protocol/monitor/value.ts'
import type { EndedQuery } from '../../../../server/edge/query/outcomes.ts'
import { QuerySensor } from '../../../../server/edge/query/sensor.ts'
import { QueryThread } from '../../../../server/edge/query/thread/query-thread.ts'
import { QueryTurns } from '../../../../server/edge/query/turns.ts'
import { finish } from '../../../../server/kernel/core/fair-work.ts'
import type { Arguments, Measurement } from '../../../../server/kernel/metrics/metric.ts'
import type {
  LossesAsked,
  RememberedHistory,
  RememberedLoss,
  RememberedSeries,
} from '../../../../server/kit/history.ts'
import { defaultConfig } from '../../../../server/start/config.ts'
import { done, newToken, tokenSeat } from '../../../support/administration.ts'
import { args, command, str, type, u64 } from '../../../support/bytes.ts'
import { eventually } from '../../../support/eventually.ts'
import { FakeClock } from '../../../support/fake-clock.ts'
import { EPOCH, TestProducer } from '../../../support/producer.ts'
import { decoded } from '../../../support/records.ts'
import type { Seat } from '../../../support/seat.ts'
import { PushSensor } from '../../../support/test-sensor.ts'

const QUERY = 'producer.history.query'
const EVER_MS = 36_500 * 86_400_000
const SECOND = 1_000_000

type Given = Readonly<Record<string, string | number>>

function listOf(given: Given): Uint8Array {
  return args(
    ...Object.entries(given).map(([name, content]) =>
      typeof content === 'string'
        ? ([name, type.string, str(content)] as const)
        : ([name, type.uint64, u64(content)] as const),
    ),
  )
}

describe('a server', () => {
  let producer: TestProducer
  let root: Seat
  beforeAll(async () => {
    let north: PushSensor | undefined
    producer = await TestProducer.start({
      config: {
        history: {
          ...defaultConfig().history,
          keepMs: EVER_MS,
          keepRollupsMs: EVER_MS,
          metrics: ['test.*'],
          resolutionMs: 0,
        },
      },
      sensors: (hub) => {
        north = new PushSensor(hub, 'test.', { tenant: 'north' })
      },
    })
    await producer.addUser('root', { role: 'admin' })
    await producer.addUser('ann', { tenant: 'north' })
    await producer.addUser('bob', { role: 'limited' })
    root = await producer.seat('root')
    await done(root, 'role.deny', { role: 'limited', command: 'COLLECT', object: 'test.a', where: 'host=h2' })
    await settled(async () => {
      const sensors = decoded(await root.query('producer.sensors')) as { name: string; state: string }[]
      const ours = sensors.filter(({ name }) => name.startsWith('history/'))
      expect(ours.map(({ state }) => state)).toEqual(['recording', 'recording'])
    })
    const push = (sensor: PushSensor | undefined, value: number, seconds: number, host: string) =>
      sensor?.push('test.a', { type: BasicType.DOUBLE, value }, EPOCH + seconds * SECOND, host)
    push(producer.push, 1, 0, 'h1')
    push(producer.push, 2, 60, 'h1')
    push(producer.push, 30, 60, 'h2')
    push(north, 500, 60, 'h1')
    await settled(async () => {
      const channels = decoded(await root.query('producer.channels')) as unknown as Record<string, string>[]
      const ours = channels.filter(({ name }) => name === 'history:')
      expect(ours.reduce((sum, { committed }) => sum + Number(committed), 0)).toBe(4)
    })
  })
  afterAll(() => producer.stop())

  async function settled(holds: () => Promise<void>): Promise<void> {
    await eventually(async () => {
      producer.clock.advance(1_000)
      await producer.settle()
      await holds()
    })
  }

  async function answerOf(seat: Seat, given: Given): Promise<unknown[]> {
    return decoded(await seat.query(QUERY, listOf(given))) as unknown as unknown[]
  }

  const at = EPOCH + 61 * SECOND

  it('evaluates at a time', async () => {
    const [summary, ...series] = await answerOf(root, { expr: 'test_a', at })
    expect(summary).toMatchObject({ type: 'vector', series: 2, samples: 3, warnings: [], infos: [] })
    expect(series).toEqual([
      { name: 'test_a', labels: { host: 'h1' }, times: [at], values: [2] },
      { name: 'test_a', labels: { host: 'h2' }, times: [at], values: [30] },
    ])
    expect((await answerOf(root, { expr: '1 + 1', at })).slice(1)).toEqual([
      { name: '', labels: {}, times: [at], values: [2] },
    ])
    expect(await answerOf(root, { expr: '"x"', at })).toEqual([expect.objectContaining({ type: 'string', text: 'x' })])
  })

  it('evaluates over a range', async () => {
    const range = { from: EPOCH, to: EPOCH + 90 * SECOND, step_ms: 30_000 }
    const [summary, ...series] = await answerOf(root, { expr: 'sum(test_a)', ...range })
    expect(summary).toMatchObject({ type: 'matrix', series: 1 })
    const times = [0, 30, 60, 90].map((seconds) => EPOCH + seconds * SECOND)
    expect(series).toEqual([{ name: '', labels: {}, times, values: [1, 1, 32, 32] }])
  })

  it('shows each what the same user may COLLECT, and of several series as many as are wanted', async () => {
    const sumFor = async (seat: Seat) => (await answerOf(seat, { expr: 'sum(test_a)', at })).slice(1)
    expect(await sumFor(await producer.seat('ann', 'north'))).toMatchObject([{ values: [500] }])
    expect(await sumFor(await producer.seat('bob'))).toMatchObject([{ values: [2] }])
    const { token, hash } = newToken()
    await done(root, 'token.add', { user: 'bob', hash, scope: 'COLLECT test.b;COLLECT producer.*' })
    expect(await sumFor(await tokenSeat(producer, token))).toEqual([])
    const [summary, ...series] = await answerOf(root, { expr: 'test_a', at, limit: 1 })
    expect(summary).toMatchObject({ series: 1, warnings: ['results truncated due to limit'] })
    expect(series).toHaveLength(1)
  })

  it('says what is wrong with an expression, and where', async () => {
    const [problem, ...rest] = await answerOf(root, { expr: 'sum("é") + nothing(x)', at })
    expect(rest).toEqual([])
    expect(problem).toEqual({
      error_type: 'bad_data',
      error: expect.stringContaining('1:12: parse error: unknown function with name "nothing"'),
      error_from: 11,
      error_to: 18,
    })
    expect(await answerOf(root, { expr: 'test_a[5m]', from: EPOCH, to: at, step_ms: 1_000 })).toEqual([
      { error_type: 'bad_data', error: expect.stringContaining('invalid expression type "range vector"') },
    ])
    expect(await answerOf(root, { expr: 'test_a', from: EPOCH, to: at + 12_000 * SECOND, step_ms: 1_000 })).toEqual([
      { error_type: 'bad_data', error: expect.stringContaining('exceeded maximum resolution') },
    ])
  })

  it('refuses arguments that make no sense', async () => {
    const detailOf = async (given: Given) => (await root.ask((seq) => command.query(seq, QUERY, listOf(given)))).detail
    expect(await detailOf({})).toContain('`expr` is missing')
    expect(await detailOf({ expr: 'x'.repeat(50_001) })).toContain('more than 50000 characters')
    expect(await detailOf({ expr: 'x', at, step_ms: 1 })).toContain('`at` is of an instant query')
    expect(await detailOf({ expr: 'x', from: EPOCH })).toContain('a range needs both `from` and `step_ms`')
    expect(await detailOf({ expr: 'x', from: EPOCH, step_ms: 0 })).toContain('`step_ms` is no length of time')
    expect(await detailOf({ expr: 'x', from: at, to: EPOCH, step_ms: 1 })).toContain('`to` is before `from`')
    expect(await detailOf({ after: 'x' })).toContain('begin again')
  })

  it('says which labels there are, and which texts', async () => {
    const textsFor = async (seat: Seat, given: Given) =>
      (decoded(await seat.query('producer.history.labels', listOf(given))) as unknown as { text: string }[]).map(
        ({ text }) => text,
      )
    const bob = await producer.seat('bob')
    expect(await textsFor(root, {})).toEqual(['__name__', 'host'])
    expect(await textsFor(root, { label: '__name__' })).toEqual(['test_a'])
    expect(await textsFor(root, { label: 'host', match: 'test_a' })).toEqual(['h1', 'h2'])
    expect(await textsFor(root, { label: 'host', match: 'test_a', after: 'h1' })).toEqual(['h2'])
    expect(await textsFor(root, { label: 'host', match: 'test_a{host!="h1"}' })).toEqual(['h2'])
    expect(await textsFor(root, { label: 'host', from: EPOCH, to: EPOCH + SECOND })).toEqual(['h1'])
    expect(await textsFor(bob, { label: 'host' })).toEqual(['h1'])
    expect(decoded(await root.query('producer.history.labels', listOf({ match: 'sum(x)' })))).toEqual([
      { error_type: 'bad_data', error: '`match` is no selector such as up{job="a"}' },
    ])
    expect(decoded(await root.query('producer.history.labels', listOf({ match: 'x{' })))).toEqual([
      expect.objectContaining({ error_type: 'bad_data', error: expect.stringContaining('1:3: parse error') }),
    ])
  })

  it('counts them with those that come by HTTP', async () => {
    const counts = decoded(await root.query('producer.queries')) as unknown as Record<string, unknown>[]
    expect(counts).toContainEqual(expect.objectContaining({ tenant: 'default', served: expect.any(Number), failed: 5 }))
  })
})

describe('a query that takes its time', () => {
  const SERIES = 20
  const SAMPLES = 11_000
  const reader = { userId: 1, tenant: 'default', name: 'ann', role: 'consumer' }
  let clock: FakeClock
  let thread: QueryThread
  let sensor: QuerySensor
  /** Gives the series that are waited for; undefined if nobody waits. */
  let go: (() => void) | undefined
  let isReady: boolean
  let ended: EndedQuery[]
  beforeEach(() => {
    clock = new FakeClock()
    thread = new QueryThread(clock)
    go = undefined
    isReady = false
    ended = []
    sensor = sensorOf({
      problem: undefined,
      unreadable: undefined,
      select,
      current: async () => undefined,
      families,
      losses,
      backUp: async () => undefined,
      caughtUp,
    })
  })

  afterEach(() => thread.close())

  async function* families(): ReturnType<RememberedHistory['families']> {}

  const caughtUp = async (): Promise<void> => {}

  function sensorOf(history: RememberedHistory): QuerySensor {
    return new QuerySensor({
      history,
      turns: new QueryTurns(4, clock),
      thread,
      outcomes: { ended: (query) => void ended.push(query) },
      section: () => defaultConfig().query,
      clock,
      work: { run: (_, steps) => finish(steps) },
    })
  }

  /** Gives the series when the test says so. */
  async function* select(): AsyncGenerator<readonly RememberedSeries[], void, void> {
    await new Promise<void>((resolve) => {
      if (isReady) resolve()
      else go = resolve
    })
    for (let number = 0; number < SERIES; number++) {
      // The memory of a column goes over to whoever asked for it.
      const times = Float64Array.from({ length: SAMPLES }, (_, at) => at * 1_000)
      const labels = [['n', String(number).padStart(2, '0')]] as const
      yield [{ series: { name: 'test_a', labels }, times, values: times, mayRead: () => true }] as never
    }
  }

  /** Of each selector the same. */
  async function losses(_: Reader, { fromMs, toMs }: LossesAsked): Promise<readonly RememberedLoss[]> {
    const ofMetric = { tenant: 'north', metric: 'test.a', fromMs, toMs, count: 3, reason: 'overflow' }
    return [ofMetric, { ...ofMetric, tenant: '', metric: '', fromMs: fromMs - 1, count: 0 }]
  }

  interface Page {
    readonly records: readonly Record<string, unknown>[]
    readonly after?: string
    readonly isVoid?: true
  }

  async function ask(list: Readonly<Record<string, unknown>>, who = reader): Promise<Page> {
    const given = new Map(Object.entries(list)) as Arguments
    const [metric] = sensor.metrics()
    sensor.check(metric as never, given)
    const { value }: Measurement = await sensor.measure(metric as never, given, who)
    if (value.type !== BasicType.ARRAY) return { records: [], isVoid: true }
    const bytes = new XdrWriter().raw(new Uint8Array(20))
    writeTyped(bytes, value)
    const all = decoded({ bytes: bytes.bytes() } as never) as unknown as Record<string, unknown>[]
    const records = all.filter((one) => one['more'] === undefined)
    const after = all.at(-1)?.['after']
    return after === undefined ? { records } : { records, after: String(after) }
  }

  const range = { expr: 'test_a', from: 0n, to: BigInt(SAMPLES - 1) * 1_000_000n, step_ms: 1_000n }

  /** Begins a query, and gives the answer that says that there is none yet. */
  async function begun(list: Readonly<Record<string, unknown>> = range, who = reader): Promise<string> {
    const answer = ask(list, who)
    await eventually(() => expect(go).toBeDefined())
    clock.advance(1_000)
    const { records, after = '' } = await answer
    expect(records).toEqual([])
    return after
  }

  it('is asked for again and again, and then comes in pages, with every value once', async () => {
    let after: string | undefined = await begun()
    const again = ask({ after })
    go?.()
    let page = await again
    const values = new Map<string, number>()
    let pages = 1
    for (const { type } of page.records.slice(0, 1)) expect(type).toBe('matrix')
    for (;;) {
      for (const { labels, values: some = [] } of page.records as { labels?: { n: string }; values?: number[] }[]) {
        if (labels !== undefined) values.set(labels.n, (values.get(labels.n) ?? 0) + some.length)
      }
      after = page.after
      if (after === undefined) break
      page = await ask({ after })
      pages++
    }
    expect(pages).toBeGreaterThan(2)
    expect(values.size).toBe(SERIES)
    expect([...values.values()]).toEqual(Array.from({ length: SERIES }, () => SAMPLES))
    expect(ended).toMatchObject([{ outcome: 'served', path: QUERY }])
    expect(String(ended[0]?.given())).toBe('query=test_a&start=0&end=10999&step=1')
  })

  it('goes on once, and for its own user', async () => {
    const after = await begun()
    expect(await ask({ after }, { ...reader, userId: 2 })).toEqual({ records: [], isVoid: true })
    const again = ask({ after })
    await expect(ask({ after })).rejects.toThrow('begin again')
    go?.()
    expect((await again).records).not.toEqual([])
  })

  it('ends when nobody asks for it any more', async () => {
    const after = await begun()
    clock.advance(10_000)
    go?.()
    await eventually(() => expect(ended).toMatchObject([{ outcome: 'cancelled' }]))
    await expect(ask({ after })).rejects.toThrow('begin again')
  })

  it('makes room: the seventeenth of a user ends the first', async () => {
    isReady = true
    const afters: string[] = []
    for (let number = 0; number < 17; number++) afters.push((await ask(range)).after ?? '')
    await expect(ask({ after: afters[0] as string })).rejects.toThrow('begin again')
    expect((await ask({ after: afters[1] as string })).records).not.toEqual([])
  })

  it('ends a minute after its answer was there', async () => {
    isReady = true
    const { after = '' } = await ask(range)
    clock.advance(59_000)
    const { after: last = '' } = await ask({ after })
    clock.advance(60_000)
    await expect(ask({ after: last })).rejects.toThrow('begin again')
  })

  it('has ranges of loss for whoever wants them, each once', async () => {
    isReady = true
    const at = 7_000_000n
    const summary = { type: 'scalar' }
    const { records } = await ask({ expr: 'scalar(test_a) + scalar(test_a) + scalar(test_b)', at, with_losses: true })
    const loss = { to: Number(at), reason: 'overflow' }
    expect(records).toMatchObject([
      summary,
      { ...loss, tenant: '', metric: '', from: Number(at) - 1_000, lost: 0 },
      { ...loss, tenant: 'north', metric: 'test.a', from: Number(at), lost: 3 },
      { times: [Number(at)] },
    ])
    expect((await ask({ expr: '1', at, with_losses: true })).records).toMatchObject([summary, { values: [1] }])
    expect((await ask({ expr: 'test_a', at })).records.filter(({ from }) => from !== undefined)).toEqual([])
  })

  it('is VOID where nothing is remembered', async () => {
    sensor = sensorOf({
      problem: 'off',
      unreadable: 'off',
      select,
      current: async () => undefined,
      families,
      losses,
      backUp: async () => undefined,
      caughtUp,
    })
    expect(await ask({ expr: '1' })).toEqual({ records: [], isVoid: true })
  })
})
