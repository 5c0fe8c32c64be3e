/** The client's side of SCRAM-SHA-256 (RFC 5802, RFC 7677), written from the RFCs apart from that of the server under test. */
import { createHash, createHmac, pbkdf2Sync, randomBytes } from 'node:crypto'

export interface ScramFirst {
  readonly data: Buffer
  readonly bare: string
  /** What the client's last message binds itself to. */
  readonly binding: Buffer
}

export interface ScramStep {
  readonly data: Buffer
  /** What the server's last message has to be. */
  readonly verifier: string
}

/** `exporter`: binds the exchange to a connection by `tls-exporter` (RFC 9266). */
export function clientFirst(identity: string, exporter?: Buffer): ScramFirst {
  // RFC 5802 5.1: "=" and "," of a name are escaped.
  const name = identity.replaceAll('=', '=3D').replaceAll(',', '=2C')
  const bare = `n=${name},r=${randomBytes(18).toString('base64')}`
  const header = exporter === undefined ? 'n,,' : 'p=tls-exporter,,'
  const binding = Buffer.concat([Buffer.from(header), exporter ?? Buffer.alloc(0)])
  return { data: Buffer.from(`${header}${bare}`), bare, binding }
}

/** Passwords as they were salted for earlier logins, which takes longer than the rest of one (RFC 5802 5.1 allows it). */
export class SaltedPasswords {
  readonly #salted = new Map<string, Buffer>()

  of(password: string, salt: string, iterations: number): Buffer {
    const key = JSON.stringify([password, salt, iterations])
    const found = this.#salted.get(key)
    if (found !== undefined) return found
    const made = pbkdf2Sync(password.normalize('NFKC'), Buffer.from(salt, 'base64'), iterations, 32, 'sha256')
    this.#salted.set(key, made)
    return made
  }
}

/** Throws Error if the server's first message is none. */
export function clientFinal(
  { bare, binding }: ScramFirst,
  serverFirst: string,
  password: string,
  passwords: SaltedPasswords,
): ScramStep {
  const [, nonce, salt, iterations] =
    /^r=([\x21-\x2b\x2d-\x7e]+),s=([A-Za-z0-9+/=]+),i=([1-9]\d*)$/.exec(serverFirst) ?? []
  if (nonce === undefined || salt === undefined) throw new Error(`no server-first message of SCRAM: ${serverFirst}`)
  const ours = bare.slice(bare.indexOf(',r=') + 3)
  if (!nonce.startsWith(ours) || nonce.length === ours.length) throw new Error('the nonce does not go on with ours')
  const salted = passwords.of(password, salt, Number(iterations))
  const withoutProof = `c=${binding.toString('base64')},r=${nonce}`
  const auth = `${bare},${serverFirst},${withoutProof}`
  const clientKey = hmac(salted, 'Client Key')
  const signature = hmac(createHash('sha256').update(clientKey).digest(), auth)
  const proof = clientKey.map((byte, index) => byte ^ (signature[index] as number))
  const verifier = hmac(hmac(salted, 'Server Key'), auth).toString('base64')
  return { data: Buffer.from(`${withoutProof},p=${Buffer.from(proof).toString('base64')}`), verifier: `v=${verifier}` }
}

function hmac(key: Uint8Array, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest()
}
