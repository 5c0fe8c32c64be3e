/**
 * What has arrived and was not taken yet, as an async iterator. It never refuses an item; above `limit` it asks to be
 * spared (`hold`), and it asks for more when it has fallen to half of that.
 */
export interface InboxOptions {
  readonly limit: number
  readonly hold: (isHeld: boolean) => void
  /** The reader has left the loop. */
  readonly left: () => void
}

interface Waiting<T> {
  resolve(result: IteratorResult<T, undefined>): void
  reject(error: Error): void
}

export class Inbox<T> implements AsyncIterableIterator<T, undefined> {
  readonly #options: InboxOptions
  readonly #waiting: Waiting<T>[] = []
  #items: T[] = []
  /** Items before this one were taken. */
  #taken = 0
  #isHeld = false
  #end: { readonly error: Error | undefined } | undefined

  constructor(options: InboxOptions) {
    this.#options = options
  }

  push(item: T): void {
    if (this.#end) return
    const waiting = this.#waiting.shift()
    if (waiting) waiting.resolve({ done: false, value: item })
    else this.#items.push(item)
    if (this.#items.length - this.#taken > this.#options.limit) this.#hold(true)
  }

  /** Nothing more comes. What is here can still be taken; then the loop ends, or throws `error`. */
  end(error?: Error): void {
    if (this.#end) return
    this.#end = { error }
    for (const waiting of this.#waiting.splice(0)) settle(waiting, error)
  }

  next(): Promise<IteratorResult<T, undefined>> {
    if (this.#taken < this.#items.length) return Promise.resolve({ done: false, value: this.#take() })
    return new Promise((resolve, reject) => {
      if (this.#end) settle({ resolve, reject }, this.#end.error)
      else this.#waiting.push({ resolve, reject })
    })
  }

  /** Ends the loop from either side; what was not taken is forgotten. */
  return(): Promise<IteratorResult<T, undefined>> {
    this.#items = []
    this.#taken = 0
    this.end()
    this.#hold(false)
    this.#options.left()
    return Promise.resolve({ done: true, value: undefined })
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  #take(): T {
    const item = this.#items[this.#taken++]!
    const left = this.#items.length - this.#taken
    // Moving the rest down now and then is cheaper than shift() each time.
    if (left <= this.#taken) {
      this.#items = this.#items.slice(this.#taken)
      this.#taken = 0
    }
    if (left <= this.#options.limit / 2) this.#hold(false)
    return item
  }

  #hold(isHeld: boolean): void {
    if (this.#isHeld === isHeld) return
    this.#isHeld = isHeld
    this.#options.hold(isHeld)
  }
}

function settle<T>({ resolve, reject }: Waiting<T>, error: Error | undefined): void {
  if (error) reject(error)
  else resolve({ done: true, value: undefined })
}
