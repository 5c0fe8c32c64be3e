/**
 * What has arrived and was not taken yet, in its order. It never refuses an item; above `limit` it asks to be spared
 * (`hold`), and it asks for more when it has fallen to half of that.
 */
export interface InboxOptions {
  readonly limit: number
  readonly hold: (isHeld: boolean) => void
}

export class Inbox<T> {
  readonly #options: InboxOptions
  #items: T[] = []
  /** Items before this one were taken. */
  #taken = 0
  #isHeld = false
  #wake: (() => void) | undefined

  constructor(options: InboxOptions) {
    this.#options = options
  }

  get length(): number {
    return this.#items.length - this.#taken
  }

  get isHeld(): boolean {
    return this.#isHeld
  }

  push(item: T): void {
    this.#items.push(item)
    if (this.length > this.#options.limit) this.#hold(true)
    this.wake()
  }

  /** The oldest, or undefined. */
  take(): T | undefined {
    if (this.#taken === this.#items.length) return undefined
    const item = this.#items[this.#taken++]
    // Moving the rest down now and then is cheaper than shift() each time.
    if (this.length <= this.#taken) {
      this.#items = this.#items.slice(this.#taken)
      this.#taken = 0
    }
    if (this.length <= this.#options.limit / 2) this.#hold(false)
    return item
  }

  /** The one that was taken last, to be taken again. */
  putBack(item: T): void {
    this.#items.splice(this.#taken, 0, item)
  }

  clear(): void {
    this.#items = []
    this.#taken = 0
    this.#hold(false)
  }

  /** Settles when something may have arrived, or `wake` is called. For one reader at a time. */
  arrived(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve
    })
  }

  wake(): void {
    this.#wake?.()
    this.#wake = undefined
  }

  #hold(isHeld: boolean): void {
    if (this.#isHeld === isHeld) return
    this.#isHeld = isHeld
    this.#options.hold(isHeld)
  }
}
