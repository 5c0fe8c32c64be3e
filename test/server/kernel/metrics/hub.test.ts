import { beforeEach, describe, expect, test } from 'vitest'
import type { AccessRequest } from '../../../../auth/permissions.ts'
import { BasicType } from '../../../../protocol/monitor/constants.ts'
import { Count } from '../../../../server/kernel/accounts/quotas.ts'
import { FairWork, finish } from '../../../../server/kernel/core/fair-work.ts'
import { Hub } from '../../../../server/kernel/metrics/hub.ts'
import { MetricInstance } from '../../../../server/kernel/metrics/instance.ts'
import type { Series } from '../../../../server/kernel/metrics/metric.ts'
import { Selection } from '../../../../server/kernel/metrics/selection.ts'
import { FakeClock } from '../../../support/fake-clock.ts'
import { PushSensor, SlowSensor, ThingSensor } from '../../../support/test-sensor.ts'
import { abroad, Kept, Metrics, rights, tester, text } from './fixture.ts'

let metrics: Metrics
let sink: Kept
beforeEach(() => {
  metrics = new Metrics()
  sink = new Kept()
})
const atH1 = [text('host', 'h1')]

function push(name: string, value: number, host = 'h1'): void {
  metrics.push.push(name, { type: 2, value }, value, host)
}

test('a series that is born after the tap is tapped, if it matches', () => {
  metrics.hub.bind(metrics.instance('test.*', atH1), sink)
  push('test.a', 1)
  push('test.a', 2, 'h2')
  push('test.b', 3)
  expect(sink.numbers).toEqual([1, 3])
})

test('a series that lives already is tapped from its next value on', () => {
  push('test.a', 1)
  metrics.hub.bind(metrics.instance('test.a', atH1), sink)
  push('test.a', 2)
  expect(sink.numbers).toEqual([2])
})

test('a death is one VOID at the present time; the next birth is another series', () => {
  metrics.hub.bind(metrics.instance('test.a', atH1), sink)
  push('test.a', 1)
  metrics.push.die('test.a')
  metrics.push.die('test.a')
  push('test.a', 2)
  expect(sink.numbers).toEqual([1, undefined, 2])
  expect(sink.frames[1]?.time).toBe(metrics.clock.microseconds())
})

test('a series that has died is nobody’s, should its sensor go on with it', () => {
  metrics.hub.bind(metrics.instance('test.a', atH1), sink)
  push('test.a', 1)
  const [series] = [...metrics.push.series('test.a')] as [Series]
  metrics.hub.died(series)
  metrics.hub.emit(series, { type: 2, value: 2 }, 2)
  metrics.hub.died(series)
  expect(sink.numbers).toEqual([1, undefined])
})

test('a value with many taps reaches each under its own id, with the same bytes', () => {
  const instances = [metrics.instance('test.a', atH1), metrics.instance('test.a', atH1)]
  for (const instance of instances) metrics.hub.bind(instance, sink)
  push('test.a', 9)
  expect(sink.frames.map(({ metric }) => metric)).toEqual(instances.map(({ id }) => id))
  expect(sink.frames[0]?.rest).toEqual(sink.frames[1]?.rest)
})

test('a tap that ended gets nothing more: of no birth, no value, no death, no event, no reading', () => {
  for (const [name, list] of [
    ['test.a', atH1],
    ['test.*', atH1],
    ['slow.value', []],
    ['events.thing', []],
  ] as const) {
    const { end } = metrics.hub.bind(metrics.instance(name, list), sink)
    end()
    end()
  }
  push('test.a', 1)
  push('test.b', 1)
  metrics.push.die('test.a')
  metrics.things.happen(1, 1)
  for (const answer of metrics.slow.asked) answer({ value: { type: 2, value: 1 }, time: 1 })
  metrics.clock.advance(60_000)
  expect(sink.frames).toEqual([])
  expect(metrics.clock.timers).toBe(0)
})

test('one tap that ends takes no other along', () => {
  const instance = metrics.instance('test.a', atH1)
  const other = new Kept()
  const { end } = metrics.hub.bind(instance, sink)
  metrics.hub.bind(instance, other)
  push('test.a', 1)
  end()
  push('test.a', 2)
  expect([sink.numbers, other.numbers]).toEqual([[1], [1, 2]])
})

test('whoever binds a series that has a first value is given it, and nobody else is', () => {
  push('test.a', 1)
  const [series] = [...metrics.push.series('test.a')] as [Series]
  series.first = () => ({ value: { type: BasicType.UINT32, value: 7 }, time: 5 })
  metrics.hub.bind(metrics.instance('test.a', atH1), sink)
  const other = new Kept()
  metrics.hub.bind(metrics.instance('test.*'), other)
  expect(sink.frames.map(({ time }) => time)).toEqual([5])
  expect([sink.numbers, other.frames.length]).toEqual([[7], 1])
  push('test.a', 2)
  expect(sink.numbers).toEqual([7, 2])
})

test('a series that comes to be found by other names is matched anew', () => {
  metrics.hub.bind(metrics.instance('test.a', [text('host', 'alias')]), sink)
  push('test.a', 1)
  const [series] = [...metrics.push.series('test.a')] as {
    matches: (label: string, by: (text: string) => boolean) => boolean
  }[]
  const aliased = series as NonNullable<typeof series>
  aliased.matches = (_, by) => by('alias')
  metrics.hub.born(metrics.push, aliased as never)
  push('test.a', 2)
  aliased.matches = (_, by) => by('h1')
  metrics.hub.born(metrics.push, aliased as never)
  push('test.a', 3)
  expect(sink.numbers).toEqual([2])
})

test('two polled sensors with a metric of the same name are both measured, and both end', async () => {
  const other = new SlowSensor()
  metrics.hub.add(other)
  const sensors = [metrics.slow, other]
  const instance = metrics.instance('slow.*')
  const { end } = metrics.hub.bind(instance, sink)
  const answer = (round: number): Promise<unknown> => {
    for (const [index, { asked }] of sensors.entries()) {
      for (const done of asked.splice(0)) done({ value: { type: 2, value: 100 * round + index }, time: 1 })
    }
    return new Promise((resolve) => setImmediate(resolve))
  }
  await answer(1)
  metrics.clock.advance(1_000)
  await answer(2)
  expect(sink.numbers).toEqual([100, 101, 200, 201])
  finish(metrics.hub.rematch(instance))
  expect(sensors.map(({ asked }) => asked.length)).toEqual([0, 0])
  end()
  expect(metrics.clock.timers).toBe(0)
})

test('closing ends all taps', () => {
  metrics.hub.bind(metrics.instance('test.a', atH1), sink)
  metrics.hub.bind(metrics.instance('slow.value'), sink)
  metrics.hub.close()
  push('test.a', 1)
  expect([sink.frames.length, metrics.clock.timers]).toEqual([0, 0])
})

test.each(['slow.value', 'test.a'])(
  'that %s is no longer allowed is noticed, whenever a metric is tried again that had no room',
  (denied) => {
    for (let after = 0, isOver = false; !isOver; after++) {
      const count = new Count('metrics', () => limit)
      let [limit, isAllowed] = [1, true]
      const judge = (_by: unknown, { object }: AccessRequest) => {
        return { allowed: isAllowed || object !== denied, because: '' }
      }
      const clock = new FakeClock()
      const hub = new Hub(clock, { quotaOf: () => count })
      if (denied === 'test.a') new PushSensor(hub).push('test.a', { type: 2, value: 1 }, 1)
      else hub.add(new SlowSensor())
      hub.add(new ThingSensor())
      const defaults = { intervalMs: 1000, rights: { judge, mayBeAllowed: () => true, readsAll: () => true } }
      const instance = new MetricInstance(1, finish(Selection.of(hub.sensors, tester, '*', [], defaults)))
      hub.bind(instance, sink)
      expect([count.used, count.refused]).toEqual([1, 1])
      isAllowed = false
      const rematch = hub.rematch(instance)
      for (let step = 0; step < after; step++) isOver = rematch.next().done === true
      if (isOver) break
      limit = 2
      hub.sweep()
      expect(finish(rematch), `after ${after} steps`).toBe('some')
      hub.sweep()
      expect([count.used, count.refused]).toEqual([1, 1])
    }
  },
)

test('work of a sensor is done in steps, over several turns; what a step throws is a fault of the sensor', () => {
  const clock = new FakeClock()
  const turns: (() => void)[] = []
  let nowMs = 0
  const work = new FairWork({ monotonicMs: () => nowMs++ }, (turn) => turns.push(turn))
  const hub = new Hub(clock, { work })
  const sensor = new PushSensor(hub)
  let done = 0
  function* steps() {
    for (; done < 20; done++) yield
    throw new Error('broken')
  }
  hub.run(sensor, steps())
  expect(done).toBeLessThan(20)
  for (let next = turns.shift(); next !== undefined; next = turns.shift()) next()
  expect(done).toBe(20)
  const status = { name: 'test', state: 'listening', detail: '', counters: {} } as const
  expect(hub.faults.shown(sensor, status)).toMatchObject({ state: 'failed', counters: { faults: 1 } })
})

/** Looks at the clock make it later, so that little is done at once; turns of the event loop come when the test says so. */
function slow(quotaOf?: (tenant: string) => Count) {
  const clock = new FakeClock()
  const turns: (() => void)[] = []
  let nowMs = 0
  const work = new FairWork({ monotonicMs: () => nowMs++ }, (turn) => turns.push(turn))
  const hub = new Hub(clock, { quotaOf, work })
  const push = new PushSensor(hub)
  const select = (identity = tester) =>
    finish(Selection.of(hub.sensors, identity, 'test.*', [], { intervalMs: 1000, rights }))
  let id = 0
  const bind = (identity = tester) => {
    const kept = new Kept()
    const instance = new MetricInstance(++id, select(identity))
    const { end } = hub.bind(instance, kept)
    return { kept, instance, end }
  }
  const settle = () => {
    for (let next = turns.shift(); next !== undefined; next = turns.shift()) next()
  }
  const emit = (value: number) => push.push('test.a', { type: 2, value }, value)
  return { hub, push, turns, bind, settle, emit }
}

describe('a birth', () => {
  test('asks no pattern of another tenant', () => {
    const { bind, settle, emit } = slow()
    const { instance, kept } = bind(abroad)
    let asked = 0
    const { openFor } = instance.selection
    instance.selection.openFor = (...of) => {
      asked++
      return openFor.apply(instance.selection, of)
    }
    const mine = bind()
    settle()
    emit(1)
    settle()
    expect([asked, kept.frames.length, mine.kept.numbers]).toEqual([0, 0, [1]])
  })

  test('that many patterns match asks some of them later, and these miss nothing', () => {
    const { push, bind, settle, emit } = slow()
    const all = Array.from({ length: 1_000 }, () => bind())
    settle()
    emit(1)
    const early = all.filter(({ kept }) => kept.frames.length > 0).length
    expect(early).toBeLessThan(500)
    emit(2)
    const late = bind()
    push.die('test.a')
    emit(3)
    settle()
    emit(4)
    for (const { kept } of all) expect(kept.numbers).toEqual([1, 2, undefined, 3, 4])
    expect(late.kept.numbers.at(-1)).toBe(4)
    expect(late.kept.numbers).not.toContain(1)
  })

  test('is asked about at once when its series has too many values to keep', async () => {
    const { bind, settle, emit } = slow()
    const all = Array.from({ length: 600 }, () => bind())
    settle()
    const values = Array.from({ length: 100 }, (_, value) => value + 1000)
    for (const value of values) emit(value)
    await Promise.resolve()
    for (const { kept } of all) expect(kept.numbers).toEqual(values)
    emit(2000)
    settle()
    for (const { kept } of all) expect(kept.numbers).toEqual([...values, 2000])
  })

  test('is asked about before other names then, and these in their time', async () => {
    const { push, bind, settle, emit } = slow()
    const all = Array.from({ length: 600 }, () => bind())
    settle()
    push.push('test.b', { type: 2, value: 1 }, 1)
    const values = Array.from({ length: 100 }, (_, value) => value + 1000)
    for (const value of values) emit(value)
    await Promise.resolve()
    for (const { kept } of all) expect(kept.numbers.filter((value) => value !== 1)).toEqual(values)
    expect(all.filter(({ kept }) => kept.numbers.includes(1)).length).toBeLessThan(500)
    settle()
    for (const { kept } of all) expect(kept.numbers.filter((value) => value === 1)).toEqual([1])
  })

  test('says when all who were there have its values, whoever is born afterwards', async () => {
    const { hub, push, turns, bind, settle, emit } = slow()
    const all = Array.from({ length: 1_000 }, () => bind())
    settle()
    expect(hub.whenAsked(push)).toBeUndefined()
    emit(1)
    let isAsked = false
    void hub.whenAsked(push)?.then(() => {
      isAsked = true
    })
    push.push('test.b', { type: 2, value: 2 }, 2)
    while (!isAsked) {
      turns.shift()?.()
      await Promise.resolve()
      await Promise.resolve()
    }
    expect(all.every(({ kept }) => kept.numbers.includes(1))).toBe(true)
    expect(all.every(({ kept }) => kept.numbers.includes(2))).toBe(false)
    settle()
    expect(all.every(({ kept }) => kept.numbers.includes(2))).toBe(true)
    expect(hub.whenAsked(push)).toBeUndefined()
  })
})

describe('a fence with many subscriptions', () => {
  const voids = (all: readonly { readonly kept: Kept }[]) => all.map(({ kept }) => kept.frames.length)

  test('ends them over several turns, each with one VOID, and tells when the last has ended', async () => {
    const { hub, push, turns, bind, settle, emit } = slow()
    emit(1)
    const bound = Array.from({ length: 50 }, () => bind())
    settle()
    let isFenced = false
    const fenced = Promise.resolve(hub.fence(push)).then(() => {
      isFenced = true
    })
    await Promise.resolve()
    expect(isFenced).toBe(false)
    let most = 0
    for (let next = turns.shift(), before = 0; next !== undefined; next = turns.shift()) {
      next()
      const done = voids(bound).filter((count) => count > 0).length
      most = Math.max(most, done - before)
      before = done
    }
    await fenced
    expect(most).toBeLessThan(10)
    emit(2)
    expect(voids(bound)).toEqual(bound.map(() => 1))
  })

  test('that is resumed meanwhile leaves those that have not ended, and gives back the others', async () => {
    const { hub, push, turns, bind, settle, emit } = slow()
    emit(1)
    const bound = Array.from({ length: 50 }, () => bind())
    settle()
    void hub.fence(push)
    turns.shift()?.()
    const had = voids(bound)
    expect(had).toContain(0)
    expect(had).toContain(1)
    void hub.resume(push)
    settle()
    emit(2)
    expect(voids(bound)).toEqual(had.map((count) => count + 1))
  })
})

test('a binding that ends while its sensor is being fenced gets no VOID any more, and no longer counts', () => {
  const count = new Count('bound metrics', () => 1_000)
  const { hub, push, turns, bind, settle } = slow(() => count)
  for (let number = 0; number < 50; number++) push.push(`test.${number}`, { type: 2, value: 1 }, 1)
  const { kept, end } = bind()
  settle()
  void hub.fence(push)
  turns.shift()?.()
  const voids = kept.frames.length
  end()
  settle()
  expect(voids).toBeLessThan(50)
  expect([kept.frames.length, count.used]).toEqual([voids, 0])
})

test('what a quota keeps from being polled gets no VOID of a fence', () => {
  const count = new Count('bound metrics', () => 1)
  const hub = new Hub(metrics.clock, { quotaOf: () => count })
  const [first, second] = [new SlowSensor(), new SlowSensor()]
  for (const sensor of [first, second]) hub.add(sensor)
  const selection = finish(Selection.of(hub.sensors, tester, 'slow.*', [], { intervalMs: 1000, rights }))
  hub.bind(new MetricInstance(1, selection), sink)
  void hub.fence(second)
  expect(sink.numbers).toEqual([])
  void hub.fence(first)
  expect(sink.numbers).toEqual([undefined])
})

describe('a binding that pauses', () => {
  const answer = async (index: number): Promise<void> => {
    metrics.slow.asked[index]?.({ value: { type: 2, value: 20 + index }, time: index })
    await new Promise((resolve) => setImmediate(resolve))
  }

  test('has nothing polled, and everything that is pushed; then it is measured at once', async () => {
    const binding = metrics.hub.bind(metrics.instance('*'), sink)
    await answer(0)
    metrics.clock.advance(1000)
    finish(binding.pause(true))
    // It was asked before, and comes too late.
    await answer(1)
    push('test.a', 7)
    metrics.things.happen(8, 1)
    metrics.clock.advance(60_000)
    expect([sink.numbers, metrics.slow.asked.length, metrics.clock.timers]).toEqual([[20, 7, 8], 2, 0])
    finish(binding.pause(false))
    finish(binding.pause(false))
    expect(metrics.slow.asked).toHaveLength(3)
    await answer(2)
    push('test.a', 9)
    expect(sink.numbers).toEqual([20, 7, 8, 22, 9])
    binding.end()
    expect(metrics.clock.timers).toBe(0)
  })

  test('leaves alone whoever else is polled for', async () => {
    const other = new Kept()
    const binding = metrics.hub.bind(metrics.instance('slow.value'), sink)
    metrics.hub.bind(metrics.instance('slow.value'), other)
    finish(binding.pause(true))
    metrics.clock.advance(1000)
    await answer(2)
    expect([sink.numbers, other.numbers]).toEqual([[], [22]])
  })

  test('reports each pause to its sink, if anything polled is kept from it', () => {
    let pauses = 0
    const told = Object.assign(sink, { paused: () => pauses++ })
    const pushed = metrics.hub.bind(metrics.instance('test.*'), told)
    finish(pushed.pause(true))
    expect(pauses).toBe(0)
    metrics.hub.bind(metrics.instance('slow.*'), told, undefined, true)
    expect([pauses, metrics.slow.asked.length]).toEqual([1, 0])
  })

  test('is not sent the VOID of a sensor that is fenced: it would not have been sent its values', () => {
    const binding = metrics.hub.bind(metrics.instance('slow.*'), sink)
    finish(binding.pause(true))
    metrics.hub.fence(metrics.slow)
    expect(sink.numbers).toEqual([])
    finish(binding.pause(false))
    expect(sink.numbers).toEqual([undefined])
  })
})

test('a selection that throws in a search costs only its binding, is reported, and is asked again', () => {
  const [broken, other] = [metrics.instance('thing.*', []), metrics.instance('test.a', atH1)]
  Object.defineProperty(broken.selection, 'selectsParts', { value: true })
  metrics.hub.bind(broken, sink)
  metrics.hub.bind(other, sink)
  const reported: unknown[] = []
  metrics.hub.faults.reportBinding = (_, error) => reported.push(error)
  Object.defineProperty(broken.selection, 'polled', {
    value: () => {
      throw new Error('not selectable')
    },
  })
  // A search comes with each tenth sweep.
  for (let sweep = 0; sweep < 20; sweep++) metrics.hub.sweep()
  expect(reported).toEqual([new Error('not selectable'), new Error('not selectable')])
  push('test.a', 1)
  expect(sink.numbers.at(-1)).toBe(1)
})
