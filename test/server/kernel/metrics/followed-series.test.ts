/** A sink that wants only one value of a series in each span of time gets that one, and everything that is no repetition. */
import { beforeEach, expect, it } from 'vitest'
import { BasicType } from '../../../../protocol/monitor/constants.ts'
import { finish } from '../../../../server/kernel/core/fair-work.ts'
import type { HubBinding } from '../../../../server/kernel/metrics/hub.ts'
import { Kept, Metrics } from './fixture.ts'

const SECOND = 1_000_000

class ThinKept extends Kept {
  resolutionUs = SECOND
}

let metrics: Metrics
let sink: ThinKept
let binding: HubBinding
beforeEach(() => {
  metrics = new Metrics()
  sink = new ThinKept()
  binding = metrics.hub.bind(metrics.instance('test.*', []), sink)
})

/** `at`: in seconds. */
function push(value: number, at: number, host = 'h1'): void {
  metrics.push.push('test.a', { type: BasicType.UINT32, value }, Math.round(at * SECOND), host)
}

it('the first of each second of the clock passes', () => {
  for (const [value, at] of [10.98, 10.99, 11.02, 11.9, 12.01, 14].entries()) push(value, at)
  expect(sink.numbers).toEqual([0, 2, 4, 5])
})

it('each series has its own', () => {
  push(1, 10)
  push(2, 10.1, 'h2')
  push(3, 10.2)
  push(4, 10.3, 'h2')
  expect(sink.numbers).toEqual([1, 2])
})

it('what is late always passes, and makes nothing else pass', () => {
  push(1, 10.5)
  push(2, 3)
  push(3, 3)
  push(4, 10.6)
  push(5, 10.4)
  expect(sink.numbers).toEqual([1, 2, 3, 5])
})

it('the end of a series passes, and so does the first value after it', () => {
  push(1, 10)
  push(2, 10.1)
  metrics.push.die('test.a')
  push(3, 10.2)
  push(4, 10.3)
  expect(sink.numbers).toEqual([1, undefined, 3])
})

it('a VOID passes, and so does the first value after it', () => {
  push(1, 10)
  metrics.push.push('test.a', { type: BasicType.VOID, value: null }, 10.1 * SECOND, 'h1')
  push(2, 10.2)
  expect(sink.numbers).toEqual([1, undefined, 2])
})

it('another resolution counts from the next value on', () => {
  push(1, 10)
  sink.resolutionUs = 0
  finish(binding.thin())
  push(2, 10.1)
  sink.resolutionUs = 10 * SECOND
  finish(binding.thin())
  push(3, 11)
  push(4, 12)
  push(5, 20)
  expect(sink.numbers).toEqual([1, 2, 3, 5])
})

it('other sinks get everything', () => {
  const all = new Kept()
  metrics.hub.bind(metrics.instance('test.*', []), all)
  for (const at of [10, 10.1, 10.2]) push(at, at)
  expect(all.numbers).toHaveLength(3)
  expect(sink.numbers).toHaveLength(1)
})
