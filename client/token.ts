/** Makes opaque tokens: here, so that the producer is never told them and keeps nothing but their hash [MON 11]. */
import { sha256, webCrypto } from '../auth/scram/keys.ts'
import { encodeBase64 } from '../auth/scram/message.ts'

const PREFIX = 'cnb_'
const RANDOM_BYTES = 32

export interface Token {
  /** To be given to whoever is to log in with it; as secret as a password. */
  readonly token: string
  /** What the control `token.add` takes: SHA-256 of the token's text, 64 hexadecimal digits. */
  readonly hash: string
}

/** Nobody knows it but the caller, and no producer takes it yet. */
export async function newToken(): Promise<Token> {
  const random = webCrypto().getRandomValues(new Uint8Array(RANDOM_BYTES))
  const base64url = encodeBase64(random).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')
  const token = `${PREFIX}${base64url}`
  const digest = await sha256(new TextEncoder().encode(token))
  return { token, hash: [...digest].map((byte) => byte.toString(16).padStart(2, '0')).join('') }
}
