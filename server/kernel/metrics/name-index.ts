/**
 * An index of bindings and instances by what they may select, so that a new series costs nothing for the thousands that
 * select others: those of one tenant are never asked about a series of another, unless they are an admin's; and a pattern is
 * asked only about names that begin with what stands before its first `*`.
 */
import { ADMIN_ROLE, type Identity, type Owner } from '../../../auth/permissions.ts'
import { isPattern, literalPrefix } from './pattern.ts'

export class NameIndex<T> {
  readonly #byTenant = new Map<string, Names<T>>()
  /** The things of admins, who may read what any tenant owns. */
  readonly #ofAdmins = new Names<T>()
  readonly #places = new Map<T, Names<T>>()

  /** Adds a thing that selects a name or pattern for a reader; or moves it, if the reader has another role than before. */
  add(name: string, { role, tenant }: Identity, thing: T): void {
    const names = role === ADMIN_ROLE ? this.#ofAdmins : (this.#byTenant.get(tenant) ?? new Names<T>())
    if (this.#places.get(thing) === names) return
    this.delete(name, thing)
    if (names !== this.#ofAdmins) this.#byTenant.set(tenant, names)
    names.add(name, thing)
    this.#places.set(thing, names)
  }

  delete(name: string, thing: T): void {
    this.#places.get(thing)?.delete(name, thing)
    this.#places.delete(thing)
  }

  /** Everything that may select a metric of this name and owner. Things may come and go between two steps. */
  *of(name: string, owner: Owner): Generator<T> {
    yield* this.#ofAdmins.of(name)
    if (owner !== 'producer') yield* this.#byTenant.get(owner.tenant)?.of(name) ?? []
    else for (const names of this.#byTenant.values()) yield* names.of(name)
  }
}

/** Things by the name that they select, or by the literal prefix of their pattern. */
class Names<T> {
  readonly #exact = new Map<string, Set<T>>()
  readonly #prefixes = new Map<string, Set<T>>()
  /** The lengths of all prefixes, each with the number of prefixes that have it. */
  readonly #lengths = new Map<number, number>()

  add(name: string, thing: T): void {
    const [sets, key] = this.#setsOf(name)
    const set = sets.get(key)
    if (set !== undefined) {
      set.add(thing)
      return
    }
    sets.set(key, new Set([thing]))
    if (sets === this.#prefixes) this.#lengths.set(key.length, (this.#lengths.get(key.length) ?? 0) + 1)
  }

  delete(name: string, thing: T): void {
    const [sets, key] = this.#setsOf(name)
    const set = sets.get(key)
    if (!set?.delete(thing) || set.size > 0) return
    sets.delete(key)
    if (sets !== this.#prefixes) return
    const left = (this.#lengths.get(key.length) ?? 1) - 1
    if (left === 0) this.#lengths.delete(key.length)
    else this.#lengths.set(key.length, left)
  }

  *of(name: string): Generator<T> {
    yield* this.#exact.get(name) ?? []
    for (const length of this.#lengths.keys()) {
      if (length <= name.length) yield* this.#prefixes.get(name.slice(0, length)) ?? []
    }
  }

  #setsOf(name: string): [Map<string, Set<T>>, string] {
    return isPattern(name) ? [this.#prefixes, literalPrefix(name)] : [this.#exact, name]
  }
}
