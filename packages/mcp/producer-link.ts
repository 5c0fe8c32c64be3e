/** The connection of one token to the server: made when it is needed, and again after it has ended for good. */
import type { Consumer } from '../../client/index.ts'

export class ProducerLink {
  readonly #open: () => Promise<Consumer>
  readonly #ended: (error: Error) => void
  #opening: Promise<Consumer> | undefined
  #isClosed = false

  /** `ended` is called with the reason when a connection has ended for good, such as that of a token that was revoked. */
  constructor(open: () => Promise<Consumer>, ended: (error: Error) => void = () => {}) {
    this.#open = open
    this.#ended = ended
  }

  /** Rejects with ConnectionError. */
  consumer(): Promise<Consumer> {
    if (this.#isClosed) return Promise.reject(new Error('the session has ended'))
    this.#opening ??= this.#connect()
    return this.#opening
  }

  async #connect(): Promise<Consumer> {
    try {
      const consumer = await this.#open()
      consumer.on('closed', (error) => {
        this.#opening = undefined
        if (error !== undefined) this.#ended(error)
      })
      return consumer
    } catch (error) {
      this.#opening = undefined
      throw error
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true
    const consumer = await this.#opening?.catch(() => undefined)
    await consumer?.close()
  }
}
