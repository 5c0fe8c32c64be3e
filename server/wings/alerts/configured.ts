/** The rules of the configuration: those of its files, and those that come with the server. */
import { ConfigError, type ConfigProblem } from '../../kit/config.ts'
import { builtinRules } from './builtin.ts'
import type { AlertsSection } from './config.ts'
import type { EvaluatedFile } from './evaluation/running-group.ts'
import { nameOf, pathsOf, type RuleFile, readRules } from './rules/files.ts'
import { CONFIGURED_TENANT, MOST_GROUPS, MOST_RULES, PUT_PREFIX } from './tenants.ts'

/** Nobody can log in as this one. */
const READER = { userId: 0, tenant: CONFIGURED_TENANT, name: 'alerts:' }

/** All rules of a section. Rejects with ConfigError if one of its files cannot be used. */
export async function configuredFiles(
  { rules, builtin }: AlertsSection,
  role: () => string,
): Promise<readonly EvaluatedFile[]> {
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
  if (builtin === true) {
    const own = await builtinRules()
    names.set(nameOf(own.path), 'the rules that come with the server')
    files.push(own)
  }
  for (const path of paths) {
    const file = await readRules(path)
    const name = nameOf(path)
    for (const { message, line } of file.problems) say(path, message, line)
    const other = names.get(name)
    if (other !== undefined) say(path, `has the name of ${other}: alerts are stored by the names of files`)
    if (name.startsWith(PUT_PREFIX)) say(path, `names that begin with ${PUT_PREFIX} are those of files that users put`)
    names.set(name, path)
    files.push(file)
  }
  const groups = files.flatMap((file) => file.groups)
  const count = groups.reduce((sum, group) => sum + group.rules.length, 0)
  if (groups.length > MOST_GROUPS || count > MOST_RULES) {
    const most = `at most ${MOST_GROUPS} groups and ${MOST_RULES} rules are evaluated`
    say('alerts.rules', `${groups.length} groups with ${count} rules: ${most}; name fewer files, or join groups`)
  }
  if (problems.length > 0) throw new ConfigError(problems)
  const reader = () => ({ ...READER, role: role() })
  return files.map(({ path, groups }) => ({ path, groups, reader }))
}
