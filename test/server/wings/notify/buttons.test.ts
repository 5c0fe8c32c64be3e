/** Tokens of buttons: what each acknowledges, once and for a day, and nothing else. */
import { beforeEach, describe, expect, it } from 'vitest'
import { finish } from '../../../../server/kernel/core/fair-work.ts'
import type { NotifyAlertRow, NotifyGroupRow, SilenceRow } from '../../../../server/kit/peer.ts'
import type { NotifiedAlert } from '../../../../server/wings/notify/alert.ts'
import type { NotifierOrigin } from '../../../../server/wings/notify/bodies.ts'
import { ButtonTokens } from '../../../../server/wings/notify/button-tokens.ts'
import { Buttons } from '../../../../server/wings/notify/buttons.ts'
import { NotifyGroups } from '../../../../server/wings/notify/groups.ts'
import type { InForce } from '../../../../server/wings/notify/in-force.ts'
import type { Notification } from '../../../../server/wings/notify/notification.ts'
import { Silences } from '../../../../server/wings/notify/silences.ts'
import type { Change } from '../../../../storage/store.ts'

const DAY = 86_400_000
const PLACE = 'default/phone'
const TABLE = { tenant: 'default', name: 'phone' }
const KEY = new Uint8Array(32).fill(7)

/** What outlives a process. */
class Disk {
  readonly groups = new Map<string, NotifyGroupRow>()
  readonly alerts = new Map<string, NotifyAlertRow>()
  readonly silences = new Map<string, SilenceRow>()

  change(change: Change): void {
    if ('put' in change) {
      if (change.put === 'notify group') this.groups.set(change.row.labels, change.row)
      if (change.put === 'notify alert') this.alerts.set(change.row.fingerprint, change.row)
      if (change.put === 'silence') this.silences.set(change.row.id, change.row)
    } else if (change.remove === 'notify group') this.groups.delete(change.labels)
    else if (change.remove === 'notify alert') this.alerts.delete(change.fingerprint)
    else if (change.remove === 'silence') this.silences.delete(change.id)
  }
}

let disk: Disk
let nowMs: number
let groups: NotifyGroups
let silences: Silences
let buttons: Buttons
let acknowledge: boolean
/** Of a notifier that a user has put. */
let origin: NotifierOrigin | undefined
const tokens = new ButtonTokens(KEY)

const isSilenced = (alert: NotifiedAlert): boolean => finish(silences.mutingOf('default', alert, nowMs)) !== undefined

/** A process begins, with what is on the disk. */
function start(): void {
  silences = new Silences([...disk.silences.values()], disk)
  groups = new NotifyGroups({
    notifier: PLACE,
    rules: {
      groupBy: ['alertname'],
      groupWaitMs: 0,
      groupIntervalMs: 1_000,
      repeatIntervalMs: 3_600_000,
      sendResolved: true,
      repeatsMuted: false,
      repeatsEndedMs: 0,
    },
    journal: disk,
    wallMs: () => nowMs,
    groups: [...disk.groups.values()],
    alerts: [...disk.alerts.values()],
    saidOf: () => undefined,
    mayTell: () => true,
    isMuted: function* (alert) {
      yield
      return isSilenced(alert)
    },
    isHeld: () => false,
  })
  const notifiers = {
    find: (tenant: string, name: string) =>
      `${tenant}/${name}` === PLACE ? ({ groups, table: { acknowledge, origin } } as unknown as InForce) : undefined,
    lookAgain: () => groups.lookAgain(),
  }
  buttons = new Buttons(
    tokens,
    notifiers,
    silences,
    { mayExecute: ({ userId }) => userId > 0 },
    { wallMs: () => nowMs },
  )
}

beforeEach(() => {
  disk = new Disk()
  nowMs = 1_700_000_000_000
  acknowledge = true
  origin = undefined
  start()
})

function alert(host: string, fingerprint: string, more: NotifiedAlert['labels'] = []): NotifiedAlert {
  return {
    labels: [['alertname', 'Full'], ...more, ['host', host]],
    annotations: [],
    state: 'firing',
    value: '1',
    sinceMs: nowMs,
    firedMs: nowMs,
    endedMs: 0,
    group: 'g',
    rule: 'Full',
    fingerprint,
  }
}

/** Of what a user has put who may acknowledge; undefined for 0. */
function originOf(user: number): NotifierOrigin | undefined {
  if (user === 0) return undefined
  const reader = () => ({ userId: user, tenant: 'default', name: `u${user}`, role: 'author' })
  const files = { read: async () => '', addressFor: async () => '127.0.0.1' }
  return { author: `u${user}`, user, problem: '', reader, ...files }
}

/** What is told now. */
function told(): Notification {
  const notification = finish(groups.next())
  if (notification === undefined) throw new Error('nothing is due')
  groups.told(notification)
  return notification
}

describe('a token', () => {
  it('acknowledges the alert of its notification, and no other one', () => {
    const one = alert('web1', '00000000000000a1')
    groups.take(one)
    const token = tokens.issue(TABLE, told())
    const other = alert('web2', '00000000000000a2')
    const withMore = alert('web1', '00000000000000a3', [['disk', 'sda']])
    groups.take(other)
    groups.take(withMore)
    nowMs += 60_000
    expect(buttons.acknowledge(token)).toMatchObject({
      tenant: 'default',
      author: 'notify:phone',
      outcome: 'acknowledged',
      matchers: ['alertname="Full"', 'host="web1"', '__fingerprint__="00000000000000a1"'],
    })
    expect([one, other, withMore].map(isSilenced)).toEqual([true, false, false])
    // It fires anew.
    expect(isSilenced({ ...one, firedMs: nowMs + 1 })).toBe(false)
    expect([...disk.silences.values()]).toMatchObject([{ kind: 'acknowledgement', author: 'notify:phone' }])
  })

  it('works once, also over a restart and after the acknowledgement was ended; that of a later notification works again', () => {
    groups.take(alert('web1', '00000000000000a1'))
    const token = tokens.issue(TABLE, told())
    nowMs += 1_000
    const first = buttons.acknowledge(token)
    expect(first?.outcome).toBe('acknowledged')
    expect(buttons.acknowledge(token)).toMatchObject({ outcome: 'repeated', id: '' })
    start()
    silences.end('default', first?.id ?? '', nowMs)
    expect(buttons.acknowledge(token)).toMatchObject({ outcome: 'repeated' })
    expect(silences.of('default', nowMs)).toEqual([])
    nowMs += 3_600_000
    const later = tokens.issue(TABLE, told())
    expect(buttons.acknowledge(later)).toMatchObject({ outcome: 'acknowledged' })
  })

  it('acknowledges all of a message, and says when none of it fires as it did', () => {
    for (const host of ['1', '2']) groups.take(alert(`web${host}`, `00000000000000a${host}`))
    const token = tokens.issue(TABLE, told())
    nowMs += 5_000
    groups.take({ ...alert('web1', '00000000000000a1'), state: 'resolved', endedMs: nowMs })
    expect(buttons.acknowledge(token)).toMatchObject({
      matchers: ['alertname="Full"', 'host="web2"', '__fingerprint__="00000000000000a2"'],
    })
    const ended = tokens.issue(TABLE, { ...told(), alerts: [alert('web9', '00000000000000a9')] })
    expect(buttons.acknowledge(ended)).toMatchObject({ outcome: 'ended' })
  })

  it.each([
    ['nothing', () => ''],
    ['no token', () => 'x'],
    ['a longer one', (token: string) => `${token}.x`],
    [
      'another alert',
      (token: string) => `${Buffer.from(`["${PLACE}",0,1,[]]`).toString('base64url')}.${token.split('.')[1]}`,
    ],
    ['another MAC', (token: string) => `${token.slice(0, -4)}AAAA`],
    ['one that is too long', (token: string) => token.padEnd(4_096, 'A')],
    [
      'one of another server',
      (_token: string, told: Notification) => new ButtonTokens(new Uint8Array(32)).issue(TABLE, told),
    ],
    [
      'one of a notifier that is gone',
      (_token: string, told: Notification) => tokens.issue({ ...TABLE, name: 'gone' }, told),
    ],
  ])('is %s: there is no answer', (_, made: (token: string, notification: Notification) => string) => {
    groups.take(alert('web1', '00000000000000a1'))
    const notification = told()
    const token = tokens.issue(TABLE, notification)
    expect(buttons.acknowledge(made(token, notification))).toBeUndefined()
    expect(disk.silences.size).toBe(0)
    expect(buttons.acknowledge(token)).toBeDefined()
  })

  it('is good for a day, and not where buttons have been switched off since', () => {
    groups.take(alert('web1', '00000000000000a1'))
    const token = tokens.issue(TABLE, told())
    nowMs += DAY
    expect(buttons.acknowledge(token)).toBeUndefined()
    nowMs -= 1
    acknowledge = false
    start()
    expect(buttons.acknowledge(token)).toBeUndefined()
    acknowledge = true
    start()
    expect(buttons.acknowledge(token)?.outcome).toBe('acknowledged')
  })

  it.each([
    [1, 2],
    [1, 0],
    [0, 1],
  ])(
    'of a notifier of user %i is of no use at that of its name of user %i, where 0 is the configuration',
    (user, other) => {
      const firing = alert('web1', '00000000000000a1')
      groups.take(firing)
      const token = tokens.issue({ ...TABLE, origin: originOf(user) }, told())
      // That of the name is removed, and one is put that is told of the same alert.
      groups.end()
      origin = originOf(other)
      start()
      groups.take(firing)
      nowMs += 1_000
      expect(buttons.acknowledge(token)).toBeUndefined()
      expect(disk.silences.size).toBe(0)
      origin = originOf(user)
      start()
      expect(buttons.acknowledge(token)?.outcome).toBe('acknowledged')
    },
  )

  it('is not issued where nothing fires, or more than anybody reads', () => {
    const notification: Notification = { key: 'k', groupLabels: [], atMs: nowMs, alerts: [], truncated: 0 }
    const firing = (count: number) =>
      Array.from({ length: count }, (_, at) => alert(`web${at}`, `${at}`.padStart(16, '0')))
    expect(tokens.issue(TABLE, notification)).toBe('')
    expect(tokens.issue(TABLE, { ...notification, alerts: firing(21) })).toBe('')
    expect(tokens.issue(TABLE, { ...notification, alerts: firing(1), truncated: 20 })).toBe('')
    const most = tokens.issue(TABLE, { ...notification, alerts: firing(20) })
    expect(tokens.read(most, nowMs)?.alerts).toHaveLength(20)
    // The notification that is sent again has the same one.
    expect(tokens.issue(TABLE, { ...notification, alerts: firing(20) })).toBe(most)
  })

  it('adds no silence where the tenant has as many as it may have', () => {
    groups.take(alert('web1', '00000000000000a1'))
    const token = tokens.issue(TABLE, told())
    const one = { tenant: 'default', kind: 'silence', matchers: '["a=b"]', author: 'a', comment: '' } as const
    for (let count = 0; count < 1_000; count++) silences.add({ ...one, begins: nowMs, ends: nowMs + DAY })
    expect(buttons.acknowledge(token)).toMatchObject({ outcome: 'full' })
    nowMs += DAY - 1
    expect(buttons.acknowledge(token)).toMatchObject({ outcome: 'full' })
  })
})
