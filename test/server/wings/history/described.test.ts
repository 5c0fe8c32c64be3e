/** What the thread of the history asks about metrics, and what the server knows of them. */
import { beforeEach, expect, it } from 'vitest'
import { DescribedMetrics } from '../../../../server/wings/history/described.ts'
import { SERVER } from '../../../../server/wings/history/messages.ts'
import { describedMetrics } from '../../../../server/wings/history/wanted.ts'
import { frames, load, NOW, TestRecorder } from './test-recorder.ts'

const HOUR_MS = 3_600_000

let described: DescribedMetrics
beforeEach(() => {
  described = new DescribedMetrics()
})

it('asks about each metric once an hour, some at a time', () => {
  for (let at = 0; at < 300; at++) described.recorded('acme', `test.${at}`, NOW)
  described.recorded(SERVER, 'host.load', NOW)
  expect(described.next()?.natives).toHaveLength(256)
  expect(described.next()).toMatchObject({ tenant: 'acme', natives: { length: 44 } })
  expect(described.next()).toEqual({ tenant: SERVER, natives: ['host.load'] })
  described.recorded('acme', 'test.1', NOW + HOUR_MS - 1)
  expect(described.next()).toBeUndefined()
  described.recorded('acme', 'test.1', NOW + HOUR_MS)
  expect(described.next()).toEqual({ tenant: 'acme', natives: ['test.1'] })
})

it('asks about what is recorded, and not about what is refused', () => {
  const test = new TestRecorder()
  const asked = () => test.posted.filter(({ kind }) => kind === 'describe')
  test.begin()
  test.bind({})
  test.store.most = 0
  test.take(frames([1, 0, load(1, 'refused')]))
  test.handle({ kind: 'tick' })
  expect(asked()).toEqual([])
  test.store.most = 1
  test.nowMs += HOUR_MS
  test.take(frames([2, 0, load(1)]))
  test.handle({ kind: 'tick' })
  test.handle({ kind: 'tick' })
  expect(asked()).toEqual([{ kind: 'describe', tenant: 'default', natives: ['test.load'] }])
})

it('knows of a tenant what its own sensors say, then those of the server, and last what is known of servers below', () => {
  const sensor = (family: string, owner: unknown, polled: unknown, description: string, isCounter?: boolean) => ({
    family,
    owner,
    polled,
    metric: (name: string) => (name === 'none.a' ? undefined : { name, unit: '', description, isCounter }),
  })
  const sensors = [
    sensor('', { tenant: 'acme' }, 'remote', 'Of a server below.'),
    sensor('own.', { tenant: 'acme' }, false, 'Their own.', true),
    sensor('own.', { tenant: 'other' }, false, 'Of others.'),
    sensor('host.', 'producer', true, 'Of the host.', false),
    sensor('open.', { tenant: 'acme' }, false, ''),
  ]
  const known = (tenant: string, ...natives: string[]): string[] =>
    describedMetrics(tenant, natives, { sensors: sensors as never }).flatMap(({ native, families }) =>
      families.map(({ name, type, help }) => `${native} ${name} ${type} ${help}`),
    )
  expect(known('acme', 'own.a', 'host.b', 'far.c', 'none.a')).toEqual([
    'own.a own_a counter Their own.',
    'host.b host_b gauge Of the host.',
    'far.c far_c unknown Of a server below.',
  ])
  expect(known(SERVER, 'host.b', 'own.a', 'open.d')).toEqual(['host.b host_b gauge Of the host.'])
})
