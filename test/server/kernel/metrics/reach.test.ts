/** Which producers the argument `producer` means. */
import { describe, expect, it } from 'vitest'
import type { LocalSensor, RemoteSensor } from '../../../../server/kernel/metrics/metric.ts'
import { producersBelow, Reach } from '../../../../server/kernel/metrics/reach.ts'
import { Metrics, text } from './fixture.ts'

const remote = (...paths: string[]): RemoteSensor => ({
  polled: 'remote',
  family: '',
  owner: { tenant: 'default' },
  producers: () => paths.map((name) => ({ id: '', name })),
  metrics: () => [],
  metric: () => undefined,
  follow: () => ({ series: [], end() {} }),
  ask: async () => [],
})
const tree = remote('east', 'east/rack1', 'west')

function reached(given: string | undefined, own = 'main'): { isOwn: boolean; producers: string[]; label?: string } {
  const reach = new Reach(given, own)
  const { isOwn, ownLabel } = reach
  const producers = reach.includes(tree) ? [...reach.producers(tree)] : []
  return { isOwn, producers, ...(ownLabel !== undefined && { label: ownLabel }) }
}

describe('what is reached', () => {
  it.each([
    [undefined, { isOwn: true, producers: [] }],
    ['main', { isOwn: true, producers: [] }],
    ['east', { isOwn: false, producers: ['east'] }],
    ['east/rack1', { isOwn: false, producers: ['east/rack1'] }],
    ['east*', { isOwn: false, producers: ['east', 'east/rack1'] }],
    ['*/*', { isOwn: false, producers: ['east/rack1'] }],
    ['*', { isOwn: true, producers: ['east', 'east/rack1', 'west'], label: 'main' }],
    ['north', { isOwn: false, producers: [] }],
  ])('by producer=%s', (given, expected) => {
    expect(reached(given)).toMatchObject(expected)
  })

  it('is this producer where the metric declares the argument itself', () => {
    const { push } = new Metrics()
    const parameters = [{ name: 'producer', type: 7, description: '' }] as const
    const series: LocalSensor = {
      ...push,
      polled: false,
      family: 'producer.',
      owner: 'producer',
      metrics: () => [],
      metric: (name) => ({ name, kind: 'continuous', type: 10, unit: '', description: '', parameters }),
      series: () => [],
      last: () => undefined,
    }
    const given = [text('producer', 'east')]
    expect(Reach.of(given, 'producer.series', [series], 'main').text).toBeUndefined()
    expect(Reach.of(given, 'producer.*', [series], 'main').text).toBe('east')
    expect(Reach.of(given, 'host.load.one', [series], 'main').text).toBe('east')
  })
})

describe('the producers that an identity may see', () => {
  const identity = { userId: 1, tenant: 'default', name: 'ann', role: 'consumer' }
  const bytes = (names: readonly { readonly id: string; readonly name: string }[]) =>
    names.reduce((sum, { id, name }) => sum + id.length + name.length + 20, 0)

  it('are all of them, in the order of their upstreams', () => {
    expect(producersBelow([tree], identity as never).map(({ name }) => name)).toEqual(['east', 'east/rack1', 'west'])
  })

  it('fit into one frame: those of an upstream that has very many leave room to the others', () => {
    const many = Array.from({ length: 10_000 }, (_, i) => `${'n'.repeat(64)}/${'m'.repeat(60)}${i}`)
    const sensor = remote('bad', ...many.map((path) => `bad/${path}`), 'good', 'good/rack1', 'good/rack2')
    const seen = producersBelow([sensor], identity as never)
    expect(bytes(seen)).toBeLessThan(600_000)
    expect(seen.length).toBeGreaterThan(1_000)
    expect(seen.map(({ name }) => name)).toEqual(expect.arrayContaining(['bad', 'good', 'good/rack1', 'good/rack2']))
  })
})
