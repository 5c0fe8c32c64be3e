/** `producer.notifications`: all of a tenant, those of one notifier, and those that had an alert. */
import { beforeEach, expect, it, vi } from 'vitest'
import { valueToJson } from '../../../../protocol/monitor/json-value.ts'
import { finish } from '../../../../server/kernel/core/fair-work.ts'
import type { Measurement } from '../../../../server/kit/metrics.ts'
import type { Steps } from '../../../../server/kit/running.ts'
import type { NotifiedAlert } from '../../../../server/wings/notify/alert.ts'
import { NotifierFigures } from '../../../../server/wings/notify/figures.ts'
import { NotifyGroups } from '../../../../server/wings/notify/groups.ts'
import { NotificationLog } from '../../../../server/wings/notify/log.ts'
import { Silences } from '../../../../server/wings/notify/silences.ts'
import type { Json } from '../../../support/records.ts'

const RULES = {
  groupWaitMs: 0,
  groupIntervalMs: 0,
  repeatIntervalMs: 3_600_000,
  sendResolved: true,
  repeatsMuted: false,
  repeatsEndedMs: 0,
}
const journal = { change: () => {} }

let nowMs: number
let figures: NotifierFigures
let log: NotificationLog
let groups: Readonly<Record<'pager' | 'mail', NotifyGroups>>
beforeEach(() => {
  nowMs = 1_700_000_000_000
  const groupsBy = (name: string, groupBy: readonly string[]) =>
    new NotifyGroups({
      notifier: `acme/${name}`,
      rules: { ...RULES, groupBy },
      journal,
      wallMs: () => nowMs,
      groups: [],
      alerts: [],
      mayTell: () => true,
      isMuted: function* () {
        yield
        return false
      },
      isHeld: () => false,
      saidOf: () => undefined,
    })
  groups = { pager: groupsBy('pager', ['alertname', 'host']), mail: groupsBy('mail', ['alertname']) }
  log = new NotificationLog([], journal)
  const running = Object.entries(groups).map(([name, of]) => ({ table: { tenant: 'acme', name }, groups: of }))
  const silences = new Silences([], journal)
  const shown = { running: running as never, log, silences, tenants: () => ['acme'] }
  figures = new NotifierFigures(shown, { microseconds: () => nowMs * 1_000, wallMs: () => nowMs })
})

function alert(host: string): NotifiedAlert {
  return {
    labels: [
      ['alertname', 'Down'],
      ['host', host],
    ],
    annotations: [],
    state: 'firing',
    value: '1',
    sinceMs: nowMs,
    firedMs: nowMs,
    endedMs: 0,
    group: 'g',
    rule: 'Down',
    fingerprint: host,
  }
}

/** Tells of what is due now. */
function tell(name: keyof typeof groups): void {
  for (;;) {
    const notification = finish(groups[name].next())
    if (notification === undefined) return
    log.add(`acme/${name}`, notification, { outcome: 'delivered', detail: '204', attempts: 1 }, nowMs++)
    groups[name].told(notification)
  }
}

function asked(args: Readonly<Record<string, string>>): Steps<Measurement> {
  const metric = figures.metric('producer.notifications')
  if (metric === undefined) throw new Error('there is such a metric')
  return figures.measure(metric, new Map(Object.entries(args)), { tenant: 'acme', role: 'admin' } as never)
}

function shown(args: Readonly<Record<string, string>>): readonly string[] {
  const { value } = finish(asked(args))
  return (valueToJson(value) as Json[]).map(({ notifier, group }) => `${notifier}: ${group}`)
}

it('has all, those of one notifier, and those that had an alert', () => {
  for (const name of ['pager', 'mail'] as const) {
    for (const host of ['web1', 'web2']) groups[name].take(alert(host))
    tell(name)
  }
  expect(shown({}).length).toBe(3)
  expect(shown({ notifier: 'mail' })).toEqual(['mail: alertname="Down"'])
  expect(shown({ alert: 'web1' })).toEqual(['mail: alertname="Down"', 'pager: alertname="Down", host="web1"'])
  expect(shown({ alert: 'web1', notifier: 'pager' })).toEqual(['pager: alertname="Down", host="web1"'])
  expect(shown({ alert: 'db1' })).toEqual([])
})

it('knows what a notification had, also when the group has forgotten it, and no other one of the group', () => {
  for (const host of ['web1', 'web2']) groups.mail.take(alert(host))
  tell('mail')
  groups.mail.take({ ...alert('web1'), state: 'resolved', endedMs: nowMs })
  tell('mail')
  groups.mail.take(alert('web3'))
  tell('mail')
  expect(groups.mail.groupWith('web1')).toBeUndefined()
  expect(['web1', 'web2', 'web3'].map((host) => shown({ alert: host }).length)).toEqual([2, 3, 1])
})

it('gives those of the group where a notification had more alerts than are known, or is older than that', () => {
  for (let host = 0; host < 25; host++) groups.mail.take(alert(`web${host}`))
  tell('mail')
  expect(['web0', 'web24', 'db1'].map((host) => shown({ alert: host }).length)).toEqual([1, 1, 0])
  const [row] = log.of('acme')
  if (row === undefined) throw new Error('there is a notification')
  log = new NotificationLog([{ ...row, firing: 1, alerts: '[]' }], journal)
  const running = [{ table: { tenant: 'acme', name: 'mail' }, groups: groups.mail }] as never
  const given = { running, log, silences: new Silences([], journal), tenants: () => ['acme'] }
  figures = new NotifierFigures(given, { microseconds: () => nowMs * 1_000, wallMs: () => nowMs })
  expect(['web0', 'db1'].map((host) => shown({ alert: host }).length)).toEqual([1, 0])
})

it('has those of all notifiers by time, with one row in a step, and parses no row that had other alerts', () => {
  for (let count = 0; count < 20; count++)
    for (const name of ['pager', 'mail'] as const) {
      groups[name].take(alert(`web${count}`))
      tell(name)
      nowMs += 3_600_000
    }
  const times = [...log.of('acme')].map(({ at }) => at)
  expect(times).toEqual(times.toSorted((one, other) => other - one))
  const rows = times.length
  expect(shown({}).length).toBe(rows)
  const parse = vi.spyOn(JSON, 'parse')
  const had = [...log.of('acme')].filter(({ alerts }) => alerts.includes('"web19"')).length
  let steps = 0
  let most = 0
  const measuring = asked({ alert: 'web19' })
  for (let isOver = false; !isOver; steps++) {
    const before = parse.mock.calls.length
    isOver = measuring.next().done === true
    most = Math.max(most, parse.mock.calls.length - before)
  }
  expect(had).toBeGreaterThan(0)
  expect(had).toBeLessThan(rows / 2)
  expect(steps).toBeGreaterThan(rows)
  // Whether it has the alert, its labels, and the alerts that it had.
  expect([most, parse.mock.calls.length]).toEqual([3, had * 3])
  parse.mockRestore()
})
