/** `user.*`: who may log in, and with which role. No log and no error contains a password. */
import { formatIdentity } from '../../../auth/identity.ts'
import type { Account } from '../../../auth/mechanism.ts'
import { MAX_PASSWORD_BYTES, type PasswordHasher } from '../../../auth/password.ts'
import { ADMIN_ROLE, CONSUMER_ROLE, type Identity } from '../../../auth/permissions.ts'
import { checkNewPassword, makeVerifiers } from '../../../auth/verifiers.ts'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import type { Rules } from '../accounts/rules.ts'
import { hasNoLogin, OWN_USER_PREFIXES, type Users } from '../accounts/users.ts'
import { StatusError } from '../core/errors.ts'
import {
  type Administration,
  asInvalidArgument,
  records,
  requireUnscopedLogin,
  seesTenant,
  stringArgument,
  tenantParameter,
  textField,
  userNameArgument,
  userParameter,
  withAdministeredAccount,
} from './administration.ts'
import { type Control, type ControlArguments, type ControlParameter, failed, ok } from './control.ts'

/** The user of the CLI, which is made at the first start. */
const LOCAL_USER = 'local'

/** The user of the CLI on a server, or on a node of a cluster: each node has one of its own, with a secret of its own. */
export function localUserOf(node: string | undefined): string {
  return node === undefined ? LOCAL_USER : `${LOCAL_USER}@${node}`
}

export interface UserControlsOptions extends Administration {
  readonly rules: Pick<Rules, 'hasRole'>
  readonly hasher: PasswordHasher
  readonly iterations: number
  /** The name of this node of a cluster; undefined without one. */
  readonly node: string | undefined
  /** Ends everything of a removed user: sessions, channels, metric instances, tokens. */
  readonly endUser: (account: Account) => Promise<unknown>
  /** Gives a user another role, and ends what it may no longer do. */
  readonly changeRole: (account: Account, role: string) => Promise<void>
  /** Resolves when everything that has changed so far is stored. */
  readonly stored: () => Promise<void>
}

const { STRING } = BasicType
const password: ControlParameter = {
  name: 'password',
  type: STRING,
  secret: true,
  maxLength: MAX_PASSWORD_BYTES,
  description: 'At least 8 characters, at most 72 bytes.',
}
const role: ControlParameter = {
  name: 'role',
  type: STRING,
  description: 'admin, operator, consumer, or one that has rules.',
}

export function userControls(options: UserControlsOptions): Control[] {
  const { accounts, hasher, iterations, node, endUser, changeRole, stored } = options

  const add: Control = {
    name: 'user.add',
    description: 'Adds a user, and its tenant if it does not exist.',
    parameters: [
      userParameter,
      tenantParameter,
      {
        ...password,
        optional: true,
        description:
          'At least 8 characters, at most 72 bytes. If omitted, the user logs in with tokens and certificates only.',
      },
      { ...role, optional: true, description: `${role.description} If omitted: consumer.` },
    ],
    prepare(args, { identity, credential }) {
      const name = userNameArgument(args)
      const secret = args.has('password') ? passwordOf(args) : undefined
      const given = roleOf(args, identity, options)
      if (hasNoLogin(name))
        throw new StatusError(
          'INVALID_ARGUMENT',
          `users whose names end with ":", or begin with "${Object.values(OWN_USER_PREFIXES).join('" or "')}", are those of the server itself`,
        )
      if (secret !== undefined || given === ADMIN_ROLE) requireUnscopedLogin(credential)
      if (node !== undefined && name.name.startsWith(localUserOf('')))
        throw new StatusError(
          'INVALID_ARGUMENT',
          `the users ${localUserOf('')}... are those of the nodes: choose another name`,
        )
      return async () => {
        if (!seesTenant(identity, name.tenant)) return failed(`there is no tenant ${name.tenant}`)
        const isTaken = (): boolean => accounts.find(name.tenant, name.name) !== undefined
        const taken = `the user ${formatIdentity(name)} exists already`
        if (isTaken()) return failed(taken)
        const none = { bcrypt: undefined, scram: undefined }
        const verifiers =
          secret === undefined ? none : await makeVerifiers(secret, hasher, iterations, String(identity.userId))
        if (isTaken()) return failed(taken)
        accounts.add({ ...name, role: given, ...verifiers, loopbackOnly: false })
        await stored()
        return ok(`${formatIdentity(name)} added`)
      }
    },
  }

  const passwd: Control = {
    name: 'user.passwd',
    description: 'Sets the password of a user.',
    parameters: [userParameter, tenantParameter, password],
    prepare(args, { identity, credential }) {
      const name = userNameArgument(args)
      const secret = passwordOf(args)
      requireUnscopedLogin(credential)
      return () =>
        withAdministeredAccount(options, identity, name, async (account) => {
          if (account.loopbackOnly)
            return failed(`${formatIdentity(name)} has no password: the command line uses its secret file`)
          if (hasNoLogin(account)) return failed(`${formatIdentity(name)} is a user of the server itself`)
          const verifiers = await makeVerifiers(secret, hasher, iterations, String(identity.userId))
          const still = accounts.byId(account.id)
          if (still === undefined) return failed(`${formatIdentity(name)} was removed meanwhile`)
          if (still.role !== account.role) return failed(`${formatIdentity(name)} has another role now: try again`)
          accounts.setVerifiers(still, verifiers)
          await stored()
          return ok(`password of ${formatIdentity(name)} set`)
        })
    },
  }

  const setRole: Control = {
    name: 'user.role',
    description: 'Gives a user another role. What it may no longer do ends at once.',
    parameters: [userParameter, tenantParameter, role],
    prepare(args, { identity, credential }) {
      const name = userNameArgument(args)
      const given = roleOf(args, identity, options)
      requireUnscopedLogin(credential)
      return () =>
        withAdministeredAccount(options, identity, name, async (account) => {
          if (account.id === identity.userId) return failed('nobody can change their own role: ask another admin')
          if (account.loopbackOnly) return failed(`${formatIdentity(name)} is the command line's own user`)
          if (given !== ADMIN_ROLE && isLastAdmin(accounts, account)) return failed(lastAdmin(account))
          await changeRole(account, given)
          await stored()
          return ok(`${formatIdentity(name)} has the role ${given}`)
        })
    },
  }

  const remove: Control = {
    name: 'user.remove',
    description: 'Removes a user with its channels, metric ids and tokens; its sessions end at once.',
    usesReserve: true,
    parameters: [userParameter, tenantParameter],
    prepare(args, { identity }) {
      const name = userNameArgument(args)
      return () =>
        withAdministeredAccount(options, identity, name, async (account) => {
          // Nobody would receive the result, and the last admin would lock everybody out.
          if (account.id === identity.userId) return failed('a user cannot remove itself: ask another admin')
          // Those of nodes that are gone may be removed; a node that leads again makes its own anew.
          if (account.loopbackOnly && account.name === localUserOf(node))
            return failed(`${formatIdentity(name)} is the command line's own user`)
          if (isLastAdmin(accounts, account)) return failed(lastAdmin(account))
          accounts.remove(account)
          await endUser(account)
          await stored()
          return ok(`${formatIdentity(name)} removed`)
        })
    },
  }

  const list: Control = {
    name: 'user.list',
    description: 'Lists the users: an admin sees all, others those of their tenant.',
    parameters: [],
    isRecorded: () => false,
    prepare(_, { identity }) {
      return () => {
        const seen = accounts.list().filter(({ tenant }) => seesTenant(identity, tenant))
        const items = seen.map(({ tenant, name, role }) => [
          textField('tenant', tenant),
          textField('user', name),
          textField('role', role),
        ])
        return ok('', records(items))
      }
    },
  }

  return [add, passwd, setRole, remove, list]
}

/**
 * Checked when the control runs and not before, because two admins may remove each other at the same time. Users as which nobody can
 * log in are no admins here: a notifier reads with the role of the admin who has put it.
 */
function isLastAdmin(accounts: Users, account: Account): boolean {
  const isAdmin = (user: Account): boolean => user.role === ADMIN_ROLE && !hasNoLogin(user)
  const isOther = (user: Account): boolean => user.id !== account.id && isAdmin(user) && !user.loopbackOnly
  return isAdmin(account) && !accounts.list().some(isOther)
}

function lastAdmin(account: Account): string {
  return `${formatIdentity(account)} is the last admin: make another one first`
}

/** Throws StatusError INVALID_ARGUMENT, or PERMISSION_DENIED if the role may do more than that of the caller. */
function roleOf(
  args: ControlArguments,
  caller: Identity,
  { rules, rights }: Pick<UserControlsOptions, 'rules' | 'rights'>,
): string {
  const given = stringArgument(args, 'role') ?? CONSUMER_ROLE
  if (!rules.hasRole(given)) {
    throw new StatusError('INVALID_ARGUMENT', `there is no role ${given}: create it with \`role.allow\``)
  }
  if (rights.mayGive(caller, given)) return given
  throw new StatusError('PERMISSION_DENIED', `the role ${given} may do more than yours: only an admin may give it`)
}

function passwordOf(args: ControlArguments): string {
  const secret = stringArgument(args, 'password') ?? ''
  asInvalidArgument(() => checkNewPassword(secret))
  return secret
}
