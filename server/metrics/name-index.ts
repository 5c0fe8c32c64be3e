/**
 * An index of bindings and instances by the metric name that they select, so that a new series costs nothing for the
 * thousands that select other names.
 */
export class NameIndex<T> {
  readonly #exact = new Map<string, Set<T>>()
  readonly #patterns = new Set<T>()

  /** `exactName` is undefined for a pattern, which may match any name. */
  add(exactName: string | undefined, thing: T): void {
    if (exactName === undefined) this.#patterns.add(thing)
    else this.#exact.set(exactName, (this.#exact.get(exactName) ?? new Set()).add(thing))
  }

  delete(exactName: string | undefined, thing: T): void {
    this.#patterns.delete(thing)
    const all = exactName === undefined ? undefined : this.#exact.get(exactName)
    if (exactName !== undefined && all?.delete(thing) && all.size === 0) this.#exact.delete(exactName)
  }

  /** Everything that may concern a series of this name. */
  *of(name: string): Generator<T> {
    yield* this.#exact.get(name) ?? []
    yield* this.#patterns
  }
}
