/**
 * The first 8 bytes of each direction: `AMQP`, then for 0-10 `1 1 0 10`. A server of another version answers with its own
 * and closes.
 */
import { ProtocolError } from '../errors.ts'

export const PROTOCOL_HEADER: Uint8Array = Uint8Array.of(0x41, 0x4d, 0x51, 0x50, 1, 1, 0, 10)

/** Collects the header of the server, cut anywhere. */
export class HeaderReader {
  readonly #bytes = new Uint8Array(PROTOCOL_HEADER.length)
  #length = 0

  /** Gives how many bytes it took. Throws ProtocolError as soon as they cannot be of AMQP at all. */
  push(bytes: Uint8Array): number {
    const count = Math.min(bytes.length, this.#bytes.length - this.#length)
    for (let i = 0; i < count; i++) {
      const byte = bytes[i]!
      if (this.#length < 4 && byte !== PROTOCOL_HEADER[this.#length]) {
        throw new ProtocolError('UNKNOWN_MESSAGE', 'what answers there does not speak AMQP', this.#length)
      }
      this.#bytes[this.#length++] = byte
    }
    return count
  }

  get isComplete(): boolean {
    return this.#length === this.#bytes.length
  }

  /** What another version calls itself, for people; undefined: it is 0-10. */
  get otherVersion(): string | undefined {
    const bytes = this.#bytes
    if (PROTOCOL_HEADER.every((byte, i) => byte === bytes[i])) return undefined
    const [id, ...version] = bytes.subarray(4)
    // 0-9 and older say `1 1` and two numbers; 0-9-1 and 1.0 what follows (0: AMQP, 3: SASL) and three.
    return `AMQP ${(id === 1 ? version.slice(1) : version).join('-')}`
  }
}
