/** The ways to prove who a consumer is [MON 11]. */
import { ConnectionError } from './errors.ts'

/** The ways to log in with a password. */
export type Method = (typeof ALL_METHODS)[number]

export const ALL_METHODS = ['scram-sha-256-plus', 'scram-sha-256', 'password'] as const

export interface PasswordCredentials {
  /** `tenant/user`, or `user` for the tenant `default`. */
  readonly identity: string
  readonly password: string
  /** The methods that may be used; all of them if it is not given. */
  readonly methods?: readonly Method[] | undefined
}

export interface TokenCredentials {
  /** The token, or a function that is called for one before each connection, for tokens that expire. */
  readonly token: string | (() => string | Promise<string>)
}

/** The certificate is that of the options: `tls.cert` and `tls.key`. */
export interface CertificateCredentials {
  readonly certificate: true
}

export type Credentials = PasswordCredentials | TokenCredentials | CertificateCredentials

/** Credentials with the present token. */
export type Proof = PasswordCredentials | { readonly token: string } | CertificateCredentials

/** Throws ConnectionError NO_TOKEN. */
export async function tokenOf({ token }: TokenCredentials): Promise<string> {
  if (typeof token === 'string') return token
  try {
    return await token()
  } catch (error) {
    const reason = error instanceof Error ? error.message : 'its function failed'
    throw new ConnectionError('NO_TOKEN', `there is no token to log in with: ${reason}`, { cause: error })
  }
}

/** The user as errors name it: "alice", "the owner of a token". */
export function describeCredentials(credentials: Credentials): string {
  if ('identity' in credentials) return credentials.identity
  return 'token' in credentials ? 'the owner of a token' : 'the owner of a certificate'
}
