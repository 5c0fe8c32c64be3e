/**
 * docs/alerts.md#bodies-of-your-own: the templates there give what the services document. Each is sent to a receiver that refuses a
 * body without the fields which the documentation of the service requires, or with one that it does not know.
 */
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { z } from 'zod'
import { ConfigError, loadConfig } from '../../../../server/start/config.ts'
import { withBodies } from '../../../../server/wings/notify/bodies.ts'
import { notifyDestination } from '../../../../server/wings/notify/destination.ts'
import type { Notification } from '../../../../server/wings/notify/notification.ts'

const AT = Date.parse('2026-11-30T05:00:00Z')
const clock = { setTimeout: () => ({}) as never, clear: () => {}, wallMs: () => AT }

/** api.slack.com/messaging/webhooks: `text`, or `blocks`. */
const slack = z.strictObject({ text: z.string().min(1).max(40_000) })
/** learn.microsoft.com, "Create flows that post adaptive cards": a message with cards; adaptivecards.io for these. */
const teams = z.strictObject({
  type: z.literal('message'),
  attachments: z
    .array(
      z.strictObject({
        contentType: z.literal('application/vnd.microsoft.card.adaptive'),
        content: z.strictObject({
          $schema: z.literal('http://adaptivecards.io/schemas/adaptive-card.json'),
          type: z.literal('AdaptiveCard'),
          version: z.string().regex(/^1\.[0-6]$/),
          body: z.array(
            z.strictObject({
              type: z.literal('TextBlock'),
              text: z.string().min(1),
              wrap: z.boolean(),
              weight: z.enum(['lighter', 'default', 'bolder']).optional(),
              color: z.enum(['default', 'dark', 'light', 'accent', 'good', 'warning', 'attention']).optional(),
            }),
          ),
        }),
      }),
    )
    .length(1),
})
/** discord.com/developers/docs, "Execute Webhook": one of content, embeds and others is required; limits of embeds. */
const discord = z.strictObject({
  allowed_mentions: z.strictObject({ parse: z.array(z.enum(['roles', 'users', 'everyone'])) }),
  embeds: z
    .array(
      z.strictObject({
        title: z.string().max(256),
        description: z.string().max(4_096),
        color: z.int().min(0).max(0xffffff),
      }),
    )
    .min(1)
    .max(10),
})
/** core.telegram.org/bots/api#sendmessage: chat_id and text are required. */
const telegram = z.strictObject({
  chat_id: z.union([z.int(), z.string().min(1)]),
  text: z.string().min(1).max(4_096),
  disable_notification: z.boolean().optional(),
})
/** developer.pagerduty.com, "Send an Alert Event": Events API v2. */
const pagerduty = z.strictObject({
  routing_key: z.string().length(32),
  event_action: z.enum(['trigger', 'acknowledge', 'resolve']),
  dedup_key: z.string().min(1).max(255),
  payload: z.strictObject({
    summary: z.string().min(1).max(1_024),
    source: z.string().min(1),
    severity: z.enum(['critical', 'warning', 'error', 'info']),
    custom_details: z.record(z.string(), z.unknown()),
  }),
})

/** The templates of the page, by the first word of the paragraph before each. */
function templates(): ReadonlyMap<string, string> {
  const page = readFileSync(new URL('../../../../docs/alerts.md', import.meta.url), 'utf8')
  const found = page.matchAll(/^\*\*(?:Microsoft )?(\w+)\*\*.*\n\n```template\n([\s\S]*?)```$/gm)
  return new Map([...found].map(([, name = '', text = '']) => [name, text]))
}

let directory = ''
let receiver: Server
let received: unknown[] = []
let expected: z.ZodType = z.unknown()
let port = 0

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'bodies-'))
  received = []
  expected = z.unknown()
  receiver = createServer(async (request, response) => {
    const parts: Buffer[] = []
    for await (const part of request) parts.push(part as Buffer)
    const read = expected.safeParse(JSON.parse(Buffer.concat(parts).toString()))
    if (read.success) received.push(read.data)
    response.writeHead(read.success ? 202 : 400).end(read.error?.message ?? 'ok')
  })
  receiver.listen(0, '127.0.0.1')
  await once(receiver, 'listening')
  port = (receiver.address() as AddressInfo).port
})

afterEach(() => {
  receiver.closeAllConnections()
  receiver.close()
  rmSync(directory, { recursive: true, force: true })
})

function tableOf(template: string) {
  const path = join(directory, 'body.tmpl')
  writeFileSync(path, template)
  const toml = `[[notify]]\nname = "n"\nurl = "json+http://127.0.0.1:${port}/x"\ntemplate = "${path}"\nexternal_url = "https://c.example/"\n`
  return loadConfig({ file: 'c.toml', env: {}, readFile: () => Buffer.from(toml) }).notify
}

function notificationOf(state: 'firing' | 'resolved', severity = 'critical', hosts = 1): Notification {
  const alerts = Array.from({ length: hosts }, (_, index) => ({
    labels: [
      ['alertname', 'Disk <"full">'],
      ['host', `web${index}`],
      ['severity', severity],
    ] as const,
    annotations: [['summary', `5 < 7 & "more" \\ at\nweb${index}${'x'.repeat(hosts > 1 ? 600 : 0)}`]] as const,
    state,
    value: '0.05',
    sinceMs: AT,
    firedMs: AT,
    endedMs: state === 'firing' ? 0 : AT + 1_000,
    group: 'g',
    rule: 'r',
    fingerprint: `f${index}`,
  }))
  return { key: 'k', groupLabels: [['alertname', 'Disk <"full">']], atMs: AT, alerts, truncated: 0 }
}

async function sent(template: string, notification: Notification) {
  const [table] = await withBodies(tableOf(template), AT)
  if (table === undefined) throw new Error('there is no table')
  const destination = notifyDestination(table, clock)
  try {
    return await destination.send(notification)
  } finally {
    destination.close()
  }
}

it.each([
  ['Slack', slack],
  ['Teams', teams],
  ['Discord', discord],
  ['Telegram', telegram],
  ['PagerDuty', pagerduty],
] as const)('%s takes what the template of the page gives', async (name, shape) => {
  const template = templates().get(name) ?? ''
  expected = shape
  for (const notification of [
    notificationOf('firing'),
    notificationOf('resolved', ''),
    notificationOf('firing', 'page', 250),
  ])
    expect(await sent(template, notification)).toEqual({ verdict: 'taken', detail: '202: ok', waitMs: 0 })
  expect(received).toHaveLength(3)
  expect(JSON.stringify(received[0])).toContain(name === 'Slack' ? '5 &lt; 7 &amp; ' : '5 < 7 & ')
})

it('an incident of PagerDuty is resolved by the key that triggered it', async () => {
  const template = templates().get('PagerDuty') ?? ''
  expected = pagerduty
  await sent(template, notificationOf('firing'))
  await sent(template, notificationOf('resolved'))
  const [first, second] = received as z.infer<typeof pagerduty>[]
  expect(first).toMatchObject({ event_action: 'trigger', payload: { severity: 'critical', source: 'web0' } })
  expect(second).toMatchObject({ event_action: 'resolve', dedup_key: first?.dedup_key })
})

it('a template has what those of Alertmanager have, and JSON of anything', async () => {
  const template = `{ "of": [{{ range $index, $alert := .Alerts.Firing }}{{ if $index }}, {{ end }}{{ .Labels | toJson }}{{ end }}],
    "ended": {{ len .Alerts.Resolved }}, "key": {{ .GroupKey | toJson }}, "by": {{ .GroupFingerprint | toJson }},
    "at": {{ (index .Alerts 0).StartsAt | toJson }}, "link": {{ .ExternalURL | toJson }}, "to": {{ .Receiver | toJson }}, "now": {{ now }} }`
  expect(await sent(template, notificationOf('firing', 'page', 2))).toEqual({
    verdict: 'taken',
    detail: '202: ok',
    waitMs: 0,
  })
  expect(received).toEqual([
    {
      of: [
        { alertname: 'Disk <"full">', host: 'web0', severity: 'page' },
        { alertname: 'Disk <"full">', host: 'web1', severity: 'page' },
      ],
      ended: 0,
      key: '{}:{alertname="Disk <\\"full\\">"}',
      by: expect.stringMatching(/^[0-9a-f]{16}$/),
      at: '2026-11-30T05:00:00.000Z',
      link: 'https://c.example',
      to: 'n',
      now: AT / 1_000,
    },
  ])
})

it.each([
  ['{ "a": {{ .Title }} }', /the template of the notifier n: its text is no JSON: `toJson` makes JSON of a text/],
  ['{ "a": {{ .Titel | toJson }} }', /can't evaluate field Titel: there are Receiver, .* and Text/],
  ['{{ "up" | query }}', /function "query" is not known/],
  ['{{ if', /an action has no }}/],
  [`{{/* ${'x'.repeat(65_536)} */}}1`, /it has more than 65536 bytes/],
])('%.30s is refused with the configuration', async (template, problem) => {
  const refused = await withBodies(tableOf(template), AT).catch((error: unknown) => error)
  expect(refused).toBeInstanceOf(ConfigError)
  expect((refused as Error).message).toMatch(problem)
})

it('a template that is not there is refused with its name', async () => {
  const tables = tableOf('{}')
  rmSync(directory, { recursive: true, force: true })
  await expect(withBodies(tables, AT)).rejects.toThrow(/body\.tmpl: the template of the notifier n cannot be read/)
})

it('what fails for one notification alone is refused, and not sent', async () => {
  const template = '{{ if gt (len .Alerts) 1 }}no JSON{{ else }}{}{{ end }}'
  expect(await sent(template, notificationOf('firing', 'page', 2))).toMatchObject({
    verdict: 'refused',
    detail: expect.stringContaining('the template gives no body'),
  })
  expect(received).toEqual([])
})

it('nothing of a text that is no JSON is in what is said of it, since it may hold secrets', async () => {
  const refused = await withBodies(tableOf('{ "routing_key": hunter2 }'), AT).catch((error: unknown) => error)
  expect((refused as Error).message).toMatch(/no JSON/)
  expect((refused as Error).message).not.toContain('hunter2')
  const template = '{{ if gt (len .Alerts) 1 }}{ "routing_key": hunter2 }{{ else }}{}{{ end }}'
  const { verdict, detail } = await sent(template, notificationOf('firing', 'page', 2))
  expect([verdict, detail.includes('hunter2')]).toEqual(['refused', false])
})
