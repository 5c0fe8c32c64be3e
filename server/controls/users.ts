/** `user.add`, `user.remove`, `user.passwd`, `user.list`: for the role admin. Passwords are in no log and no error. */
import { AuthError } from '../../auth/errors.ts'
import { DEFAULT_TENANT, formatIdentity, prepareName } from '../../auth/identity.ts'
import type { Account } from '../../auth/mechanism.ts'
import type { PasswordHasher } from '../../auth/password.ts'
import { ADMIN_ROLE } from '../../auth/permissions.ts'
import { makeVerifiers, preparePassword } from '../../auth/verifiers.ts'
import { BasicType } from '../../protocol/monitor/constants.ts'
import type { Value } from '../../protocol/monitor/value.ts'
import type { AccountBook } from '../accounts.ts'
import { StatusError } from '../errors.ts'
import { type Control, type ControlParameter, type ControlResult, failed, ok } from './control.ts'

/** The CLI's own user, made at the first start. */
export const LOCAL_USER = 'local'
const ROLES = [ADMIN_ROLE, 'operator', 'consumer']

export interface UserControlsOptions {
  readonly accounts: AccountBook
  readonly hasher: PasswordHasher
  readonly iterations: number
  /** Ends what a removed user has: sessions, channels, metric instances. */
  readonly withdraw: (account: Account) => void
  /** Resolves when everything changed so far is stored. */
  readonly stored: () => Promise<void>
}

const { STRING } = BasicType
const user: ControlParameter = { name: 'user', type: STRING, description: 'The name, without its tenant.' }
const tenant: ControlParameter = { name: 'tenant', type: STRING, optional: true, description: 'Left out: default.' }
const password: ControlParameter = { name: 'password', type: STRING, description: 'At most 72 bytes.' }
const role: ControlParameter = {
  name: 'role',
  type: STRING,
  optional: true,
  description: `One of ${ROLES.join(', ')}; left out: consumer.`,
}

export function userControls(options: UserControlsOptions): Control[] {
  const { accounts, hasher, iterations, withdraw, stored } = options
  const admin = { allows: ({ role }: { readonly role: string }) => role === ADMIN_ROLE }

  const existing = (name: { tenant: string; name: string }, change: (account: Account) => Promise<ControlResult>) => {
    const account = accounts.find(name.tenant, name.name)
    return account === undefined ? failed(`there is no user ${formatIdentity(name)}`) : change(account)
  }

  const add: Control = {
    ...admin,
    name: 'user.add',
    description: 'Adds a user, and its tenant if that is new.',
    parameters: [user, tenant, password, role],
    prepare(args) {
      const name = nameOf(args)
      const secret = passwordOf(args)
      const role = textOf(args, 'role') ?? 'consumer'
      if (!ROLES.includes(role)) throw new StatusError('INVALID_ARGUMENT', `role is one of ${ROLES.join(', ')}`)
      return async () => {
        const taken = (): ControlResult => failed(`there is a user ${formatIdentity(name)} already`)
        if (accounts.find(name.tenant, name.name)) return taken()
        const verifiers = await makeVerifiers(secret, hasher, iterations)
        if (accounts.find(name.tenant, name.name)) return taken()
        accounts.add({ ...name, role, ...verifiers, loopbackOnly: false })
        await stored()
        return ok(`${formatIdentity(name)} added`)
      }
    },
  }

  const passwd: Control = {
    ...admin,
    name: 'user.passwd',
    description: 'Sets the password of a user.',
    parameters: [user, tenant, password],
    prepare(args) {
      const name = nameOf(args)
      const secret = passwordOf(args)
      return () =>
        existing(name, async (account) => {
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

  const remove: Control = {
    ...admin,
    name: 'user.remove',
    description: 'Removes a user with its channels and metric ids; its sessions end at once.',
    parameters: [user, tenant],
    prepare(args, { identity }) {
      const name = nameOf(args)
      return () =>
        existing(name, async (account) => {
          // Its result would have nobody to go to, and the last admin would lock everybody out.
          if (account.id === identity.userId) return failed('a user cannot remove itself: let another admin do it')
          if (account.loopbackOnly) return failed(`${formatIdentity(name)} is the command line's own user`)
          accounts.remove(account)
          withdraw(account)
          await stored()
          return ok(`${formatIdentity(name)} removed`)
        })
    },
  }

  const list: Control = {
    ...admin,
    name: 'user.list',
    description: 'Lists all users.',
    parameters: [],
    prepare: () => () => ok('', usersOf(accounts)),
  }

  return [add, remove, passwd, list]
}

function usersOf(accounts: AccountBook): Value {
  const items = accounts.list().map(({ tenant, name, role }) => [
    { name: 'tenant', type: STRING, value: tenant },
    { name: 'user', type: STRING, value: name },
    { name: 'role', type: STRING, value: role },
  ])
  return { type: BasicType.ARRAY, value: { element: BasicType.REC, items } }
}

type Given = ReadonlyMap<string, Value['value']>

function textOf(args: Given, name: string): string | undefined {
  return args.get(name) as string | undefined
}

function nameOf(args: Given): { tenant: string; name: string } {
  return judged(() => ({
    tenant: prepareName('tenant', textOf(args, 'tenant') ?? DEFAULT_TENANT),
    name: prepareName('user', textOf(args, 'user') ?? ''),
  }))
}

function passwordOf(args: Given): string {
  const secret = textOf(args, 'password') ?? ''
  judged(() => preparePassword(secret))
  return secret
}

/** What auth refuses is an invalid argument here; its sentences never hold the secret. */
function judged<T>(judge: () => T): T {
  try {
    return judge()
  } catch (error) {
    if (error instanceof AuthError) throw new StatusError('INVALID_ARGUMENT', error.message)
    throw error
  }
}
