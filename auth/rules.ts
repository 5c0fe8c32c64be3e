/** What a rule is: whether the users of a role may do something to what matches. Judged in permissions.ts. */

/** COLLECT is reading, by whichever command; EXECUTE is about controls; DEF_CHANNEL about destinations to dial. */
export const ruleCommands = ['COLLECT', 'EXECUTE', 'DEF_CHANNEL'] as const
export type RuledCommand = (typeof ruleCommands)[number]
export type RuleCommand = RuledCommand | '*'

export function isRuleCommand(text: string): text is RuleCommand {
  return text === '*' || (ruleCommands as readonly string[]).includes(text)
}

export interface Rule {
  readonly number: number
  readonly role: string
  readonly effect: 'allow' | 'deny'
  readonly command: RuleCommand
  /** Of a metric, control or destination; `*` is any run of characters. */
  readonly object: string
  /** Each of these arguments has to be there and match. */
  readonly where: Readonly<Record<string, string>>
}

export interface Request {
  readonly command: RuledCommand
  /** May hold a `*`, which then stands for all that there could be: it is allowed only if all of that is. */
  readonly object: string
  /** An argument as text; undefined: not given. */
  readonly argument: (name: string) => string | undefined
}

export interface Verdict {
  readonly allowed: boolean
  /** For people: by which rule, or by which default. */
  readonly because: string
}
