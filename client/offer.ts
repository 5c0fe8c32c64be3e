/** What the producer offers on a connection at present [MON 3 PRODUCER_CAPS], and who waits for it. */
import type { Capabilities } from '../protocol/monitor/capabilities.ts'

export class Offer {
  #latest: Capabilities | undefined
  #next: Promise<Capabilities>
  #waiting: { resolve(caps: Capabilities): void; reject(error: Error): void } | undefined

  constructor() {
    this.#next = this.#wait()
  }

  get latest(): Capabilities | undefined {
    return this.#latest
  }

  /** Settles with what came first since `expect` or `forget`. */
  get next(): Promise<Capabilities> {
    return this.#next
  }

  came(caps: Capabilities): void {
    this.#latest = caps
    this.#waiting?.resolve(caps)
  }

  /** Another one is to come, the latest holds until then. */
  expect(): void {
    this.#next = this.#wait()
  }

  /** What was said does not hold any more. */
  forget(): void {
    this.#latest = undefined
    this.expect()
  }

  reject(error: Error): void {
    this.#waiting?.reject(error)
  }

  #wait(): Promise<Capabilities> {
    const next = new Promise<Capabilities>((resolve, reject) => {
      this.#waiting = { resolve, reject }
    })
    next.catch(() => {})
    return next
  }
}
