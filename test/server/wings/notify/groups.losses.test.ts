/** What a notifier tells after a loss, by a clock that is handed in. */
import { beforeEach, describe, expect, it } from 'vitest'
import { finish } from '../../../../server/kernel/core/fair-work.ts'
import type { NotifiedAlert } from '../../../../server/wings/notify/alert.ts'
import { compareWithFiring } from '../../../../server/wings/notify/comparison.ts'
import type { Notification } from '../../../../server/wings/notify/notification.ts'
import { ToldGroups } from './told-groups.ts'

let bench: ToldGroups
beforeEach(() => {
  bench = new ToldGroups()
})

describe('after a loss', () => {
  const EACH = { groupWaitMs: 0, groupIntervalMs: 0 }
  const compare = (...firing: readonly (NotifiedAlert | undefined)[]) =>
    finish(
      compareWithFiring({
        groups: bench.groups,
        firing,
        mustWait: () => false,
        wallMs: () => bench.nowMs,
      }),
    )

  it('what fires is told, and what fires no more has ended', () => {
    bench.groups.take(bench.alert('a'))
    bench.pass(30)
    expect(bench.told()).toEqual(['a firing'])
    compare(bench.alert('b'), undefined)
    bench.pass(300)
    expect(bench.told()).toEqual(['a resolved, b firing'])
  })

  it('nothing is told of what nobody has heard of and has ended, also where each transition is told', () => {
    bench.start(EACH)
    bench.groups.take(bench.alert('a'))
    compare()
    expect([bench.told(), bench.groups.alertCount, bench.disk.alerts.size]).toEqual([[], 0, 0])
  })

  it('what has ended while it was being told is told to have ended', () => {
    bench.start(EACH)
    bench.groups.take(bench.alert('a'))
    const first = finish(bench.groups.next()) as Notification
    compare()
    bench.groups.told(first)
    expect([bench.textOf(first), ...bench.told()]).toEqual(['a firing', 'a resolved'])
  })

  it('what has ended, of which nobody has heard yet, and fires again is told to fire again', () => {
    bench.start(EACH)
    bench.groups.take(bench.alert('a'))
    expect(bench.told()).toEqual(['a firing'])
    bench.groups.take(bench.alert('a', 'resolved'))
    bench.pass(1)
    compare(bench.alert('a'))
    expect(bench.told()).toEqual(['a firing'])
    bench.groups.take(bench.alert('a', 'resolved'))
    expect(bench.told()).toEqual(['a resolved'])
  })

  it('what has ended and fires again is told again, as another alert, also over a restart', () => {
    const before = bench.alert('a')
    bench.groups.take(before)
    bench.pass(30)
    expect(bench.told()).toEqual(['a firing'])
    bench.groups.acknowledge([before], bench.nowMs)
    bench.pass(300)
    const again = bench.alert('a')
    compare(again)
    bench.start()
    const { fingerprint } = again
    const claim = { alerts: [[fingerprint, again.firedMs] as const], atMs: bench.nowMs }
    expect(bench.groups.claimed(claim)).toEqual({ open: [again], isRepeated: false })
    expect(bench.told()).toEqual(['a firing'])
    bench.pass(600)
    compare(again)
    expect(bench.told()).toEqual([])
  })

  it('what has ended and fires again is told to have ended where that comes before anybody hears of it', () => {
    bench.groups.take(bench.alert('a'))
    bench.pass(30)
    expect(bench.told()).toEqual(['a firing'])
    bench.pass(10)
    compare(bench.alert('a'))
    bench.pass(10)
    bench.groups.take(bench.alert('a', 'resolved'))
    bench.pass(300)
    expect(bench.told()).toEqual(['a resolved'])
  })

  it('what has ended and fires again while the one before is being told is told after it', () => {
    bench.start(EACH)
    bench.groups.take(bench.alert('a'))
    const first = finish(bench.groups.next()) as Notification
    bench.pass(1)
    compare(bench.alert('a'))
    bench.groups.told(first)
    expect([bench.textOf(first), ...bench.told()]).toEqual(['a firing', 'a firing'])
    expect(bench.told()).toEqual([])
  })
})
