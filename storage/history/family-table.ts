/** What was said of metrics, in fresh.db: it is stored with the next commit, and goes with the last series of its metric. */
import type { Database, Statement } from 'better-sqlite3'
import type { HistoryFamily, HistoryFamilyPlace, HistoryMetric } from './store.ts'

/** Waits to be stored. */
interface Said extends HistoryMetric {
  readonly tenant: number
}

type FamilyRow = HistoryFamily & HistoryFamilyPlace

export class FamilyTable {
  readonly #of: Statement<unknown[], HistoryFamily>
  readonly #after: Statement<unknown[], FamilyRow>
  readonly #put: Statement
  readonly #remove: Statement
  /** By tenant and native name. */
  readonly #said = new Map<string, Said>()

  constructor(database: Database) {
    this.#of = database.prepare<unknown[], HistoryFamily>(
      'select name, type, help, unit from family where tenant = @tenant and native = @native order by name',
    )
    this.#after = database.prepare<unknown[], FamilyRow>(
      'select native, name, type, help, unit from family where tenant = @tenant and (native, name) > (@native, @name) order by native, name limit @most',
    )
    this.#put = database.prepare('insert into family values (null, ?, ?, ?, ?, ?, ?)')
    this.#remove = database.prepare('delete from family where tenant = ? and native = ?')
  }

  /** What is stored already costs no write. */
  describe(tenant: number, { native, families }: HistoryMetric): void {
    const sorted = families.toSorted((one, other) => (one.name < other.name ? -1 : 1))
    const stored = this.#of.all({ tenant, native })
    const isSame = (family: HistoryFamily, at: number): boolean => {
      const { name, type, help, unit } = stored[at] ?? {}
      return name === family.name && type === family.type && help === family.help && unit === family.unit
    }
    const key = keyOf(tenant, native)
    if (stored.length === sorted.length && sorted.every(isSame)) this.#said.delete(key)
    else this.#said.set(key, { tenant, native, families: sorted })
  }

  /** Those that are stored. */
  after(tenant: number, place: HistoryFamilyPlace | undefined, most: number): FamilyRow[] {
    const { native = '', name = '' } = place ?? {}
    return this.#after.all({ tenant, native, name, most })
  }

  /** What was said last of a metric, stored or not; empty if nothing was. */
  of(tenant: number, native: string): readonly HistoryFamily[] {
    return this.#said.get(keyOf(tenant, native))?.families ?? this.#of.all({ tenant, native })
  }

  /** Whether something waits to be stored. */
  get isChanged(): boolean {
    return this.#said.size > 0
  }

  /** Stores what waits, in the transaction of the caller. */
  store(): void {
    for (const { tenant, native, families } of this.#said.values()) {
      this.#remove.run(tenant, native)
      for (const { name, type, help, unit } of families) this.#put.run(tenant, native, name, type, help, unit)
    }
  }

  /** The transaction of `store` is durable. */
  stored(): void {
    this.#said.clear()
  }

  /** Removes what was said of a metric, in the transaction of the caller. */
  remove(tenant: number, native: string): void {
    this.#remove.run(tenant, native)
  }

  /** What waits of a tenant is not stored any more. */
  forget(tenant: number): void {
    for (const [key, said] of this.#said) if (said.tenant === tenant) this.#said.delete(key)
  }
}

function keyOf(tenant: number, native: string): string {
  return `${tenant} ${native}`
}
