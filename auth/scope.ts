/**
 * What a token may be used for: lines of a command and a pattern, "COLLECT host.*". A scope only narrows what its user may.
 * A request is covered if its name, read as plain text, matches: a `*` in it is matched by a `*` of the scope alone, so that
 * no pattern reaches beyond what the scope names.
 */
import type { RuleCommand } from './rules.ts'

export interface ScopeEntry {
  readonly command: RuleCommand
  readonly object: string
}

export type Scope = readonly ScopeEntry[]
