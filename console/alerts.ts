/** Alerts, rules, silences and notifications, as the records of the server say them, and what people make of them. */
import type { PlainRecord } from '../client/browser.ts'

const US_PER_S = 1e6
const FAILS_AFTER_S = 300

/** The label of alerts that say that a rule has no data at all. */
const NO_DATA = 'no_data'

/** A name of a label or an annotation, with its text. */
export type Pair = readonly [name: string, text: string]

export type AlertState = 'firing' | 'pending'

export interface ActiveAlert {
  /** By which it is told from all others: the same labels may be of two rules. */
  readonly key: string
  readonly fingerprint: string
  readonly name: string
  readonly severity: string
  readonly state: AlertState
  readonly labels: readonly Pair[]
  readonly annotations: readonly Pair[]
  readonly value: number
  /** Since when it holds, and fires, seconds since 1970; 0: it does not fire. */
  readonly since: number
  readonly fired: number
  /** Since when it fires although its expression holds no more; 0: it holds. */
  readonly keptSince: number
  /** Since when its expression has had no data, although it goes on; 0: it has some. */
  readonly missingSince: number
  readonly file: string
  readonly group: string
  readonly rule: string
  /** The id of the silence or acknowledgement because of which nobody is told; empty if there is none. */
  readonly silence: string
  /** Names of the notifiers that have told of it. */
  readonly told: string
}

export interface RuleLine {
  readonly key: string
  readonly file: string
  readonly group: string
  readonly name: string
  readonly isAlert: boolean
  readonly expr: string
  /** What a chart draws, with the number that it is compared with; undefined if the expression is no such comparison. */
  readonly threshold: { readonly expr: string; readonly value: number } | undefined
  /** Seconds: for how long it has to hold, and for how long it fires although it holds no more. */
  readonly forSeconds: number
  readonly keepsSeconds: number
  readonly health: string
  readonly problem: string
  /** When it was evaluated last, seconds since 1970, 0: never; and how long that took, in seconds. */
  readonly evaluated: number
  readonly took: number
  readonly interval: number
  readonly pending: number
  readonly firing: number
}

export interface SilenceLine {
  readonly id: string
  readonly isAcknowledgement: boolean
  readonly matchers: string
  /** Seconds since 1970. */
  readonly begins: number
  readonly ends: number
  readonly author: string
  readonly comment: string
}

export interface NotificationLine {
  readonly key: string
  /** Microseconds since 1970. */
  readonly time: number
  readonly notifier: string
  readonly group: string
  readonly firing: number
  readonly resolved: number
  readonly outcome: string
  readonly answer: string
  readonly attempts: number
}

export interface NotifierLine {
  readonly name: string
  /** Who has put it; empty if it is of the configuration. */
  readonly author: string
  readonly problem: string
  /** Seconds since 1970; 0: it does not fail. */
  readonly failingSince: number
  readonly alerts: number
  readonly delivered: number
  readonly refused: number
  readonly lost: number
}

/** Of somebody who has signed in as `name` or `tenant/name`. */
export function tenantOf(identity: string): string {
  return identity.includes('/') ? (identity.split('/', 1)[0] ?? '') : 'default'
}

const number = (value: unknown): number => (typeof value === 'number' || typeof value === 'bigint' ? Number(value) : 0)
const text = (value: unknown): string => (typeof value === 'string' ? value : '')
const seconds = (value: unknown): number => number(value) / US_PER_S

function pairsOf(value: unknown): readonly Pair[] {
  return Object.entries((value ?? {}) as PlainRecord).map(([name, said]): Pair => [name, text(said)])
}

export function activeAlertOf(record: PlainRecord): ActiveAlert {
  const labels = pairsOf(record['labels'])
  const of = (name: string): string => labels.find(([label]) => label === name)?.[1] ?? ''
  const [fingerprint, file, group, rule] = (['fingerprint', 'file', 'group', 'rule'] as const).map((name) =>
    text(record[name]),
  ) as [string, string, string, string]
  return {
    key: [file, group, rule, fingerprint].join('\n'),
    fingerprint,
    name: of('alertname') || rule,
    severity: of('severity'),
    state: record['state'] === 'firing' ? 'firing' : 'pending',
    labels,
    annotations: pairsOf(record['annotations']),
    value: number(record['value']),
    since: seconds(record['since']),
    fired: seconds(record['fired']),
    keptSince: seconds(record['kept_since']),
    missingSince: seconds(record['missing_since']),
    file,
    group,
    rule,
    silence: text(record['silence']),
    told: text(record['told']),
  }
}

export function ruleLineOf(record: PlainRecord): RuleLine {
  const drawn = record['drawn']
  return {
    key: String(record['rule']),
    file: text(record['file']),
    group: text(record['group']),
    name: text(record['name']),
    isAlert: record['kind'] === 'alert',
    expr: text(record['expr']),
    threshold: typeof drawn === 'string' ? { expr: drawn, value: number(record['threshold']) } : undefined,
    forSeconds: seconds(record['for']),
    keepsSeconds: seconds(record['keep_firing_for']),
    health: text(record['health']),
    problem: text(record['problem']),
    evaluated: seconds(record['evaluated']),
    took: seconds(record['took']),
    interval: seconds(record['interval']),
    pending: number(record['pending']),
    firing: number(record['firing']),
  }
}

export function silenceLineOf(record: PlainRecord): SilenceLine {
  return {
    id: text(record['id']),
    isAcknowledgement: record['kind'] === 'acknowledgement',
    matchers: text(record['matchers']),
    begins: seconds(record['begins']),
    ends: seconds(record['ends']),
    author: text(record['author']),
    comment: text(record['comment']),
  }
}

export function notificationLineOf(record: PlainRecord): NotificationLine {
  const notifier = text(record['notifier'])
  return {
    key: `${notifier} ${text(record['key'])}`,
    time: number(record['time']),
    notifier,
    group: text(record['group']),
    firing: number(record['firing']),
    resolved: number(record['resolved']),
    outcome: text(record['outcome']),
    answer: text(record['answer']),
    attempts: number(record['attempts']),
  }
}

/** Whether an alert is that of a notifier, which stands above all others. */
export function isOfNotifier({ group, rule }: Pick<ActiveAlert, 'group' | 'rule'>): boolean {
  return group === 'notifiers' && rule === 'CinnabarNotifierFails'
}

/** Those of which `CinnabarNotifierFails` fires. What has been wrong for less long passes by itself. */
export function failingNotifiers(notifiers: readonly NotifierLine[], nowSeconds: number): readonly NotifierLine[] {
  return notifiers.filter(({ failingSince }) => failingSince > 0 && nowSeconds - failingSince >= FAILS_AFTER_S)
}

export function notifierLineOf(record: PlainRecord): NotifierLine {
  return {
    name: text(record['name']),
    author: text(record['author']),
    problem: text(record['problem']),
    failingSince: seconds(record['failing_since']),
    alerts: number(record['alerts']),
    delivered: number(record['delivered']),
    refused: number(record['refused']),
    lost: number(record['lost']),
  }
}

/** The rule that an alert comes from: alerts know the last part of the path of its file. */
export function ruleOf({ file, group, rule }: ActiveAlert, rules: readonly RuleLine[] = []): RuleLine | undefined {
  return rules.find(
    (one) => one.isAlert && one.name === rule && one.group === group && one.file.split(/[/\\]/).at(-1) === file,
  )
}

/** Whether an alert is there, or goes on, because there are no data. */
export function hasNoData({ missingSince, labels }: Pick<ActiveAlert, 'missingSince' | 'labels'>): boolean {
  return missingSince > 0 || labels.some(([name, text]) => name === NO_DATA && text === 'true')
}

/** The worst first; what is not in it comes between warnings and information. */
const SEVERITIES = [
  'disaster',
  'emergency',
  'critical',
  'page',
  'error',
  'high',
  'warning',
  '',
  'info',
  'none',
] as const

export function severityRank(severity: string): number {
  const at = (SEVERITIES as readonly string[]).indexOf(severity.toLowerCase())
  return at < 0 ? SEVERITIES.indexOf('') : at
}

/** How urgent a severity looks. */
export function severityLook(severity: string): 'critical' | 'warning' | 'info' {
  const rank = severityRank(severity)
  if (rank < SEVERITIES.indexOf('error')) return 'critical'
  return rank <= SEVERITIES.indexOf('') ? 'warning' : 'info'
}

/** What wants somebody first: what fires before what is pending, what nobody silences, the worst, and the newest of these. */
export function byUrgency(one: ActiveAlert, other: ActiveAlert): number {
  const rank = ({ silence, state }: ActiveAlert): number => (silence === '' ? 0 : 2) + (state === 'firing' ? 0 : 1)
  return (
    rank(one) - rank(other) ||
    severityRank(one.severity) - severityRank(other.severity) ||
    (other.fired || other.since) - (one.fired || one.since) ||
    (one.key < other.key ? -1 : 1)
  )
}

/** Whether an alert is meant by a text: each of its words is a part of a label with its name, of an annotation or of its state. */
export function isMeant(
  { labels, annotations = [], state }: Pick<ActiveAlert, 'labels'> & Partial<ActiveAlert>,
  wanted: string,
): boolean {
  const words = wanted.toLowerCase().split(/\s+/).filter(Boolean)
  const said = [...labels.map((pair) => pair.join('=')), ...annotations.map(([, text]) => text), state ?? '']
  const whole = said.join('\n').toLowerCase()
  return words.every((word) => whole.includes(word))
}

/** As the server takes matchers. */
export function matcherText([name, text]: Pair): string {
  return `${name}="${text.replace(/[\\"]/g, '\\$&').replaceAll('\n', '\\n')}"`
}

/** Matchers that the server takes at most, and characters of one. */
const MOST_MATCHERS = 32
const MAX_MATCHER = 1_024
const FINGERPRINT = '__fingerprint__'

/** Matchers of this alert: what a silence of it begins with. */
export function matchersOf({ labels }: Pick<ActiveAlert, 'labels'>): readonly string[] {
  return labels
    .filter(([name]) => /^[a-zA-Z_]\w*$/.test(name))
    .map(matcherText)
    .filter((matcher) => matcher.length <= MAX_MATCHER)
    .slice(0, MOST_MATCHERS - 1)
}

/** Matchers of this alert and no other, also of none that has more labels. */
export function exactMatchersOf(alert: ActiveAlert): readonly string[] {
  return [...matchersOf(alert), matcherText([FINGERPRINT, alert.fingerprint])]
}

/** The parts of a text, of which those are links that are addresses of the web. */
export function linksIn(text: string): readonly { readonly text: string; readonly href?: string }[] {
  const parts: { readonly text: string; readonly href?: string }[] = []
  let at = 0
  for (const { 0: found, index } of text.matchAll(/https?:\/\/[^\s<>"']+/g)) {
    const href = found.replace(/[.,;:!?)\]]+$/, '')
    if (!URL.canParse(href)) continue
    if (index > at) parts.push({ text: text.slice(at, index) })
    parts.push({ text: href, href })
    at = index + href.length
  }
  if (at < text.length) parts.push({ text: text.slice(at) })
  return parts
}

/** How many seconds a silence lasts, as it can be chosen. */
export const SILENCE_SECONDS = [1_800, 7_200, 28_800, 86_400, 604_800] as const
/** As `cinnabar alerts ack` has it. */
export const ACKNOWLEDGED_SECONDS = 604_800
