/**
 * A SCRAM-SHA-256 client written from RFC 5802, 7677 and 9266 with node:crypto alone; it shares no line with auth/scram.
 * It builds whatever it is told to, wrong messages too: that is what it is for.
 */
import { createHash, createHmac, pbkdf2Sync, randomBytes, timingSafeEqual } from 'node:crypto'

export interface RfcScramOptions {
  readonly username: string
  readonly password: string
  /** The gs2 header; `p=tls-exporter,,` with an exporter and `n,,` without unless given. */
  readonly gs2Header?: string
  /** 32 bytes: -PLUS. */
  readonly exporter?: Uint8Array | undefined
  readonly nonce?: string
}

export class RfcScram {
  readonly method: string
  readonly #options: RfcScramOptions
  readonly #gs2Header: string
  readonly #clientFirstBare: string
  #serverSignature: Buffer = Buffer.alloc(0)

  constructor(options: RfcScramOptions) {
    this.#options = options
    this.method = options.exporter ? 'scram-sha-256-plus' : 'scram-sha-256'
    this.#gs2Header = options.gs2Header ?? (options.exporter ? 'p=tls-exporter,,' : 'n,,')
    const name = options.username.replace(/[=,]/g, (character) => (character === '=' ? '=3D' : '=2C'))
    this.#clientFirstBare = `n=${name},r=${options.nonce ?? randomBytes(18).toString('base64')}`
  }

  clientFirst(): Buffer {
    return Buffer.from(this.#gs2Header + this.#clientFirstBare)
  }

  clientFinal(serverFirst: Uint8Array): Buffer {
    const challenge = Buffer.from(serverFirst).toString()
    const [nonce, salt, iterations] = ['r', 's', 'i'].map((key) => attribute(challenge, key))
    const salted = pbkdf2Sync(this.#options.password, Buffer.from(salt!, 'base64'), Number(iterations), 32, 'sha256')
    const clientKey = hmac(salted, 'Client Key')
    const storedKey = createHash('sha256').update(clientKey).digest()
    const cbindInput = Buffer.concat([Buffer.from(this.#gs2Header), this.#options.exporter ?? Buffer.alloc(0)])
    const withoutProof = `c=${cbindInput.toString('base64')},r=${nonce}`
    const authMessage = [this.#clientFirstBare, challenge, withoutProof].join(',')
    this.#serverSignature = hmac(hmac(salted, 'Server Key'), authMessage)
    const signature = hmac(storedKey, authMessage)
    const proof = Buffer.from(clientKey.map((byte, i) => byte ^ signature[i]!))
    return Buffer.from(`${withoutProof},p=${proof.toString('base64')}`)
  }

  /** Whether the server has shown that it knows the password too. */
  isProvenBy(serverFinal: Uint8Array): boolean {
    const signature = Buffer.from(attribute(Buffer.from(serverFinal).toString(), 'v'), 'base64')
    return signature.length === this.#serverSignature.length && timingSafeEqual(signature, this.#serverSignature)
  }
}

function attribute(message: string, key: string): string {
  const found = message.split(',').find((each) => each.startsWith(`${key}=`))
  if (found === undefined) throw new Error(`no ${key}= in ${message}`)
  return found.slice(2)
}

function hmac(key: Uint8Array, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest()
}
