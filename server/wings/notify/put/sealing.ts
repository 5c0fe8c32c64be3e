/** What is secret of a notifier that a user has put lies in the store sealed, with a key that follows from the secret of the data. */
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'

const ALGORITHM = 'aes-256-gcm'
const NONCE_BYTES = 12
const TAG_BYTES = 16

export class Sealing {
  readonly #key: Uint8Array

  /** `key`: 32 bytes. */
  constructor(key: Uint8Array) {
    this.#key = key
  }

  /** What is sealed for one place cannot be opened at another. */
  seal(place: string, text: string): Uint8Array {
    const nonce = randomBytes(NONCE_BYTES)
    const cipher = createCipheriv(ALGORITHM, this.#key, nonce).setAAD(Buffer.from(place))
    return Buffer.concat([nonce, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()])
  }

  /** Undefined if it was sealed with another key, for another place, or is damaged. */
  open(place: string, sealed: Uint8Array): string | undefined {
    if (sealed.length < NONCE_BYTES + TAG_BYTES) return undefined
    const nonce = sealed.subarray(0, NONCE_BYTES)
    const tag = sealed.subarray(sealed.length - TAG_BYTES)
    const decipher = createDecipheriv(ALGORITHM, this.#key, nonce, { authTagLength: TAG_BYTES })
    decipher.setAAD(Buffer.from(place)).setAuthTag(tag)
    try {
      const opened = decipher.update(sealed.subarray(NONCE_BYTES, sealed.length - TAG_BYTES))
      return Buffer.concat([opened, decipher.final()]).toString()
    } catch {
      return undefined
    }
  }
}
