/**
 * What an authenticated identity may do. A tenant never learns that another one exists; what is the producer's own
 * (`host.*`, `producer.*`) is everybody's. Within that the rules of its role decide, and where there is none a default:
 * reading is allowed, what changes or reaches something is not.
 */
import { AuthError } from './errors.ts'
import { matcher, overlaps } from './pattern.ts'

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

export interface AccessRequest {
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

export interface Identity {
  readonly userId: number
  readonly tenant: string
  readonly name: string
  readonly role: string
}

/** An identity as a credential of it shows it, which may be narrower. */
export interface Reader extends Identity {
  readonly scope?: Scope | undefined
}

export const ADMIN_ROLE = 'admin'
export const OPERATOR_ROLE = 'operator'
/** Has no rules of its own: the defaults, and nothing else. */
export const CONSUMER_ROLE = 'consumer'

/** Characters of a text with a `*` in it. */
const MAX_WILDCARD = 1024

/** Who did what: by default for admins alone. */
const AUDIT = 'producer.audit'

/** Whose something is. Said outright: a forgotten tenant must not read as "everybody's". */
export type Owner = 'producer' | { readonly tenant: string }

export function mayRead(identity: Identity, owner: Owner): boolean {
  return identity.role === ADMIN_ROLE || owner === 'producer' || owner.tenant === identity.tenant
}

/**
 * Judges a request by the rules of a role; others may be among them. Best match: of the rules that match the most specific
 * one decides, and of equally specific ones a deny. Whose something is was judged before.
 */
export function judge(role: string, rules: readonly Rule[], request: AccessRequest): Verdict {
  return decide(role, rules, request, ({ effect, where }) => {
    return Object.entries(where).every(([name, pattern]) => {
      const given = request.argument(name)
      return given !== undefined && matches(effect, pattern, given)
    })
  })
}

/** Whether there are arguments with which a request would be allowed: only then is its object shown to the role. */
export function mayBeAllowed(role: string, rules: readonly Rule[], request: Omit<AccessRequest, 'argument'>): boolean {
  const mayHold = ({ effect, where }: Rule): boolean => effect === 'allow' || Object.keys(where).length === 0
  return decide(role, rules, request, mayHold).allowed
}

function decide(
  role: string,
  rules: readonly Rule[],
  request: Omit<AccessRequest, 'argument'>,
  conditionsHold: (rule: Rule) => boolean,
): Verdict {
  if (role === ADMIN_ROLE) return { allowed: true, because: 'the role admin may do everything' }
  if (request.command === 'DEF_CHANNEL' && request.object === '') {
    return yes('an empty URL is no destination')
  }
  let best: Rule | undefined
  for (const rule of role === CONSUMER_ROLE ? [] : rules) {
    const isNamed = rule.command === '*' || rule.command === request.command
    if (rule.role !== role || !isNamed || !matches(rule.effect, rule.object, request.object)) continue
    if (conditionsHold(rule) && (best === undefined || outranks(rule, best))) best = rule
  }
  if (best === undefined) return byDefault(request)
  return { allowed: best.effect === 'allow', because: formatRule(best) }
}

/**
 * A `*` in a request stands for all that there could be. So that it never widens, an allow has to take in all of that,
 * while a deny needs to touch but some of it. Of a long text that is taken for granted: to find out takes as many steps as
 * the length of the one times that of the other, and arguments may be as long as a frame.
 */
function matches(effect: Rule['effect'], pattern: string, text: string): boolean {
  if (effect === 'allow' || !text.includes('*')) return matcher(pattern)(text)
  return text.length > MAX_WILDCARD || overlaps(pattern, text)
}

/** For people: "rule 3: allow EXECUTE service.* where name=web*". */
export function formatRule({ number, effect, command, object, where }: Rule): string {
  const conditions = formatWhere(where)
  return `rule ${number}: ${effect} ${command} ${object}${conditions && ` where ${conditions}`}`
}

export function formatWhere(where: Rule['where']): string {
  return Object.entries(where)
    .map(([name, pattern]) => `${name}=${pattern}`)
    .join(' ')
}

/** An exact object before a pattern, more of it spelled out before less, a named command before any, more arguments before fewer. */
function outranks(rule: Rule, other: Rule): boolean {
  const [mine, theirs] = [rank(rule), rank(other)]
  for (const [index, value] of mine.entries()) if (value !== theirs[index]) return value > (theirs[index] as number)
  return rule.effect === 'deny' && other.effect === 'allow'
}

function rank({ object, command, where }: Rule): readonly number[] {
  const literal = object.replaceAll('*', '').length
  return [object.includes('*') ? 0 : 1, literal, command === '*' ? 0 : 1, Object.keys(where).length]
}

function byDefault({ command, object }: Omit<AccessRequest, 'argument'>): Verdict {
  switch (command) {
    case 'COLLECT':
      if (object === AUDIT || (object.includes('*') && matcher(object)(AUDIT))) return no(`only admins read ${AUDIT}`)
      return yes('what the tenant and the producer have may be read')
    case 'EXECUTE':
      if (object.startsWith('channel.')) return yes("one's own channels may be changed")
      return no('no control may be executed without a rule')
    case 'DEF_CHANNEL':
      return no('nothing may be dialled without a rule')
  }
}

function yes(because: string): Verdict {
  return { allowed: true, because: `default: ${because}` }
}

function no(because: string): Verdict {
  return { allowed: false, because: `default: ${because}` }
}

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
export function covers(
  scope: Scope | undefined,
  { command, object }: Pick<AccessRequest, 'command' | 'object'>,
): boolean {
  if (scope === undefined) return true
  return scope.some((entry) => (entry.command === '*' || entry.command === command) && matcher(entry.object)(object))
}
