/** When a group of alerts is told where the clock is set back, by one that is handed in. */
import { beforeEach, describe, expect, it } from 'vitest'
import { finish } from '../../../../server/kernel/core/fair-work.ts'
import { ToldGroups } from './told-groups.ts'

const SECOND = 1_000

let bench: ToldGroups
beforeEach(() => {
  bench = new ToldGroups()
})

describe('a group of which nobody was told yet', () => {
  it.each([false, true])(
    'waits for others no longer where the clock was set back, over a restart: %s',
    (isRestarted) => {
      bench.groups.take(bench.alert('a'))
      bench.pass(-3_600)
      if (isRestarted) bench.start()
      expect(bench.told()).toEqual([])
      bench.pass(30)
      expect(bench.told()).toEqual(['a firing'])
    },
  )
})

describe('what nobody is to be told', () => {
  it('is looked at again after as long where the clock was set back', () => {
    bench.muted.add('Down a')
    bench.groups.take(bench.alert('a'))
    bench.pass(30)
    expect(bench.told()).toEqual([])
    bench.pass(-3_600)
    expect(bench.told()).toEqual([])
    bench.muted.clear()
    bench.pass(10)
    expect(bench.told()).toEqual(['a firing'])
  })

  it('is looked at again after as long where the clock was set back meanwhile', () => {
    bench.muted.add('Down a')
    bench.groups.take(bench.alert('a'))
    bench.pass(30)
    const looking = bench.groups.next()
    looking.next()
    bench.pass(-3_600)
    expect(finish(looking)).toBeUndefined()
    expect(bench.groups.dueMs).toBe(bench.nowMs + 10 * SECOND)
  })
})

describe('where the clock was ahead and is set right', () => {
  const AHEAD = 18_000
  beforeEach(() => {
    bench.groups.take(bench.alert('a'))
    bench.pass(30)
    expect(bench.told()).toEqual(['a firing'])
  })

  it.each([false, true])('a new alert waits for the interval of its group, over a restart: %s', (isRestarted) => {
    bench.pass(-AHEAD)
    if (isRestarted) bench.start()
    bench.groups.take(bench.alert('b'))
    bench.pass(300)
    expect(bench.told()).toEqual(['b firing, a firing'])
  })

  it('what was told before is repeated as long after it', () => {
    bench.pass(7_200)
    expect(bench.told()).toEqual([])
    bench.pass(-3_600)
    bench.groups.lookAgain()
    bench.pass(7_199)
    expect(bench.told()).toEqual([])
    bench.pass(1)
    expect(bench.told()).toEqual(['a firing'])
  })

  it('what has changed waits for the interval over a restart, also where it was to be told at once', () => {
    bench.pass(7_200)
    bench.groups.take(bench.alert('b'))
    bench.pass(-3_600)
    bench.start()
    bench.pass(300)
    expect(bench.told()).toEqual(['b firing, a firing'])
  })

  it.each([false, true])('one that waited for the interval already waits for it, over a restart: %s', (isRestarted) => {
    bench.groups.take(bench.alert('b'))
    bench.pass(-3_600)
    if (isRestarted) bench.start()
    expect(bench.told()).toEqual([])
    bench.pass(300)
    expect(bench.told()).toEqual(['b firing, a firing'])
  })
})
