/** After a loss, what a notifier has told is compared with the alerts that fire, and overtakes no transition. */
import { beforeEach, expect, it } from 'vitest'
import { finish } from '../../../../server/kernel/core/fair-work.ts'
import type { NotifiedAlert } from '../../../../server/wings/notify/alert.ts'
import { compareWithFiring } from '../../../../server/wings/notify/comparison.ts'
import { NotifyGroups } from '../../../../server/wings/notify/groups.ts'

const NOW_MS = 1_700_000_000_000

function alert(host: string, state: NotifiedAlert['state'] = 'firing'): NotifiedAlert {
  return {
    labels: [
      ['alertname', 'Down'],
      ['host', host],
    ],
    annotations: [],
    state,
    value: '1',
    sinceMs: NOW_MS,
    firedMs: NOW_MS,
    endedMs: state === 'firing' ? 0 : NOW_MS,
    group: 'g',
    rule: 'Down',
    fingerprint: host,
  }
}

let groups: NotifyGroups
let isUnderWay: boolean

/** `a` and `b` were told to fire. */
beforeEach(() => {
  isUnderWay = false
  groups = new NotifyGroups({
    notifier: 'default/n',
    rules: {
      groupBy: ['alertname'],
      groupWaitMs: 0,
      groupIntervalMs: 1,
      repeatIntervalMs: 3_600_000,
      sendResolved: true,
      repeatsMuted: false,
      repeatsEndedMs: 0,
    },
    journal: { change: () => {} },
    wallMs: () => NOW_MS,
    groups: [],
    alerts: [],
    saidOf: () => undefined,
    mayTell: () => true,
    isMuted: function* () {
      yield
      return false
    },
    isHeld: () => false,
  })
  for (const host of ['a', 'b']) groups.take(alert(host))
  const notification = finish(groups.next())
  if (notification === undefined) throw new Error('nothing was told')
  groups.told(notification)
})

const comparing = (...firing: readonly (NotifiedAlert | undefined)[]) =>
  compareWithFiring({ groups, firing, mustWait: () => isUnderWay, wallMs: () => NOW_MS })
const states = (): string[] => groups.alerts().map(({ fingerprint, state }) => `${fingerprint} ${state}`)

it('takes what fires, and ends what fires no more', () => {
  expect(finish(comparing(alert('b'), undefined, alert('c')))).toBe(true)
  expect(states()).toEqual(['a resolved', 'b firing', 'c firing'])
})

it('does nothing while transitions are under way, and has to be done again', () => {
  isUnderWay = true
  expect(finish(comparing(alert('c')))).toBe(false)
  expect(states()).toEqual(['a firing', 'b firing'])
})

it('stops when transitions come, between what fires and what has ended', () => {
  const steps = comparing(alert('c'))
  steps.next()
  isUnderWay = true
  expect(finish(steps)).toBe(false)
  expect(states()).toEqual(['a firing', 'b firing', 'c firing'])
})

it('has to be done again where there was no room for what fires, and makes room meanwhile', () => {
  for (let index = groups.alertCount; index < 20_000; index++) groups.take(alert(`h${index}`))
  expect(groups.isFull).toBe(true)
  expect(finish(comparing(alert('b'), alert('c')))).toBe(false)
  expect(states()).not.toContain('c firing')
  // Of the 19,998 others nobody was told, so they are known no more.
  expect(states()).toEqual(['a resolved', 'b firing'])
  expect(finish(comparing(alert('b'), alert('c')))).toBe(true)
  expect(states()).toEqual(['a resolved', 'b firing', 'c firing'])
})

it('ends nothing that has fired again meanwhile', () => {
  const steps = comparing(undefined)
  steps.next()
  groups.take(alert('a', 'resolved'))
  groups.take(alert('a'))
  expect(finish(steps)).toBe(true)
  expect(states()).toEqual(['a firing', 'b resolved'])
})
