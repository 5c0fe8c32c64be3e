/** `role.*`: the rules of roles [MON 10]. A change is in force at once: whatever is no longer allowed ends in the same turn. */
import { DEFAULT_TENANT } from '../../../auth/identity.ts'
import { matcher, overlaps } from '../../../auth/pattern.ts'
import {
  ADMIN_ROLE,
  CONSUMER_ROLE,
  formatRule,
  formatWhere,
  maySee,
  needsNoRule,
  OPERATOR_ROLE,
  type Rule,
  type RuledCommand,
  ruleCommands,
} from '../../../auth/permissions.ts'
import { parseIdentity } from '../../../auth/prepare.ts'
import { splitUrl } from '../../../auth/url-pattern.ts'
import { type CommandName, commands } from '../../../protocol/monitor/commands.ts'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import { DESTINATION, type Rights } from '../accounts/rights.ts'
import type { Rules } from '../accounts/rules.ts'
import type { Users } from '../accounts/users.ts'
import type { RightsRevocation } from '../channels/rights-revocation.ts'
import { didYouMean } from '../config/errors.ts'
import { StatusError } from '../core/errors.ts'
import type { Hub } from '../metrics/hub.ts'
import { isPattern } from '../metrics/pattern.ts'
import { asInvalidArgument, noSuchUser, records, seesTenant, stringArgument, textField } from './administration.ts'
import { type Audience, type Control, type ControlArguments, type ControlParameter, failed, ok } from './control.ts'
import { ruledDestination, ruledOrigin } from './ruled-destination.ts'

/** Parses a URL into its canonical spelling. Throws StatusError INVALID_ARGUMENT. */
type ParseUrl = (url: string) => { readonly url: string }

export interface RoleControlsOptions {
  readonly rules: Rules
  readonly accounts: Pick<Users, 'list'>
  /** Ends what users may no longer do. */
  readonly rightsRevocation: Pick<RightsRevocation, 'reapply'>
  readonly dialler: Pick<ExplainOptions['dialler'], 'destination'>
  /** The controls whose names match and that take a secret. */
  readonly executor: { secretive(matches: (name: string) => boolean): readonly string[] }
  /** Resolves when everything that has changed so far is stored. */
  readonly stored: () => Promise<void>
}

export interface ExplainOptions {
  readonly accounts: Users
  readonly rights: Rights
  readonly hub: Pick<Hub, 'sensors'>
  readonly dialler: {
    /** Parses a URL into its canonical spelling. Throws StatusError INVALID_ARGUMENT. */
    destination(url: string): { readonly url: string }
    /** Whether the operator's list permits a URL. */
    permits(url: string): boolean
  }
  /** Whether the metrics of this name or pattern take published values. */
  readonly isPublished: (object: string) => boolean
  /** Says whom a control is for, whatever the rules say. */
  readonly executor: { audienceOf(control: string): Audience }
}

const { BOOLEAN, REC, STRING, UINT32 } = BasicType
const MAX_CHARACTERS = 1024
const MAX_CONDITIONS = 16
const ROLE = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/
const ROLE_NAME = 'the name of a role is at most 64 letters, digits, "_", "." and "-"'
/** Rules of all roles together, because every check goes through all of them. */
const MAX_RULES = 10_000

/** The commands of the protocol, and what rules judge besides them. */
const explained = [...new Set([...Object.keys(commands), ...ruleCommands])]
type ExplainedCommand = CommandName | RuledCommand

/** The command under whose rules a command is checked. All others concern only what the user itself has made. */
const ruled: Partial<Record<ExplainedCommand, RuledCommand>> = {
  COLLECT: 'COLLECT',
  QUERY: 'COLLECT',
  SUBSCRIBE: 'COLLECT',
  BUFFER: 'COLLECT',
  GET: 'COLLECT',
  EXECUTE: 'EXECUTE',
  DEF_CHANNEL: 'DEF_CHANNEL',
  PUBLISH: 'PUBLISH',
}

/** Says that nobody has a role yet and no rule names it: it may be misspelt. Empty if it is known. */
function newRoleHint(role: string, { rules, accounts }: Pick<RoleControlsOptions, 'rules' | 'accounts'>): string {
  const used = [...rules.list(), ...accounts.list()].map((one) => one.role)
  const known = [...new Set([ADMIN_ROLE, OPERATOR_ROLE, CONSUMER_ROLE, ...used])]
  return known.includes(role) ? '' : `; the role ${role} is new${didYouMean(role, known)}`
}

const roleParameter: ControlParameter = {
  name: 'role',
  type: STRING,
  description: 'operator, or a name of your choice.',
}
const objectParameter: ControlParameter = {
  name: 'object',
  type: STRING,
  description: 'A metric, a control or a destination; * matches any characters.',
}
const approvalParameter: ControlParameter = {
  name: 'approval',
  type: STRING,
  optional: true,
  description: 'For EXECUTE: the role whose users have to approve each call before it runs.',
}
const whereParameter: ControlParameter = {
  name: 'where',
  type: STRING,
  optional: true,
  description: 'Arguments that must match: "name=pattern name2=pattern".',
}

export function roleControls(options: RoleControlsOptions): Control[] {
  const { rules, accounts, rightsRevocation, dialler, stored } = options
  const destination = (url: string) => dialler.destination(url)
  const changed = async ({ role, command, object }: Rule): Promise<void> => {
    if (command === 'COLLECT' || command === '*') {
      await rightsRevocation.reapply((identity, metric) => identity.role === role && overlaps(object, metric))
    }
    await stored()
  }

  const adding = (effect: Rule['effect']): Control => ({
    name: `role.${effect}`,
    adminOnly: true,
    description: `Adds a rule: the users of a role may${effect === 'deny' ? ' not' : ''} do this. Returns its number.`,
    ...(effect === 'deny' && ({ usesReserve: true } as const)),
    parameters: [
      roleParameter,
      {
        name: 'command',
        type: STRING,
        values: [...ruleCommands, '*'],
        description: `The command; *: each of them${effect === 'allow' ? ' but PUBLISH' : ''}.`,
      },
      objectParameter,
      whereParameter,
      ...(effect === 'allow' ? [approvalParameter] : []),
    ],
    prepare(args) {
      const command = args.get('command') as Rule['command']
      const object = canonicalObject(command, objectOf(args), destination)
      const where = whereOf(args, command, destination)
      const approval = approvalOf(args, command, object)
      if (approval === CONSUMER_ROLE) {
        const roles = [...new Set(rules.list().map(({ role }) => role))].sort().join(', ')
        const why = `${CONSUMER_ROLE} is the role of all users who have no other`
        const known = roles === '' ? 'there is no role with rules yet' : `the roles with rules are ${roles}`
        throw new StatusError('INVALID_ARGUMENT', `approval: ${why}: name the role of those who approve; ${known}`)
      }
      // What admins may do on connections that the producer makes is the only thing that rules say about them [MON 14].
      const isAboutDialled = effect === 'allow' && command === 'EXECUTE' && where[DESTINATION] !== undefined
      const role = roleOf(args, isAboutDialled && approval === undefined)
      const rule = { role, effect, command, object, where, ...(approval !== undefined && { approval }) }
      const secretive = approval === undefined ? [] : options.executor.secretive(matcher(object))
      if (secretive.includes(object)) {
        const why = 'it takes a secret, which would lie on the disk as long as it waits'
        throw new StatusError('INVALID_ARGUMENT', `${object} cannot wait for approval: ${why}`)
      }
      return async () => {
        if (rules.list().length >= MAX_RULES)
          return failed(`there are already ${MAX_RULES} rules, which is the maximum: remove some first`)
        const hint = newRoleHint(rule.role, options) + (approval === undefined ? '' : newRoleHint(approval, options))
        const added = rules.add(rule)
        await changed(added)
        const refused = secretive.length === 0 ? '' : `; refused because they take secrets: ${secretive.join(', ')}`
        return ok(`${formatRule(added)}${hint}${refused}`, { type: UINT32, value: added.number })
      }
    },
  })

  const forget: Control = {
    name: 'role.forget',
    adminOnly: true,
    description: 'Removes one rule.',
    parameters: [{ name: 'rule', type: UINT32, description: 'Its number, as `role.list` shows it.' }],
    prepare(args) {
      const number = args.get('rule') as number
      return async () => {
        const rule = rules.find(number)
        if (rule === undefined) return failed(`there is no rule ${number}`)
        rules.remove(rule)
        await changed(rule)
        return ok(`forgotten: ${formatRule(rule)}`)
      }
    },
  }

  const remove: Control = {
    name: 'role.remove',
    adminOnly: true,
    description: 'Removes all rules of a role that no user has.',
    parameters: [roleParameter],
    prepare(args) {
      const role = roleOf(args)
      return async () => {
        const mine = rules.of(role)
        if (mine.length === 0) return failed(`the role ${role} has no rules`)
        const users = accounts.list().filter((account) => account.role === role).length
        if (users > 0) return failed(`${users} users have the role ${role}: give them another role first`)
        for (const rule of [...mine]) rules.remove(rule)
        await stored()
        return ok(`role ${role} removed`)
      }
    },
  }

  const list: Control = {
    name: 'role.list',
    adminOnly: true,
    description: 'Lists the rules of all roles.',
    parameters: [],
    isRecorded: () => false,
    prepare: () => () => ok('', records(rules.list().map(describe))),
  }

  return [adding('allow'), adding('deny'), forget, remove, list]
}

/** Explains a decision; it uses the same checks as the commands themselves. */
export function roleExplain({ accounts, rights, hub, dialler, isPublished, executor }: ExplainOptions): Control {
  const destination = (url: string) => dialler.destination(url)
  return {
    name: 'role.explain',
    description: 'Explains whether a user may do something, and by which rule.',
    parameters: [
      { name: 'user', type: STRING, description: `tenant/user, or user for the tenant ${DEFAULT_TENANT}.` },
      { name: 'command', type: STRING, values: explained, description: 'The command.' },
      objectParameter,
      whereParameter,
    ],
    isRecorded: () => false,
    prepare(args, { identity: asker }) {
      const name = asInvalidArgument(() => parseIdentity(stringArgument(args, 'user') ?? ''))
      const command = args.get('command') as ExplainedCommand
      const ruledAs = ruled[command]
      const given = stringArgument(args, 'object') ?? ''
      const isUrl = ruledAs === 'DEF_CHANNEL' && given !== ''
      const isOneUrl = isUrl && !isPattern(given)
      const object = isOneUrl ? destination(given).url : isUrl ? ruledDestination(given, destination) : given
      const where = new Map(Object.entries(whereOf(args, ruledAs, destination)))
      return () => {
        const account = seesTenant(asker, name.tenant) ? accounts.find(name.tenant, name.name) : undefined
        if (account === undefined) return noSuchUser(name)
        const identity = accounts.identity(account)
        const answer = (allowed: boolean, because: string) =>
          ok('', {
            type: REC,
            value: [{ name: 'allowed', type: BOOLEAN, value: allowed }, textField('because', because)],
          })
        if (ruledAs === undefined) return answer(true, 'the user needs no rule for what it has made itself')
        if (ruledAs === 'COLLECT' && !isPattern(object)) {
          const isTheirs = hub.sensors.some((sensor) => {
            return (
              maySee(identity, sensor.owner) && object.startsWith(sensor.family) && sensor.metric(object) !== undefined
            )
          })
          if (!isTheirs) return answer(false, 'neither the tenant nor the producer has such a metric')
        }
        if (ruledAs === 'PUBLISH' && !isPublished(object)) {
          return answer(false, 'no metric of that name takes published values, whatever the rules say')
        }
        // To an asker who is no admin, controls of other tenants do not exist.
        const { tenants, adminOnly } = ruledAs === 'EXECUTE' ? executor.audienceOf(object) : {}
        const isForOthers = asker.role === ADMIN_ROLE && tenants?.includes(identity.tenant) === false
        if (isForOthers) return answer(false, 'the control is for other tenants')
        if (adminOnly && identity.role !== ADMIN_ROLE) return answer(false, 'the control is for admins')
        const request = { command: ruledAs, object, argument: (of: string) => where.get(of) }
        const verdict = rights.judge(identity, request)
        const dialled = ruledAs === 'EXECUTE' ? where.get(DESTINATION) : undefined
        const isDialled = dialled !== undefined && splitUrl(dialled) !== undefined
        if (verdict.allowed && isDialled && !rights.may({ identity, credential: {}, destination: dialled }, request)) {
          return answer(false, 'no rule allows it that names this destination')
        }
        if (verdict.allowed && isOneUrl && !dialler.permits(object)) {
          return answer(false, `${verdict.because}; but \`dial.allow\` in the configuration does not permit it`)
        }
        return answer(verdict.allowed, verdict.because)
      }
    },
  }
}

function describe({ role, number, effect, command, object, where, approval = '' }: Rule) {
  return [
    textField('role', role),
    { name: 'rule', type: UINT32, value: number } as const,
    textField('effect', effect),
    textField('command', command),
    textField('object', object),
    textField('where', formatWhere(where)),
    textField('approval', approval),
  ]
}

function roleOf(args: ControlArguments, mayBeAdmin = false): string {
  const role = stringArgument(args, 'role') ?? ''
  if (role === ADMIN_ROLE && mayBeAdmin) return role
  if (role === ADMIN_ROLE || role === CONSUMER_ROLE) {
    throw new StatusError('INVALID_ARGUMENT', `the role ${role} cannot have rules`)
  }
  if (ROLE.test(role)) return role
  throw new StatusError('INVALID_ARGUMENT', ROLE_NAME)
}

/** The role that has to approve; undefined if none has to. Throws StatusError INVALID_ARGUMENT. */
function approvalOf(args: ControlArguments, command: Rule['command'], object: string): string | undefined {
  const approval = stringArgument(args, 'approval') ?? ''
  if (approval === '') return undefined
  if (command !== 'EXECUTE') throw new StatusError('INVALID_ARGUMENT', 'only EXECUTE can wait for approval')
  if (needsNoRule(object)) {
    throw new StatusError('INVALID_ARGUMENT', "the controls of what is one's own never wait for approval")
  }
  if (ROLE.test(approval)) return approval
  throw new StatusError('INVALID_ARGUMENT', `approval is a role: ${ROLE_NAME}`)
}

/** Throws StatusError INVALID_ARGUMENT. */
function objectOf(args: ControlArguments): string {
  const object = stringArgument(args, 'object') ?? ''
  if (object.length >= 1 && object.length <= MAX_CHARACTERS && !/[\s\p{Cc}]/u.test(object)) return object
  throw new StatusError('INVALID_ARGUMENT', `object is 1 to ${MAX_CHARACTERS} characters without spaces`)
}

/** The canonical spelling of the object of a rule. Throws StatusError INVALID_ARGUMENT. */
function canonicalObject(command: Rule['command'], object: string, destination: ParseUrl): string {
  const isDestination = command === 'DEF_CHANNEL' || (command === '*' && object.includes('://'))
  return isDestination ? ruledDestination(object, destination) : object
}

/** The conditions, with a destination in its canonical spelling. Throws StatusError INVALID_ARGUMENT. */
function whereOf(
  args: ControlArguments,
  command: Rule['command'] | undefined,
  destination: ParseUrl,
): Record<string, string> {
  const words = (stringArgument(args, 'where') ?? '').split(/\s+/).filter((word) => word !== '')
  const conditions = new Map<string, string>()
  for (const word of words) {
    const at = word.indexOf('=')
    if (at < 1 || word.length > MAX_CHARACTERS || conditions.has(word.slice(0, at))) {
      throw new StatusError('INVALID_ARGUMENT', 'where is "name=pattern name2=pattern", each name once')
    }
    conditions.set(word.slice(0, at), word.slice(at + 1))
  }
  if (conditions.size > MAX_CONDITIONS) {
    throw new StatusError('INVALID_ARGUMENT', `where has at most ${MAX_CONDITIONS} conditions`)
  }
  const dialled = conditions.get(DESTINATION)
  // Without `://` it is about an argument of the control that has the same name.
  if (dialled?.includes('://') && (command === 'EXECUTE' || command === '*')) {
    conditions.set(DESTINATION, ruledOrigin(dialled, destination))
  }
  return Object.fromEntries(conditions)
}
