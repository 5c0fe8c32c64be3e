/**
 * Lets few requests begin in each turn of the event loop: hundreds that come at once would stop everybody else for as long as
 * all of them take, also if each is refused. Those that wait begin in the order in which they came.
 */

import type { RequestListener } from 'node:http'

/** A request that is refused takes about half a millisecond with what the system does for it. */
const PER_TURN = 8

export class Pace {
  readonly #defer: (turn: () => void) => void
  #begun = 0
  #waiting: (() => void)[] = []
  #isDeferred = false

  /** `defer` calls back in the next turn of the event loop, after its input and output. */
  constructor(defer: (turn: () => void) => void = setImmediate) {
    this.#defer = defer
  }

  /** Calls back when the request may begin: at once, or in a later turn. */
  begin(request: () => void): void {
    this.#waiting.push(request)
    this.#beginSome()
  }

  /** The same listener at this pace. A request whose connection has ended while it waited is dropped. */
  paced(listener: RequestListener): RequestListener {
    return (request, response) => {
      this.begin(() => {
        if (!request.socket.destroyed) listener(request, response)
      })
    }
  }

  #beginSome(): void {
    while (this.#begun < PER_TURN) {
      const next = this.#waiting.shift()
      if (next === undefined) break
      this.#begun++
      next()
    }
    if (this.#begun === 0 || this.#isDeferred) return
    this.#isDeferred = true
    this.#defer(() => {
      this.#isDeferred = false
      this.#begun = 0
      this.#beginSome()
    })
  }
}
