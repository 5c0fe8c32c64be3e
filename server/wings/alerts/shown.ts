/** Rules and alerts for those who ask by HTTP. */
import type { Kit } from '../../kit/kit.ts'
import { fromForeign } from '../../kit/metrics.ts'
import type { ShownAlert, ShownRule, ShownRuleGroup, ShownRules, ShownTexts } from '../../kit/rules.ts'
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
  groupsFor(reader: Parameters<ShownRules['groupsFor']>[0]): readonly ShownRuleGroup[] {
    const rights = this.#view.readRights(reader)
    const own = this.#tenants.filter(({ tenant }) => tenant === reader.tenant)
    return own.flatMap(({ groups, tenant }) => {
      const mayRead: MayRead = ({ labels }) => {
        const texts = new Map([...labels].map(([name, text]) => [fromForeign(name), text]))
        return rights.mayReadRemembered({ tenant }, 'alert', (name) => texts.get(name))
      }
      return [...groups].map((group) => shownGroup(group, mayRead))
    })
  }
}

function shownGroup(group: RunningGroup, mayRead: MayRead): ShownRuleGroup {
  const { definition, file, intervalMs, tookMs, evaluatedMs, rules } = group
  const { name, limit } = definition
  return { name, file, intervalMs, limit, tookMs, evaluatedMs, rules: rules.map((one) => shownRule(one, mayRead)) }
}

function shownRule({ rule, health }: RunningRule, mayRead: MayRead): ShownRule {
  const { definition } = rule
  const { kind, name, query } = definition
  const isAlert = definition.kind === 'alert'
  return {
    kind,
    name,
    query: query.printed,
    labels: isAlert ? templateTexts(definition.labels) : Object.fromEntries(definition.labels),
    annotations: isAlert ? templateTexts(definition.annotations) : {},
    forMs: isAlert ? definition.forMs : 0,
    keepFiringForMs: isAlert ? definition.keepFiringForMs : 0,
    alerts: [...rule.alerts.values()].filter((alert) => alert.state !== 'inactive' && mayRead(alert)).map(shownAlert),
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
