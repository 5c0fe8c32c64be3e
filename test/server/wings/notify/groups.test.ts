/** When a group of alerts is told, and of what, by a clock that is handed in; and what a process that takes over goes on with. */
import { beforeEach, describe, expect, it } from 'vitest'
import { finish } from '../../../../server/kernel/core/fair-work.ts'
import type { NotifiedAlert } from '../../../../server/wings/notify/alert.ts'
import type { Notification } from '../../../../server/wings/notify/notification.ts'
import { ToldGroups } from './told-groups.ts'

const SECOND = 1_000

let bench: ToldGroups
beforeEach(() => {
  bench = new ToldGroups()
})

describe('a group', () => {
  it('waits for others at first, then for its interval, then until it is repeated', () => {
    bench.groups.take(bench.alert('a'))
    bench.pass(20)
    bench.groups.take(bench.alert('b'))
    expect(bench.told()).toEqual([])
    bench.pass(10)
    expect(bench.told()).toEqual(['a firing, b firing'])
    bench.pass(10)
    bench.groups.take(bench.alert('a', 'resolved'))
    bench.pass(289)
    expect(bench.told()).toEqual([])
    bench.pass(1)
    expect(bench.told()).toEqual(['a resolved, b firing'])
    bench.pass(14_399)
    expect(bench.told()).toEqual([])
    bench.pass(1)
    expect(bench.told()).toEqual(['b firing'])
    bench.groups.take(bench.alert('b', 'resolved'))
    bench.pass(300)
    expect(bench.told()).toEqual(['b resolved'])
    expect([bench.groups.groupCount, bench.groups.alertCount, bench.disk.groups.size, bench.disk.alerts.size]).toEqual([
      0, 0, 0, 0,
    ])
  })

  it('is one for each text of the labels by which it is made', () => {
    bench.groups.take(bench.alert('a'))
    bench.groups.take(bench.alert('a', 'firing', 'Full'))
    bench.pass(30)
    expect(bench.told()).toEqual(['a firing', 'a firing'])
    expect(bench.groups.groupCount).toBe(2)
  })

  it('repeats what has ended as long as its rules say, also after a kill, and until it fires again', () => {
    bench.start({ groupWaitMs: 0, groupIntervalMs: 0, repeatIntervalMs: 60_000, repeatsEndedMs: 900_000 })
    for (const host of ['a', 'b']) bench.groups.take(bench.alert(host))
    expect(bench.told()).toEqual(['a firing, b firing'])
    for (const host of ['a', 'b']) bench.groups.take(bench.alert(host, 'resolved'))
    expect(bench.told()).toEqual(['a resolved, b resolved'])
    bench.start({ groupWaitMs: 0, groupIntervalMs: 0, repeatIntervalMs: 60_000, repeatsEndedMs: 900_000 })
    expect(bench.told()).toEqual([])
    bench.pass(60)
    expect(bench.told()).toEqual(['a resolved, b resolved'])
    bench.groups.take(bench.alert('b'))
    expect(bench.told()).toEqual(['b firing, a resolved'])
    bench.groups.take(bench.alert('b', 'resolved'))
    expect(bench.told()).toEqual(['b resolved, a resolved'])
    bench.pass(839)
    expect(bench.told()).toEqual(['a resolved, b resolved'])
    bench.pass(60)
    expect(bench.told()).toEqual(['b resolved'])
    bench.pass(60)
    expect(bench.told()).toEqual([])
    expect([bench.disk.groups.size, bench.disk.alerts.size]).toEqual([0, 0])
  })

  it('says nothing of what has ended before anybody was told', () => {
    bench.groups.take(bench.alert('a'))
    bench.groups.take(bench.alert('a', 'resolved'))
    bench.pass(60)
    expect(bench.told()).toEqual([])
    expect([bench.disk.groups.size, bench.disk.alerts.size]).toEqual([0, 0])
  })

  it('with more alerts than one notification has tells the others at once, and repeats all', () => {
    for (let index = 0; index < 600; index++) bench.groups.take(bench.alert(`h${index}`))
    bench.pass(30)
    expect(bench.told().map((text) => text.split(', ').length)).toEqual([250, 250, 100])
    bench.pass(14_400)
    const repeated = bench.told()
    expect(new Set(repeated.join(', ').split(', ')).size).toBe(600)
  })

  it('does not say what has ended where nobody wants to know', () => {
    bench.start({ sendResolved: false })
    bench.groups.take(bench.alert('a'))
    bench.pass(30)
    expect(bench.told()).toEqual(['a firing'])
    bench.groups.take(bench.alert('a', 'resolved'))
    bench.pass(300)
    expect(bench.told()).toEqual([])
    expect(bench.groups.alertCount).toBe(0)
  })
})

describe('when another one goes on from it, or nothing is kept,', () => {
  it.each<[string, () => unknown]>([
    ['was handed over', () => bench.groups.handOver()],
    ['has ended', () => bench.groups.end()],
  ])('one that %s takes and stores nothing, and tells nothing, also of what is under way', (_how, ends) => {
    const { groups, disk } = bench
    groups.take(bench.alert('a'))
    bench.pass(30)
    const notification = finish(groups.next()) as Notification
    groups.take(bench.alert('b'))
    groups.take(bench.alert('c', 'firing', 'Full'))
    bench.pass(300)
    const escalating = groups.escalate(bench.alert('b'), 0, () => true)
    escalating.next()
    ends()
    const before = structuredClone([disk.groups, disk.alerts])
    expect(groups.take(bench.alert('d'))).toBe(false)
    expect(groups.take(bench.alert('a', 'resolved'))).toBe(false)
    finish(escalating)
    groups.told(notification)
    groups.lookAgain()
    expect(finish(groups.next())).toBeUndefined()
    expect([disk.groups, disk.alerts]).toEqual(before)
  })

  it('one that looks at a group stores nothing of what it finds', () => {
    bench.groups.take(bench.alert('a'))
    bench.pass(30)
    const looking = bench.groups.next()
    looking.next()
    bench.groups.handOver()
    const before = structuredClone([bench.disk.groups, bench.disk.alerts])
    expect(finish(looking)).toBeUndefined()
    expect([bench.disk.groups, bench.disk.alerts]).toEqual(before)
    bench.start()
    expect(bench.told()).toEqual(['a firing'])
  })
})

describe('with an interval of 0 each transition is told, in order', () => {
  it('one that comes while that before it is under way waits', () => {
    bench.start({ groupWaitMs: 0, groupIntervalMs: 0 })
    expect(bench.groups.take(bench.alert('a'))).toBe(true)
    const first = finish(bench.groups.next()) as Notification
    expect(bench.groups.take(bench.alert('a', 'resolved'))).toBe(false)
    expect(bench.groups.take(bench.alert('b'))).toBe(true)
    bench.groups.told(first)
    expect(bench.groups.take(bench.alert('a', 'resolved'))).toBe(true)
    expect([bench.textOf(first), ...bench.told()]).toEqual(['a firing', 'a resolved, b firing'])
  })
})

describe('what nobody is to be told', () => {
  it('is told when that ends, if it fires then; what was told before is bench.said to have ended', () => {
    bench.muted.add('Down a')
    bench.groups.take(bench.alert('a'))
    bench.groups.take(bench.alert('b'))
    bench.pass(30)
    expect(bench.told()).toEqual(['b firing'])
    bench.muted.add('Down b')
    bench.groups.take(bench.alert('b', 'resolved'))
    bench.pass(300)
    expect(bench.told()).toEqual(['b resolved'])
    bench.muted.clear()
    bench.groups.lookAgain()
    expect(bench.told()).toEqual(['a firing'])
  })

  it('is looked at again without a write to the disk', () => {
    bench.muted.add('Down a')
    bench.groups.take(bench.alert('a'))
    bench.pass(30)
    expect(bench.told()).toEqual([])
    const stored = structuredClone(bench.disk.groups)
    for (let look = 0; look < 3; look++) {
      expect(bench.groups.dueMs).toBe(bench.nowMs + 10 * SECOND)
      bench.pass(10)
      expect(bench.told()).toEqual([])
    }
    expect(bench.disk.groups).toEqual(stored)
    bench.muted.clear()
    bench.start()
    expect(bench.told()).toEqual(['a firing'])
  })

  it('is not repeated, but to an Alertmanager, which would take it as ended', () => {
    for (const repeatsMuted of [false, true]) {
      bench.muted.clear()
      bench.start({ repeatsMuted })
      bench.groups.take(bench.alert('a'))
      bench.pass(30)
      expect(bench.told()).toEqual(['a firing'])
      bench.muted.add('Down a')
      bench.pass(14_400)
      expect(bench.told()).toEqual(repeatsMuted ? ['a firing'] : [])
      bench.muted.clear()
      bench.groups.take(bench.alert('a', 'resolved'))
      bench.pass(300)
      expect(bench.told()).toEqual(['a resolved'])
    }
  })
})

describe('what may not be told any more', () => {
  it.each([false, true])(
    'is told neither to fire nor to have ended, whether silences end repeats or not: %s',
    (repeatsMuted) => {
      bench.start({ repeatsMuted })
      bench.groups.take(bench.alert('a'))
      bench.groups.take(bench.alert('b'))
      bench.pass(30)
      expect(bench.told()).toEqual(['a firing, b firing'])
      bench.hidden.add('Down a')
      bench.pass(14_400)
      expect(bench.told()).toEqual(['b firing'])
      bench.groups.take(bench.alert('a', 'resolved'))
      bench.pass(300)
      expect(bench.told()).toEqual([])
      bench.hidden.clear()
      bench.pass(14_400)
      expect(bench.told()).toEqual(['b firing'])
    },
  )

  it('is not sent by a process that takes over, and others of its group are', () => {
    bench.groups.take(bench.alert('a'))
    bench.groups.take(bench.alert('b'))
    bench.pass(30)
    finish(bench.groups.next())
    bench.hidden.add('Down a')
    bench.start()
    expect(bench.told()).toEqual(['b firing'])
  })
})

it('while nothing is told, what changes waits, and is told when that is over', () => {
  bench.groups.take(bench.alert('a'))
  bench.isHeld = true
  bench.pass(3_600)
  bench.groups.take(bench.alert('b'))
  expect([bench.told(), bench.groups.dueMs]).toEqual([[], bench.nowMs + 10 * SECOND])
  bench.isHeld = false
  expect(bench.told()).toEqual(['a firing, b firing'])
})

describe('a process that takes over', () => {
  it('goes on with what was under way, as it was, and then with what has changed', () => {
    bench.groups.take(bench.alert('a'))
    bench.pass(30)
    const begun = finish(bench.groups.next()) as Notification
    bench.groups.take(bench.alert('a', 'resolved'))
    bench.groups.take(bench.alert('b'))
    bench.start()
    const again = finish(bench.groups.next()) as Notification
    expect(again).toEqual(begun)
    bench.groups.told(again)
    bench.pass(300)
    expect(bench.told()).toEqual(['a resolved, b firing'])
  })

  it('tells nothing again that was told', () => {
    bench.groups.take(bench.alert('a'))
    bench.pass(30)
    expect(bench.told()).toEqual(['a firing'])
    bench.start()
    bench.pass(600)
    expect(bench.told()).toEqual([])
    bench.pass(14_400)
    expect(bench.told()).toEqual(['a firing'])
  })

  it('makes other bench.groups where they are made by other labels', () => {
    bench.groups.take(bench.alert('a'))
    bench.groups.take(bench.alert('b'))
    bench.pass(30)
    expect(bench.told()).toEqual(['a firing, b firing'])
    bench.start({ groupBy: ['...'] })
    bench.groups.take(bench.alert('a', 'resolved'))
    bench.pass(300)
    expect(bench.told()).toEqual(['a resolved'])
  })
})

describe('an alert that nobody acknowledges', () => {
  const AFTER = 900 * SECOND
  let passed: string[]
  let isTaken: boolean
  const escalate = (firing = bench.alert('a')): void =>
    finish(
      bench.groups.escalate(firing, AFTER, ({ fingerprint }) => {
        if (isTaken) passed.push(fingerprint)
        return isTaken
      }),
    )
  let fired: NotifiedAlert
  beforeEach(() => {
    passed = []
    isTaken = true
    fired = bench.alert('a')
    bench.groups.take(fired)
  })

  it('is passed on once, when it has waited for so long, also over a restart', () => {
    expect(bench.groups.escalationMs(AFTER)).toBe(bench.nowMs + AFTER)
    bench.pass(899)
    escalate(fired)
    expect(passed).toEqual([])
    bench.start()
    bench.pass(1)
    escalate(fired)
    expect(passed).toEqual(['Down a'])
    expect(bench.groups.escalationMs(AFTER)).toBeUndefined()
    escalate(fired)
    bench.start()
    escalate(fired)
    expect(passed).toEqual(['Down a'])
  })

  it('waits anew from when it is told again after a silence or an acknowledgement', () => {
    bench.muted.add('Down a')
    bench.pass(900)
    escalate(fired)
    expect(passed).toEqual([])
    expect(bench.groups.escalationMs(AFTER)).toBe(bench.nowMs + AFTER)
    bench.muted.clear()
    bench.pass(900)
    escalate(fired)
    expect(passed).toEqual(['Down a'])
  })

  it('waits while nothing is to be told', () => {
    bench.isHeld = true
    bench.pass(900)
    escalate(fired)
    bench.isHeld = false
    expect(passed).toEqual([])
    expect(bench.groups.escalationMs(AFTER)).toBe(bench.nowMs + AFTER)
  })

  it('waits anew where the clock was set back', () => {
    bench.pass(-3_600)
    escalate(fired)
    expect([passed, bench.groups.escalationMs(AFTER)]).toEqual([[], bench.nowMs + AFTER])
  })

  it('is passed on where its rule has moved the time at which it fired back with the clock', () => {
    bench.pass(-3_600)
    const moved = { ...fired, firedMs: fired.firedMs - 3_600 * SECOND }
    escalate(moved)
    bench.pass(900)
    escalate(moved)
    expect(passed).toEqual(['Down a'])
  })

  it('is passed on later where the next notifier cannot take it now', () => {
    isTaken = false
    bench.pass(900)
    escalate(fired)
    isTaken = true
    escalate(fired)
    expect(passed).toEqual(['Down a'])
  })

  it('is not passed on once it has fired again, of which the notifier does not know yet', () => {
    bench.pass(900)
    escalate(bench.alert('a'))
    expect(passed).toEqual([])
  })

  it('is never due where it is of a notifier that fails: nobody passes it on', () => {
    bench.groups.take(bench.alert('a', 'resolved'))
    bench.groups.take({ ...bench.alert('b'), kind: 'failure' })
    expect(bench.groups.escalationMs(AFTER)).toBeUndefined()
  })

  it('waits anew when it fires again', () => {
    bench.pass(900)
    escalate(fired)
    bench.groups.take(bench.alert('a', 'resolved'))
    fired = bench.alert('a')
    bench.groups.take(fired)
    expect(bench.groups.escalationMs(AFTER)).toBe(bench.nowMs + AFTER)
    bench.pass(900)
    escalate(fired)
    expect(passed).toEqual(['Down a', 'Down a'])
  })
})

it('what fires is told with what it says now, and what has ended with what it bench.said last', () => {
  const now = (value: string) => bench.said.set('Down a', { value, annotations: [['summary', `now ${value}`]] })
  const valuesOf = (next: Notification | undefined) =>
    next?.alerts.map(({ value, annotations }) => [value, annotations])
  bench.groups.take(bench.alert('a'))
  bench.pass(30)
  now('2')
  const first = finish(bench.groups.next())
  expect(valuesOf(first)).toEqual([['2', [['summary', 'now 2']]]])
  now('3')
  // It is sent again as it was.
  expect(finish(bench.groups.next())).toEqual(first)
  bench.groups.told(first as Notification)
  bench.pass(14_400)
  const repeated = finish(bench.groups.next())
  expect(valuesOf(repeated)).toEqual([['3', [['summary', 'now 3']]]])
  bench.groups.told(repeated as Notification)
  bench.pass(300)
  bench.groups.take({ ...bench.alert('a', 'resolved'), value: '4' })
  expect(valuesOf(finish(bench.groups.next()))).toEqual([['4', []]])
})

describe('what comes while a group is looked at, in steps', () => {
  /** The next notification, with what happens after its first step. */
  function nextWith(happens: () => void): Notification | undefined {
    const steps = bench.groups.next()
    let isFirst = true
    for (;;) {
      const { done, value } = steps.next()
      if (done === true) return value ?? undefined
      if (!isFirst) continue
      isFirst = false
      // By now the first alert was looked at.
      steps.next()
      happens()
    }
  }

  it('an alert that ends before anybody was told of it is not told, and no receiver goes on believing in it', () => {
    for (const host of ['a', 'b', 'c']) bench.groups.take(bench.alert(host))
    bench.pass(30)
    const next = nextWith(() => bench.groups.take(bench.alert('a', 'resolved')))
    expect(next && bench.textOf(next)).toBe('b firing, c firing')
  })

  it('an alert that begins to fire does not wait until the others are repeated', () => {
    for (const host of ['a', 'b', 'c']) bench.groups.take(bench.alert(host))
    bench.pass(30)
    expect(bench.told()).toEqual(['a firing, b firing, c firing'])
    bench.pass(400)
    bench.groups.take(bench.alert('c', 'resolved'))
    bench.groups.take(bench.alert('c'))
    const next = nextWith(() => bench.groups.take(bench.alert('d')))
    expect(next && bench.textOf(next)).toBe('d firing, a firing, b firing, c firing')
  })
})
