/**
 * The server's half of SCRAM-SHA-256 and SCRAM-SHA-256-PLUS: one object is one exchange, client-first then client-final.
 * Nothing that a peer sends makes it throw. A user that does not exist goes through the same steps with the same work: the
 * salt is derived from the server's secret, so it is the same for every attempt.
 */
import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { equalBytes, type ScramVerifier, utf8, xor } from './keys.ts'
import {
  type ClientFirst,
  channelBindingOf,
  decodeMessage,
  encodeBase64,
  parseClientFinal,
  parseClientFirst,
  TLS_EXPORTER,
} from './message.ts'

const SALT_BYTES = 16
const KEY_BYTES = 32

export interface ScramServerOptions {
  /** At least 16 random bytes, generated once per server. */
  readonly serverSecret: Uint8Array
  /** The iteration count reported for an unknown user. */
  readonly iterations: number
  /** Looks up a username. Undefined ends the exchange at once; a missing verifier (an unknown user) does not. */
  readonly find: (username: string) => ScramSubject | undefined
  /** The `tls-exporter` bytes of this connection, on which the method with channel binding is offered. */
  readonly exporter?: Uint8Array | undefined
  /** The exchange uses the method with channel binding. */
  readonly isBound?: boolean | undefined
  /** The server's part of the nonce; random unless given. */
  readonly nonce?: string | undefined
}

export interface ScramSubject {
  /** The canonical form of the identity. */
  readonly identity: string
  readonly verifier: ScramVerifier | undefined
}

/** `proven` means that the client knows the password; `data` (server-final) authenticates the server and must still be sent. */
export type ScramStep =
  | { readonly outcome: 'continue' | 'proven'; readonly data: Uint8Array }
  | { readonly outcome: 'failed' }

const FAILED: ScramStep = { outcome: 'failed' }

interface Pending {
  readonly clientFirst: ClientFirst
  readonly serverFirst: string
  readonly nonce: string
  readonly verifier: ScramVerifier
  readonly known: boolean
}

export class ScramServer {
  readonly #options: ScramServerOptions
  #pending: Pending | undefined
  #ended = false

  constructor(options: ScramServerOptions) {
    this.#options = options
  }

  /** Takes the next message of the client. After `failed` or `proven` the exchange is over: more messages yield `failed`. */
  step(data: Uint8Array): ScramStep {
    if (this.#ended) return FAILED
    const pending = this.#pending
    const text = decodeMessage(data)
    const step = text === undefined ? FAILED : pending ? this.#final(pending, text) : this.#first(text)
    this.#ended = step.outcome !== 'continue'
    return step
  }

  #first(text: string): ScramStep {
    const clientFirst = parseClientFirst(text)
    if (!clientFirst || !this.#mayBegin(clientFirst.binding)) return FAILED
    const subject = this.#options.find(clientFirst.username)
    if (!subject) return FAILED
    const mock = mockVerifier(this.#options.serverSecret, subject.identity, this.#options.iterations)
    const verifier = subject.verifier ?? mock
    const nonce = clientFirst.nonce + (this.#options.nonce ?? encodeBase64(randomBytes(24)))
    const serverFirst = `r=${nonce},s=${encodeBase64(verifier.salt)},i=${verifier.iterations}`
    this.#pending = { clientFirst, serverFirst, nonce, verifier, known: subject.verifier !== undefined }
    return { outcome: 'continue', data: utf8(serverFirst) }
  }

  /**
   * `y` is refused where the server offers channel binding: the client supports it but did not see the offer, so a third party
   * has changed the list of methods. RFC 5802 section 6
   */
  #mayBegin(binding: string): boolean {
    const { exporter, isBound } = this.#options
    if (isBound) return binding === TLS_EXPORTER && exporter !== undefined
    return binding === 'n' || (binding === 'y' && !exporter)
  }

  #final({ clientFirst, serverFirst, nonce, verifier, known }: Pending, text: string): ScramStep {
    const message = parseClientFinal(text)
    if (!message || message.nonce !== nonce || message.proof.length !== KEY_BYTES) return FAILED
    const { exporter, isBound } = this.#options
    const binding = channelBindingOf(clientFirst.gs2Header, isBound ? exporter : undefined)
    if (!equalBytes(message.channelBinding, binding)) return FAILED
    const authMessage = `${clientFirst.bare},${serverFirst},${message.withoutProof}`
    const clientKey = xor(message.proof, hmac(verifier.storedKey, authMessage))
    const storedKey = createHash('sha256').update(clientKey).digest()
    const serverSignature = hmac(verifier.serverKey, authMessage)
    if (!timingSafeEqual(storedKey, verifier.storedKey) || !known) return FAILED
    return { outcome: 'proven', data: utf8(`v=${encodeBase64(serverSignature)}`) }
  }
}

function mockVerifier(secret: Uint8Array, identity: string, iterations: number): ScramVerifier {
  const salt = hmac(secret, `salt ${identity}`).subarray(0, SALT_BYTES)
  return {
    salt,
    iterations,
    storedKey: hmac(secret, `stored ${identity}`),
    serverKey: hmac(secret, `server ${identity}`),
  }
}

function hmac(key: Uint8Array, text: string): Uint8Array {
  return createHmac('sha256', key).update(text).digest()
}
