/** Rules and alerts for those who ask by HTTP. */
import type { Kit } from '../../kit/kit.ts'
import { fromForeign } from '../../kit/metrics.ts'
import type { ShownAlert, ShownRule, ShownRuleGroup, ShownRules, ShownTexts } from '../../kit/rules.ts'
import type { Steps } from '../../kit/running.ts'
import type { RuleGroups } from './evaluation/groups.ts'
import type { RunningGroup, RunningRule } from './evaluation/running-group.ts'
import type { Alert } from './rules/alerting-rule.ts'

type View = Pick<Kit['peer']['view'], 'readRights'>
type MayRead = (alert: Alert) => boolean

export class RulesShown implements ShownRules {
  readonly #tenants: readonly RuleGroups[]
  readonly #view: View

  constructor(tenants: readonly RuleGroups[], view: View) {
    this.#tenants = tenants
    this.#view = view
  }

  /** Alerts are judged as values of the metric `alert`. */
  *groupsFor(reader: Parameters<ShownRules['groupsFor']>[0]): ReturnType<ShownRules['groupsFor']> {
    const rights = this.#view.readRights(reader)
    const found: ShownRuleGroup[] = []
    for (const { groups, tenant } of this.#tenants) {
      if (tenant !== reader.tenant) continue
      const mayRead: MayRead = ({ labels }) => {
        const texts = new Map([...labels].map(([name, text]) => [fromForeign(name), text]))
        return rights.mayReadRemembered({ tenant }, 'alert', (name) => texts.get(name))
      }
      for (const group of [...groups]) found.push(yield* shownGroup(group, mayRead))
    }
    return found
  }
}

function* shownGroup(group: RunningGroup, mayRead: MayRead): Steps<ShownRuleGroup> {
  const { definition, file, intervalMs, tookMs, evaluatedMs } = group
  const { name, limit } = definition
  const rules: ShownRule[] = []
  for (const one of group.rules) rules.push(yield* shownRule(one, mayRead))
  return { name, file, intervalMs, limit, tookMs, evaluatedMs, rules }
}

function* shownRule({ rule, health }: RunningRule, mayRead: MayRead): Steps<ShownRule> {
  const { definition } = rule
  const alerts: ShownAlert[] = []
  for (const alert of rule.alerts.values()) {
    if (alert.state !== 'inactive' && mayRead(alert)) alerts.push(shownAlert(alert))
    yield
  }
  yield
  const { kind, name, query } = definition
  const isAlert = definition.kind === 'alert'
  return {
    kind,
    name,
    query: query.printed,
    threshold: query.threshold(),
    labels: isAlert ? templateTexts(definition.labels) : Object.fromEntries(definition.labels),
    annotations: isAlert ? templateTexts(definition.annotations) : {},
    forMs: isAlert ? definition.forMs : 0,
    keepFiringForMs: isAlert ? definition.keepFiringForMs : 0,
    alerts,
    health: health === undefined ? 'unknown' : health.problem === undefined ? 'ok' : 'err',
    problem: health?.problem ?? '',
    tookMs: health?.tookMs ?? 0,
    evaluatedMs: health?.evaluatedMs,
  }
}

function shownAlert({ labels, annotations, state, value, activeMs, keptSinceMs }: Alert): ShownAlert {
  return {
    labels: Object.fromEntries(labels),
    annotations: Object.fromEntries(annotations),
    state: state === 'firing' ? 'firing' : 'pending',
    value,
    activeMs,
    keptSinceMs,
  }
}

function templateTexts(templates: ReadonlyMap<string, { readonly text: string }>): ShownTexts {
  return Object.fromEntries([...templates].map(([name, { text }]) => [name, text]))
}
