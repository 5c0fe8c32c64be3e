/** `role.*`: the rules of roles [MON 10]. A change is in force at once: what is not allowed any more ends in the same turn. */

import { overlaps } from '../../auth/pattern.ts'
import {
  ADMIN_ROLE,
  CONSUMER_ROLE,
  formatRule,
  formatWhere,
  isRuleCommand,
  type Rule,
  ruleCommands,
} from '../../auth/permissions.ts'
import { BasicType } from '../../protocol/monitor/constants.ts'
import type { Rules } from '../accounts/rules.ts'
import type { Users } from '../accounts/users.ts'
import type { IsAffected } from '../channels/rights-revocation.ts'
import { StatusError } from '../core/errors.ts'
import { isPattern } from '../metrics/pattern.ts'
import { records, text, textOf } from './administration.ts'
import { type Control, type ControlParameter, failed, type Given, ok } from './control.ts'

export interface RoleControlsOptions {
  readonly rules: Rules
  readonly accounts: Pick<Users, 'list'>
  /** Ends what users may not do any more. */
  readonly reconsider: (isConcerned: IsAffected) => void
  /** Where a URL leads: its one spelling. Throws StatusError INVALID_ARGUMENT. */
  readonly destination: (url: string) => { readonly url: string }
  /** Resolves when everything changed so far is stored. */
  readonly stored: () => Promise<void>
}

const { STRING, UINT32 } = BasicType
const MAX_CHARACTERS = 1024
const MAX_CONDITIONS = 16
/** Of all roles: each is looked at whenever something is judged. */
const MAX_RULES = 10_000

const roleParameter: ControlParameter = { name: 'role', type: STRING, description: 'operator, or a name of your own.' }
/** What a rule is about; `role.explain` asks for the same. */
export const objectParameter: ControlParameter = {
  name: 'object',
  type: STRING,
  description: 'A metric, a control or a destination; * is any run of characters.',
}
export const whereParameter: ControlParameter = {
  name: 'where',
  type: STRING,
  optional: true,
  description: 'Arguments that have to match: "name=pattern name2=pattern".',
}

export function roleControls(options: RoleControlsOptions): Control[] {
  const { rules, accounts, reconsider, destination, stored } = options
  const changed = ({ role, command, object }: Rule): Promise<void> => {
    if (command === 'COLLECT' || command === '*') {
      reconsider((identity, metric) => identity.role === role && overlaps(object, metric))
    }
    return stored()
  }

  const adding = (effect: Rule['effect']): Control => ({
    name: `role.${effect}`,
    description: `Adds a rule: the users of a role may${effect === 'deny' ? ' not' : ''} do this. Gives its number.`,
    parameters: [
      roleParameter,
      { name: 'command', type: STRING, description: `${ruleCommands.join(', ')} or *.` },
      objectParameter,
      whereParameter,
    ],
    prepare(args) {
      const command = commandOf(args)
      const object = spelled(command, objectOf(args), destination)
      const rule = { role: roleOf(args), effect, command, object, where: whereOf(args) }
      return async () => {
        if (rules.list().length >= MAX_RULES) return failed(`there are ${MAX_RULES} rules, and no more are taken`)
        const added = rules.add(rule)
        await changed(added)
        return ok(formatRule(added), { type: UINT32, value: added.number })
      }
    },
  })

  const forget: Control = {
    name: 'role.forget',
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
    description: 'Removes all rules of a role that no user has.',
    parameters: [roleParameter],
    prepare(args) {
      const role = roleOf(args)
      return async () => {
        const mine = rules.of(role)
        if (mine.length === 0) return failed(`the role ${role} has no rules`)
        const users = accounts.list().filter((account) => account.role === role).length
        if (users > 0) return failed(`${users} users have the role ${role}: give them another one first`)
        for (const rule of [...mine]) rules.remove(rule)
        await stored()
        return ok(`role ${role} removed`)
      }
    },
  }

  const list: Control = {
    name: 'role.list',
    description: 'Lists the rules of all roles.',
    parameters: [],
    prepare: () => () => ok('', records(rules.list().map(describe))),
  }

  return [adding('allow'), adding('deny'), forget, remove, list]
}

function describe({ role, number, effect, command, object, where }: Rule) {
  return [
    text('role', role),
    { name: 'rule', type: UINT32, value: number } as const,
    text('effect', effect),
    text('command', command),
    text('object', object),
    text('where', formatWhere(where)),
  ]
}

function roleOf(args: Given): string {
  const role = textOf(args, 'role') ?? ''
  if (role === ADMIN_ROLE || role === CONSUMER_ROLE) {
    throw new StatusError('INVALID_ARGUMENT', `the role ${role} takes no rules: it is what it is`)
  }
  if (/^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/.test(role)) return role
  throw new StatusError('INVALID_ARGUMENT', 'a role is named with at most 64 letters, digits, "_", "." and "-"')
}

function commandOf(args: Given): Rule['command'] {
  const command = textOf(args, 'command') ?? ''
  if (isRuleCommand(command)) return command
  throw new StatusError('INVALID_ARGUMENT', `command is one of ${ruleCommands.join(', ')} and *, not ${command}`)
}

/** Throws StatusError INVALID_ARGUMENT. */
export function objectOf(args: Given): string {
  const object = textOf(args, 'object') ?? ''
  if (object.length >= 1 && object.length <= MAX_CHARACTERS && !/[\s\p{Cc}]/u.test(object)) return object
  throw new StatusError('INVALID_ARGUMENT', `object is 1 to ${MAX_CHARACTERS} characters without spaces`)
}

/** A destination as it is judged: a denial of any other spelling of it would deny nothing. Throws StatusError INVALID_ARGUMENT. */
export function spelled(
  command: Rule['command'],
  object: string,
  destination: RoleControlsOptions['destination'],
): string {
  return command !== 'DEF_CHANNEL' || isPattern(object) ? object : destination(object).url
}

/** Throws StatusError INVALID_ARGUMENT. */
export function whereOf(args: Given): Record<string, string> {
  const words = (textOf(args, 'where') ?? '').split(/\s+/).filter((word) => word !== '')
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
  return Object.fromEntries(conditions)
}
