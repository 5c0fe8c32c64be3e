/** The tables `[[notify]]`: who is told of alerts, and how (docs/alerts.md). */
import { z } from 'zod'
import {
  decoded,
  duration,
  isOwnMachine,
  key,
  needed,
  optional,
  path,
  plainText,
  type SectionConfig,
  tableList,
  tenant,
  toggle,
} from '../../kit/config.ts'
import { muteTimesOf } from './mute-times.ts'

export type NotifyProtocol = 'webhook' | 'alertmanager' | 'ntfy' | 'json' | 'heartbeat' | 'smtp'

export interface NotifyUrl {
  readonly protocol: NotifyProtocol
  /** As it is requested, http or https; smtp or smtps of a mail server. */
  readonly href: string
  /** Without its path, by which whoever knows it may tell as well: that of an incoming webhook of Slack is a secret. */
  readonly shown: string
}

const CONSUMER_ROLE = 'consumer'
const SHAPE = /^(webhook|alertmanager|ntfy|json|heartbeat)\+(https?:\/\/.+)$/i
const MAIL_ADDRESS = /^(?:[^<>@\p{Cc}]{0,128} <[^<>@\s,;]+@[^<>@\s,;]+>|[^<>@\s,;]+@[^<>@\s,;]+)$/u
const ALERTMANAGER_PATH = 'api/v2/alerts'
/** How long an Alertmanager is told again that an alert has ended, as Prometheus tells it: it may have been away, or have forgotten. */
const REPEATS_ENDED_MS = 900_000
/** How an Alertmanager is told: at once, and again every minute, since it takes what it hears of no longer as ended. It groups by itself. */
const FOR_ALERTMANAGER = { groupBy: [], groupWaitMs: 0, groupIntervalMs: 0, repeatIntervalMs: 60_000 }

/** Undefined if it is no URL of a notifier. */
export function parseNotifyUrl(text: string): NotifyUrl | undefined {
  if (/^smtps?:\/\//i.test(text)) return parseMailUrl(text)
  const [, word = '', rest = ''] = SHAPE.exec(text) ?? []
  if (!URL.canParse(rest)) return undefined
  const http = new URL(rest)
  if (http.username !== '' || http.password !== '' || http.hash !== '') return undefined
  const protocol = word.toLowerCase() as NotifyProtocol
  const isBase = protocol === 'alertmanager' && !http.pathname.endsWith(ALERTMANAGER_PATH)
  if (isBase) http.pathname = `${http.pathname.replace(/\/$/, '')}/${ALERTMANAGER_PATH}`
  // The last part of the path is the topic.
  if (protocol === 'ntfy' && !(/^(\/[^/]+)+$/.test(http.pathname) && isEncoded(http.pathname))) return undefined
  return { protocol, href: http.href, shown: `${protocol}+${http.origin}` }
}

function parseMailUrl(text: string): NotifyUrl | undefined {
  if (!URL.canParse(text)) return undefined
  const { href, protocol, host, username, password, pathname, search, hash } = new URL(text)
  const isPlain = [username, password, search, hash].every((part) => part === '')
  if (!isPlain || host === '' || !['', '/'].includes(pathname)) return undefined
  return { protocol: 'smtp', href, shown: `${protocol}//${host}` }
}

function isEncoded(text: string): boolean {
  try {
    return decodeURIComponent(text) !== undefined
  } catch {
    return false
  }
}

const notifierName = () => ({
  type: z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/),
  expected: 'a name: 1 to 64 letters, digits, ".", "_" or "-", the first a letter or digit',
})
const notifyUrl = () => ({
  type: decoded(parseNotifyUrl),
  expected:
    'a URL like "webhook+https://host/path", "alertmanager+http://host:9093", "ntfy+https://ntfy.sh/topic", "json+https://host/path", "heartbeat+https://host/path" or "smtps://host:465", and without a user',
  isSecret: true,
})
const mailAddress = () => ({
  type: z.string().regex(MAIL_ADDRESS),
  expected: 'an address like "cinnabar@example.org" or "Cinnabar <cinnabar@example.org>"',
})
const mailAddresses = () => ({
  type: z.array(mailAddress().type).min(1).max(50),
  expected: 'a list of 1 to 50 addresses, like ["ann@example.org"]',
})
const matcherTexts = () => ({
  type: z.array(z.string().min(3).max(1_024)).max(32),
  expected: 'a list of at most 32 matchers, like [\'severity="page"\', \'team=~"a|b"\']',
})
const muteTime = z.unknown().transform((given, context) => {
  const times = muteTimesOf(given)
  if (times !== undefined) return times
  context.addIssue({ code: 'custom', message: 'no time at which nothing is told' })
  return z.NEVER
})
const muteTimes = () => ({
  type: z.array(muteTime).max(32),
  expected:
    'a list like [{ weekdays = ["saturday", "sunday"] }, { times = ["00:00-07:00"], location = "Europe/Berlin" }], also with days_of_month, months and years, as Alertmanager has them',
})
const inhibitRules = () => ({
  type: z
    .array(
      z.strictObject({
        source: z.array(z.string().min(3).max(1_024)).min(1).max(32),
        target: z.array(z.string().min(3).max(1_024)).min(1).max(32),
        equal: z
          .array(z.string().regex(/^[a-zA-Z_][a-zA-Z0-9_]*$/))
          .max(32)
          .default([]),
      }),
    )
    .max(32),
  expected:
    'a list like [{ source = [\'alertname="HostDown"\'], target = [\'severity="warning"\'], equal = ["host"] }]',
})
const labelNames = () => ({
  type: z.array(z.string().regex(/^([a-zA-Z_][a-zA-Z0-9_]*|\.\.\.)$/)).max(32),
  expected: 'a list of at most 32 names of labels, or ["..."] for all',
})
const httpUrl = () => ({
  type: z.string().refine((text) => text === '' || (/^https?:\/\//.test(text) && URL.canParse(text))),
  expected: 'a URL that begins with http:// or https://',
})
const roleName = () => ({ type: z.string().regex(/^\P{Cc}{1,255}$/u), expected: 'the name of a role' })

const table = z
  .strictObject({
    name: needed(
      notifierName(),
      'Its name. Its channel is called `notify:` and this name, and belongs to a user of that name.',
    ),
    url: needed(notifyUrl(), 'Who is told: the form of the requests, `+`, and where they go.'),
    match: key(matcherTexts(), [], 'Only alerts that all of these match, as Alertmanager has them.'),
    tenant: key(tenant(), 'default', 'The tenant whose alerts these are.'),
    role: key(roleName(), CONSUMER_ROLE, 'The role whose rules say which alerts may be read.'),
    approvals: key(
      toggle(),
      false,
      'Whether it also tells of EXECUTEs that wait for the approval of its `role`, whatever `match` says.',
    ),
    group_by: optional(
      labelNames(),
      'Alerts with the same texts of these labels are one notification. `["alertname"]` without it.',
    ),
    group_wait: optional(
      duration('0s', '1h'),
      'How long the first alert of a group waits for others. `30s` without it.',
    ),
    group_interval: optional(
      duration('0s', '1d'),
      'How long what changes in a group waits after its last notification. `5m` without it; with `0s` each transition is told.',
    ),
    repeat_interval: optional(
      duration('1m', '30d'),
      'When a group whose alerts still fire is told again. `4h` without it.',
    ),
    from: optional(mailAddress(), 'From whom e-mails of `smtp` URLs are.'),
    to: optional(mailAddresses(), 'To whom they go.'),
    interval: optional(
      duration('10s', '1d'),
      'How often a heartbeat is sent, as long as all rules can be evaluated in time. `1m` without it.',
    ),
    escalate_to: optional(
      notifierName(),
      'The notifier of the same tenant that is told as well of an alert that nobody acknowledges.',
    ),
    escalate_after: optional(duration('1s', '30d'), 'How long an alert waits for that. `15m` without it.'),
    send_resolved: key(toggle(), true, 'Whether it is told when alerts have ended.'),
    mute_time_intervals: key(
      muteTimes(),
      [],
      'When nothing is told: what changes meanwhile is told when that is over. A time has to be in each list that an entry has.',
    ),
    inhibit: key(
      inhibitRules(),
      [],
      'While an alert fires that matches `source`, nobody is told of those that match `target` with the same texts of the labels `equal`.',
    ),
    template: optional(
      path(),
      'A file with the template of the body that `json+https` URLs are sent, which has to give JSON. Read with the configuration.',
    ),
    external_url: key(
      httpUrl(),
      '',
      'Where people find the console: for links, and for the button of `ntfy` messages.',
    ),
    acknowledge: key(
      toggle(),
      true,
      'Whether messages of `ntfy` URLs have a button that acknowledges their alerts. It takes `external_url`.',
    ),
    token_file: optional(
      path(),
      'A file with a token, which is sent as `Authorization: Bearer`. Read for each request.',
    ),
    username: key(plainText(), '', 'A user name for HTTP Basic authentication.'),
    password_file: optional(path(), 'A file with the password of that user. Read for each request.'),
    secret_file: optional(
      path(),
      'A file with the secrets that sign requests to `webhook+https` URLs, one a line: `whsec_` and 24 to 64 bytes as base64. ' +
        'Read for each request.',
    ),
    ca: optional(path(), 'Authorities for the certificate of the destination, a PEM file; else those of Node.'),
    cert: optional(path(), 'A client certificate with its chain, a PEM file.'),
    key: optional(path(), 'Its private key, a PEM file.'),
    timeout: key(duration('100ms', '10m'), '30s', 'How long the destination may take for its answer.'),
  })
  .superRefine((given, context) => {
    const { url, token_file, username, password_file, secret_file, cert, key } = given
    const add = (message: string): void => context.addIssue({ code: 'custom', message })
    if ((cert === undefined) !== (key === undefined)) add('`cert` and `key` go together')
    if ((username === '') !== (password_file === undefined)) add('`username` and `password_file` go together')
    if (token_file !== undefined && username !== '') add('either `token_file` or `username`, not both')
    if (secret_file !== undefined && url.protocol !== 'webhook')
      add('`secret_file` goes with a `url` of webhook+https or webhook+http')
    if ((given.template === undefined) === (url.protocol === 'json'))
      add('`template` goes with a `url` of json+https or json+http')
    const isMail = url.protocol === 'smtp'
    if ((given.from === undefined) === isMail || (given.to === undefined) === isMail)
      add('`from` and `to` go with a `url` of smtps or smtp')
    if (isMail && token_file !== undefined) add('`token_file`: mail servers take `username` and `password_file`')
    const { protocol, hostname } = new URL(url.href)
    if ((token_file !== undefined || username !== '') && protocol === 'http:' && !isOwnMachine(hostname))
      add('`url`: a token or password would be sent in clear: use +https')
    if (given.interval !== undefined && url.protocol !== 'heartbeat')
      add('`interval` goes with a `url` of heartbeat+https or heartbeat+http')
    for (const name of ['group_by', 'group_wait', 'group_interval', 'repeat_interval'] as const) {
      if (given[name] === undefined) continue
      if (url.protocol === 'alertmanager')
        add(`\`${name}\`: an Alertmanager groups and repeats by itself: leave this out, and set it there`)
      if (url.protocol === 'heartbeat') add(`\`${name}\`: a heartbeat says nothing of alerts: leave this out`)
    }
    if (given.approvals && url.protocol === 'heartbeat')
      add('`approvals`: a heartbeat says nothing of what waits for approval: leave this out')
    if (given.escalate_after !== undefined && given.escalate_to === undefined)
      add('`escalate_after` goes with `escalate_to`')
    if (given.escalate_to !== undefined && url.protocol === 'heartbeat')
      add('`escalate_to`: a heartbeat says nothing of alerts: leave this out')
    for (const name of ['match', 'mute_time_intervals', 'inhibit'] as const)
      if (url.protocol === 'heartbeat' && given[name].length > 0)
        add(`\`${name}\`: a heartbeat says nothing of alerts: leave this out`)
  })
  .transform(({ url, ...given }) => ({
    url,
    name: given.name,
    match: given.match,
    tenant: given.tenant,
    role: given.role,
    approvals: given.approvals,
    groupBy: given.group_by ?? ['alertname'],
    groupWaitMs: given.group_wait ?? 30_000,
    groupIntervalMs: given.group_interval ?? 300_000,
    repeatIntervalMs: given.repeat_interval ?? 14_400_000,
    ...(url.protocol === 'alertmanager' && FOR_ALERTMANAGER),
    from: given.from ?? '',
    to: given.to ?? [],
    escalateTo: given.escalate_to,
    escalateAfterMs: given.escalate_after ?? 900_000,
    intervalMs: given.interval ?? 60_000,
    sendResolved: given.send_resolved || url.protocol === 'alertmanager',
    // It would take them as ended.
    repeatsMuted: url.protocol === 'alertmanager',
    repeatsEndedMs: url.protocol === 'alertmanager' ? REPEATS_ENDED_MS : 0,
    muteTimes: given.mute_time_intervals,
    inhibit: given.inhibit,
    template: given.template,
    externalUrl: given.external_url.replace(/\/$/, ''),
    acknowledge: given.acknowledge && url.protocol === 'ntfy' && given.external_url !== '',
    tokenFile: given.token_file,
    username: given.username,
    passwordFile: given.password_file,
    secretFile: given.secret_file,
    ca: given.ca,
    cert: given.cert,
    key: given.key,
    timeoutMs: given.timeout,
  }))

const tables = z
  .array(table)
  .max(100)
  .superRefine((tables, context) => {
    const known = new Set<string>()
    for (const { tenant, name } of tables) {
      const place = `${tenant}/${name}`
      if (known.has(place))
        context.addIssue({ code: 'custom', message: `two of the tenant ${tenant} are called ${name}` })
      known.add(place)
    }
  })

/** The tables that users put: what `escalate_to` names may be there already. */
export const putSection = tableList(tables)

export const notifySection = tableList(
  tables
    .superRefine((tables, context) => {
      for (const { name, role, approvals } of tables)
        if (approvals && role === CONSUMER_ROLE)
          context.addIssue({
            code: 'custom',
            message: `${name}: \`approvals\` needs the \`role\` whose users approve, as a rule names it (\`cinnabar role list\`): ${CONSUMER_ROLE} is the role of users who have no other`,
          })
      for (const { tenant, name, escalateTo } of tables) {
        if (escalateTo === undefined) continue
        const next = tables.find((table) => table.tenant === tenant && table.name === escalateTo)
        if (next === undefined || next.name === name || next.url.protocol === 'heartbeat')
          context.addIssue({
            code: 'custom',
            message: `${name}: \`escalate_to\` has to name another notifier of the tenant ${tenant}: ${escalateTo} is none`,
          })
      }
    })
    .default([])
    .describe(
      'Who is told of alerts, one table each; only in the file. What they are told: [alerts.md](alerts.md#notifiers).',
    ),
  { isLive: true },
)
export type NotifyTable = SectionConfig<typeof notifySection>[number]
