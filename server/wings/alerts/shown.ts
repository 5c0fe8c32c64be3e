/** Rules and alerts for those who ask by HTTP. */
import type { Kit } from '../../kit/kit.ts'
import { fromForeign } from '../../kit/metrics.ts'
import type { ShownAlert, ShownGroup, ShownRule, ShownRuleGroup, ShownRules, ShownTexts } from '../../kit/rules.ts'
import type { Steps } from '../../kit/running.ts'
import type { RuleGroups } from './evaluation/groups.ts'
import type { RunningGroup, ShownRunningRule } from './evaluation/running-group.ts'
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

  *groupsFor(reader: Parameters<ShownRules['groupsFor']>[0]): ReturnType<ShownRules['groupsFor']> {
    const found: ShownRuleGroup[] = []
    for (const [group, mayRead] of this.#groupsOf(reader)) {
      const rules: ShownRule[] = []
      for (const one of group.shown) rules.push(yield* shownRule(one, mayRead))
      found.push({ ...aboutGroup(group), rules })
    }
    return found
  }

  *rulesFor(...[reader, { after, group: wanted }, take]: Parameters<ShownRules['rulesFor']>): Steps<void> {
    let number = 0
    for (const [group, mayRead] of this.#groupsOf(reader)) {
      const { shown } = group
      const first = number + 1
      number += shown.length
      if (number <= after || (wanted !== undefined && group.definition.name !== wanted)) continue
      const about = aboutGroup(group)
      for (const [index, one] of shown.entries()) {
        if (first + index <= after) continue
        if (!take(yield* shownRule(one, mayRead), about, first + index)) return
      }
    }
  }

  /** With what tells whether an alert may be read, which is judged as a value of the metric `alert`. */
  *#groupsOf(reader: Parameters<ShownRules['groupsFor']>[0]): Generator<readonly [RunningGroup, MayRead]> {
    const rights = this.#view.readRights(reader)
    for (const { groups, tenant } of this.#tenants) {
      if (tenant !== reader.tenant) continue
      const mayRead: MayRead = ({ labels }) => {
        const texts = new Map([...labels].map(([name, text]) => [fromForeign(name), text]))
        return rights.mayReadRemembered({ tenant }, 'alert', (name) => texts.get(name))
      }
      for (const group of [...groups]) yield [group, mayRead]
    }
  }
}

function aboutGroup({ definition, file, intervalMs, tookMs, evaluatedMs }: RunningGroup): ShownGroup {
  const { name, limit } = definition
  return { name, file, intervalMs, limit, tookMs, evaluatedMs }
}

function* shownRule({ rule, health }: ShownRunningRule, mayRead: MayRead): Steps<ShownRule> {
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
