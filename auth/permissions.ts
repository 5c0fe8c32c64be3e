/**
 * Authorization: what an authenticated identity may do. A tenant never learns that another one exists, while everybody may see
 * the producer's own objects (`host.*`, `producer.*`). Within that, the rules of the identity's role decide. Without a
 * matching rule the default is to allow reading and to deny everything that changes or dials something. The scope of a
 * credential narrows the result.
 */
import { AuthError } from './errors.ts'
import { matcher, overlaps } from './pattern.ts'
import { matchesUrl, splitUrl } from './url-pattern.ts'

/**
 * COLLECT stands for every command that reads; EXECUTE is for controls, DEF_CHANNEL for destinations to dial. PUBLISH is no
 * command of the protocol: it is for programs that bring values in over HTTP.
 */
export const ruleCommands = ['COLLECT', 'EXECUTE', 'DEF_CHANNEL', 'PUBLISH'] as const
export type RuledCommand = (typeof ruleCommands)[number]
export type RuleCommand = RuledCommand | '*'

/** What `*` allows. It is older than PUBLISH, and nobody who wrote one meant to let values in: that is allowed by its name only. */
export const allowedByAny: readonly RuledCommand[] = ruleCommands.filter((command) => command !== 'PUBLISH')

export function isRuleCommand(text: string): text is RuleCommand {
  return text === '*' || (ruleCommands as readonly string[]).includes(text)
}

export interface Rule {
  readonly number: number
  readonly role: string
  readonly effect: 'allow' | 'deny'
  readonly command: RuleCommand
  /** The name of a metric, control or destination, or a pattern with `*`: a destination is matched part by part. */
  readonly object: string
  /** Patterns by argument name: each of these arguments must be given and match. */
  readonly where: Readonly<Record<string, string>>
  /**
   * Only of rules that allow EXECUTE: what they allow waits until a user of this role approves it. An admin needs no approval, and may
   * approve everything.
   */
  readonly approval?: string | undefined
}

export interface AccessRequest {
  readonly command: RuledCommand
  /** A name, or a pattern with `*`, which is allowed only if every name it could match is. */
  readonly object: string
  /** The text of an argument; undefined if it was not given. */
  readonly argument: (name: string) => string | undefined
}

export type RequestedObject = Pick<AccessRequest, 'command' | 'object'>

export interface Verdict {
  readonly allowed: boolean
  /** The rule or default that decided, for people. */
  readonly because: string
}

export interface Identity {
  readonly userId: number
  readonly tenant: string
  readonly name: string
  readonly role: string
}

/** An identity with the scope of the credential it logged in with. */
export interface Reader extends Identity {
  readonly scope?: Scope | undefined
}

export const ADMIN_ROLE = 'admin'
export const OPERATOR_ROLE = 'operator'
/** The role without rules: only the defaults apply. */
export const CONSUMER_ROLE = 'consumer'

/** The longest request with a `*` that is compared with patterns. */
const MAX_WILDCARD = 1024

/** A pattern that matches everything. */
const ALL = /^\*+$/

/** The metric of the audit log, which only admins read by default. */
const AUDIT = 'producer.audit'

/** What waits for approval. At another producer it is shown as the login of this one may see it there, whoever asks here. */
const APPROVALS = ['control.pending', 'producer.approvals']

/** Controls of what is one's own, and those that decide what others have asked for: they need no rule, and never wait for approval. */
const OWN_CONTROLS = ['channel.', 'board.', 'control.']

/** The argument that names another producer: there a control runs, or a series comes from. No control of this one has it [MON 9.13]. */
const PRODUCER = 'producer'

/** The owner of an object. It is explicit, because a forgotten tenant must not mean "everybody's". */
export type Owner = 'producer' | { readonly tenant: string }

/** Whether an identity may know of the objects of an owner at all. What it may read of them, the rules of its role say. */
export function maySee(identity: Identity, owner: Owner): boolean {
  return identity.role === ADMIN_ROLE || owner === 'producer' || owner.tenant === identity.tenant
}

/**
 * Decides a request by the rules of a role; `rules` may hold those of other roles too. The most specific rule that matches
 * decides; among equally specific ones a deny wins. The caller has checked the owner already.
 */
export function judge(role: string, rules: readonly Rule[], request: AccessRequest): Verdict {
  return decide(role, rules, request, (rule) => meets(rule, request), request.argument)
}

/** The rule of a role that allows a request only if somebody approves it; undefined if nobody has to, or if it is not allowed. */
export function approvalRule(role: string, rules: readonly Rule[], request: AccessRequest): Rule | undefined {
  if (needsNoRule(request.object, request.argument)) return undefined
  const rule = decidingRule(role, rules, request, (rule) => meets(rule, request))
  return rule?.approval === undefined ? undefined : rule
}

/**
 * The roles whose users may have to approve what a role does, with some arguments, ascending. `argument`: the text of those that are
 * fixed.
 */
export function approversOf(
  role: string,
  rules: readonly Rule[],
  request: RequestedObject,
  argument: AccessRequest['argument'] = () => undefined,
): readonly string[] {
  if (role === ADMIN_ROLE || needsNoRule(request.object, argument)) return []
  const isKnown = (name: string): boolean => name === PRODUCER || argument(name) !== undefined
  const mayHold = ({ effect, where }: Rule): boolean =>
    Object.entries(where).every(([name, pattern]) => {
      const given = argument(name)
      return given === undefined ? !isKnown(name) : matches(effect, pattern, given)
    })
  const own = rules.filter((rule) => rule.role === role && isFor(rule, request.command) && isAbout(rule, request))
  const possible = own.filter(mayHold)
  const certain = possible.filter(({ where }) => Object.keys(where).every(isKnown))
  const approvals = possible.filter((rule) => !certain.some((other) => other !== rule && outranks(other, rule)))
  const roles = approvals.flatMap(({ approval }) => (approval === undefined ? [] : [approval]))
  return [...new Set(roles)].sort()
}

/**
 * Whether a control, or all those that match a pattern, are for what is one's own: no rule has to allow them, and none has them wait.
 * At another producer nothing is one's own: what is run there is run with the login of this one, whoever asks here.
 */
export function needsNoRule(control: string, argument: AccessRequest['argument'] = () => undefined): boolean {
  return argument(PRODUCER) === undefined && OWN_CONTROLS.some((own) => control.startsWith(own))
}

/** Whether the arguments of a request are given and match all conditions of a rule. */
function meets({ effect, where }: Rule, { argument }: AccessRequest): boolean {
  return Object.entries(where).every(([name, pattern]) => {
    const given = argument(name)
    return given !== undefined && matches(effect, pattern, given)
  })
}

/**
 * Whether a rule of a role allows a request and has a condition on `argument`: required where neither a default nor a rule that
 * does not name the argument is enough, and for the role admin too.
 */
export function isAllowedByName(
  role: string,
  rules: readonly Rule[],
  request: AccessRequest,
  argument: string,
): boolean {
  return rules.some((rule) => {
    if (rule.role !== role || rule.effect !== 'allow' || rule.where[argument] === undefined) return false
    if (!isFor(rule, request.command) || !isAbout(rule, request)) return false
    return meets(rule, request)
  })
}

/**
 * Whether a request would be allowed with some arguments: only then the role sees its object. `argument`: the text of those that
 * are fixed.
 */
export function mayBeAllowed(
  role: string,
  rules: readonly Rule[],
  request: RequestedObject,
  argument: AccessRequest['argument'] = () => undefined,
): boolean {
  const mayHold = ({ effect, where }: Rule): boolean =>
    Object.entries(where).every(([name, pattern]) => {
      const given = argument(name)
      return given === undefined ? effect === 'allow' : matches(effect, pattern, given)
    })
  return decide(role, rules, request, mayHold, argument).allowed
}

/** Whether a role may read every metric of its tenant: none of its rules denies any. */
export function readsAll(role: string, rules: readonly Rule[]): boolean {
  return !rules.some((rule) => rule.role === role && rule.effect === 'deny' && isFor(rule, 'COLLECT'))
}

/**
 * Whether a role allows everything that another one allows, so that its users may give that one to others. It errs on the side
 * of no: what the other role's rules allow must be allowed as a whole, and where this role denies something that the defaults
 * allow, the other one must have such a denial too.
 */
export function includesRole(role: string, other: string, rulesOf: (role: string) => readonly Rule[]): boolean {
  if (role === other || role === ADMIN_ROLE) return true
  if (other === ADMIN_ROLE) return false
  const [own, others] = [rulesOf(role), rulesOf(other)]
  const isAllowed = (rule: Rule, command: RuledCommand): boolean => {
    const conditionsHold = ({ effect, where }: Rule): boolean =>
      Object.entries(where).every(([name, pattern]) => {
        const given = rule.where[name]
        return given === undefined ? effect === 'deny' : matches(effect, pattern, given)
      })
    const argument = (name: string): string | undefined => rule.where[name]
    return decide(role, own, { command, object: rule.object }, conditionsHold, argument).allowed
  }
  // What waits for approval here, the other role may at most do with the same approval.
  const waits = ({ object, where, approval }: Rule): boolean =>
    own.some((rule) => {
      if (rule.approval === undefined || rule.approval === approval || !overlaps(rule.object, object)) return false
      return Object.entries(rule.where).every(([name, pattern]) => {
        const given = where[name]
        return given === undefined || overlaps(pattern, given)
      })
    })
  const isDenied = (denial: Rule, command: RuledCommand): boolean =>
    others.some((rule) => {
      const isNamed = rule.effect === 'deny' && isFor(rule, command)
      return isNamed && matcher(rule.object)(denial.object) && areWithin(denial.where, rule.where)
    })
  const narrowsDefault = ({ object }: Rule, command: RuledCommand): boolean =>
    command === 'COLLECT' || (command === 'EXECUTE' && OWN_CONTROLS.some((own) => overlaps(object, `${own}*`)))
  return (
    others.every((rule) => {
      if (rule.effect === 'deny') return true
      return commandsOf(rule).every((command) => isAllowed(rule, command) && !(command === 'EXECUTE' && waits(rule)))
    }) &&
    own.every((rule) => {
      if (rule.effect === 'allow') return true
      return commandsOf(rule).every((command) => !narrowsDefault(rule, command) || isDenied(rule, command))
    })
  )
}

function commandsOf(rule: Rule): readonly RuledCommand[] {
  return ruleCommands.filter((command) => isFor(rule, command))
}

/** Whether a rule or an entry of a scope is for a command. A denial of `*` is for all of them. */
export function isFor({ effect, command: named }: Pick<Rule, 'effect' | 'command'>, command: RuledCommand): boolean {
  if (named !== '*') return named === command
  return effect === 'deny' || allowedByAny.includes(command)
}

/** Whether arguments that meet the conditions `given` always meet `required` too. */
function areWithin(given: Rule['where'], required: Rule['where']): boolean {
  return Object.entries(required).every(([name, pattern]) => {
    const text = given[name]
    return text !== undefined && matcher(pattern)(text)
  })
}

function decide(
  role: string,
  rules: readonly Rule[],
  request: RequestedObject,
  conditionsHold: (rule: Rule) => boolean,
  argument: AccessRequest['argument'],
): Verdict {
  if (role === ADMIN_ROLE) return { allowed: true, because: 'the role admin may do everything' }
  if (request.command === 'DEF_CHANNEL' && request.object === '') {
    return yes('an empty URL is no destination')
  }
  const rule = decidingRule(role, rules, request, conditionsHold)
  if (rule === undefined) return byDefault(request, argument)
  return { allowed: rule.effect === 'allow', because: formatRule(rule) }
}

/** The rule that decides; undefined if none does, and the defaults apply. */
function decidingRule(
  role: string,
  rules: readonly Rule[],
  request: RequestedObject,
  conditionsHold: (rule: Rule) => boolean,
): Rule | undefined {
  let best: Rule | undefined
  for (const rule of role === ADMIN_ROLE || role === CONSUMER_ROLE ? [] : rules) {
    if (rule.role !== role || !isFor(rule, request.command) || !isAbout(rule, request)) continue
    if (conditionsHold(rule) && (best === undefined || outranks(rule, best))) best = rule
  }
  return best
}

/**
 * Whether a rule or an entry of a scope is about a request. Destinations are compared part by part. A denial also applies if
 * it matches the whole URL as text, so that stored rules deny whatever they denied when URLs were compared in that way.
 */
function isAbout({ effect, object: pattern }: Pick<Rule, 'effect' | 'object'>, request: RequestedObject): boolean {
  const { command, object } = request
  const url = command === 'DEF_CHANNEL' && !ALL.test(pattern) ? splitUrl(object) : undefined
  if (url === undefined) return matches(effect, pattern, object)
  const parts = splitUrl(pattern)
  const isWithin = parts !== undefined && matchesUrl(parts, url, (part, text) => matches(effect, part, text))
  return isWithin || (effect === 'deny' && matches(effect, pattern, object))
}

/**
 * A `*` in a request stands for every possible name, so an allow must cover all of them, while a deny applies if it covers
 * any. A deny always applies to a long request with `*`: the comparison takes time proportional to the product of both
 * lengths, and arguments may be as long as a frame.
 */
function matches(effect: Rule['effect'], pattern: string, text: string): boolean {
  if (effect === 'allow' || !text.includes('*')) return matcher(pattern)(text)
  return text.length > MAX_WILDCARD || overlaps(pattern, text)
}

/** The text of a rule for people: "rule 3: allow EXECUTE service.* where name=web* if lead approves". */
export function formatRule({ number, effect, command, object, where, approval }: Rule): string {
  const conditions = formatWhere(where)
  const condition = approval === undefined ? '' : ` if ${approval} approves`
  return `rule ${number}: ${effect} ${command} ${object}${conditions && ` where ${conditions}`}${condition}`
}

export function formatWhere(where: Rule['where']): string {
  return Object.entries(where)
    .map(([name, pattern]) => `${name}=${pattern}`)
    .join(' ')
}

/**
 * An exact object outranks a pattern, a longer literal part a shorter one, a named command `*`, and more arguments fewer. Of two that are
 * equal in that the stricter one decides.
 */
export function outranks(rule: Rule, other: Rule): boolean {
  const [mine, theirs] = [rank(rule), rank(other)]
  for (const [index, value] of mine.entries()) if (value !== theirs[index]) return value > (theirs[index] as number)
  return strictness(rule) > strictness(other)
}

function strictness({ effect, approval }: Rule): number {
  return effect === 'deny' ? 2 : Number(approval !== undefined)
}

function rank({ object, command, where }: Rule): readonly number[] {
  const literal = object.replaceAll('*', '').length
  return [object.includes('*') ? 0 : 1, literal, command === '*' ? 0 : 1, Object.keys(where).length]
}

function byDefault({ command, object }: RequestedObject, argument: AccessRequest['argument']): Verdict {
  switch (command) {
    case 'COLLECT':
      if (concerns(object, AUDIT)) return no(`only admins read ${AUDIT}`)
      // Where labels are open, one that is not there is the empty text.
      if ((argument(PRODUCER) ?? '') !== '' && APPROVALS.some((name) => concerns(object, name))) {
        return no('what waits for approval at another producer is read by a rule only')
      }
      return yes('metrics of the tenant and of the producer may be read')
    case 'EXECUTE':
      if (!needsNoRule(object, argument)) return no('no control may be executed without a rule')
      if (object.startsWith('control.')) return yes('a user may decide what rules let its role approve')
      return yes('a user may change their own channels and boards')
    case 'DEF_CHANNEL':
      return no('no destination may be dialled without a rule')
    case 'PUBLISH':
      return no('no values may be published without a rule that names PUBLISH')
  }
}

/** Whether a name, or a pattern with `*`, is about a metric. */
function concerns(object: string, metric: string): boolean {
  return object === metric || (object.includes('*') && matcher(object)(metric))
}

function yes(because: string): Verdict {
  return { allowed: true, because: `default: ${because}` }
}

function no(because: string): Verdict {
  return { allowed: false, because: `default: ${because}` }
}

/**
 * Reading, and nothing else: what somebody may be given who is nobody. It stands in scopes only, and there alone: such a credential
 * runs no control, defines no channel, and knows none of its user's but that of its connection.
 */
const WATCH = 'WATCH'

export interface ScopeEntry {
  readonly command: RuleCommand | typeof WATCH
  readonly object: string
}

export type Scope = readonly ScopeEntry[]

const MAX_ENTRIES = 64
const MAX_CHARACTERS = 1024

/**
 * Parses the scope of a token: entries like "COLLECT host.*", separated by newlines or ";". Returns undefined for a text without
 * entries, which allows everything that the user may do. Throws AuthError BAD_SCOPE.
 */
export function parseScope(text: string): Scope | undefined {
  const lines = text.split(/[\n;]/).map((line) => line.trim())
  const entries = lines.filter((line) => line !== '').map(parseEntry)
  if (entries.length > MAX_ENTRIES) throw new AuthError('BAD_SCOPE', `a scope has at most ${MAX_ENTRIES} lines`)
  if (entries.some(({ command }) => command === WATCH) && !onlyWatches(entries)) {
    throw new AuthError('BAD_SCOPE', `a scope with ${WATCH} has no lines for other commands`)
  }
  return entries.length === 0 ? undefined : entries
}

function parseEntry(line: string): ScopeEntry {
  const [, command = '', object = ''] = /^(\S+)\s+(\S+)$/.exec(line) ?? []
  if (!(command === WATCH || isRuleCommand(command)) || object.length > MAX_CHARACTERS) {
    const commands = [...ruleCommands, WATCH, '*'].join(', ')
    throw new AuthError(
      'BAD_SCOPE',
      `each line of a scope is a command (${commands}) and a pattern, like "COLLECT host.*"`,
    )
  }
  return { command, object }
}

/** Whether a credential reads and does nothing else. */
export function onlyWatches(scope: Scope | undefined): boolean {
  return scope !== undefined && scope.length > 0 && scope.every(({ command }) => command === WATCH)
}

/** The text that `parseScope` reads. */
export function formatScope(scope: Scope | undefined): string {
  return (scope ?? []).map(({ command, object }) => `${command} ${object}`).join('\n')
}

/**
 * Whether a scope covers a request; without a scope every request is covered. Only a `*` of the scope matches a `*` in the
 * request, so that no pattern reaches beyond the scope.
 */
export function covers(scope: Scope | undefined, request: RequestedObject): boolean {
  if (scope === undefined) return true
  return scope.some(({ command, object }) => {
    const entry = { effect: 'allow', command: command === WATCH ? 'COLLECT' : command, object } as const
    return isFor(entry, request.command) && isAbout(entry, request)
  })
}
