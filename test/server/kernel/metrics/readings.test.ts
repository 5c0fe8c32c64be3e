/** What several nodes have of one series: the newest value, and one of the future only if there is no other. */
import { expect, it } from 'vitest'
import { finish, type Steps } from '../../../../server/kernel/core/fair-work.ts'
import type { Measurement, Metric } from '../../../../server/kernel/metrics/metric.ts'
import { type Reading, readAll } from '../../../../server/kernel/metrics/readings.ts'
import type { Selection } from '../../../../server/kernel/metrics/selection.ts'
import { FakeClock } from '../../../support/fake-clock.ts'

const HOUR = 3_600_000_000
const metric = { name: 'test.a' } as Metric
const labels = { name: 'test.a', host: 'h1' }

const clock = new FakeClock()
const now = clock.microseconds()

function at(time: number): Measurement {
  return { value: { type: 2, value: 1 }, time }
}

/** The times that are shown of a series that other nodes have with these times, and this server with that of `here`. */
async function shown(nodes: readonly number[], here: 'nothing' | 'no value' | number): Promise<(number | undefined)[]> {
  const series = { name: 'test.a', labels }
  const sensor = {
    metric: () => metric,
    last: () => (typeof here === 'number' ? at(here) : undefined),
  }
  const selection = {
    identity: { tenant: 'default' },
    isPushed: true,
    candidates: { ofKind: { listening: [] } },
    remote: { askNodes: () => nodes.map(async (time) => [{ metric, labels, measured: at(time) }]) },
    listening: () => [sensor],
    series: () => (here === 'nothing' ? [] : [series]),
    openFor: () => new Set(),
  } as unknown as Selection
  const hub = { fences: { has: () => false } } as never
  const work = { run: <T>(_: unknown, steps: Steps<T>): T => finish(steps) }
  const readings: Reading[] = []
  await readAll(selection, { hub, clock, work, deadlineMs: 1_000, isOver: () => false }, (one) => readings.push(one))
  return readings.map(({ measured }) => measured?.time)
}

it.each([
  ['the newest', [now - 2, now - 1], now - 3, [now - 1]],
  ['that of this server, if it is the newest', [now - 2], now, [now]],
  ['one of the future not', [now + HOUR, now - 1], now - 2, [now - 1]],
  ['one of the future not, beside that of this server', [now + HOUR], now - 2, [now - 2]],
  ['one of the future, if there is no other', [now + HOUR], 'nothing' as const, [now + HOUR]],
  ['one of the future, if this server has no value', [now + HOUR], 'no value' as const, [now + HOUR]],
])('shows %s', async (_, nodes, here, times) => expect(await shown(nodes, here)).toEqual(times))
