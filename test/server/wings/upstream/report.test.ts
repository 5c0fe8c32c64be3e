/** What is known of upstreams as metrics and notices: which are connected, and what they have lost. */
import { beforeEach, describe, expect, it } from 'vitest'
import { GapReason } from '../../../../protocol/monitor/constants.ts'
import { Quotas } from '../../../../server/kernel/accounts/quotas.ts'
import { createLogger } from '../../../../server/kernel/core/log.ts'
import { Hub } from '../../../../server/kernel/metrics/hub.ts'
import type { ProducerNotice } from '../../../../server/kernel/producer/notices.ts'
import { LabelledFamily } from '../../../../server/kit/labelled-sensor.ts'
import { defaultConfig } from '../../../../server/start/config.ts'
import { UpstreamReport } from '../../../../server/wings/upstream/report.ts'
import { FakeClock } from '../../../support/fake-clock.ts'

const EAST = { name: 'east', kind: 'upstream', tenant: 'fleet', log: createLogger('silent') } as const

let clock: FakeClock
let family: LabelledFamily
let report: UpstreamReport
let quotas: Quotas
let notices: { readonly detail: string; readonly about: unknown }[]

beforeEach(() => {
  clock = new FakeClock()
  notices = []
  quotas = new Quotas(() => ({ ...defaultConfig().quota, queuedBytes: 0, historyBytes: 0, series: 100 }), clock)
  const hub = new Hub(clock)
  const kept = { family: 'upstream.', kind: 'upstreams', from: 'tests', keptMs: () => Number.POSITIVE_INFINITY }
  family = new LabelledFamily({ ...kept, hub, quotas, clock })
  const notice = ({ detail }: ProducerNotice, about?: unknown): unknown => notices.push({ detail, about })
  report = new UpstreamReport({ ...EAST, family, clock, notice })
})

/** The last value of each series, by its labels. */
function values(name: string): Record<string, unknown> {
  const sensor = family.of('fleet')
  const shown = [...sensor.series(name)].map((series) => {
    const { producer, reason } = series.labels
    return [[producer, reason].filter(Boolean).join(' '), sensor.last(series)?.value.value] as const
  })
  return Object.fromEntries(shown)
}
const gap = (reason: number, count: number, transaction = 0) => ({ reason, count, transaction })

describe('upstream.up', () => {
  it('is false until the server is connected, and again afterwards', () => {
    expect(values('upstream.up')).toEqual({ east: false })
    report.changed('')
    expect(values('upstream.up')).toEqual({ east: true })
    report.changed('gone')
    expect(values('upstream.up')).toEqual({ east: false })
  })

  it('is what a new subscription begins with', () => {
    report.changed('')
    const [series] = family.of('fleet').series('upstream.up')
    expect(series?.first?.()).toMatchObject({ value: { value: true } })
  })
})

describe('times', () => {
  const timeOf = () => {
    const [series] = family.of('fleet').series('upstream.up')
    return family.of('fleet').last(series as NonNullable<typeof series>)?.time
  }

  it('ascend while the clock stands still, and follow it when it was set back', () => {
    const begun = clock.microseconds()
    report.changed('')
    expect(timeOf()).toBe(begun + 1)
    clock.jumpWall(-3_600_000)
    report.changed('gone')
    expect([timeOf(), values('upstream.up')]).toEqual([clock.microseconds(), { east: false }])
  })
})

describe('a loss', () => {
  it('is counted by producer and reason, in values and in reports', () => {
    report.lost(gap(GapReason.overflow, 5), 'east')
    report.lost(gap(GapReason.overflow, 7), 'east')
    report.lost(gap(GapReason.expired, 0), 'east/rack1')
    expect(values('upstream.lost')).toEqual({ 'east overflow': 12n, 'east/rack1 expired': 0n })
    expect(values('upstream.gaps')).toEqual({ 'east overflow': 2n, 'east/rack1 expired': 1n })
  })

  it('of more values than can be counted exactly is counted up to there', () => {
    const most = gap(GapReason.overflow, Number.MAX_SAFE_INTEGER)
    for (let reports = 0; reports < 3_000; reports++) report.lost(most, 'east')
    expect(values('upstream.lost')).toEqual({ 'east overflow': BigInt(Number.MAX_SAFE_INTEGER) })
    expect(report.lostValues).toBe(Number.MAX_SAFE_INTEGER)
  })

  it('of reasons that nobody knows has one name, however many there are', () => {
    for (let reason = 1_000; reason < 2_000; reason++) report.lost(gap(reason, 1), 'east')
    expect(values('upstream.lost')).toEqual({ 'east unknown': 1_000n })
  })

  it('of very many producers below takes a bounded number of series: the rest counts for the upstream', () => {
    quotas = new Quotas(() => ({ ...defaultConfig().quota, queuedBytes: 0, historyBytes: 0, series: 100_000 }), clock)
    family = new LabelledFamily({
      ...{ family: 'upstream.', kind: 'upstreams', from: 'tests', keptMs: () => Number.POSITIVE_INFINITY },
      ...{ hub: new Hub(clock), quotas, clock },
    })
    report = new UpstreamReport({ ...EAST, family, clock, notice() {} })
    for (let i = 0; i < 5_000; i++) report.lost(gap(GapReason.overflow, 2), `east/x${i}`)
    expect(quotas.of('fleet').series.used).toBeLessThan(2_100)
    const lost = Object.values(values('upstream.lost')) as bigint[]
    expect(lost.reduce((sum, one) => sum + one, 0n)).toBe(10_000n)
    expect(values('upstream.lost')).toMatchObject({ 'east/x0 overflow': 2n, 'east overflow': 8_000n })
  })

  it('is a notice for the tenant, with the transaction id of its GAP', () => {
    report.lost(gap(GapReason.overflow, 5, 4711), 'east/rack1')
    report.lost(gap(GapReason.expired, 1), 'east')
    report.lost(gap(GapReason.purged, 0, 9), 'east')
    report.lost(gap(GapReason.replaced, 0), 'east')
    expect(notices.map(({ detail }) => detail)).toEqual([
      'upstream east has lost 5 values of east/rack1: overflow (transaction 4711)',
      'upstream east has lost 1 value of east: expired',
      'upstream east has lost values, nobody knows how many, of east: purged (transaction 9)',
      'upstream east is not the one from before, or was restored: its values until now may be lost',
    ])
    expect(notices.map(({ about }) => about)).toEqual(Array(4).fill({ tenant: 'fleet' }))
  })

  it('is a notice ten times a second at most; the next one counts those that were not', () => {
    for (let count = 1; count <= 50; count++) report.lost(gap(GapReason.overflow, count), 'east')
    expect(notices).toHaveLength(10)
    clock.advance(1_000)
    report.lost(gap(GapReason.overflow, 1), 'east')
    expect(notices).toHaveLength(11)
    expect(notices.at(-1)?.detail).toMatch(/overflow; 40 reports before it have no notice of their own$/)
    expect(values('upstream.gaps')).toEqual({ 'east overflow': 51n })
  })
})

describe('the series', () => {
  it('end with the table, and leave their room to others', () => {
    report.lost(gap(GapReason.overflow, 5), 'east')
    expect(quotas.of('fleet').series.used).toBe(3)
    report.end()
    expect(quotas.of('fleet').series.used).toBe(0)
    expect(values('upstream.up')).toEqual({})
  })

  it('beyond the quota of the tenant are not there, and nothing else is worse for it', () => {
    for (let i = 1; i < 100; i++) quotas.of('fleet').series.enter()
    report.lost(gap(GapReason.overflow, 5), 'east')
    expect(values('upstream.lost')).toEqual({})
    expect(notices).toHaveLength(1)
  })
})
