/** Which series their sensors are told to ask for. */
import { beforeEach, expect, test } from 'vitest'
import { BasicType } from '../../../../protocol/monitor/constants.ts'
import { finish } from '../../../../server/kernel/core/fair-work.ts'
import type { MetricInstance } from '../../../../server/kernel/metrics/instance.ts'
import type { Series } from '../../../../server/kernel/metrics/metric.ts'
import { abroad, Kept, Metrics, text } from './fixture.ts'

let metrics: Metrics
let reported: boolean[]
let series: Series

beforeEach(() => {
  metrics = new Metrics()
  reported = []
  metrics.push.push('test.a', { type: BasicType.UINT32, value: 1 }, 1)
  series = [...metrics.push.series('test.a')][0] as Series
  series.wanted = (isWanted) => reported.push(isWanted)
})

function chosen(name = 'test.a', list?: Parameters<Metrics['instance']>[1], identity?: typeof abroad) {
  const instance = metrics.instance(name, list, identity)
  finish(metrics.hub.demand.match(instance))
  return instance
}
const stop = (instance: MetricInstance) => metrics.hub.demand.remove(instance)

test('a series is wanted from the first instance that selects it until the last is gone, bound or not', () => {
  const [first, second] = [chosen(), chosen('test.*')]
  expect(reported).toEqual([true])
  const { end } = metrics.hub.bind(first, new Kept())
  end()
  stop(first)
  expect(reported).toEqual([true])
  stop(second)
  stop(second)
  expect(reported).toEqual([true, false])
})

test('what there may be one day is wanted like what there is, and nobody is sent anything of it', () => {
  const names: (string | undefined)[] = []
  const expected = (name?: string) => {
    names.push(name)
    return [
      { ...series, name: 'test.a', labels: series.labels, subscriptions: series.subscriptions, matches: () => true },
    ]
  }
  Object.assign(metrics.push, { expected })
  series.matches = () => false
  const instance = chosen('test.a', [text('host', 'nowhere')])
  expect([reported, names]).toEqual([[true], ['test.a']])
  metrics.hub.bind(instance, new Kept())
  expect(series.subscriptions).toEqual([])
  stop(instance)
  expect(reported).toEqual([true, false])
})

test('an instance that selects others wants nothing of it', () => {
  for (const instance of [chosen('test.b'), chosen('test.a', [text('host', 'h9')]), chosen('*', [], abroad)]) {
    stop(instance)
  }
  expect(reported).toEqual([])
})

test('a series that is born, or found by other names, is looked at anew', () => {
  chosen('test.a', [text('host', 'alias')])
  expect(reported).toEqual([])
  series.matches = (_, by) => by('alias')
  metrics.hub.born(metrics.push, series)
  metrics.hub.born(metrics.push, series)
  expect(reported).toEqual([true])
  series.matches = (_, by) => by('h1')
  metrics.hub.born(metrics.push, series)
  expect(reported).toEqual([true, false])
})

test('a series that died is told nothing more', () => {
  const instance = chosen()
  metrics.push.die('test.a')
  stop(instance)
  expect(reported).toEqual([true])
})

test('of a fenced sensor nothing is wanted', () => {
  const instance = chosen()
  metrics.hub.fence(metrics.push)
  expect(reported).toEqual([true, false])
  const late = chosen()
  expect(reported).toEqual([true, false])
  metrics.hub.resume(metrics.push)
  expect(reported).toEqual([true, false, true])
  stop(instance)
  stop(late)
  expect(reported).toEqual([true, false, true, false])
})

test('to fence a sensor makes none of its series: there may be a million that nobody ever asked for', () => {
  const instance = chosen()
  metrics.hub.bind(instance, new Kept())
  const { series: all } = metrics.push
  metrics.push.series = () => {
    throw new Error('asked for all of them')
  }
  metrics.hub.fence(metrics.push)
  expect([reported, series.subscriptions]).toEqual([[true, false], []])
  metrics.push.series = all
})

test('what an instance may not select any more is not wanted by it', () => {
  const instance = chosen()
  instance.selection.openFor = () => undefined
  finish(metrics.hub.rematch(metrics.instance('test.b')))
  expect(reported).toEqual([true])
  finish(metrics.hub.rematch(instance))
  expect(reported).toEqual([true, false])
})

test('what stands for series of any name is wanted by every name and pattern whose labels may fit', () => {
  const { wanted } = series
  delete (series as { wanted?: unknown }).wanted
  const placeholder = { ...series, name: 'test.', labels: { host: 'h1' }, anyName: /^\w*$/, wanted }
  Object.assign(metrics.push, { expected: () => [placeholder] })
  for (const [name, list] of [
    ['test.a', [text('host', 'h1')]],
    ['test.*', []],
    ['*', [text('host', 'h*')]],
  ] as const) {
    stop(chosen(name, list))
    expect(reported.splice(0)).toEqual([true, false])
  }
  for (const [name, list, identity] of [
    ['test.a', [text('host', 'h2')], undefined],
    ['other.*', [], undefined],
    ['test.*', [], abroad],
  ] as const) {
    stop(chosen(name, list, identity))
    expect(reported).toEqual([])
  }
})

test('an instance with `on_demand` false wants nothing, and has what comes anyway', () => {
  const sink = new Kept()
  const instance = chosen('test.a', [{ name: 'on_demand', type: BasicType.BOOLEAN, value: false }])
  metrics.hub.bind(instance, sink)
  metrics.push.push('test.a', { type: BasicType.UINT32, value: 2 }, 2)
  expect(reported).toEqual([])
  expect(sink.numbers).toEqual([2])
})
