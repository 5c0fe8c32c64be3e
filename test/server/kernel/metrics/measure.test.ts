import { beforeEach, describe, expect, test, vi } from 'vitest'
import { XdrWriter } from '../../../../protocol/bytes/writer.ts'
import { writeValueMessage } from '../../../../protocol/monitor/message.ts'
import { finish, type Steps } from '../../../../server/kernel/core/fair-work.ts'
import { measure, RecordList } from '../../../../server/kernel/metrics/measure.ts'
import type { Measurement } from '../../../../server/kernel/metrics/metric.ts'
import type { Selection } from '../../../../server/kernel/metrics/selection.ts'
import { Metrics, text } from './fixture.ts'

let metrics: Metrics
beforeEach(() => {
  metrics = new Metrics()
})
const NOW = 77

function push(name: string, value: number, host = 'h1'): void {
  metrics.push.push(name, { type: 2, value }, value, host)
}

const measured = (selection: Selection, now: number) => finish(measure(selection, () => now, metrics.hub))

describe('of one metric', () => {
  test('is the last value with its own time, or VOID now', () => {
    const selection = metrics.select('test.a', [text('host', 'h1')])
    expect(measured(selection, NOW)).toEqual({ value: { type: 11, value: null }, time: NOW })
    push('test.a', 5)
    push('test.a', 6, 'h2')
    expect(measured(selection, NOW)).toEqual({ value: { type: 2, value: 5 }, time: 5 })
    metrics.push.die('test.a')
    expect(measured(selection, NOW)).toMatchObject({ value: { type: 11 } })
  })

  test('of a polled one is what the sensor says, when it says it', async () => {
    const asked = measured(metrics.select('slow.value'), NOW)
    metrics.slow.asked[0]?.({ value: { type: 2, value: 1 }, time: 9 })
    expect(await asked).toEqual({ value: { type: 2, value: 1 }, time: 9 })
  })
})

describe('by a sensor that fails', () => {
  const failing = (how: () => never) => {
    vi.spyOn(metrics.slow, 'measure').mockImplementation(how as never)
    return metrics.select('slow.value')
  }
  const status = { name: 'slow', state: 'measuring', detail: '', counters: { asked: 1 } }

  test('is VOID, and counted at the sensor, whether it throws or rejects', async () => {
    const thrown = failing(() => {
      throw new Error('thrown')
    })
    expect(measured(thrown, NOW)).toMatchObject({ value: { type: 11 } })
    const rejected = failing(() => Promise.reject(new Error('rejected')) as never)
    expect(await measured(rejected, NOW)).toMatchObject({ value: { type: 11 } })
    expect(metrics.hub.faults.shown(metrics.slow, status)).toEqual({
      ...status,
      state: 'failed',
      counters: { asked: 1, faults: 2 },
    })
    metrics.clock.advance(60_000)
    expect(metrics.hub.faults.shown(metrics.slow, status).state).toBe('measuring')
    expect(metrics.hub.faults.shown(metrics.push, status)).toBe(status)
  })
})

describe('of a pattern', () => {
  test('is an ARRAY with the time of its latest value, or the present if it is empty', () => {
    expect(measured(metrics.select('test.*'), NOW)).toMatchObject({ value: { type: 10 }, time: NOW })
    push('test.b', 8)
    push('test.a', 5, 'h2')
    const answer = measured(metrics.select('test.*'), NOW)
    expect(answer).toMatchObject({ time: 8, value: { type: 10, value: { element: 9 } } })
    expect('value' in answer && answer.value).toMatchObject({ value: { items: [{}, {}] } })
  })

  test('waits for the slowest of what it asks', async () => {
    push('test.a', 5)
    const asked = measured(metrics.select('*'), NOW)
    expect(asked).toBeInstanceOf(Promise)
    metrics.slow.asked[0]?.({ value: { type: 2, value: 1 }, time: 9 })
    const { value } = finish((await asked) as Steps<Measurement>)
    expect(value).toMatchObject({ value: { items: { length: 2 } } })
  })
})

describe('a list of RECs', () => {
  const record = (bytes: number) => [{ name: 'x', type: 7, value: 'x'.repeat(bytes) }] as const
  const frameBytes = (list: RecordList): number => {
    const writer = new XdrWriter()
    writeValueMessage(writer, { metric: 1, transaction: 0, time: 0, value: list.value() })
    return writer.length - 4
  }

  test('fills one frame to the last REC that fits beside {more = true}', () => {
    // Count, name, type and the length of the text: 20 bytes; header of the VALUE, type and count of the ARRAY: 32.
    const more = 20
    for (const [text, fits] of [
      [(1 << 20) - 32 - 20 - more - 4, true],
      [(1 << 20) - 32 - 20 - more + 4, false],
    ] as const) {
      const list = new RecordList()
      expect(list.add(record(text))).toBe(fits)
      expect(list.add(record(8))).toBe(false)
      expect(frameBytes(list)).toBeLessThanOrEqual(1 << 20)
      if (fits) expect(frameBytes(list)).toBe((1 << 20) - 4)
    }
  })

  test('says `more` once, and takes nothing after it', () => {
    const list = new RecordList()
    while (list.add(record(100_000)));
    expect(list.add(record(4))).toBe(false)
    const { value } = list.value()
    const { items } = value as unknown as { items: { name: string }[][] }
    expect(items.filter(([field]) => field?.name === 'more')).toHaveLength(1)
    expect(items.at(-1)).toEqual([{ name: 'more', type: 6, value: true }])
  })
})
