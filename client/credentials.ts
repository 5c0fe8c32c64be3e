/** With what a consumer proves who it is [MON 11]. */
import { ConnectionError } from './errors.ts'

/** The ways to log in with a password. */
export type Method = (typeof ALL_METHODS)[number]

export const ALL_METHODS = ['scram-sha-256-plus', 'scram-sha-256', 'password'] as const

export interface PasswordCredentials {
  /** `tenant/user`, or `user` for the tenant `default`. */
  readonly identity: string
  readonly password: string
  /** What may be used; all unless given. */
  readonly methods?: readonly Method[] | undefined
}

export interface TokenCredentials {
  /** Or what gives one, for each connection anew: for tokens that expire. */
  readonly token: string | (() => string | Promise<string>)
}

/** The one of the options: `tls.cert` and `tls.key`. */
export interface CertificateCredentials {
  readonly certificate: true
}

export type Credentials = PasswordCredentials | TokenCredentials | CertificateCredentials

/** The same with the token of now. */
export type Proof = PasswordCredentials | { readonly token: string } | CertificateCredentials

/** Throws ConnectionError NO_TOKEN. */
export async function tokenOf({ token }: TokenCredentials): Promise<string> {
  if (typeof token === 'string') return token
  try {
    return await token()
  } catch (error) {
    throw new ConnectionError('NO_TOKEN', `no token was given to log in with: ${reasonOf(error)}`, { cause: error })
  }
}

/** As errors say it: "alice", "a token". */
export function nameOf(credentials: Credentials): string {
  if ('identity' in credentials) return credentials.identity
  return 'token' in credentials ? 'whom a token names' : 'whom a certificate names'
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : 'its function failed'
}
