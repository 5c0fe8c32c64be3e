/** When nobody is told: times of the day, of the week, of the month and of the year; and while another alert fires. */
import { describe, expect, it } from 'vitest'
import { finish } from '../../../../server/kernel/core/fair-work.ts'
import type { NotifiedAlert } from '../../../../server/wings/notify/alert.ts'
import { inhibitionsOf } from '../../../../server/wings/notify/inhibitions.ts'
import { isMutedAt, type MuteTimes, muteTimesOf } from '../../../../server/wings/notify/mute-times.ts'

const isMuted = (given: object, time: string): boolean => isMutedAt([muteTimesOf(given) as MuteTimes], Date.parse(time))

describe('mute times', () => {
  // 30 November 2026 is a Monday.
  it.each([
    [{}, '2026-11-30T12:00:00Z', true],
    [{ times: ['09:00-17:00'] }, '2026-11-30T09:00:00Z', true],
    [{ times: ['09:00-17:00'] }, '2026-11-30T17:00:00Z', false],
    [{ times: ['00:00-07:00', '22:00-24:00'] }, '2026-11-30T23:59:59Z', true],
    [{ times: ['09:00-17:00'], location: 'America/New_York' }, '2026-11-30T13:59:00Z', false],
    [{ times: ['09:00-17:00'], location: 'America/New_York' }, '2026-11-30T14:00:00Z', true],
    [{ times: ['09:00-17:00'], location: 'America/New_York' }, '2026-07-30T13:00:00Z', true],
    [{ weekdays: ['monday:friday'] }, '2026-11-30T12:00:00Z', true],
    [{ weekdays: ['saturday', 'sunday'] }, '2026-11-30T12:00:00Z', false],
    [{ weekdays: ['Monday'], location: 'Pacific/Auckland' }, '2026-11-30T12:00:00Z', false],
    [{ days_of_month: ['-1'] }, '2026-11-30T12:00:00Z', true],
    [{ days_of_month: ['-3:-1'] }, '2028-02-27T12:00:00Z', true],
    [{ days_of_month: ['1:5'] }, '2026-11-30T12:00:00Z', false],
    [{ months: ['11:12'] }, '2026-11-30T12:00:00Z', true],
    [{ months: ['may:august'] }, '2026-11-30T12:00:00Z', false],
    [{ years: ['2026'] }, '2026-11-30T12:00:00Z', true],
    [{ years: ['2027:2028'] }, '2026-11-30T12:00:00Z', false],
    [{ weekdays: ['monday'], times: ['00:00-06:00'] }, '2026-11-30T12:00:00Z', false],
    [{ days_of_month: ['31'] }, '2026-11-30T12:00:00Z', false],
    [{ days_of_month: ['28:31'] }, '2026-11-30T12:00:00Z', true],
    [{ days_of_month: ['2:-2'] }, '2026-11-29T12:00:00Z', true],
    [{ days_of_month: ['2:-2'] }, '2026-11-30T12:00:00Z', false],
    [{ days_of_month: ['-31:-30'] }, '2026-11-01T12:00:00Z', true],
    // The hour that there is not, and the one that there is twice.
    [{ times: ['02:00-03:00'], location: 'Europe/Berlin' }, '2026-03-29T01:00:00Z', false],
    [{ times: ['02:00-03:00'], location: 'Europe/Berlin' }, '2026-10-25T00:30:00Z', true],
    [{ times: ['02:00-03:00'], location: 'Europe/Berlin' }, '2026-10-25T01:30:00Z', true],
    [{ times: ['02:00-03:00'], location: 'Europe/Berlin' }, '2026-10-25T02:00:00Z', false],
    [{ weekdays: ['sunday'], times: ['22:00-24:00'], location: 'Asia/Kolkata' }, '2026-11-29T18:29:00Z', true],
    [{ weekdays: ['sunday'], times: ['22:00-24:00'], location: 'Asia/Kolkata' }, '2026-11-29T18:30:00Z', false],
  ])('%j at %s: %s', (given, time, expected) => {
    expect(isMuted(given, time)).toBe(expected)
  })

  it.each([
    { times: ['9:00-17:00'] },
    { times: ['17:00-09:00'] },
    { times: ['09:00-25:00'] },
    { weekdays: ['someday'] },
    { weekdays: ['friday:monday'] },
    { days_of_month: ['0'] },
    { days_of_month: ['5:1'] },
    { days_of_month: ['-1:-3'] },
    { days_of_month: ['-1:1'] },
    { days_of_month: ['1:2:3'] },
    { days_of_month: ['1:'] },
    { times: ['09:00-17:00-18:00'] },
    { times: ['09:00'] },
    { months: ['13'] },
    { months: ['may:march'] },
    { years: ['2028:2027'] },
    { years: ['soon'] },
    { location: 'Mars/Olympus' },
    { hours: ['1'] },
  ])('%j are none', (given) => {
    expect(muteTimesOf(given)).toBeUndefined()
  })
})

describe('inhibition', () => {
  const alert = (alertname: string, host: string, state: NotifiedAlert['state'] = 'firing'): NotifiedAlert => ({
    labels: [
      ['alertname', alertname],
      ['host', host],
    ],
    annotations: [],
    state,
    value: '1',
    sinceMs: 1,
    firedMs: 1,
    endedMs: state === 'firing' ? 0 : 2,
    group: 'g',
    rule: alertname,
    fingerprint: `${alertname} ${host}`,
  })
  const RULE = { source: ['alertname=HostDown'], target: ['alertname=~"Host.*|Disk.*"'], equal: ['host'] }

  it('keeps those of the same host from being told, and not the one that says it all', () => {
    const inhibitions = finish(inhibitionsOf([RULE], () => [alert('HostDown', 'a'), undefined]))
    const found = [alert('DiskFull', 'a'), alert('DiskFull', 'b'), alert('HostDown', 'a'), alert('Other', 'a')]
    expect(found.map((one) => inhibitions.isInhibited(one))).toEqual([true, false, false, false])
  })

  it('keeps one that matches both from being told while one fires that matches `source` alone', () => {
    const both = { source: ['alertname=~"Critical|Warning"'], target: ['alertname=~"Warning|Info"'], equal: ['host'] }
    const inhibitions = finish(inhibitionsOf([both], () => [alert('Critical', 'a'), alert('Warning', 'b')]))
    const found = [alert('Warning', 'a'), alert('Warning', 'b'), alert('Info', 'b'), alert('Critical', 'a')]
    expect(found.map((one) => inhibitions.isInhibited(one))).toEqual([true, false, true, false])
  })

  it('looks again at what fires after something was lost', () => {
    let firing = [alert('HostDown', 'a')]
    const inhibitions = finish(inhibitionsOf([RULE], () => firing))
    firing = [alert('HostDown', 'b')]
    finish(inhibitions.lookAgain())
    expect(['a', 'b'].map((host) => inhibitions.isInhibited(alert('DiskFull', host)))).toEqual([false, true])
  })

  it('looks at one alert in a step, and until all are looked at what was known counts, and what is heard meanwhile', () => {
    let asked = 0
    let firing = ['a', 'b'].map((host) => alert('HostDown', host))
    const inhibitions = finish(
      inhibitionsOf([RULE], function* () {
        for (const one of firing) {
          asked++
          yield one
        }
      }),
    )
    const inhibited = () =>
      ['a', 'b', 'c', 'd'].filter((host) => inhibitions.isInhibited(alert('DiskFull', host))).join('')
    expect([asked, inhibited()]).toEqual([2, 'ab'])
    asked = 0
    firing = ['c', 'd'].map((host) => alert('HostDown', host))
    const looking = inhibitions.lookAgain()
    looking.next()
    expect([asked, inhibited()]).toEqual([1, 'abc'])
    inhibitions.observe(alert('HostDown', 'b'))
    inhibitions.observe(alert('HostDown', 'c', 'resolved'))
    expect(inhibited()).toBe('ab')
    finish(looking)
    expect([asked, inhibited()]).toEqual([2, 'bd'])
  })

  it('looks again, also where that begins anew before it is done', () => {
    let firing = [alert('HostDown', 'a')]
    const inhibitions = finish(inhibitionsOf([RULE], () => firing))
    firing = ['b', 'c'].map((host) => alert('HostDown', host))
    const first = inhibitions.lookAgain()
    first.next()
    firing = [alert('HostDown', 'c')]
    const second = inhibitions.lookAgain()
    second.next()
    finish(first)
    finish(second)
    const hosts = ['a', 'b', 'c'].filter((host) => inhibitions.isInhibited(alert('DiskFull', host)))
    expect(hosts).toEqual(['c'])
  })

  it('begins and ends with the other alert', () => {
    const inhibitions = finish(inhibitionsOf([RULE], () => []))
    const disk = alert('DiskFull', 'a')
    expect([inhibitions.observe(disk), inhibitions.isInhibited(disk)]).toEqual([false, false])
    expect([inhibitions.observe(alert('HostDown', 'a')), inhibitions.isInhibited(disk)]).toEqual([true, true])
    expect([inhibitions.observe(alert('HostDown', 'a', 'resolved')), inhibitions.isInhibited(disk)]).toEqual([
      true,
      false,
    ])
  })

  it('says that nothing has changed where what it is given is known already', () => {
    const inhibitions = finish(inhibitionsOf([RULE], () => []))
    const ended = alert('HostDown', 'a', 'resolved')
    const given = [alert('HostDown', 'a'), alert('HostDown', 'a'), ended, ended]
    expect(given.map((one) => inhibitions.observe(one))).toEqual([true, false, true, false])
    const other = { ...alert('HostDown', 'b'), fingerprint: 'HostDown a' }
    expect([alert('HostDown', 'a'), other].map((one) => inhibitions.observe(one))).toEqual([true, true])
  })
})
