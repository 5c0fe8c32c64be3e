/** Messages behind each other in bodies that a broker takes: longer ones it drops without a word. */

export const MAX_BODY_BYTES = 65_536

export class Bodies {
  #messages: Uint8Array[] = []
  #length = 0

  /** Gives the body that is full now, where the message does not fit behind those before it. */
  add(message: Uint8Array): Uint8Array | undefined {
    const full = this.#length + message.length > MAX_BODY_BYTES ? this.rest() : undefined
    this.#messages.push(message)
    this.#length += message.length
    return full
  }

  /** Everything that was given out in no body yet; undefined: nothing. */
  rest(): Uint8Array | undefined {
    if (this.#length === 0) return undefined
    const body = new Uint8Array(this.#length)
    let offset = 0
    for (const message of this.#messages) {
      body.set(message, offset)
      offset += message.length
    }
    this.#messages = []
    this.#length = 0
    return body
  }
}
