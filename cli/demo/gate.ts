/** Where the consumer waits while it rests. */
export class Gate {
  #opened: Promise<void> = Promise.resolve()
  #open: (() => void) | undefined

  /** Settles when it is open. */
  get passed(): Promise<void> {
    return this.#opened
  }

  close(): void {
    if (this.#open !== undefined) return
    this.#opened = new Promise((resolve) => {
      this.#open = resolve
    })
  }

  open(): void {
    this.#open?.()
    this.#open = undefined
  }
}
