/**
 * Alerts: rules of the configuration, and those that users put, are evaluated over the history (docs/alerts.md). What evaluates them,
 * and the language of Prometheus with it, is loaded where there are rules, or were.
 */

import type { LabelSet } from '../../../promql/label-set.ts'
import { HeldValues } from '../../kit/held-values.ts'
import type { Source } from '../../kit/source.ts'
import type { AlertsSection, alertsSection } from './config.ts'
import type { RuleGroups, RuleGroupsOptions } from './evaluation/groups.ts'
import { publishSample, RULES_FAMILY } from './evaluation/recorded.ts'
import { AlertSensors, type Transition } from './events.ts'
import { AlertFigures } from './figures.ts'
import { ruleControls } from './put/controls.ts'
import { RulesSensor } from './rules-sensor.ts'
import { RulesShown } from './shown.ts'
import type { RulesOfTenants } from './tenants.ts'

/** A series that no rule has given for so long ends. */
const KEPT_MS = 86_400_000
const NO_BUILTIN =
  'the rules that come with the server are not evaluated: this needs a history, `history.keep`, and `rules.*` in `history.metrics`'

export const alerts: Source<typeof alertsSection> = {
  async open(kit, section) {
    const { clock, log, feed, door, peer, controls, expressions } = kit
    let inForce = section
    const family = door.family({ family: RULES_FAMILY, kind: 'rules', from: 'rules', keptMs: () => KEPT_MS })
    const held = new HeldValues(peer.stored.journal)
    const sensors = new AlertSensors(feed, held, (tenant) => rules?.endTenant(tenant))
    feed.add(sensors)
    const running: RuleGroups[] = []
    let rules: RulesOfTenants | undefined
    const loaded = async (): Promise<RulesOfTenants> => {
      const { RulesOfTenants } = await import('./tenants.ts')
      rules ??= new RulesOfTenants({ kit, intervalMs: () => inForce.interval, outcomes }, running)
      return rules
    }
    const outcomes = (tenant: string) => {
      const sensor = sensors.of(tenant)
      return {
        publish: (...[sample, timeMs]: Parameters<RuleGroupsOptions['publish']>) =>
          publishSample(family.of(tenant), held, sample, timeMs),
        emit: (transition: Transition) => sensor.emit(transition),
        forget: (labels: LabelSet) => sensor.forget(labels),
        announce: (labels: LabelSet) => sensor.announce(labels),
        asked: () => sensor.asked(),
      }
    }
    /** Reads the rules of a section, and gives what evaluates them from then on. */
    const prepared = async (next: AlertsSection): Promise<() => void> => {
      const { alerts: known, groups, files: put } = expressions.stored
      const stored = known.length + groups.length + put.length
      if (next.builtin !== true && next.rules.length + stored + running.length === 0) return () => {}
      const { configuredFiles } = await import('./configured.ts')
      const files = await configuredFiles(next, () => inForce.role)
      const all = await loaded()
      return () => all.configure(files)
    }
    const refused = new Map<string, number>()
    controls.add(
      ...ruleControls({
        clock,
        rules: async () => {
          const all = await loaded()
          await all.whenRead()
          return all
        },
        refused: (tenant) => void refused.set(tenant, (refused.get(tenant) ?? 0) + 1),
        stored: () => peer.stored.journal.whenStored(),
      }),
    )
    const counts = (tenant: string) => ({
      files: rules?.filesOf(tenant) ?? [],
      refused: refused.get(tenant) ?? 0,
      usedUp: rules?.usedUpOf(tenant) ?? 0,
    })
    feed.add(new AlertFigures(running, counts, clock))
    const shown = new RulesShown(running, peer.view)
    feed.add(new RulesSensor(shown, clock))
    const rulesOfTenant = (wanted: string): RuleGroups | undefined => running.find(({ tenant }) => tenant === wanted)
    expressions.watch.answeredBy({
      problemOf(tenant) {
        const groups = rulesOfTenant(tenant)
        return groups === undefined ? 'no rules are evaluated' : groups.problem
      },
      queryOf: (tenant, group, rule) => queryOf(rulesOfTenant(tenant)?.groups ?? [], group, rule),
      saidOf: (tenant, group, rule, labels) => rulesOfTenant(tenant)?.saidOf(group, rule, labels),
    })
    let follow = await prepared(section)
    let isListening = false
    const halt = (): void => {
      for (const groups of running) groups.stop()
    }
    return {
      rules: shown,
      async listen() {
        isListening = true
        if (inForce.builtin === undefined) log.info(NO_BUILTIN)
        follow()
      },
      async prepare(next) {
        const wanted = await prepared(next)
        return () => {
          if (next.builtin === undefined && inForce.builtin !== undefined) log.info(NO_BUILTIN)
          inForce = next
          follow = wanted
          if (isListening) follow()
        }
      },
      sweep() {
        rules?.sweep()
        family.sweep()
      },
      halt,
      close: halt,
    }
  },
}

/** Where several files have a group of this name, the first one that has such a rule. */
function queryOf(groups: RuleGroups['groups'], wanted: string, name: string): string | undefined {
  for (const { definition } of groups) {
    if (definition.name !== wanted) continue
    const rule = definition.rules.find((one) => one.kind === 'alert' && one.name === name)
    if (rule !== undefined) return rule.query.printed
  }
  return undefined
}
