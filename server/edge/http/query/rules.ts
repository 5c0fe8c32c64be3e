/** `/api/v1/rules` and `/api/v1/alerts`, as Prometheus has them. */
import type { Steps } from '../../../kernel/core/fair-work.ts'
import type { ShownAlert, ShownRule, ShownRuleGroup } from '../../../kit/rules.ts'
import { invalidParameter } from '../../query/problems.ts'
import { listTexts, successTexts } from './json.ts'
import type { KnownRequest } from './metadata.ts'
import { QueryParameters } from './parameters.ts'

const SECOND_MS = 1_000
const NEVER = '0001-01-01T00:00:00Z'
const KIND_OF = { alert: 'alerting', record: 'recording' } as const

export async function alertsFound(request: KnownRequest): Promise<Iterable<string>> {
  const groups = await groupsFor(request)
  return successTexts(inList('alerts', listTexts(alertsOf(groups))))
}

function* alertsOf(groups: readonly ShownRuleGroup[]): Generator<string> {
  for (const { rules } of groups) for (const { alerts } of rules) yield* alertTexts(alerts)
}

/** As work of the tenant: a rule may have thousands of alerts, each of which is judged. */
async function groupsFor({ rules, reader, work, tenant }: KnownRequest): Promise<readonly ShownRuleGroup[]> {
  return work.run({ tenant }, allGroups(rules, reader))
}

function* allGroups(rules: KnownRequest['rules'], reader: KnownRequest['reader']): Steps<readonly ShownRuleGroup[]> {
  const found: ShownRuleGroup[] = []
  for (const one of rules) found.push(...(yield* one.groupsFor(reader)))
  return found
}

export async function rulesFound(request: KnownRequest): Promise<Iterable<string>> {
  const parameters = new QueryParameters(request.given)
  const type = parameters.text('type').toLowerCase()
  if (type !== '' && type !== 'alert' && type !== 'record')
    throw invalidParameter('type', `not supported value ${JSON.stringify(type)}`)
  const isIn = (name: string, text: string): boolean => {
    const wanted = parameters.all(`${name}[]`)
    return wanted.length === 0 || wanted.includes(text)
  }
  const excludesAlerts = ['1', 't', 'true'].includes(parameters.text('exclude_alerts').toLowerCase())
  const groups = (await groupsFor(request)).flatMap((group) => {
    if (!isIn('rule_group', group.name) || !isIn('file', group.file)) return []
    const shown = group.rules.filter(({ kind, name }) => (type === '' || kind === type) && isIn('rule_name', name))
    return shown.length === 0 ? [] : [{ ...group, rules: shown }]
  })
  return successTexts(inList('groups', groupsTexts(groups, excludesAlerts)))
}

function* groupsTexts(groups: readonly ShownRuleGroup[], excludesAlerts: boolean): Generator<string> {
  let before = '['
  for (const { name, file, rules, intervalMs, limit, tookMs, evaluatedMs } of groups) {
    const after = {
      interval: intervalMs / SECOND_MS,
      limit,
      evaluationTime: tookMs / SECOND_MS,
      lastEvaluation: timeText(evaluatedMs),
    }
    yield before
    before = ','
    yield* between({ name, file }, 'rules', rulesTexts(rules, excludesAlerts), after)
  }
  yield before === '[' ? '[]' : ']'
}

function* rulesTexts(rules: readonly ShownRule[], excludesAlerts: boolean): Generator<string> {
  let before = '['
  for (const rule of rules) {
    yield before
    before = ','
    yield* ruleTexts(rule, excludesAlerts)
  }
  yield ']'
}

/** An object with a list between its other members, of which there are some before it and some after it. */
function* between(before: object, name: string, elements: Iterable<string>, after: object): Generator<string> {
  yield `${JSON.stringify(before).slice(0, -1)},"${name}":`
  yield* elements
  yield `,${JSON.stringify(after).slice(1)}`
}

function* inList(name: string, list: Iterable<string>): Generator<string> {
  yield `{"${name}":`
  yield* list
  yield '}'
}

function* ruleTexts(rule: ShownRule, excludesAlerts: boolean): Generator<string> {
  const { kind, name, query, labels, annotations, alerts, health, problem, tookMs, evaluatedMs } = rule
  const state = alerts.some((alert) => alert.state === 'firing') ? 'firing' : alerts.length > 0 ? 'pending' : 'inactive'
  const ofAlert = {
    state,
    name,
    query,
    duration: rule.forMs / SECOND_MS,
    keepFiringFor: rule.keepFiringForMs / SECOND_MS,
    labels,
    annotations,
  }
  const of = kind === 'alert' ? ofAlert : { name, query, ...(Object.keys(labels).length > 0 && { labels }) }
  const after = {
    health,
    ...(problem !== '' && { lastError: problem }),
    evaluationTime: tookMs / SECOND_MS,
    lastEvaluation: timeText(evaluatedMs),
    type: KIND_OF[kind],
  }
  if (kind === 'alert' && !excludesAlerts) yield* between(of, 'alerts', listTexts(alertTexts(alerts)), after)
  else yield JSON.stringify({ ...of, ...after })
}

function* alertTexts(alerts: readonly ShownAlert[]): Generator<string> {
  for (const alert of alerts) yield JSON.stringify(alertAnswer(alert))
}

function alertAnswer({ labels, annotations, state, value, activeMs, keptSinceMs }: ShownAlert) {
  return {
    labels,
    annotations,
    state,
    activeAt: timeText(activeMs),
    ...(keptSinceMs !== undefined && { keepFiringSince: timeText(keptSinceMs) }),
    value: exponentText(value),
  }
}

function timeText(ms: number | undefined): string {
  return ms === undefined ? NEVER : new Date(ms).toISOString()
}

/** A number as Go writes it with the format `e` and as many digits as it needs. */
function exponentText(value: number): string {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? 'NaN' : value > 0 ? '+Inf' : '-Inf'
  const [mantissa = '', exponent = ''] = value.toExponential().split('e')
  return `${mantissa}e${exponent.slice(0, 1)}${exponent.slice(1).padStart(2, '0')}`
}
