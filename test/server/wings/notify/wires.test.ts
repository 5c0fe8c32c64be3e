/** What receivers are sent. */
import { expect, it } from 'vitest'
import type { NotifiedAlert } from '../../../../server/wings/notify/alert.ts'
import type { Notification } from '../../../../server/wings/notify/notification.ts'
import { alertmanagerWire } from '../../../../server/wings/notify/wires/alertmanager.ts'
import { ntfyWire } from '../../../../server/wings/notify/wires/ntfy.ts'
import { webhookWire } from '../../../../server/wings/notify/wires/webhook.ts'

const AT = Date.parse('2026-11-30T05:00:00Z')
const alert = (host: string, endedMs = 0): NotifiedAlert => ({
  labels: [
    ['alertname', 'Full'],
    ['host', host],
    ['severity', 'critical'],
  ],
  annotations: [['summary', `${host} is full`]],
  state: endedMs === 0 ? 'firing' : 'resolved',
  value: '1',
  sinceMs: AT - 60_000,
  firedMs: AT,
  endedMs,
  group: 'g',
  rule: 'Full',
  fingerprint: 'f0',
})
const notification: Notification = {
  key: 'k1',
  groupLabels: [['alertname', 'Full']],
  atMs: AT,
  alerts: [alert('a'), alert('b', AT + 1_000)],
  truncated: 3,
}
const told = { name: 'pager', externalUrl: 'https://c.example' }
const jsonOf = (body: Uint8Array): unknown => JSON.parse(Buffer.from(body).toString())

it('a webhook gets what one of Alertmanager gets, version 4', () => {
  const { body, headers } = webhookWire(told).request(notification, AT)
  expect(headers).toEqual({ 'content-type': 'application/json', 'idempotency-key': 'k1' })
  expect(jsonOf(body)).toEqual({
    version: '4',
    groupKey: '{}:{alertname="Full"}',
    truncatedAlerts: 3,
    status: 'firing',
    receiver: 'pager',
    groupLabels: { alertname: 'Full' },
    commonLabels: { alertname: 'Full', severity: 'critical' },
    commonAnnotations: {},
    externalURL: 'https://c.example',
    alerts: [
      {
        status: 'firing',
        labels: { alertname: 'Full', host: 'a', severity: 'critical' },
        annotations: { summary: 'a is full' },
        startsAt: '2026-11-30T05:00:00.000Z',
        endsAt: '0001-01-01T00:00:00Z',
        generatorURL: 'https://c.example',
        fingerprint: 'f0',
      },
      {
        status: 'resolved',
        labels: { alertname: 'Full', host: 'b', severity: 'critical' },
        annotations: { summary: 'b is full' },
        startsAt: '2026-11-30T05:00:00.000Z',
        endsAt: '2026-11-30T05:00:01.000Z',
        generatorURL: 'https://c.example',
        fingerprint: 'f0',
      },
    ],
  })
})

it('an Alertmanager is told that what fires ends in four minutes from when it is sent', () => {
  const { body } = alertmanagerWire(told).request(notification, AT + 60_000)
  expect(jsonOf(body)).toMatchObject([
    { labels: { host: 'a' }, startsAt: '2026-11-30T05:00:00.000Z', endsAt: '2026-11-30T05:05:00.000Z' },
    { labels: { host: 'b' }, endsAt: '2026-11-30T05:00:01.000Z' },
  ])
})

it('ntfy gets a message to the topic, with the priority of the severity and a link', () => {
  const wire = ntfyWire('https://ntfy.example/base/disk%20alerts', told, () => '')
  expect(wire.href).toBe('https://ntfy.example/base/')
  expect(jsonOf(wire.request(notification, AT).body)).toEqual({
    topic: 'disk alerts',
    title: 'Full',
    message: 'a is full\nresolved: b is full\nand 3 more',
    priority: 5,
    tags: ['rotating_light'],
    click: 'https://c.example/#/alerts',
    actions: [{ action: 'view', label: 'Open', url: 'https://c.example/#/alerts', clear: false }],
  })
  const lower = {
    ...alert('c'),
    labels: [
      ['alertname', 'Slow'],
      ['severity', 'info'],
    ] as const,
  }
  const mixed = { ...notification, alerts: [lower, alert('b', AT)] }
  expect(jsonOf(wire.request(mixed, AT).body)).toMatchObject({ priority: 2 })
  const ended = { ...notification, alerts: [alert('b', AT)], truncated: 0 }
  expect(jsonOf(wire.request(ended, AT).body)).toMatchObject({ title: 'Resolved: Full', priority: 2 })
})

it('the button of ntfy sends its token in the body, to the server that the console is of', () => {
  const tokens: Notification[] = []
  const tokenOf = (notification: Notification): string => {
    tokens.push(notification)
    return 'the token'
  }
  const external = { ...told, externalUrl: 'https://c.example/below/console' }
  const wire = ntfyWire('https://ntfy.example/topic', external, tokenOf)
  expect(jsonOf(wire.request(notification, AT).body)).toMatchObject({
    actions: [
      {
        action: 'http',
        label: 'Acknowledge',
        method: 'POST',
        url: 'https://c.example/below/alerts/acknowledge',
        body: 'the token',
        clear: true,
      },
      { action: 'view', label: 'Open' },
    ],
  })
  expect(tokens).toEqual([notification])
  const both = { ...notification, alerts: [alert('a'), alert('b')] }
  expect(jsonOf(wire.request(both, AT).body)).toMatchObject({ actions: [{ label: 'Acknowledge all 2' }, {}] })
})

it('the expression of the rule is where an alert comes from', () => {
  const from = { ...notification, alerts: [{ ...alert('a'), query: 'up{job="a b"} == 0' }] }
  const generatorURL = 'https://c.example/#/query?expr=up%7Bjob%3D%22a%20b%22%7D%20%3D%3D%200&show=chart'
  expect(jsonOf(webhookWire(told).request(from, AT).body)).toMatchObject({ alerts: [{ generatorURL }] })
  expect(jsonOf(alertmanagerWire(told).request(from, AT).body)).toMatchObject([{ generatorURL }])
  const nowhere = { ...told, externalUrl: '' }
  expect(jsonOf(webhookWire(nowhere).request(from, AT).body)).toMatchObject({ alerts: [{ generatorURL: '' }] })
})
