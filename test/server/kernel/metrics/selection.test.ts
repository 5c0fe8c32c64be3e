import { beforeEach, describe, expect, test } from 'vitest'
import { BasicType, labelNames } from '../../../../protocol/monitor/constants.ts'
import { StatusError } from '../../../../server/kernel/core/errors.ts'
import { finish } from '../../../../server/kernel/core/fair-work.ts'
import type { LabelName, Metric } from '../../../../server/kernel/metrics/metric.ts'
import { PushSensor, TestSeries } from '../../../support/test-sensor.ts'
import { abroad, Metrics, tester, text, uint } from './fixture.ts'

let metrics: Metrics
beforeEach(() => {
  metrics = new Metrics()
})
const status = (name: string) => expect.objectContaining({ status: name })

describe('a name', () => {
  test('of no sensor, of a closed family that has it not, or of another tenant is NO_SUCH_METRIC', () => {
    for (const name of ['', 'test', 'other.a', 'slow.other', 'events.']) {
      expect(() => metrics.select(name)).toThrow(status('NO_SUCH_METRIC'))
    }
    expect(() => metrics.select('test.a', [], abroad)).toThrow(status('NO_SUCH_METRIC'))
    expect(metrics.select('test.a', [], { ...abroad, role: 'admin' }).listening()).toHaveLength(1)
  })

  test('of an open family is taken before it is seen', () => {
    expect(metrics.select('test.never').listening()).toEqual([metrics.push])
  })

  test('says its kind; a pattern is event-like only if all that match are', () => {
    expect(finish(metrics.select('events.thing').kind())).toBe('event')
    expect(finish(metrics.select('events.*').kind())).toBe('event')
    expect(finish(metrics.select('slow.value').kind())).toBe('continuous')
    expect(finish(metrics.select('*').kind())).toBe('continuous')
    expect(finish(metrics.select('nothing.*').kind())).toBe('continuous')
  })
})

test('a pattern that matches nothing yet, as after a start, is of the kind of what it matches once it does', () => {
  const selection = metrics.select('events.l*')
  expect(finish(selection.kind())).toBe('continuous')
  const late: Metric = { ...(metrics.things.metric('events.thing') as Metric), name: 'events.late' }
  metrics.things.metrics = () => [late]
  expect(finish(selection.kind())).toBe('event')
})

describe('arguments every continuous metric takes', () => {
  test('have defaults and bounds', () => {
    expect(metrics.select('slow.value')).toMatchObject({ intervalMs: 1000, deadlineMs: 10_000 })
    const given = metrics.select('slow.value', [uint('interval_ms', 10), uint('deadline_ms', 600_000)])
    expect(given).toMatchObject({ intervalMs: 10, deadlineMs: 600_000 })
    for (const bad of [
      uint('interval_ms', 9),
      uint('interval_ms', 86_400_001),
      uint('deadline_ms', 0),
      uint('deadline_ms', 600_001),
    ]) {
      expect(() => metrics.select('slow.value', [bad])).toThrow(status('INVALID_ARGUMENT'))
    }
  })

  test('are not those of event-like ones', () => {
    expect(() => metrics.select('events.thing', [uint('deadline_ms', 5)])).toThrow(status('INVALID_ARGUMENT'))
  })

  test('make no other reading: the key is that of the same metric and arguments, in whatever order', () => {
    const key = metrics.select('slow.value', [uint('which', 1), uint('deadline_ms', 5)]).key
    expect(metrics.select('slow.value', [uint('interval_ms', 50), uint('which', 1)]).key).toBe(key)
    expect(metrics.select('slow.value', [uint('which', 2)]).key).not.toBe(key)
    expect(metrics.select('test.a', [text('host', 'x')]).key).not.toBe(metrics.select('test.a host=x').key)
  })
})

describe('what is open', () => {
  function openOf(name: string, ...list: Parameters<typeof text>[]): string[] | undefined {
    const selection = metrics.select(
      name,
      list.map((given) => text(...given)),
    )
    const open = selection.openFor(metrics.push, new TestSeries('test.a', 'h1'))
    return open && labelNames.filter((label) => open.has(label))
  }

  test('is the name of a pattern and each selecting argument that is left out or holds a star', () => {
    expect(openOf('test.a')).toEqual(['host'])
    expect(openOf('test.a', ['host', 'h1'])).toEqual([])
    expect(openOf('test.a', ['host', 'h*'])).toEqual(['host'])
    expect(openOf('test.*')).toEqual(['name', 'host'])
    expect(openOf('test.*', ['host', 'h1'])).toEqual(['name'])
    expect(metrics.select('test.a').carriesLabels()).toBe(true)
    expect(metrics.select('test.a', [text('host', 'h1')]).carriesLabels()).toBe(false)
  })

  test('is nothing of what does not match', () => {
    expect(openOf('test.b')).toBeUndefined()
    expect(openOf('test.a', ['host', 'h2'])).toBeUndefined()
    expect(openOf('other.*')).toBeUndefined()
  })

  test('`index` left out is the series without one', () => {
    const parameters = [
      { name: 'source', type: BasicType.STRING, description: '', selects: 'any' },
      { name: 'index', type: BasicType.STRING, description: '', selects: 'any' },
    ] as const
    class Indexed extends PushSensor {
      override metric(name: string): Metric {
        return { name, kind: 'continuous', type: undefined, unit: '', description: '', parameters }
      }
    }
    const sensor = new Indexed(metrics.hub, 'smon.')
    const series = (index = '') => ({
      name: 'smon.a',
      labels: { name: 'smon.a', source: 's', index },
      subscriptions: [],
      matches: (label: LabelName, matcher: (text: string) => boolean) => label !== 'index' || matcher(index),
    })
    const source = text('source', 's')
    const without = metrics.select('smon.a', [source])
    expect([without.openFor(sensor, series()), without.openFor(sensor, series('2'))]).toEqual([new Set(), undefined])
    const second = metrics.select('smon.a', [source, text('index', '2')])
    expect(second.openFor(sensor, series('2'))).toEqual(new Set())
    for (const other of [series(), series('3')]) expect(second.openFor(sensor, other)).toBeUndefined()
    const any = metrics.select('smon.a', [source, text('index', '*')])
    for (const each of [series(), series('3')]) expect(any.openFor(sensor, each)).toEqual(new Set(['index']))
  })
})

test('a pattern passes over metrics that do not take what was given', () => {
  expect(finish(metrics.select('*', [uint('which', 1)]).polled())).toHaveLength(1)
  expect(finish(metrics.select('*', [uint('which', 1)]).events())).toHaveLength(0)
  expect(finish(metrics.select('*').events())).toHaveLength(1)
})

test('what is stored of it makes the same selection again', () => {
  const given = [text('host', 'h*'), uint('deadline_ms', 50)]
  const selection = metrics.select('test.*', given)
  const again = metrics.select('test.*', selection.args)
  expect([again.deadlineMs, again.carriesLabels()]).toEqual([50, true])
  expect(selection.args).toEqual(given)
  expect(selection.identity).toBe(tester)
})

test('a part that is gone since it was listed refuses nothing', () => {
  const metric: Metric = {
    name: 'disk.used',
    kind: 'continuous',
    type: BasicType.UINT32,
    unit: '',
    description: '',
    parameters: [{ name: 'mount', type: BasicType.STRING, description: '', selects: 'part' }],
  }
  metrics.hub.add({
    polled: true,
    family: 'disk.',
    owner: 'producer',
    personal: false,
    metrics: () => [metric],
    metric: () => metric,
    labels: ({ name }) => ({ name }),
    parts: () => ['/', '/gone'],
    check: (_metric, args) => {
      if (args.get('mount') === '/gone') throw new StatusError('INVALID_ARGUMENT', 'there is no such mount')
    },
    measure: () => ({ value: { type: BasicType.UINT32, value: 1 }, time: 1 }),
  })
  expect(() => finish(metrics.select('disk.used', [text('mount', '*')]).check())).not.toThrow()
  expect(() => finish(metrics.select('disk.used', [text('mount', '/gone')]).check())).toThrow('no such mount')
})
