/**
 * Things of instances, found by the name of a series that they may concern: a thousand that name another metric cost nothing
 * when an object with fifty series comes.
 */
export class NameIndex<T> {
  readonly #exact = new Map<string, Set<T>>()
  readonly #patterns = new Set<T>()

  /** `exactName`: undefined for a pattern, which may concern all. */
  add(exactName: string | undefined, thing: T): void {
    if (exactName === undefined) this.#patterns.add(thing)
    else this.#exact.set(exactName, (this.#exact.get(exactName) ?? new Set()).add(thing))
  }

  delete(exactName: string | undefined, thing: T): void {
    this.#patterns.delete(thing)
    const all = exactName === undefined ? undefined : this.#exact.get(exactName)
    if (exactName !== undefined && all?.delete(thing) && all.size === 0) this.#exact.delete(exactName)
  }

  *of(name: string): Generator<T> {
    yield* this.#exact.get(name) ?? []
    yield* this.#patterns
  }
}
