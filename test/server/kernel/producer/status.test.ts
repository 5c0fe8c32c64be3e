/** `producer.sensors`, `producer.stats` and `producer.notices`. */
import { describe, expect, test } from 'vitest'
import type { Identity, Owner } from '../../../../auth/permissions.ts'
import { valueToJson } from '../../../../protocol/monitor/json-value.ts'
import type { Value } from '../../../../protocol/monitor/value.ts'
import { Hub } from '../../../../server/kernel/metrics/hub.ts'
import type { Measurement } from '../../../../server/kernel/metrics/metric.ts'
import { Notices } from '../../../../server/kernel/producer/notices.ts'
import type { ProducerView } from '../../../../server/kernel/producer/sensor.ts'
import { type Stats, sensorsView, statsView } from '../../../../server/kernel/producer/status.ts'
import { FakeClock } from '../../../support/fake-clock.ts'
import { abroad, tester } from '../metrics/fixture.ts'

const shown = (view: ProducerView, identity: Identity) => view.show(identity, new Map()) as Value

test('producer.sensors shows the state and counters of what the identity may read and has a status', () => {
  const watched = (name: string, owner: Owner) => ({
    owner,
    status: () => ({ name, state: 'listening', detail: 'udp 1', counters: { packets: 3, refused: 0 } }),
  })
  const quiet = { owner: 'producer' } as const
  const view = sensorsView(
    () => [watched('gmetric', { tenant: 'default' }), quiet, watched('host', 'producer')],
    new Hub(new FakeClock()),
  )
  expect(valueToJson(shown(view, tester))).toEqual([
    { name: 'gmetric', state: 'listening', detail: 'udp 1', counters: { packets: 3, refused: 0 } },
    expect.objectContaining({ name: 'host' }),
  ])
  expect(valueToJson(shown(view, abroad))).toEqual([expect.objectContaining({ name: 'host' })])
})

test('a counter that is no count takes neither its sensor nor the others away', () => {
  const counted = (name: string, counters: Readonly<Record<string, number>>) => ({
    owner: 'producer' as const,
    status: () => ({ name, state: 'measuring', detail: '', counters }),
  })
  const odd = { half: 1.5, none: Number.NaN, below: -1, endless: Number.POSITIVE_INFINITY, huge: 2 ** 64, right: 7 }
  const view = sensorsView(() => [counted('odd', odd), counted('other', { values: 3 })], new Hub(new FakeClock()))
  const most = Number.MAX_SAFE_INTEGER
  expect(valueToJson(shown(view, tester))).toEqual([
    expect.objectContaining({
      name: 'odd',
      counters: { half: 2, none: 0, below: 0, endless: most, huge: most, right: 7 },
    }),
    expect.objectContaining({ name: 'other', counters: { values: 3 } }),
  ])
})

test('producer.stats is one REC with these fields, and for admins some more', () => {
  const stats = {
    software: 'cinnabar/1',
    name: 'n1',
    generation: '0123456789abcdef',
    uptimeSeconds: 1.5,
    connections: 1,
    channels: 2,
    unstoredBytes: 3.4,
    residentBytes: 4,
    busySeconds: 1.5,
    storage: 'ok',
    faults: 2,
  }
  const fields = [
    ['software', 'cinnabar/1'],
    ['name', 'n1'],
    ['generation', '0123456789abcdef'],
    ['uptime', 1.5],
    ['connections', 1],
    ['channels', 2],
    ['unstored_bytes', 3],
    ['resident_bytes', 4],
    ['busy', 1.5],
    ['storage', 'ok'],
    ['faults', 2],
  ]
  const statsFields = (given: Stats) =>
    Object.entries(
      valueToJson(
        shown(
          statsView(() => given),
          tester,
        ),
      ) as object,
    )
  expect(statsFields(stats)).toEqual(fields)
  const admission = {
    unauthenticated: 5,
    evicted: 6,
    refused: 7,
    refusedPasswords: 8,
    refusedScrapes: 9,
    refusedApprovals: 3,
  }
  const files = { open: 10, max: 11, refused: 12 }
  expect(statsFields({ ...stats, admission, files, forgottenNames: 9 })).toEqual([
    ...fields,
    ['unauthenticated_connections', 5],
    ['evicted_connections', 6],
    ['refused_connections', 7],
    ['refused_passwords', 8],
    ['refused_scrapes', 9],
    ['refused_approvals', 3],
    ['open_files', 10],
    ['max_open_files', 11],
    ['refused_source_connections', 12],
    ['forgotten_names', 9],
  ])
})

describe('producer.notices', () => {
  const clock = new FakeClock()
  const event = { severity: 'warning', subject: 'channel', detail: 'gone' } as const

  function heard(user?: number): string[] {
    const notices = new Notices(clock)
    const [metric] = [...notices.metrics()] as [never]
    const seen: string[] = []
    for (const identity of [tester, abroad, { ...abroad, userId: 3, name: 'root', role: 'admin' }]) {
      notices.subscribe(metric, identity, () => seen.push(identity.name))
    }
    notices.emit(event, user)
    return seen
  }

  test('reach everybody if they are the producer’s, the one user and the role admin if they are a user’s', () => {
    expect(heard()).toEqual(['tester', 'abroad', 'root'])
    expect(heard(tester.userId)).toEqual(['tester', 'root'])
    expect(heard(abroad.userId)).toEqual(['abroad', 'root'])
  })

  test('are RECs with their time, and stop coming', () => {
    const notices = new Notices(clock)
    const [metric] = [...notices.metrics()] as [never]
    const seen: Measurement[] = []
    const end = notices.subscribe(metric, tester, (measured) => seen.push(measured))
    notices.emit(event)
    end()
    notices.emit(event)
    expect(seen.map(({ value, time }) => [valueToJson(value), time])).toEqual([[event, clock.microseconds()]])
  })
})
