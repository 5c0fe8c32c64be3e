/**
 * What the controls about users and tokens have in common: whom one may administer. An admin everybody; whoever else a rule
 * allows one of them, the users of its own tenant that are no admins. What is another tenant's is answered as what is not there.
 */
import { AuthError } from '../../auth/errors.ts'
import { DEFAULT_TENANT, formatIdentity, type QualifiedName } from '../../auth/identity.ts'
import type { Account, Credential } from '../../auth/mechanism.ts'
import { ADMIN_ROLE, type Identity } from '../../auth/permissions.ts'
import { prepareName } from '../../auth/prepare.ts'
import { BasicType } from '../../protocol/monitor/constants.ts'
import type { Field, Value } from '../../protocol/monitor/value.ts'
import type { Users } from '../accounts/users.ts'
import { StatusError } from '../core/errors.ts'
import { type ControlParameter, type ControlResult, failed, type Given } from './control.ts'

const { ARRAY, REC, STRING } = BasicType

export const userParameter: ControlParameter = {
  name: 'user',
  type: STRING,
  description: 'The name, without its tenant.',
}
export const tenantParameter: ControlParameter = {
  name: 'tenant',
  type: STRING,
  optional: true,
  description: 'Left out: default.',
}

export function textOf(args: Given, name: string): string | undefined {
  return args.get(name) as string | undefined
}

/** The user that `user` and `tenant` name. Throws StatusError INVALID_ARGUMENT. */
export function nameOf(args: Given): QualifiedName {
  return judged(() => ({
    tenant: prepareName('tenant', textOf(args, 'tenant') ?? DEFAULT_TENANT),
    name: prepareName('user', textOf(args, 'user') ?? ''),
  }))
}

/** What auth refuses is an invalid argument here; its sentences never hold a secret. */
export function judged<T>(judge: () => T): T {
  try {
    return judge()
  } catch (error) {
    if (error instanceof AuthError) throw new StatusError('INVALID_ARGUMENT', error.message)
    throw error
  }
}

/** Whether what belongs to a tenant is there at all for whoever asks. */
export function reaches({ role, tenant }: Identity, of: string): boolean {
  return role === ADMIN_ROLE || tenant === of
}

/**
 * A password, or the role admin, opens more than a login that is narrower than its user: with such a one nobody gives them.
 * Throws StatusError PERMISSION_DENIED.
 */
export function needsAll({ scope }: Credential): void {
  if (scope === undefined) return
  throw new StatusError(
    'PERMISSION_DENIED',
    'this login is for less than its user may: it gives no passwords and roles',
  )
}

export function noSuchUser(name: QualifiedName): ControlResult {
  return failed(`there is no user ${formatIdentity(name)}`)
}

/** Goes on with the account of a name, if the asker may administer it. */
export function administered(
  accounts: Users,
  asker: Identity,
  name: QualifiedName,
  goOn: (account: Account) => ControlResult | Promise<ControlResult>,
): ControlResult | Promise<ControlResult> {
  const account = reaches(asker, name.tenant) ? accounts.find(name.tenant, name.name) : undefined
  if (account === undefined) return noSuchUser(name)
  if (account.role === ADMIN_ROLE && asker.role !== ADMIN_ROLE) {
    return failed(`${formatIdentity(name)} is an admin: only an admin may do that`)
  }
  return goOn(account)
}

/** An ARRAY of RECs. */
export function records(items: readonly (readonly Field[])[]): Value {
  return { type: ARRAY, value: { element: REC, items } }
}

export function text(name: string, value: string): Field {
  return { name, type: STRING, value }
}
