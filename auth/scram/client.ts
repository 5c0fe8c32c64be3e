/**
 * The client's half of SCRAM-SHA-256, for Node and browsers. One object is one attempt: first, final, verify.
 * The final message authenticates the client; only `verify` authenticates the server, so use the connection after it returns.
 */
import { AuthError } from '../errors.ts'
import { formatIdentity, splitIdentity } from '../identity.ts'
import { deriveKeys, equalBytes, hmac, MIN_ITERATIONS, type ScramKeys, sha256, utf8, webCrypto, xor } from './keys.ts'
import {
  channelBindingOf,
  decodeMessage,
  encodeBase64,
  escapeName,
  parseServerFinal,
  parseServerFirst,
  TLS_EXPORTER,
} from './message.ts'

/** More iterations than this are refused: these already take seconds of the client's processor. */
export const MAX_ITERATIONS = 10_000_000

export interface ScramClientOptions {
  /** `tenant/user` or `user`. */
  readonly identity: string
  readonly password?: string | undefined
  /** The `keys` of an earlier attempt; used if the server still has the same salt and iteration count. */
  readonly keys?: ScramKeys | undefined
  /**
   * The `tls-exporter` bytes of this connection (RFC 9266), which select the method `scram-sha-256-plus`. 'not-offered' says
   * that the client has such bytes but the server does not offer the method; if a third party hid it, the server refuses.
   */
  readonly channelBinding?: Uint8Array | 'not-offered' | undefined
  /** Iterations that are computed at most for a server that has proven nothing yet; 10,000,000 unless given. */
  readonly maxIterations?: number | undefined
  /** Printable ASCII without commas; random unless given. */
  readonly nonce?: string | undefined
}

export class ScramClient {
  readonly #password: string | undefined
  readonly #nonce: string
  readonly #firstBare: string
  readonly #gs2Header: string
  readonly #exporter: Uint8Array | undefined
  readonly #maxIterations: number
  #keys: ScramKeys | undefined
  #serverSignature: Uint8Array | undefined

  /** Throws AuthError BAD_IDENTITY. */
  constructor({ identity, password, keys, channelBinding, maxIterations, nonce }: ScramClientOptions) {
    this.#password = password
    this.#keys = keys
    this.#maxIterations = maxIterations ?? MAX_ITERATIONS
    this.#nonce = nonce ?? encodeBase64(webCrypto().getRandomValues(new Uint8Array(24)))
    this.#exporter = channelBinding === 'not-offered' ? undefined : channelBinding
    this.#gs2Header = `${this.#exporter ? TLS_EXPORTER : channelBinding ? 'y' : 'n'},,`
    // The server prepares the name: the tables for that are larger than the rest of a client.
    this.#firstBare = `n=${escapeName(formatIdentity(splitIdentity(identity)))},r=${this.#nonce}`
  }

  /** The name of the method in AUTH. */
  get method(): 'scram-sha-256' | 'scram-sha-256-plus' {
    return this.#exporter ? 'scram-sha-256-plus' : 'scram-sha-256'
  }

  /** The client-first-message. */
  first(): Uint8Array {
    return utf8(this.#gs2Header + this.#firstBare)
  }

  /** The client-final-message, from the server-first-message. Throws AuthError. */
  async final(serverFirst: Uint8Array): Promise<Uint8Array> {
    const text = decodeMessage(serverFirst)
    const first = text === undefined ? undefined : parseServerFirst(text)
    if (!first) throw new AuthError('SCRAM_MALFORMED', "the server's first message does not follow RFC 5802")
    if (!first.nonce.startsWith(this.#nonce) || first.nonce.length === this.#nonce.length) {
      throw new AuthError('SCRAM_REFUSED', 'the server answered with a nonce that does not continue ours')
    }
    const keys = await this.#keysFor(first.salt, first.iterations)
    const withoutProof = `c=${encodeBase64(channelBindingOf(this.#gs2Header, this.#exporter))},r=${first.nonce}`
    const authMessage = `${this.#firstBare},${text},${withoutProof}`
    const clientSignature = await hmac(await sha256(keys.clientKey), authMessage)
    this.#serverSignature = await hmac(keys.serverKey, authMessage)
    return utf8(`${withoutProof},p=${encodeBase64(xor(keys.clientKey, clientSignature))}`)
  }

  /** Checks the server-final-message. Throws AuthError unless it proves that the server knows the password too. */
  verify(serverFinal: Uint8Array): void {
    const expected = this.#serverSignature
    this.#serverSignature = undefined
    const text = decodeMessage(serverFinal)
    const final = text === undefined ? undefined : parseServerFinal(text)
    if (!final) throw new AuthError('SCRAM_MALFORMED', "the server's final message does not follow RFC 5802")
    if ('error' in final) throw new AuthError('SCRAM_REFUSED', `the server refused: ${final.error}`)
    if (!expected || !equalBytes(final.signature, expected)) {
      throw new AuthError('SERVER_NOT_PROVEN', 'the server does not know this password: it may not be the one you mean')
    }
  }

  /** The keys for the next attempt; undefined before `final`. They are as secret as the password. */
  get keys(): ScramKeys | undefined {
    return this.#keys
  }

  async #keysFor(salt: Uint8Array, iterations: number): Promise<ScramKeys> {
    if (iterations < MIN_ITERATIONS || iterations > this.#maxIterations) {
      const range = `${MIN_ITERATIONS}..${this.#maxIterations}`
      throw new AuthError('SCRAM_REFUSED', `the server asks for ${iterations} iterations, ${range} are acceptable`)
    }
    const kept = this.#keys
    if (kept && kept.iterations === iterations && equalBytes(kept.salt, salt)) return kept
    if (this.#password === undefined) {
      throw new AuthError('SCRAM_REFUSED', 'the password was changed at the server: the kept keys no longer match it')
    }
    this.#keys = await deriveKeys(this.#password, salt, iterations)
    return this.#keys
  }
}
