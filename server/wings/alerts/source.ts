/** Alerts: the rules of the configuration are evaluated over the history (docs/alerts.md). */
import { ConfigError, type ConfigProblem } from '../../kit/config.ts'
import type { Source } from '../../kit/source.ts'
import type { AlertsSection, alertsSection } from './config.ts'
import { nameOf, RuleGroups } from './evaluation/groups.ts'
import { publishSamples, RULES_FAMILY } from './evaluation/recorded.ts'
import { AlertSensor } from './events.ts'
import { AlertFigures } from './figures.ts'
import { pathsOf, type RuleFile, readRules } from './rules/files.ts'
import { RulesShown } from './shown.ts'

/** Whose the rules of the configuration are. */
const TENANT = 'default'
/** Nobody can log in as this one. */
const READER = { userId: 0, tenant: TENANT, name: 'alerts:' }
/** A series that no rule has given for so long ends. */
const KEPT_MS = 86_400_000

export const alerts: Source<typeof alertsSection> = {
  async open({ clock, log, feed, door, peer, expressions }, section) {
    let inForce = section
    let files = await rulesOf(section)
    const family = door.family({ family: RULES_FAMILY, kind: 'rules', from: 'rules', keptMs: () => KEPT_MS })
    const sensor = new AlertSensor(TENANT, feed)
    feed.add(sensor)
    const groups = new RuleGroups({
      tenant: TENANT,
      expressions,
      stored: expressions.stored,
      clock,
      log,
      reader: () => ({ ...READER, role: inForce.role }),
      publish: (samples, timeMs) => publishSamples(family.of(TENANT), samples, timeMs),
      emit: (transition) => sensor.emit(transition),
      forget: (labels) => sensor.forget(labels),
    })
    feed.add(new AlertFigures([groups], clock))
    let isListening = false
    return {
      rules: new RulesShown([groups], peer.view),
      async listen() {
        isListening = true
        groups.follow(files, inForce.interval)
      },
      async prepare(next) {
        const read = await rulesOf(next)
        return () => {
          inForce = next
          files = read
          if (isListening) groups.follow(files, next.interval)
        }
      },
      sweep() {
        groups.sweep()
        family.sweep()
      },
      close: () => groups.stop(),
    }
  },
}

/** All rules of a section. Rejects with ConfigError if one of its files cannot be used. */
async function rulesOf({ rules }: AlertsSection): Promise<readonly RuleFile[]> {
  const problems: ConfigProblem[] = []
  const say = (source: string, message: string, line?: number): void => void problems.push({ source, line, message })
  const paths = new Set<string>()
  for (const pattern of rules) for (const path of await pathsOf(pattern)) paths.add(path)
  const files: RuleFile[] = []
  const names = new Map<string, string>()
  for (const path of paths) {
    const file = await readRules(path)
    for (const { message, line } of file.problems) say(path, message, line)
    const other = names.get(nameOf(path))
    if (other !== undefined) say(path, `has the name of ${other}: alerts are stored by the names of files`)
    names.set(nameOf(path), path)
    files.push(file)
  }
  if (problems.length > 0) throw new ConfigError(problems)
  return files
}
