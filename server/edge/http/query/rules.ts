/** `/api/v1/rules` and `/api/v1/alerts`, as Prometheus has them. */
import type { ShownAlert, ShownRule, ShownRuleGroup } from '../../../kit/rules.ts'
import { invalidParameter } from '../../query/problems.ts'
import { listTexts, successTexts } from './json.ts'
import { type ApiRequest, QueryParameters } from './parameters.ts'

const SECOND_MS = 1_000
const NEVER = '0001-01-01T00:00:00Z'
const KIND_OF = { alert: 'alerting', record: 'recording' } as const

export async function alertsFound({ rules, reader }: ApiRequest): Promise<Iterable<string>> {
  const groups = rules?.groupsFor(reader) ?? []
  return successTexts(inList('alerts', alertsOf(groups)))
}

function* alertsOf(groups: readonly ShownRuleGroup[]): Generator<string> {
  for (const { rules } of groups)
    for (const { alerts } of rules) for (const alert of alerts) yield JSON.stringify(alertAnswer(alert))
}

export async function rulesFound({ given, rules, reader }: ApiRequest): Promise<Iterable<string>> {
  const parameters = new QueryParameters(given)
  const type = parameters.text('type').toLowerCase()
  if (type !== '' && type !== 'alert' && type !== 'record')
    throw invalidParameter('type', `not supported value ${JSON.stringify(type)}`)
  const isIn = (name: string, text: string): boolean => {
    const wanted = parameters.all(`${name}[]`)
    return wanted.length === 0 || wanted.includes(text)
  }
  const excludesAlerts = ['1', 't', 'true'].includes(parameters.text('exclude_alerts').toLowerCase())
  const groups = (rules?.groupsFor(reader) ?? []).flatMap((group) => {
    if (!isIn('rule_group', group.name) || !isIn('file', group.file)) return []
    const shown = group.rules.filter(({ kind, name }) => (type === '' || kind === type) && isIn('rule_name', name))
    return shown.length === 0 ? [] : [{ ...group, rules: shown }]
  })
  return successTexts(inList('groups', groupTexts(groups, excludesAlerts)))
}

function* groupTexts(groups: readonly ShownRuleGroup[], excludesAlerts: boolean): Generator<string> {
  for (const group of groups) yield JSON.stringify(groupAnswer(group, excludesAlerts))
}

function* inList(name: string, elements: Iterable<string>): Generator<string> {
  yield `{"${name}":`
  yield* listTexts(elements)
  yield '}'
}

function groupAnswer(group: ShownRuleGroup, excludesAlerts: boolean) {
  const { name, file, rules, intervalMs, limit, tookMs, evaluatedMs } = group
  return {
    name,
    file,
    rules: rules.map((rule) => ruleAnswer(rule, excludesAlerts)),
    interval: intervalMs / SECOND_MS,
    limit,
    evaluationTime: tookMs / SECOND_MS,
    lastEvaluation: timeText(evaluatedMs),
  }
}

function ruleAnswer(rule: ShownRule, excludesAlerts: boolean) {
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
    ...(!excludesAlerts && { alerts: alerts.map(alertAnswer) }),
  }
  return {
    ...(kind === 'alert' ? ofAlert : { name, query, ...(Object.keys(labels).length > 0 && { labels }) }),
    health,
    ...(problem !== '' && { lastError: problem }),
    evaluationTime: tookMs / SECOND_MS,
    lastEvaluation: timeText(evaluatedMs),
    type: KIND_OF[kind],
  }
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
