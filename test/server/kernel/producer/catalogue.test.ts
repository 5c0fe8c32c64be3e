/** `producer.metrics` and `producer.controls`: what an identity is shown of the catalogue. */
import { beforeEach, describe, expect, test } from 'vitest'
import { BasicType } from '../../../../protocol/monitor/constants.ts'
import { valueToJson } from '../../../../protocol/monitor/json-value.ts'
import type { Value } from '../../../../protocol/monitor/value.ts'
import { WholePattern } from '../../../../server/kernel/controls/bounds.ts'
import type { ControlParameter } from '../../../../server/kernel/controls/control.ts'
import { finish, isSteps } from '../../../../server/kernel/core/fair-work.ts'
import { controlsView, metricsView } from '../../../../server/kernel/producer/catalogue.ts'
import { ProducerSensor, type ProducerView } from '../../../../server/kernel/producer/sensor.ts'
import { FakeClock } from '../../../support/fake-clock.ts'
import type { Json } from '../../../support/records.ts'
import { abroad, Metrics, rights, tester } from '../metrics/fixture.ts'

let metrics: Metrics
let view: ProducerView
beforeEach(() => {
  metrics = new Metrics()
  for (const name of ['test.b', 'test.a', 'test.c']) metrics.push.push(name, { type: 2, value: 1 }, 1)
  metrics.push.push('test.a', { type: 2, value: 1 }, 1, 'h2')
  view = metricsView(() => metrics.hub.sensors, rights)
})

function shown(of: ProducerView, identity = tester, args: Record<string, string | number> = {}): Json[] {
  const list = of.show(identity, new Map(Object.entries(args)))
  return valueToJson(isSteps<Value>(list) ? finish(list) : list) as Json[]
}
const names = (list: Json[]): string[] => list.map(({ name, more }) => (more ? 'more' : name))

describe('producer.metrics', () => {
  test('lists every metric once, ascending by name', () => {
    expect(names(shown(view))).toEqual(['events.thing', 'slow.value', 'test.a', 'test.b', 'test.c'])
  })

  test('tells name, kind, type, unit, description and parameters', () => {
    const [slow] = shown(view, tester, { match: 'slow.*' })
    expect(slow).toEqual({
      name: 'slow.value',
      kind: 'continuous',
      type: 'uint32',
      unit: '1',
      description: 'late',
      parameters: [{ name: 'which', type: 'uint32', optional: true, description: 'makes readings differ' }],
    })
    // Of an open family nothing is known before a value was seen.
    expect(shown(view, tester, { match: 'test.a' })[0].type).toBe('')
  })

  test('shows nobody the feeds of another tenant; the role admin sees all', () => {
    expect(names(shown(view, abroad))).toEqual(['events.thing', 'slow.value'])
    expect(names(shown(view, { ...abroad, role: 'admin' }))).toHaveLength(5)
  })

  test('`match`, `after` and `limit` narrow it; what was cut off is said', () => {
    expect(names(shown(view, tester, { match: 'test.*' }))).toEqual(['test.a', 'test.b', 'test.c'])
    expect(names(shown(view, tester, { after: 'test.a' }))).toEqual(['test.b', 'test.c'])
    expect(names(shown(view, tester, { match: '*', after: 'slow', limit: 2 }))).toEqual([
      'slow.value',
      'test.a',
      'more',
    ])
    expect(names(shown(view, tester, { match: 'test.*', limit: 3 }))).toEqual(['test.a', 'test.b', 'test.c'])
    expect(names(shown(view, tester, { limit: 0 }))).toEqual(['more'])
    expect(names(shown(view, tester, { after: 'zzz' }))).toEqual([])
  })

  test('paging by `after` shows everything once', () => {
    const seen: string[] = []
    for (let after = ''; ; after = seen.at(-1) as string) {
      const page = names(shown(view, tester, { after, limit: 2 }))
      const more = page.at(-1) === 'more'
      seen.push(...(more ? page.slice(0, -1) : page))
      if (!more) break
    }
    expect(seen).toEqual(['events.thing', 'slow.value', 'test.a', 'test.b', 'test.c'])
  })

  test('a pattern with too many stars is refused when it is collected, not when it is measured', () => {
    const sensor = new ProducerSensor(
      [
        view,
        controlsView(
          () => [],
          () => [],
          () => [],
        ),
      ],
      new FakeClock(),
    )
    const args = new Map([['match', '*'.repeat(9)]])
    for (const metric of sensor.metrics()) {
      expect(() => sensor.check(metric, args)).toThrow(expect.objectContaining({ status: 'INVALID_ARGUMENT' }))
      sensor.check(metric, new Map([['match', '*']]))
    }
  })
})

describe('producer.controls', () => {
  const control = (name: string) => ({
    name,
    description: 'd',
    parameters: [{ name: 'p', type: BasicType.UINT64, optional: true, description: 'q' }],
  })
  const controls = controlsView(
    (identity) => (identity === tester ? [control('b.y'), control('a.x')] : []),
    () => [],
    (_, control) => (control === 'b.y' ? ['chief', 'lead'] : []),
  )

  test('lists what the identity is shown, ascending, with its arguments', () => {
    expect(shown(controls)).toEqual([
      {
        name: 'a.x',
        description: 'd',
        parameters: [{ name: 'p', type: 'uint64', optional: true, description: 'q' }],
      },
      expect.objectContaining({ name: 'b.y', approval: 'chief\nlead' }),
    ])
    expect(shown(controls, abroad)).toEqual([])
    expect(names(shown(controls, tester, { match: 'b.*' }))).toEqual(['b.y'])
  })

  const parameterShown = (parameter: Partial<ControlParameter> & Pick<ControlParameter, 'type'>): Json => {
    const declared = { name: 'p', description: '', ...parameter }
    const [one] = shown(
      controlsView(
        () => [{ name: 'a.x', description: 'd', parameters: [declared] }],
        () => [],
        () => [],
      ),
    )
    const [shape] = (one as Json).parameters as [Json]
    const names = ['name', 'type', 'optional', 'description']
    return Object.fromEntries(Object.entries(shape).filter(([name]) => !names.includes(name)))
  }

  test('declares bounds in the type of the parameter, and none that the type itself has', () => {
    const { UINT32, UINT64, INT64, DOUBLE, STRING } = BasicType
    expect(parameterShown({ type: UINT64, min: 1, max: 2 ** 53 - 1 })).toEqual({ min: 1, max: 2 ** 53 - 1 })
    expect(parameterShown({ type: UINT32, min: 0, max: 0xffffffff, default: 3 })).toEqual({ default: 3 })
    expect(parameterShown({ type: INT64, min: -5n, max: 1e30, default: 2n })).toEqual({ min: -5, default: 2 })
    expect(parameterShown({ type: UINT32, min: 1.5, max: 7.5 })).toEqual({ min: 2, max: 7 })
    expect(parameterShown({ type: DOUBLE, min: 0.5, max: Number.NaN })).toEqual({ min: 0.5 })
    const pattern = new WholePattern('[a-z]+')
    expect(parameterShown({ type: STRING, maxLength: 9, pattern, values: ['a', 'b'], default: 'a' })).toEqual({
      max_length: 9,
      pattern: '[a-z]+',
      values: 'a\nb',
      default: 'a',
    })
  })

  test('says that a parameter is masked, and still what it may be, unless it is secret', () => {
    const masked = { type: BasicType.STRING, masked: () => '***', values: ['a'], default: 'a' }
    expect(parameterShown(masked)).toEqual({ masked: true, values: 'a', default: 'a' })
    expect(parameterShown({ ...masked, secret: true })).toEqual({ secret: true })
  })

  test('says that a parameter is secret, and not which texts it may be', () => {
    const secret = { type: BasicType.STRING, secret: true, maxLength: 4, values: ['1234'], default: '1234' }
    expect(parameterShown({ ...secret, pattern: new WholePattern('[0-9]{4}') })).toEqual({
      max_length: 4,
      secret: true,
    })
  })
})
