/**
 * The common part of the controls that administer users and tokens. An admin may administer everybody; another user whom a
 * rule allows these controls may administer the users of its own tenant whose role allows nothing that its own does not. Other
 * tenants do not exist for it.
 */
import { AuthError } from '../../../auth/errors.ts'
import { DEFAULT_TENANT, formatIdentity, type QualifiedName } from '../../../auth/identity.ts'
import type { Account, Credential } from '../../../auth/mechanism.ts'
import { ADMIN_ROLE, type Identity } from '../../../auth/permissions.ts'
import { prepareName } from '../../../auth/prepare.ts'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import type { Field, Value } from '../../../protocol/monitor/value.ts'
import type { Rights } from '../accounts/rights.ts'
import type { Users } from '../accounts/users.ts'
import { StatusError } from '../core/errors.ts'
import { type ControlArguments, type ControlParameter, type ControlResult, failed } from './control.ts'

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
  description: 'If omitted: default.',
}

export function stringArgument(args: ControlArguments, name: string): string | undefined {
  return args.get(name) as string | undefined
}

/** The user that `user` and `tenant` name. Throws StatusError INVALID_ARGUMENT. */
export function userNameArgument(args: ControlArguments): QualifiedName {
  return asInvalidArgument(() => ({
    tenant: prepareName('tenant', stringArgument(args, 'tenant') ?? DEFAULT_TENANT),
    name: prepareName('user', stringArgument(args, 'user') ?? ''),
  }))
}

/** Turns an AuthError into StatusError INVALID_ARGUMENT. The messages of AuthError never contain a secret. */
export function asInvalidArgument<T>(read: () => T): T {
  try {
    return read()
  } catch (error) {
    if (error instanceof AuthError) throw new StatusError('INVALID_ARGUMENT', error.message)
    throw error
  }
}

/** Whether a tenant exists at all as far as a user can see. */
export function seesTenant({ role, tenant }: Identity, of: string): boolean {
  return role === ADMIN_ROLE || tenant === of
}

/**
 * A login with a scope may not set passwords or roles, because they would give more rights than the login has. Throws
 * StatusError PERMISSION_DENIED.
 */
export function requireUnscopedLogin({ scope }: Credential): void {
  if (scope === undefined) return
  throw new StatusError('PERMISSION_DENIED', 'this login has a scope, so it may not set passwords or roles')
}

export function noSuchUser(name: QualifiedName): ControlResult {
  return failed(`there is no user ${formatIdentity(name)}`)
}

export interface Administration {
  readonly accounts: Users
  readonly rights: Pick<Rights, 'mayGive'>
}

/** Calls `action` with the account of a name, if the caller may administer it. */
export function withAdministeredAccount(
  { accounts, rights }: Administration,
  caller: Identity,
  name: QualifiedName,
  action: (account: Account) => ControlResult | Promise<ControlResult>,
): ControlResult | Promise<ControlResult> {
  const account = seesTenant(caller, name.tenant) ? accounts.find(name.tenant, name.name) : undefined
  if (account === undefined) return noSuchUser(name)
  if (account.id !== caller.userId && !rights.mayGive(caller, account.role)) {
    const why = `has the role ${account.role}, which may do more than yours, or approves what others do`
    return failed(`${formatIdentity(name)} ${why}: ask an admin`)
  }
  return action(account)
}

/** An ARRAY of RECs. */
export function records(items: readonly (readonly Field[])[]): Value {
  return { type: ARRAY, value: { element: REC, items } }
}

export function textField(name: string, value: string): Field {
  return { name, type: STRING, value }
}
