/** `producer.alerts.active`: of one's own tenant, as far as one may read them, with what silences them and who was told. */
import { expect, it } from 'vitest'
import { valueToJson } from '../../../../protocol/monitor/json-value.ts'
import { finish, isSteps } from '../../../../server/kernel/core/fair-work.ts'
import type { AlertRow } from '../../../../server/kit/expressions.ts'
import { fingerprintOf } from '../../../../server/kit/fingerprint.ts'
import { ActiveAlerts } from '../../../../server/wings/notify/active-alerts.ts'
import { alertMatchers } from '../../../../server/wings/notify/matchers.ts'
import { Silences } from '../../../../server/wings/notify/silences.ts'
import type { Json } from '../../../support/records.ts'

const NOW = 1_700_000_000_000

function row(host: string, state: AlertRow['state'] = 'firing', tenant = 'acme'): AlertRow {
  return {
    rule: JSON.stringify([tenant, 'disk.yml', 'g', 'Full', 0]),
    labels: JSON.stringify([
      ['alertname', 'Full'],
      ['host', host],
    ]),
    annotations: JSON.stringify([['summary', 'x'.repeat(3_000)]]),
    state,
    value: 'NaN',
    active: NOW - 60_000,
    fired: state === 'firing' ? NOW : undefined,
    kept: undefined,
    resolved: undefined,
    missing: undefined,
  }
}

function sensorOf(rows: readonly AlertRow[], failing: readonly object[] = []) {
  const silences = new Silences([], { change: () => {} })
  const silence = silences.add({
    tenant: 'acme',
    kind: 'silence',
    matchers: '["host=\\"web2\\""]',
    begins: NOW,
    ends: NOW + 1,
    author: 'ann',
    comment: '',
  })
  const told = fingerprintOf([
    ['alertname', 'Full'],
    ['host', 'web1'],
  ])
  const notifier = (name: string, of: string) => ({
    table: { tenant: of, name },
    groups: { isTold: ({ fingerprint }: { readonly fingerprint: string }) => fingerprint === told },
  })
  const rights = {
    mayReadRemembered: (_owner: unknown, _metric: string, textOf: (name: string) => string | undefined) =>
      textOf('host') !== 'secret',
  }
  const sensor = new ActiveAlerts(
    {
      running: [notifier('phone', 'acme'), notifier('mail', 'acme'), notifier('phone', 'other'), ...failing] as never,
      silences,
      // Of one, the rules know what it says since its transition.
      watch: {
        saidOf: (_tenant, group, rule, labels) =>
          `${group} ${rule}` === 'g Full' && [...labels].some(([, text]) => text === 'now')
            ? { value: '7', annotations: [['summary', 'seven']] }
            : undefined,
      },
      alerts: () => rows,
      // Of this host nobody may read anything.
      view: { readRights: () => rights as never },
    },
    { microseconds: () => NOW * 1_000, wallMs: () => NOW },
  )
  return { sensor, silence }
}

function shown(
  rows: readonly AlertRow[],
  after?: number,
  tenant = 'acme',
  matchers?: string,
  failing: readonly object[] = [],
) {
  const { sensor, silence } = sensorOf(rows, failing)
  const args = new Map<string, unknown>([
    ...(after === undefined ? [] : [['after', after] as const]),
    ...(matchers === undefined ? [] : [['matchers', matchers] as const]),
  ]) as never
  sensor.check(undefined, args)
  const steps = sensor.measure(undefined, args, { tenant } as never)
  if (!isSteps(steps)) throw new Error('it is given in steps')
  const records = valueToJson(finish(steps).value) as Json[]
  return { records, silence: silence?.id }
}

it('has each alert with its times, its silence and who was told', () => {
  const { records, silence } = shown([row('web1'), row('web2'), row('web3', 'pending'), row('web4', 'inactive')])
  expect(records).toMatchObject([
    {
      alert: 1,
      tenant: 'acme',
      state: 'firing',
      labels: { alertname: 'Full', host: 'web1' },
      annotations: { summary: 'x'.repeat(2_000) },
      since: (NOW - 60_000) * 1_000,
      fired: NOW * 1_000,
      kept_since: 0,
      missing_since: 0,
      file: 'disk.yml',
      group: 'g',
      rule: 'Full',
      silence: '',
      told: 'phone, mail',
    },
    { alert: 2, labels: { host: 'web2' }, silence, told: '' },
    { alert: 3, labels: { host: 'web3' }, state: 'pending', fired: 0, silence: '' },
  ])
})

it('shows none of another tenant, and none that one may not read', () => {
  const rows = [row('secret'), row('web1'), row('web1', 'firing', 'other')]
  expect(shown(rows).records).toMatchObject([{ alert: 1, labels: { host: 'web1' }, tenant: 'acme' }])
  expect(shown(rows, undefined, 'third').records).toEqual([])
})

it('goes on after a number', () => {
  const rows = Array.from({ length: 1_000 }, (_, at) => row(`web${at}`))
  const first = shown(rows).records
  expect(first.at(-1)).toEqual({ more: true })
  const last = first.at(-2)?.['alert'] as number
  expect(shown(rows, last).records[0]).toMatchObject({ alert: last + 1 })
  expect(shown(rows, 999).records).toMatchObject([{ alert: 1_000 }])
})

it('has what an alert says now', () => {
  expect(shown([row('now'), row('web1')]).records).toMatchObject([
    { value: 7, annotations: { summary: 'seven' } },
    { value: 'NaN', annotations: { summary: expect.stringMatching(/^x/) } },
  ])
})

it('has those that match all matchers, and says what is none', () => {
  const rows = [row('web1'), { ...row('web2'), missing: NOW - 5_000 }, row('db1')]
  expect(shown(rows, undefined, 'acme', 'host=~"web.*"\nhost!=web1').records).toMatchObject([
    { alert: 1, labels: { host: 'web2' }, missing_since: (NOW - 5_000) * 1_000 },
  ])
  expect(shown(rows, 1, 'acme', 'alertname=Full').records).toMatchObject([{ alert: 2 }, { alert: 3 }])
  expect(() => shown(rows, undefined, 'acme', 'host')).toThrow('"host" is none; write one like severity="page"')
})

it('has the notifiers of the tenant that have failed for five minutes', () => {
  const failing = (name: string, seconds: number, tenant = 'acme') => ({
    table: { tenant, name, url: { shown: 'http://127.0.0.1:9/' } },
    groups: undefined,
    failingSinceMs: NOW - seconds * 1_000,
    isStopped: false,
    problem: 'connection refused',
  })
  const all = [failing('pager', 301), failing('new', 299), failing('pager', 999, 'other')]
  expect(shown([row('web1')], undefined, 'acme', undefined, all).records).toMatchObject([
    { alert: 1, rule: 'Full' },
    {
      alert: 2,
      state: 'firing',
      labels: { alertname: 'CinnabarNotifierFails', notifier: 'pager', severity: 'warning' },
      since: (NOW - 301_000) * 1_000,
      group: 'notifiers',
      rule: 'CinnabarNotifierFails',
    },
  ])
  expect(shown([row('web1')], undefined, 'acme', 'notifier=pager', all).records).toHaveLength(1)
})

it('counts the alerts that fire, match and may be read', () => {
  const others = [row('web2', 'pending'), row('secret'), row('web3', 'firing', 'other')]
  const { sensor } = sensorOf([row('web1'), ...others, row('web4')])
  const firing = (host: string): number =>
    finish(sensor.firingCount({ tenant: 'acme' } as never, finish(alertMatchers([`host${host}`]))))
  expect(['=web1', '=web2', '=secret', '=web3', '=~"web.*"', '!=web1'].map(firing)).toEqual([1, 0, 0, 0, 2, 1])
})
