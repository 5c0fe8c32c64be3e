/** The ways to prove who a consumer is [MON 11], and new tokens. */
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
export type Proof = PasswordProof | { readonly token: string } | CertificateCredentials

export interface PasswordProof extends PasswordCredentials {
  /** Iterations of SCRAM that are computed at most, if fewer than usual. */
  readonly maxIterations?: number | undefined
}

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

const TOKEN_PREFIX = 'cnb_'
const TOKEN_BYTES = 32

export interface Token {
  /** The token for the user who is to log in with it. It is as secret as a password. */
  readonly token: string
  /** What the control `token.add` takes: SHA-256 of the token's text as 64 hexadecimal digits. */
  readonly hash: string
}

/**
 * Makes an opaque token. It is made here so that the producer never sees it, and keeps only its hash [MON 11]. No producer
 * accepts it before that hash was added there.
 */
export async function newToken(): Promise<Token> {
  // Hardly any page makes tokens: it need not load this.
  const { sha256, webCrypto } = await import('../auth/scram/keys.ts')
  const { encodeBase64 } = await import('../auth/scram/message.ts')
  const random = webCrypto().getRandomValues(new Uint8Array(TOKEN_BYTES))
  const base64url = encodeBase64(random).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')
  const token = `${TOKEN_PREFIX}${base64url}`
  const digest = await sha256(new TextEncoder().encode(token))
  return { token, hash: [...digest].map((byte) => byte.toString(16).padStart(2, '0')).join('') }
}
