/** When series of a name came or went last, and when samples went: what was found before of other names still holds. */

/** Names that are told apart; beyond that, all of them count as changed. */
const MOST_NAMES = 100_000

export class NameChanges {
  /** Grows with each change. */
  #now = 0
  /** From then on changes are known by name. */
  #since = 0
  readonly #byName = new Map<string, number>()
  readonly #byTenant = new Map<number, number>()
  /** How often samples that were stored have gone, whosever they were. */
  removals = 0

  get now(): number {
    return this.#now
  }

  note(tenant: number, name: string): void {
    this.#now++
    if (this.#byName.size >= MOST_NAMES) {
      this.#byName.clear()
      this.#since = this.#now
    }
    this.#byName.set(`${tenant} ${name}`, this.#now)
    this.#byTenant.set(tenant, this.#now)
  }

  /** Whether series of these names came or went after what was `now` then; undefined: of any name. */
  haveChanged(tenant: number, names: readonly string[] | undefined, then: number): boolean {
    if (names === undefined || then < this.#since) return (this.#byTenant.get(tenant) ?? 0) > then
    return names.some((name) => (this.#byName.get(`${tenant} ${name}`) ?? 0) > then)
  }
}
