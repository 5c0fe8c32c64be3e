/**
 * What a token may be used for: lines of a command and a pattern, "COLLECT host.*". A scope only narrows what its user may.
 * A request is covered if its name, read as plain text, matches: a `*` in it is matched by a `*` of the scope alone, so that
 * no pattern reaches beyond what the scope names.
 */
import { AuthError } from './errors.ts'
import { matcher } from './pattern.ts'
import { isRuleCommand, type Request, type RuleCommand, ruleCommands } from './rules.ts'

export interface ScopeEntry {
  readonly command: RuleCommand
  readonly object: string
}

export type Scope = readonly ScopeEntry[]

const MAX_ENTRIES = 64
const MAX_CHARACTERS = 1024

/**
 * Reads lines like "COLLECT host.*", one for each thing that is allowed, separated by newlines or ";". Undefined for a text
 * without any: everything the user may. Throws AuthError BAD_SCOPE.
 */
export function parseScope(text: string): Scope | undefined {
  const lines = text.split(/[\n;]/).map((line) => line.trim())
  const entries = lines.filter((line) => line !== '').map(parseEntry)
  if (entries.length > MAX_ENTRIES) throw new AuthError('BAD_SCOPE', `a scope has at most ${MAX_ENTRIES} lines`)
  return entries.length === 0 ? undefined : entries
}

function parseEntry(line: string): ScopeEntry {
  const [, command = '', object = ''] = /^(\S+)\s+(\S+)$/.exec(line) ?? []
  if (!isRuleCommand(command) || object.length > MAX_CHARACTERS) {
    const commands = [...ruleCommands, '*'].join(', ')
    throw new AuthError(
      'BAD_SCOPE',
      `a line of a scope is a command (${commands}) and a pattern, like "COLLECT host.*"`,
    )
  }
  return { command, object }
}

/** The lines that `parseScope` reads. */
export function formatScope(scope: Scope | undefined): string {
  return (scope ?? []).map(({ command, object }) => `${command} ${object}`).join('\n')
}

/** Whether a scope names a request; without a scope nothing is narrowed. */
export function covers(scope: Scope | undefined, { command, object }: Pick<Request, 'command' | 'object'>): boolean {
  if (scope === undefined) return true
  return scope.some((entry) => (entry.command === '*' || entry.command === command) && matcher(entry.object)(object))
}
