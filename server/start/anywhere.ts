/**
 * What acts on the machine that it is configured on. In a cluster that would be the node that leads, now this one and then
 * another, so such entries are refused unless the operator says that any node will do.
 */
import { ConfigError, type ConfigProblem } from '../kernel/config/errors.ts'
import type { Config } from './config.ts'

/** `node`: the name of this node; undefined without a cluster. `file`: the configuration. Throws ConfigError with all problems. */
export function checkAnywhere(
  { exec, mono, plugin }: Pick<Config, 'exec' | 'mono' | 'plugin'>,
  node: string | undefined,
  file = 'the configuration',
): void {
  if (node === undefined) return
  const problems: ConfigProblem[] = []
  const refuse = (isRefused: boolean, entry: string, what: string): void => {
    if (!isRefused) return
    const message =
      `${entry} needs \`anywhere = true\` in a cluster: ${what} on the node that leads, which may be any of them. ` +
      'Say so if that is right on every node; otherwise remove it here, and let a server outside of the cluster have it'
    problems.push({ source: file, message })
  }
  for (const { name, anywhere } of exec) refuse(!anywhere, `\`[[exec]]\` ${name}`, 'the program runs')
  for (const { module, anywhere } of plugin) refuse(!anywhere, `\`[[plugin]]\` ${module}`, 'the module is loaded')
  refuse(mono.listeners.length > 0 && !mono.anywhere, '`[mono]`', 'its controls concern the agents that are connected')
  if (problems.length > 0) throw new ConfigError(problems)
}
