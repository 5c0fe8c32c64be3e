/** What is stored is asked for: whose it is, what may be read of it, and how a long answer goes on. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { XdrWriter } from '../../../../protocol/bytes/writer.ts'
import { BasicType } from '../../../../protocol/monitor/constants.ts'
import { type Field, writeTyped } from '../../../../protocol/monitor/value.ts'
import { StatusError } from '../../../../server/kernel/core/errors.ts'
import { finish } from '../../../../server/kernel/core/fair-work.ts'
import type { Arguments, Measurement } from '../../../../server/kernel/metrics/metric.ts'
import { defaultConfig } from '../../../../server/start/config.ts'
import type { HistorySelection } from '../../../../server/wings/history/messages.ts'
import { SelectSensor } from '../../../../server/wings/history/select.ts'
import type { HistoryLoss, HistoryQuery, HistorySamples } from '../../../../storage/history/store.ts'
import { askFor, done, newToken, run, tokenSeat } from '../../../support/administration.ts'
import { args, command, str, type, u64 } from '../../../support/bytes.ts'
import { eventually } from '../../../support/eventually.ts'
import { EPOCH, TestProducer } from '../../../support/producer.ts'
import { decoded } from '../../../support/records.ts'
import type { Seat } from '../../../support/seat.ts'
import { PushSensor } from '../../../support/test-sensor.ts'

const EVER_MS = 36_500 * 86_400_000
const SECOND = 1_000_000
const NO_SUCH_CONTROL = 10

interface Shown {
  readonly tenant: string
  readonly metric: string
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly times: readonly string[]
  readonly values: readonly number[]
  readonly ended: readonly string[]
}

const shown = (all: unknown): string[] =>
  (all as Shown[]).map(({ tenant, name, labels, values }) => `${tenant} ${name}{${Object.entries(labels)}} ${values}`)

describe('a server', () => {
  let producer: TestProducer
  let root: Seat
  beforeEach(async () => {
    let north: PushSensor | undefined
    producer = await TestProducer.start({
      config: {
        history: { ...defaultConfig().history, keepMs: EVER_MS, keepRollupsMs: EVER_MS, metrics: ['test.*'] },
      },
      sensors: (hub) => {
        north = new PushSensor(hub, 'test.', { tenant: 'north' })
      },
    })
    await producer.addUser('root', { role: 'admin' })
    await producer.addUser('ann', { tenant: 'north' })
    await producer.addUser('bob', { role: 'limited' })
    root = await producer.seat('root')
    await done(root, 'role.deny', { role: 'limited', command: 'COLLECT', object: 'test.secret' })
    await done(root, 'role.deny', { role: 'limited', command: 'COLLECT', object: 'test.a', where: 'host=h2' })
    await settled(async () => {
      const sensors = decoded(await root.query('producer.sensors')) as { name: string; state: string }[]
      const ours = sensors.filter(({ name }) => name.startsWith('history/'))
      expect(ours.map(({ state }) => state)).toEqual(['recording', 'recording'])
    })
    push(producer.push, 'a', 1, 1)
    push(producer.push, 'a', 2, 2)
    push(producer.push, 'a', 3, 1, 'h2')
    push(producer.push, 'secret', 4, 0.25)
    producer.push.die('test.secret', 'h1')
    push(north, 'a', 5, 1)
    await settled(async () => {
      const channels = decoded(await root.query('producer.channels')) as unknown as Record<string, string>[]
      const ours = channels.filter(({ name }) => name === 'history:')
      expect(ours.reduce((sum, { committed }) => sum + Number(committed), 0)).toBe(6)
    })
  })
  afterEach(() => producer.stop())

  function push(sensor: PushSensor | undefined, name: string, value: number, seconds: number, host = 'h1'): void {
    sensor?.push(`test.${name}`, { type: BasicType.DOUBLE, value }, EPOCH + seconds * SECOND, host)
  }

  async function settled(holds: () => Promise<void>): Promise<void> {
    await eventually(async () => {
      producer.clock.advance(1_000)
      await producer.settle()
      await holds()
    })
  }

  const range = [
    ['from', type.uint64, u64(EPOCH)],
    ['to', type.uint64, u64(EPOCH + 10 * SECOND)],
  ] as const
  const of = (metric: string, ...more: readonly (readonly [string, number, Uint8Array])[]) =>
    args(['metric', type.string, str(metric)], ...range, ...more)

  it('shows each what the same user may COLLECT', async () => {
    const all = decoded(await root.query('producer.history.select', of('test.*')))
    expect(shown(all)).toEqual([
      'default test_a{host,h1} 1,2',
      'default test_a{host,h2} 3',
      'default test_secret{host,h1} 4',
      'north test_a{host,h1} 5',
    ])
    expect(all).toContainEqual(
      expect.objectContaining({ metric: 'test.a', times: [EPOCH + SECOND, EPOCH + 2 * SECOND], ended: [] }),
    )
    expect((all as unknown as Shown[]).find(({ metric }) => metric === 'test.secret')?.ended).toHaveLength(1)
    const ann = await producer.seat('ann', 'north')
    expect(shown(decoded(await ann.query('producer.history.select', of('test.*'))))).toEqual([
      'north test_a{host,h1} 5',
    ])
    const bob = await producer.seat('bob')
    expect(shown(decoded(await bob.query('producer.history.select', of('test.*'))))).toEqual([
      'default test_a{host,h1} 1,2',
    ])
    const { token, hash } = newToken()
    await done(root, 'token.add', { user: 'bob', hash, scope: 'COLLECT test.b;COLLECT producer.*' })
    const narrow = await tokenSeat(producer, token)
    expect(shown(decoded(await narrow.query('producer.history.select', of('test.*'))))).toEqual([])
  })

  it('selects by names here and in Prometheus, labels and times', async () => {
    const names = async (...given: Parameters<typeof of>) =>
      shown(decoded(await root.query('producer.history.select', of(...given))))
    expect(await names('test_a', ['host', type.string, str('h2')])).toEqual(['default test_a{host,h2} 3'])
    expect(await names('test.a', ['host', type.string, str('*2')])).toEqual(['default test_a{host,h2} 3'])
    expect(await names('test.nothing')).toEqual([])
    const late = args(['metric', type.string, str('test.a')], ['from', type.uint64, u64(EPOCH + 1_500_000)])
    expect(await root.ask((seq) => query(seq, args()))).toMatchObject({ detail: expect.stringContaining('`metric`') })
    expect(shown(decoded(await root.query('producer.history.select', late)))).toEqual(['default test_a{host,h1} 2'])
  })

  it('shows nothing of what was dropped, and only those drop who may run that', async () => {
    const all = async () => shown(decoded(await root.query('producer.history.select', of('test.*'))))
    const ann = await producer.seat('ann', 'north')
    expect(await askFor(ann, 'history.drop', { metric: 'test.a' })).toMatchObject({ status: NO_SUCH_CONTROL })
    await producer.addUser('eve', { tenant: 'north', role: 'limited' })
    await done(root, 'role.allow', { role: 'limited', command: 'EXECUTE', object: 'history.drop' })
    const eve = await producer.seat('eve', 'north')
    const ofOthers = await askFor(eve, 'history.drop', { metric: 'test.a', tenant: 'default' })
    expect(ofOthers.detail).toBe('there is no tenant default')
    expect((await askFor(root, 'history.drop', {})).detail).toContain('`metric`')
    expect((await askFor(root, 'history.drop', { metric: 'test.a', labels: 'host' })).detail).toContain('name=text')
    expect(await all()).toHaveLength(4)
    expect((await run(root, 'history.drop', { metric: 'nothing.*' })).detail).toContain('nothing was dropped')
    await done(root, 'history.drop', { metric: 'test.a', labels: 'host=*2' })
    expect(await all()).toEqual([
      'default test_a{host,h1} 1,2',
      'default test_secret{host,h1} 4',
      'north test_a{host,h1} 5',
    ])
    await done(eve, 'history.drop', { metric: 'test.*' })
    expect(await all()).toEqual(['default test_a{host,h1} 1,2', 'default test_secret{host,h1} 4'])
    await done(root, 'history.drop', { tenant: 'default' })
    expect(await all()).toEqual([])
    // What comes later is remembered.
    push(producer.push, 'a', 7, 3)
    await settled(async () => expect(await all()).toEqual(['default test_a{host,h1} 7']))
  })
})

function query(seq: number, list: Uint8Array): Uint8Array {
  return command.query(seq, 'producer.history.select', list)
}

describe('an answer of several pages', () => {
  const SAMPLES = 200_000
  const reader = { userId: 1, tenant: 'default', name: 'ann', role: 'consumer' }
  let nowMs = 0
  let sensor: SelectSensor
  let ended: number
  beforeEach(() => {
    nowMs = 0
    ended = 0
    const kit = {
      clock: { monotonicMs: () => nowMs, microseconds: () => 0, wallMs: () => 0 },
      poll: { work: (_: unknown, steps: Generator<void, never>) => finish(steps) },
      peer: { view: { tenants: () => ['default'], readRights: () => ({ mayReadRemembered: () => true }) } },
    }
    sensor = new SelectSensor(kit as never, {
      reading: { select: twoSeries, losses: async () => [] },
      freshen: () => {},
    })
  })

  async function* twoSeries({ tenant }: HistoryQuery): AsyncGenerator<readonly HistorySamples[], void, void> {
    try {
      if (tenant === '') return
      for (const name of ['a', 'b']) {
        const series = { tenant, name, native: name, labels: [] } as const
        const times = Float64Array.from({ length: SAMPLES }, (_, at) => at)
        yield [{ series, times, values: times.slice() }]
      }
    } finally {
      ended++
    }
  }

  async function page(
    list: Record<string, string>,
    who = reader,
  ): Promise<{ records: Field[][]; after?: string; isVoid?: true }> {
    const given: Arguments = new Map(Object.entries(list))
    const [metric] = sensor.metrics()
    sensor.check(metric as never, given)
    const { value }: Measurement = await sensor.measure(metric as never, given, who)
    if (value.type !== BasicType.ARRAY) return { records: [], isVoid: true }
    const bytes = new XdrWriter().raw(new Uint8Array(20))
    writeTyped(bytes, value)
    const encoded = decoded({ bytes: bytes.bytes() } as never) as Record<string, string>[]
    const after = encoded.at(-1)?.['after']
    const records = encoded.filter((one) => one['more'] === undefined) as never
    return after === undefined ? { records } : { records, after }
  }

  it('shows every sample once, in order', async () => {
    const values = new Map<string, number[]>()
    let next: Record<string, string> | undefined = { metric: '*' }
    let pages = 0
    while (next !== undefined) {
      const { records, after }: Awaited<ReturnType<typeof page>> = await page(next)
      for (const { name, values: some } of records as unknown as { name: string; values: number[] }[]) {
        values.set(name, [...(values.get(name) ?? []), ...some])
      }
      next = after === undefined ? undefined : { after }
      pages++
    }
    const whole = Array.from({ length: SAMPLES }, (_, at) => at)
    expect([...values.keys()]).toEqual(['a', 'b'])
    expect(values.get('a')).toEqual(whole)
    expect(values.get('b')).toEqual(whole)
    expect(pages).toBeGreaterThan(5)
  })

  it('goes on once, for its own user, within a minute', async () => {
    const { after = '' } = await page({ metric: '*' })
    expect(await page({ after }, { ...reader, userId: 2 })).toEqual({ records: [], isVoid: true })
    const { records, after: last = '' } = await page({ after })
    expect(records).not.toEqual([])
    // It was checked before the other went on.
    const [metric] = sensor.metrics()
    const { value } = await sensor.measure(metric as never, new Map(Object.entries({ after })), reader)
    expect(value.type).toBe(BasicType.VOID)
    nowMs = 61_000
    sensor.sweep()
    await new Promise((resolve) => setImmediate(resolve))
    expect(ended).toBeGreaterThan(0)
    await expect(page({ after: last })).rejects.toThrow(StatusError)
  })

  it('makes room: the fifth query of a user ends the first', async () => {
    const afters: string[] = []
    for (let times = 0; times < 5; times++) afters.push((await page({ metric: '*' })).after ?? '')
    await expect(page({ after: afters[0] as string })).rejects.toThrow('begin again')
    expect((await page({ after: afters[1] as string })).records).not.toEqual([])
  })
})

describe('losses and windows', () => {
  const HOUR_MS = 3_600_000
  const loss = (native: string, count = 1): HistoryLoss => ({ native, fromMs: 1, toMs: 2, count, reason: 'overflow' })
  const stored = new Map<string, { readonly series: readonly string[]; readonly losses: readonly HistoryLoss[] }>()
  const asked: HistorySelection[] = []
  let readable: (native: string) => boolean
  let sensor: SelectSensor
  beforeEach(() => {
    stored.clear()
    stored.set('default', { series: ['test.a', 'test.b'], losses: [loss('test.*', 2), loss('test.a', 3), loss('', 4)] })
    stored.set('north', { series: ['test.a'], losses: [loss('test.a', 5), loss('', 6)] })
    stored.set('', { series: ['host.load.one'], losses: [loss('host.*', 7), loss('', 0)] })
    asked.length = 0
    readable = () => true
    const kit = {
      clock: { monotonicMs: () => 0, microseconds: () => 0, wallMs: () => HOUR_MS },
      poll: { work: (_: unknown, steps: Generator<void, never>) => finish(steps) },
      peer: {
        view: {
          tenants: () => ['default', 'north'],
          readRights: () => ({ mayReadRemembered: (_: unknown, native: string) => readable(native) }),
        },
      },
    }
    sensor = new SelectSensor(kit as never, {
      reading: { select, losses: async ({ tenant }) => stored.get(tenant)?.losses ?? [] },
      freshen: () => {},
    })
  })

  /** The series are those whose names match the first matcher. */
  async function* select(selection: HistorySelection): AsyncGenerator<readonly HistorySamples[], void, void> {
    asked.push(selection)
    const { tenant, matchers, isWithoutSamples = false, stepMs } = selection
    const pattern = new RegExp(`^(?:${matchers[0]?.text})$`)
    const found = (stored.get(tenant)?.series ?? []).filter((native) => pattern.test(native))
    const numbers = Float64Array.of(1, 2)
    const names = ['ends', 'min', 'max', 'sum', 'count', 'first', 'firstTimes', 'last', 'lastTimes', 'resets']
    const windows = { stepMs: 300_000, ...Object.fromEntries(names.map((name) => [name, numbers])) } as never
    const series = (native: string) => ({ tenant, name: native, native, labels: [] }) as const
    yield found.map((native) => ({
      series: series(native),
      // There is no sample in the range where only losses are looked at.
      times: isWithoutSamples || stepMs === undefined ? new Float64Array(0) : Float64Array.of(3),
      values: isWithoutSamples || stepMs === undefined ? new Float64Array(0) : Float64Array.of(4),
      ...(stepMs !== undefined && !isWithoutSamples && { windows }),
    }))
  }

  async function answer(list: Record<string, unknown>, tenant: string, role = 'consumer') {
    const [metric] = sensor.metrics()
    const given = new Map(Object.entries(list)) as Arguments
    sensor.check(metric as never, given)
    const reader = { userId: 1, tenant, name: 'ann', role }
    const { value }: Measurement = await sensor.measure(metric as never, given, reader)
    const bytes = new XdrWriter().raw(new Uint8Array(20))
    writeTyped(bytes, value)
    return decoded({ bytes: bytes.bytes() } as never) as unknown as Record<string, unknown>[]
  }
  /** Of whom, of which metrics, and how many values. */
  const lossesOf = async (metric: string, tenant: string, role?: string): Promise<string[]> =>
    (await answer({ metric, with_losses: true }, tenant, role))
      .filter(({ from }) => from !== undefined)
      .map(({ tenant: owner, metric: native, lost }) => `${owner}:${native}:${lost}`)

  it('are those of the own tenant, and of nobody else', async () => {
    expect(await lossesOf('test.*', 'default')).toEqual(['default:test.*:2', 'default:test.a:3', 'default::4'])
    expect(await lossesOf('test.*', 'north')).toEqual(['north:test.a:5', 'north::6'])
    expect(await lossesOf('test.a', 'default', 'admin')).toEqual([
      ...['default:test.*:2', 'default:test.a:3', 'default::4'],
      ...['north:test.a:5', 'north::6'],
    ])
    expect(await lossesOf('test.*', 'south')).toEqual([])
  })

  it('of the server are seen by everybody who reads its metrics, and by nobody else', async () => {
    expect(await lossesOf('host.*', 'north')).toEqual([':host.*:7', '::0'])
    expect(await lossesOf('test.a', 'north')).not.toContain(':host.*:7')
    readable = (native) => !native.startsWith('host.')
    expect(await lossesOf('host.*', 'north')).toEqual([])
  })

  it('are those that concern what is asked for and may be read', async () => {
    expect(await lossesOf('test.b', 'default')).toEqual(['default:test.*:2', 'default::4'])
    expect(await lossesOf('test.c', 'default')).toEqual([])
    readable = (native) => native !== 'test.a'
    expect(await lossesOf('test.*', 'default')).toEqual(['default:test.*:2', 'default::4'])
    readable = () => false
    expect(await lossesOf('test.*', 'default')).toEqual([])
  })

  it('are reported only if they are asked for, with their range', async () => {
    expect(await answer({ metric: 'test.a' }, 'north')).toEqual([])
    expect(asked.every(({ isWithoutSamples }) => isWithoutSamples !== true)).toBe(true)
    const [first] = await answer({ metric: 'test.a', with_losses: true }, 'north')
    const range = { from: 1_000, to: 2_000, lost: 5 }
    expect(first).toEqual({ tenant: 'north', metric: 'test.a', ...range, reason: 'overflow' })
  })

  it('come before samples, if a step is asked for', async () => {
    const records = await answer({ metric: 'test.a', step_ms: 1n }, 'north')
    expect(records.map((record) => Object.keys(record))).toEqual([
      [
        ...['tenant', 'metric', 'name', 'labels', 'step_ms', 'ends', 'min', 'max', 'sum', 'count'],
        ...['first', 'first_times', 'last', 'last_times', 'resets'],
      ],
      ['tenant', 'metric', 'name', 'labels', 'times', 'values', 'ended'],
    ])
    expect(records[0]).toMatchObject({ step_ms: 300_000, ends: [1_000, 2_000], min: [1, 2], count: [1, 2] })
    expect(asked.map(({ stepMs }) => stepMs)).toEqual([1, 1])
    await expect(answer({ metric: 'test.a', step_ms: 10n ** 15n }, 'north')).rejects.toThrow('a year')
    await expect(answer({ metric: 'a'.repeat(20_000) }, 'north')).rejects.toThrow('20000 characters')
    const metric = 'a*'.repeat(2_000)
    await expect(answer({ metric }, 'north')).rejects.toThrow('have 6000 characters together, and may have 5000')
  })
})
