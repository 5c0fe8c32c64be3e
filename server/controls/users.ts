/** `user.*`: who may log in, and with which role. Passwords are in no log and no error. */
import { formatIdentity } from '../../auth/identity.ts'
import type { Account } from '../../auth/mechanism.ts'
import type { PasswordHasher } from '../../auth/password.ts'
import { ADMIN_ROLE, CONSUMER_ROLE, type Identity } from '../../auth/permissions.ts'
import { makeVerifiers, preparePassword } from '../../auth/verifiers.ts'
import { BasicType } from '../../protocol/monitor/constants.ts'
import type { Rules } from '../accounts/rules.ts'
import type { Users } from '../accounts/users.ts'
import type { IsAffected } from '../channels/rights-revocation.ts'
import { StatusError } from '../core/errors.ts'
import {
  administered,
  judged,
  nameOf,
  needsAll,
  reaches,
  records,
  tenantParameter,
  text,
  textOf,
  userParameter,
} from './administration.ts'
import { type Control, type ControlParameter, failed, type Given, ok } from './control.ts'

/** The CLI's own user, made at the first start. */
export const LOCAL_USER = 'local'

export interface UserControlsOptions {
  readonly accounts: Users
  readonly rules: Pick<Rules, 'hasRole'>
  readonly hasher: PasswordHasher
  readonly iterations: number
  /** Ends what a removed user has: sessions, channels, metric instances, tokens. */
  readonly withdraw: (account: Account) => void
  /** Ends what a user may not do any more by its new role. */
  readonly reconsider: (isConcerned: IsAffected) => void
  /** Resolves when everything changed so far is stored. */
  readonly stored: () => Promise<void>
}

const { STRING } = BasicType
const password: ControlParameter = { name: 'password', type: STRING, secret: true, description: 'At most 72 bytes.' }
const role: ControlParameter = {
  name: 'role',
  type: STRING,
  description: 'admin, operator, consumer, or one that has rules.',
}

export function userControls(options: UserControlsOptions): Control[] {
  const { accounts, hasher, iterations, withdraw, reconsider, stored } = options

  const add: Control = {
    name: 'user.add',
    description: 'Adds a user, and its tenant if that is new.',
    parameters: [
      userParameter,
      tenantParameter,
      {
        ...password,
        optional: true,
        description: 'At most 72 bytes; left out: it logs in with tokens and certificates alone.',
      },
      { ...role, optional: true, description: `${role.description} Left out: consumer.` },
    ],
    prepare(args, { identity, credential }) {
      const name = nameOf(args)
      const secret = args.has('password') ? passwordOf(args) : undefined
      const given = roleOf(args, identity, options.rules)
      if (secret !== undefined || given === ADMIN_ROLE) needsAll(credential)
      return async () => {
        if (!reaches(identity, name.tenant)) return failed(`there is no tenant ${name.tenant}`)
        const isTaken = (): boolean => accounts.find(name.tenant, name.name) !== undefined
        const taken = `there is a user ${formatIdentity(name)} already`
        if (isTaken()) return failed(taken)
        const none = { bcrypt: undefined, scram: undefined }
        const verifiers = secret === undefined ? none : await makeVerifiers(secret, hasher, iterations)
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
      const name = nameOf(args)
      const secret = passwordOf(args)
      needsAll(credential)
      return () =>
        administered(accounts, identity, name, async (account) => {
          if (account.loopbackOnly)
            return failed(`${formatIdentity(name)} has no password: the command line uses its secret file`)
          const verifiers = await makeVerifiers(secret, hasher, iterations)
          const still = accounts.byId(account.id)
          if (still === undefined) return failed(`${formatIdentity(name)} was removed meanwhile`)
          accounts.setVerifiers(still, verifiers)
          await stored()
          return ok(`password of ${formatIdentity(name)} set`)
        })
    },
  }

  const setRole: Control = {
    name: 'user.role',
    description: 'Gives a user another role. What it may not do any more ends at once.',
    parameters: [userParameter, tenantParameter, role],
    prepare(args, { identity, credential }) {
      const name = nameOf(args)
      const given = roleOf(args, identity, options.rules)
      needsAll(credential)
      return () =>
        administered(accounts, identity, name, async (account) => {
          if (account.id === identity.userId) return failed('nobody can change its own role: let another admin do it')
          if (account.loopbackOnly) return failed(`${formatIdentity(name)} is the command line's own user`)
          if (given !== ADMIN_ROLE && isLastAdmin(accounts, account)) return failed(lastAdmin(account))
          accounts.setRole(account, given)
          reconsider(({ userId }) => userId === account.id)
          await stored()
          return ok(`${formatIdentity(name)} has the role ${given}`)
        })
    },
  }

  const remove: Control = {
    name: 'user.remove',
    description: 'Removes a user with its channels, metric ids and tokens; its sessions end at once.',
    parameters: [userParameter, tenantParameter],
    prepare(args, { identity }) {
      const name = nameOf(args)
      return () =>
        administered(accounts, identity, name, async (account) => {
          // Its result would have nobody to go to, and the last admin would lock everybody out.
          if (account.id === identity.userId) return failed('a user cannot remove itself: let another admin do it')
          if (account.loopbackOnly) return failed(`${formatIdentity(name)} is the command line's own user`)
          if (isLastAdmin(accounts, account)) return failed(lastAdmin(account))
          accounts.remove(account)
          withdraw(account)
          await stored()
          return ok(`${formatIdentity(name)} removed`)
        })
    },
  }

  const list: Control = {
    name: 'user.list',
    description: 'Lists the users: an admin sees all, others those of their tenant.',
    parameters: [],
    prepare(_, { identity }) {
      return () => {
        const seen = accounts.list().filter(({ tenant }) => reaches(identity, tenant))
        const items = seen.map(({ tenant, name, role }) => [
          text('tenant', tenant),
          text('user', name),
          text('role', role),
        ])
        return ok('', records(items))
      }
    },
  }

  return [add, passwd, setRole, remove, list]
}

/** Two admins may remove each other in the same moment: looked at when it is done, not when it is asked for. */
function isLastAdmin(accounts: Users, { id, role }: Account): boolean {
  const isOther = (other: Account): boolean => other.id !== id && other.role === ADMIN_ROLE && !other.loopbackOnly
  return role === ADMIN_ROLE && !accounts.list().some(isOther)
}

function lastAdmin(account: Account): string {
  return `${formatIdentity(account)} is the last admin: make another one first`
}

/** Throws StatusError INVALID_ARGUMENT, or PERMISSION_DENIED for the role admin if the asker has it not. */
function roleOf(args: Given, asker: Identity, rules: Pick<Rules, 'hasRole'>): string {
  const given = textOf(args, 'role') ?? CONSUMER_ROLE
  if (!rules.hasRole(given)) {
    throw new StatusError('INVALID_ARGUMENT', `there is no role ${given}: \`role.allow\` makes one`)
  }
  if (given === ADMIN_ROLE && asker.role !== ADMIN_ROLE) {
    throw new StatusError('PERMISSION_DENIED', 'only an admin may give the role admin')
  }
  return given
}

function passwordOf(args: Given): string {
  const secret = textOf(args, 'password') ?? ''
  judged(() => preparePassword(secret))
  return secret
}
