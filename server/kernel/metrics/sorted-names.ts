/**
 * A map by name that is kept in order, so that a pattern walks only the names with its literal prefix. Names stand in short
 * pages: one more among 100,000 moves a few hundred, not all. Order is that of UTF-16 units, as `sort()` gives it.
 */
const MAX_PAGE = 512

export class SortedNames<T> {
  readonly #values = new Map<string, T>()
  /** Names in ascending order, over all pages; no page is empty. */
  readonly #pages: string[][] = []
  /** Counts the changes of the pages: a walk that finds another number looks for its place again. */
  #changes = 0

  get size(): number {
    return this.#values.size
  }

  get(name: string): T | undefined {
    return this.#values.get(name)
  }

  set(name: string, value: T): void {
    const isNew = !this.#values.has(name)
    this.#values.set(name, value)
    if (isNew) this.#insert(name)
  }

  delete(name: string): boolean {
    if (!this.#values.delete(name)) return false
    this.#changes++
    const at = this.#pageOf(name)
    const page = this.#pages[at] as string[]
    page.splice(placeIn(page, name), 1)
    if (page.length === 0) this.#pages.splice(at, 1)
    return true
  }

  /** The values of all names with a prefix and above `after`, ascending. They may change between two steps. */
  *values(prefix = '', after = ''): Generator<T> {
    let last = after
    let changes = -1
    let [at, place] = [0, 0]
    for (;;) {
      if (changes !== this.#changes) {
        changes = this.#changes
        const from = prefix > last ? prefix : last
        at = this.#pageOf(from)
        place = placeIn(this.#pages[at] ?? [], from)
        if (this.#pages[at]?.[place] === last) place++
      }
      const page = this.#pages[at]
      if (page === undefined) return
      const name = page[place]
      if (name === undefined) {
        at++
        place = 0
        continue
      }
      if (!name.startsWith(prefix)) return
      place++
      last = name
      yield this.#values.get(name) as T
    }
  }

  #insert(name: string): void {
    this.#changes++
    const at = Math.min(this.#pageOf(name), this.#pages.length - 1)
    const page = this.#pages[at]
    if (page === undefined) {
      this.#pages.push([name])
      return
    }
    page.splice(placeIn(page, name), 0, name)
    if (page.length > MAX_PAGE) this.#pages.splice(at + 1, 0, page.splice(MAX_PAGE >> 1))
  }

  /** The index of the first page whose last name is not below `name`; the number of pages if there is none. */
  #pageOf(name: string): number {
    let [low, high] = [0, this.#pages.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if ((this.#pages[middle]?.at(-1) as string) < name) low = middle + 1
      else high = middle
    }
    return low
  }
}

/** The index of the first name in a page that is not below `name`. */
function placeIn(page: readonly string[], name: string): number {
  let [low, high] = [0, page.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((page[middle] as string) < name) low = middle + 1
    else high = middle
  }
  return low
}
