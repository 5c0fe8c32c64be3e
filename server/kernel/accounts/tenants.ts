/** The tenants and their quotas, in memory and in the store. */
import type { Change, TenantRow } from '../../../storage/store.ts'
import type { Quota } from './quotas.ts'

export class Tenants {
  readonly #own = new Map<string, Partial<Quota>>()
  /** The limits of tenants that have none of their own, which the configuration may change. */
  readonly #defaults: () => Quota
  readonly #change: (change: Change) => void

  constructor(rows: readonly TenantRow[], defaults: () => Quota, change: (change: Change) => void) {
    for (const { name, quota } of rows) this.#own.set(name, JSON.parse(quota) as Partial<Quota>)
    this.#defaults = defaults
    this.#change = change
  }

  has(name: string): boolean {
    return this.#own.has(name)
  }

  get count(): number {
    return this.#own.size
  }

  list(): string[] {
    return [...this.#own.keys()].sort()
  }

  /** The limits of a tenant: its own, or else those of the configuration; 0 means no limit. */
  quotaOf(name: string): Quota {
    return { ...this.#defaults(), ...this.#own.get(name) }
  }

  /** Adds a tenant, or changes these limits of an existing one. */
  set(name: string, quota: Partial<Quota> = {}): void {
    const own = { ...this.#own.get(name), ...quota }
    this.#own.set(name, own)
    this.#change({ put: 'tenant', row: { name, quota: JSON.stringify(own) } })
  }

  remove(name: string): void {
    if (this.#own.delete(name)) this.#change({ remove: 'tenant', name })
  }
}
