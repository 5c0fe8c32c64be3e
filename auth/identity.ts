/**
 * The identity of a user as text: `tenant/user`, or `user` for the tenant `default` [MON 11]. Nothing is normalized here:
 * clients import this file, and the tables of prepare.ts are larger than the rest of a client.
 */
import { AuthError } from './errors.ts'

export const DEFAULT_TENANT = 'default'

export interface QualifiedName {
  readonly tenant: string
  readonly name: string
}

/** Throws AuthError BAD_IDENTITY, whose message says what is allowed. */
export function splitIdentity(text: string): QualifiedName {
  const parts = text.split('/')
  if (parts.length > 2) {
    throw new AuthError('BAD_IDENTITY', "an identity is 'user' or 'tenant/user': it contains at most one '/'")
  }
  return { tenant: parts.length === 2 ? parts[0]! : DEFAULT_TENANT, name: parts.at(-1)! }
}

/** The shortest text that names the account: the canonical form for logs, throttling and comparison. */
export function formatIdentity({ tenant, name }: QualifiedName): string {
  return tenant === DEFAULT_TENANT ? name : `${tenant}/${name}`
}
