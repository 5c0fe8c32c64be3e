/** When a group of alerts is told, and of what, by a clock that is handed in; and what a process that takes over goes on with. */
import { beforeEach, describe, expect, it } from 'vitest'
import { finish } from '../../../../server/kernel/core/fair-work.ts'
import type { NotifyAlertRow, NotifyGroupRow } from '../../../../server/kit/peer.ts'
import type { NotifiedAlert } from '../../../../server/wings/notify/alert.ts'
import type { GroupingRules } from '../../../../server/wings/notify/group-members.ts'
import { NotifyGroups } from '../../../../server/wings/notify/groups.ts'
import type { Notification } from '../../../../server/wings/notify/notification.ts'
import type { Change } from '../../../../storage/store.ts'

const SECOND = 1_000
const RULES: GroupingRules = {
  groupBy: ['alertname'],
  groupWaitMs: 30 * SECOND,
  groupIntervalMs: 300 * SECOND,
  repeatIntervalMs: 14_400 * SECOND,
  sendResolved: true,
  repeatsMuted: false,
  repeatsEndedMs: 0,
}

/** What outlives a process. */
class Disk {
  readonly groups = new Map<string, NotifyGroupRow>()
  readonly alerts = new Map<string, NotifyAlertRow>()

  change(change: Change): void {
    if ('put' in change) {
      if (change.put === 'notify group') this.groups.set(change.row.labels, change.row)
      if (change.put === 'notify alert') this.alerts.set(change.row.fingerprint, change.row)
    } else if (change.remove === 'notify group') this.groups.delete(change.labels)
    else if (change.remove === 'notify alert') this.alerts.delete(change.fingerprint)
  }
}

let disk: Disk
let nowMs: number
let muted: Set<string>
/** What may not be told at all. */
let hidden: Set<string>
let isHeld: boolean
/** What the rules know of alerts since their transitions. */
let said: Map<string, Pick<NotifiedAlert, 'value' | 'annotations'>>
let groups: NotifyGroups

function start(rules: Partial<GroupingRules> = {}): void {
  groups = new NotifyGroups({
    notifier: 'default/n',
    rules: { ...RULES, ...rules },
    journal: disk,
    wallMs: () => nowMs,
    groups: [...disk.groups.values()],
    alerts: [...disk.alerts.values()],
    saidOf: ({ fingerprint }) => said.get(fingerprint),
    mayTell: ({ fingerprint }) => !hidden.has(fingerprint),
    isMuted: function* ({ fingerprint }) {
      yield
      return muted.has(fingerprint)
    },
    isHeld: () => isHeld,
  })
}

beforeEach(() => {
  disk = new Disk()
  nowMs = 1_700_000_000_000
  muted = new Set()
  hidden = new Set()
  said = new Map()
  isHeld = false
  start()
})

function alert(host: string, state: NotifiedAlert['state'] = 'firing', alertname = 'Down'): NotifiedAlert {
  return {
    labels: [
      ['alertname', alertname],
      ['host', host],
    ],
    annotations: [],
    state,
    value: '1',
    sinceMs: nowMs,
    firedMs: nowMs,
    endedMs: state === 'firing' ? 0 : nowMs,
    group: 'g',
    rule: alertname,
    fingerprint: `${alertname} ${host}`,
  }
}

const pass = (seconds: number): void => {
  nowMs += seconds * SECOND
}
const textOf = ({ alerts }: Notification): string =>
  alerts.map(({ labels, state }) => `${labels.find(([name]) => name === 'host')?.[1]} ${state}`).join(', ')

/** What is told now: each notification arrives at once. */
function told(): string[] {
  const texts: string[] = []
  for (let next = finish(groups.next()); next !== undefined; next = finish(groups.next())) {
    texts.push(textOf(next))
    groups.told(next)
  }
  return texts
}

describe('a group', () => {
  it('waits for others at first, then for its interval, then until it is repeated', () => {
    groups.take(alert('a'))
    pass(20)
    groups.take(alert('b'))
    expect(told()).toEqual([])
    pass(10)
    expect(told()).toEqual(['a firing, b firing'])
    pass(10)
    groups.take(alert('a', 'resolved'))
    pass(289)
    expect(told()).toEqual([])
    pass(1)
    expect(told()).toEqual(['a resolved, b firing'])
    pass(14_399)
    expect(told()).toEqual([])
    pass(1)
    expect(told()).toEqual(['b firing'])
    groups.take(alert('b', 'resolved'))
    pass(300)
    expect(told()).toEqual(['b resolved'])
    expect([groups.groupCount, groups.alertCount, disk.groups.size, disk.alerts.size]).toEqual([0, 0, 0, 0])
  })

  it('is one for each text of the labels by which it is made', () => {
    groups.take(alert('a'))
    groups.take(alert('a', 'firing', 'Full'))
    pass(30)
    expect(told()).toEqual(['a firing', 'a firing'])
    expect(groups.groupCount).toBe(2)
  })

  it('repeats what has ended as long as its rules say, also after a kill, and until it fires again', () => {
    start({ groupWaitMs: 0, groupIntervalMs: 0, repeatIntervalMs: 60_000, repeatsEndedMs: 900_000 })
    for (const host of ['a', 'b']) groups.take(alert(host))
    expect(told()).toEqual(['a firing, b firing'])
    for (const host of ['a', 'b']) groups.take(alert(host, 'resolved'))
    expect(told()).toEqual(['a resolved, b resolved'])
    start({ groupWaitMs: 0, groupIntervalMs: 0, repeatIntervalMs: 60_000, repeatsEndedMs: 900_000 })
    expect(told()).toEqual([])
    pass(60)
    expect(told()).toEqual(['a resolved, b resolved'])
    groups.take(alert('b'))
    expect(told()).toEqual(['b firing, a resolved'])
    groups.take(alert('b', 'resolved'))
    expect(told()).toEqual(['b resolved, a resolved'])
    pass(839)
    expect(told()).toEqual(['a resolved, b resolved'])
    pass(60)
    expect(told()).toEqual(['b resolved'])
    pass(60)
    expect(told()).toEqual([])
    expect([disk.groups.size, disk.alerts.size]).toEqual([0, 0])
  })

  it('says nothing of what has ended before anybody was told', () => {
    groups.take(alert('a'))
    groups.take(alert('a', 'resolved'))
    pass(60)
    expect(told()).toEqual([])
    expect([disk.groups.size, disk.alerts.size]).toEqual([0, 0])
  })

  it('with more alerts than one notification has tells the others at once, and repeats all', () => {
    for (let index = 0; index < 600; index++) groups.take(alert(`h${index}`))
    pass(30)
    expect(told().map((text) => text.split(', ').length)).toEqual([250, 250, 100])
    pass(14_400)
    const repeated = told()
    expect(new Set(repeated.join(', ').split(', ')).size).toBe(600)
  })

  it('does not say what has ended where nobody wants to know', () => {
    start({ sendResolved: false })
    groups.take(alert('a'))
    pass(30)
    expect(told()).toEqual(['a firing'])
    groups.take(alert('a', 'resolved'))
    pass(300)
    expect(told()).toEqual([])
    expect(groups.alertCount).toBe(0)
  })

  it('waits no longer where the clock was set back', () => {
    groups.take(alert('a'))
    pass(-86_400)
    expect(told()).toEqual(['a firing'])
  })
})

describe('with an interval of 0 each transition is told, in order', () => {
  it('one that comes while that before it is under way waits', () => {
    start({ groupWaitMs: 0, groupIntervalMs: 0 })
    expect(groups.take(alert('a'))).toBe(true)
    const first = finish(groups.next()) as Notification
    expect(groups.take(alert('a', 'resolved'))).toBe(false)
    expect(groups.take(alert('b'))).toBe(true)
    groups.told(first)
    expect(groups.take(alert('a', 'resolved'))).toBe(true)
    expect([textOf(first), ...told()]).toEqual(['a firing', 'a resolved, b firing'])
  })
})

describe('what nobody is to be told', () => {
  it('is told when that ends, if it fires then; what was told before is said to have ended', () => {
    muted.add('Down a')
    groups.take(alert('a'))
    groups.take(alert('b'))
    pass(30)
    expect(told()).toEqual(['b firing'])
    muted.add('Down b')
    groups.take(alert('b', 'resolved'))
    pass(300)
    expect(told()).toEqual(['b resolved'])
    muted.clear()
    groups.lookAgain()
    expect(told()).toEqual(['a firing'])
  })

  it('is looked at again without a write to the disk', () => {
    muted.add('Down a')
    groups.take(alert('a'))
    pass(30)
    expect(told()).toEqual([])
    const stored = structuredClone(disk.groups)
    for (let look = 0; look < 3; look++) {
      expect(groups.dueMs).toBe(nowMs + 10 * SECOND)
      pass(10)
      expect(told()).toEqual([])
    }
    expect(disk.groups).toEqual(stored)
    muted.clear()
    start()
    expect(told()).toEqual(['a firing'])
  })

  it('is not repeated, but to an Alertmanager, which would take it as ended', () => {
    for (const repeatsMuted of [false, true]) {
      muted.clear()
      start({ repeatsMuted })
      groups.take(alert('a'))
      pass(30)
      expect(told()).toEqual(['a firing'])
      muted.add('Down a')
      pass(14_400)
      expect(told()).toEqual(repeatsMuted ? ['a firing'] : [])
      muted.clear()
      groups.take(alert('a', 'resolved'))
      pass(300)
      expect(told()).toEqual(['a resolved'])
    }
  })
})

describe('what may not be told any more', () => {
  it.each([false, true])(
    'is told neither to fire nor to have ended, whether silences end repeats or not: %s',
    (repeatsMuted) => {
      start({ repeatsMuted })
      groups.take(alert('a'))
      groups.take(alert('b'))
      pass(30)
      expect(told()).toEqual(['a firing, b firing'])
      hidden.add('Down a')
      pass(14_400)
      expect(told()).toEqual(['b firing'])
      groups.take(alert('a', 'resolved'))
      pass(300)
      expect(told()).toEqual([])
      hidden.clear()
      pass(14_400)
      expect(told()).toEqual(['b firing'])
    },
  )

  it('is not sent by a process that takes over, and others of its group are', () => {
    groups.take(alert('a'))
    groups.take(alert('b'))
    pass(30)
    finish(groups.next())
    hidden.add('Down a')
    start()
    expect(told()).toEqual(['b firing'])
  })
})

it('while nothing is told, what changes waits, and is told when that is over', () => {
  groups.take(alert('a'))
  isHeld = true
  pass(3_600)
  groups.take(alert('b'))
  expect([told(), groups.dueMs]).toEqual([[], nowMs + 10 * SECOND])
  isHeld = false
  expect(told()).toEqual(['a firing, b firing'])
})

describe('a process that takes over', () => {
  it('goes on with what was under way, as it was, and then with what has changed', () => {
    groups.take(alert('a'))
    pass(30)
    const begun = finish(groups.next()) as Notification
    groups.take(alert('a', 'resolved'))
    groups.take(alert('b'))
    start()
    const again = finish(groups.next()) as Notification
    expect(again).toEqual(begun)
    groups.told(again)
    pass(300)
    expect(told()).toEqual(['a resolved, b firing'])
  })

  it('tells nothing again that was told', () => {
    groups.take(alert('a'))
    pass(30)
    expect(told()).toEqual(['a firing'])
    start()
    pass(600)
    expect(told()).toEqual([])
    pass(14_400)
    expect(told()).toEqual(['a firing'])
  })

  it('makes other groups where they are made by other labels', () => {
    groups.take(alert('a'))
    groups.take(alert('b'))
    pass(30)
    expect(told()).toEqual(['a firing, b firing'])
    start({ groupBy: ['...'] })
    groups.take(alert('a', 'resolved'))
    pass(300)
    expect(told()).toEqual(['a resolved'])
  })
})

describe('an alert that nobody acknowledges', () => {
  const AFTER = 900 * SECOND
  let passed: string[]
  let isTaken: boolean
  const escalate = (firing = alert('a')): void =>
    finish(
      groups.escalate(firing, AFTER, ({ fingerprint }) => {
        if (isTaken) passed.push(fingerprint)
        return isTaken
      }),
    )
  let fired: NotifiedAlert
  beforeEach(() => {
    passed = []
    isTaken = true
    fired = alert('a')
    groups.take(fired)
  })

  it('is passed on once, when it has waited for so long, also over a restart', () => {
    expect(groups.escalationMs(AFTER)).toBe(nowMs + AFTER)
    pass(899)
    escalate(fired)
    expect(passed).toEqual([])
    start()
    pass(1)
    escalate(fired)
    expect(passed).toEqual(['Down a'])
    expect(groups.escalationMs(AFTER)).toBeUndefined()
    escalate(fired)
    start()
    escalate(fired)
    expect(passed).toEqual(['Down a'])
  })

  it('waits anew from when it is told again after a silence or an acknowledgement', () => {
    muted.add('Down a')
    pass(900)
    escalate(fired)
    expect(passed).toEqual([])
    expect(groups.escalationMs(AFTER)).toBe(nowMs + AFTER)
    muted.clear()
    pass(900)
    escalate(fired)
    expect(passed).toEqual(['Down a'])
  })

  it('waits while nothing is to be told', () => {
    isHeld = true
    pass(900)
    escalate(fired)
    isHeld = false
    expect(passed).toEqual([])
    expect(groups.escalationMs(AFTER)).toBe(nowMs + AFTER)
  })

  it('waits anew where the clock was set back', () => {
    pass(-3_600)
    escalate(fired)
    expect([passed, groups.escalationMs(AFTER)]).toEqual([[], nowMs + AFTER])
  })

  it('is passed on later where the next notifier cannot take it now', () => {
    isTaken = false
    pass(900)
    escalate(fired)
    isTaken = true
    escalate(fired)
    expect(passed).toEqual(['Down a'])
  })

  it('is not passed on once it has fired again, of which the notifier does not know yet', () => {
    pass(900)
    escalate(alert('a'))
    expect(passed).toEqual([])
  })

  it('waits anew when it fires again', () => {
    pass(900)
    escalate(fired)
    groups.take(alert('a', 'resolved'))
    fired = alert('a')
    groups.take(fired)
    expect(groups.escalationMs(AFTER)).toBe(nowMs + AFTER)
    pass(900)
    escalate(fired)
    expect(passed).toEqual(['Down a', 'Down a'])
  })
})

it('what fires is told with what it says now, and what has ended with what it said last', () => {
  const now = (value: string) => said.set('Down a', { value, annotations: [['summary', `now ${value}`]] })
  const valuesOf = (next: Notification | undefined) =>
    next?.alerts.map(({ value, annotations }) => [value, annotations])
  groups.take(alert('a'))
  pass(30)
  now('2')
  const first = finish(groups.next())
  expect(valuesOf(first)).toEqual([['2', [['summary', 'now 2']]]])
  now('3')
  // It is sent again as it was.
  expect(finish(groups.next())).toEqual(first)
  groups.told(first as Notification)
  pass(14_400)
  const repeated = finish(groups.next())
  expect(valuesOf(repeated)).toEqual([['3', [['summary', 'now 3']]]])
  groups.told(repeated as Notification)
  pass(300)
  groups.take({ ...alert('a', 'resolved'), value: '4' })
  expect(valuesOf(finish(groups.next()))).toEqual([['4', []]])
})

describe('what comes while a group is looked at, in steps', () => {
  /** The next notification, with what happens after its first step. */
  function nextWith(happens: () => void): Notification | undefined {
    const steps = groups.next()
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
    for (const host of ['a', 'b', 'c']) groups.take(alert(host))
    pass(30)
    const next = nextWith(() => groups.take(alert('a', 'resolved')))
    expect(next && textOf(next)).toBe('b firing, c firing')
  })

  it('an alert that begins to fire does not wait until the others are repeated', () => {
    for (const host of ['a', 'b', 'c']) groups.take(alert(host))
    pass(30)
    expect(told()).toEqual(['a firing, b firing, c firing'])
    pass(400)
    groups.take(alert('c', 'resolved'))
    groups.take(alert('c'))
    const next = nextWith(() => groups.take(alert('d')))
    expect(next && textOf(next)).toBe('d firing, a firing, b firing, c firing')
  })
})
