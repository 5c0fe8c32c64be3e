/**
 * The inlets of all queues that are open: they stay so while feeds have their turn, or a wing its step, and are closed together at the
 * end of it.
 */
export class Inlets {
  /** Turns and steps that have begun: a step may be done within a turn. */
  #begun = 0
  readonly #open: { close(): void }[] = []

  begin(): void {
    this.#begun++
  }

  end(): void {
    this.#begun--
    if (this.#begun > 0) return
    for (let inlet = this.#open.pop(); inlet !== undefined; inlet = this.#open.pop()) inlet.close()
  }

  /** Returns false if it has to be closed at once. */
  keep(inlet: { close(): void }): boolean {
    const mayStayOpen = this.#begun > 0
    if (mayStayOpen) this.#open.push(inlet)
    return mayStayOpen
  }
}
