/** The inlets of all queues that are open: they stay so while feeds have their turn, and are closed together at its end. */
export class Inlets {
  #mayStayOpen = false
  readonly #open: { close(): void }[] = []

  begin(): void {
    this.#mayStayOpen = true
  }

  end(): void {
    this.#mayStayOpen = false
    for (let inlet = this.#open.pop(); inlet !== undefined; inlet = this.#open.pop()) inlet.close()
  }

  /** Returns false if it has to be closed at once. */
  keep(inlet: { close(): void }): boolean {
    if (this.#mayStayOpen) this.#open.push(inlet)
    return this.#mayStayOpen
  }
}
