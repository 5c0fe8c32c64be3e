/**
 * Alerts: the rules of the configuration are evaluated over the history (docs/alerts.md). What evaluates them, and the language of
 * Prometheus with it, is loaded where there are rules, or were.
 */
import { ConfigError, type ConfigProblem } from '../../kit/config.ts'
import { HeldValues } from '../../kit/held-values.ts'
import type { Source } from '../../kit/source.ts'
import { builtinRules } from './builtin.ts'
import type { AlertsSection, alertsSection } from './config.ts'
import type { RuleGroups, RuleGroupsOptions } from './evaluation/groups.ts'
import { publishSample, RULES_FAMILY } from './evaluation/recorded.ts'
import { AlertSensor } from './events.ts'
import { AlertFigures } from './figures.ts'
import type { RuleFile } from './rules/files.ts'
import { RulesShown } from './shown.ts'

/** Whose the rules of the configuration are. */
const TENANT = 'default'
/** Nobody can log in as this one. */
const READER = { userId: 0, tenant: TENANT, name: 'alerts:' }
/** A series that no rule has given for so long ends. */
const KEPT_MS = 86_400_000
/** Groups and rules of a tenant. */
const MOST_GROUPS = 2_000
const MOST_RULES = 20_000

export const alerts: Source<typeof alertsSection> = {
  async open({ clock, log, feed, door, poll, peer, expressions }, section) {
    let inForce = section
    const family = door.family({ family: RULES_FAMILY, kind: 'rules', from: 'rules', keptMs: () => KEPT_MS })
    const held = new HeldValues(peer.stored.journal)
    const sensor = new AlertSensor(TENANT, feed, held)
    feed.add(sensor)
    const options: RuleGroupsOptions = {
      tenant: TENANT,
      expressions,
      stored: expressions.stored,
      clock,
      log,
      reader: () => ({ ...READER, role: inForce.role }),
      publish: (sample, timeMs) => publishSample(family.of(TENANT), held, sample, timeMs),
      work: (steps) => poll.work({ tenant: TENANT }, steps),
      emit: (transition) => sensor.emit(transition),
      forget: (labels) => sensor.forget(labels),
    }
    /** None before there are rules. */
    const tenants: RuleGroups[] = []
    /** Reads the rules of a section, and gives what evaluates them from then on. */
    const prepared = async (next: AlertsSection): Promise<() => void> => {
      const { alerts: known, groups } = expressions.stored
      const isIdle = !next.builtin && next.rules.length + known.length + groups.length + tenants.length === 0
      if (isIdle) return () => {}
      const { RuleGroups } = await import('./evaluation/groups.ts')
      const files = await rulesOf(next)
      return () => {
        if (tenants.length === 0) tenants.push(new RuleGroups(options))
        tenants[0]?.follow(files, next.interval)
      }
    }
    feed.add(new AlertFigures(tenants, clock))
    expressions.watch.answeredBy((wanted) => {
      const groups = tenants.find(({ tenant }) => tenant === wanted)
      return groups === undefined ? 'no rules are evaluated' : groups.problem
    })
    let follow = await prepared(section)
    let isListening = false
    const halt = (): void => {
      for (const groups of tenants) groups.stop()
    }
    return {
      rules: new RulesShown(tenants, peer.view),
      async listen() {
        isListening = true
        follow()
      },
      async prepare(next) {
        const wanted = await prepared(next)
        return () => {
          inForce = next
          follow = wanted
          if (isListening) follow()
        }
      },
      sweep() {
        for (const groups of tenants) groups.sweep()
        family.sweep()
      },
      halt,
      close: halt,
    }
  },
}

/** All rules of a section. Rejects with ConfigError if one of its files cannot be used. */
async function rulesOf({ rules, builtin }: AlertsSection): Promise<readonly RuleFile[]> {
  const { nameOf, pathsOf, readRules } = await import('./rules/files.ts')
  const problems: ConfigProblem[] = []
  const say = (source: string, message: string, line?: number): void => void problems.push({ source, line, message })
  const paths = new Set<string>()
  for (const pattern of rules)
    try {
      for (const path of await pathsOf(pattern)) paths.add(path)
    } catch (error) {
      say(pattern, `its directory cannot be read: ${(error as Error).message}`)
    }
  const files: RuleFile[] = []
  const names = new Map<string, string>()
  if (builtin) {
    const own = await builtinRules()
    names.set(nameOf(own.path), 'the rules that come with the server')
    files.push(own)
  }
  for (const path of paths) {
    const file = await readRules(path)
    for (const { message, line } of file.problems) say(path, message, line)
    const other = names.get(nameOf(path))
    if (other !== undefined) say(path, `has the name of ${other}: alerts are stored by the names of files`)
    names.set(nameOf(path), path)
    files.push(file)
  }
  const groups = files.flatMap((file) => file.groups)
  const count = groups.reduce((sum, group) => sum + group.rules.length, 0)
  if (groups.length > MOST_GROUPS || count > MOST_RULES) {
    const most = `at most ${MOST_GROUPS} groups and ${MOST_RULES} rules are evaluated`
    say('alerts.rules', `${groups.length} groups with ${count} rules: ${most}; name fewer files, or join groups`)
  }
  if (problems.length > 0) throw new ConfigError(problems)
  return files
}
