/**
 * The tables of the declared kinds of rows. With a row go the few that belong to it; those of which there may be many are left to
 * removals.ts, and the audit log has more to keep (audit.ts).
 */
import type { Database, Statement } from 'better-sqlite3'
import { declarationOf, dependentsOf, ROW_KINDS, type RowKind, type RowOf } from '../rows.ts'
import type { Change, Recovered, RecoveredRows } from '../store.ts'
import type { AuditChange } from './audit.ts'
import { RowTable } from './row-table.ts'

/** A change of these tables. */
export type RowTablesChange = Exclude<
  Change,
  AuditChange | { put: 'closed' | 'recovered' } | { remove: 'instance' | 'execution' }
>

export interface RowTablesFound extends RecoveredRows, Pick<Recovered, 'fences' | 'qmfAgent'> {
  /** One about each kind of which rows are left out. */
  readonly warnings: readonly string[]
}

export class RowTables {
  readonly #tables = new Map<RowKind, RowTable>()
  /** By the kind of their owner, whose key each of them takes. */
  readonly #dependents = new Map<RowKind, readonly Statement<unknown[]>[]>()

  constructor(database: Database) {
    for (const kind of ROW_KINDS) this.#tables.set(kind, new RowTable(database, kind))
    for (const owner of ROW_KINDS) {
      const few = dependentsOf(owner, 'few').map(({ kind, by }) => this.#of(kind).removalBy(by))
      if (few.length > 0) this.#dependents.set(owner, few)
    }
  }

  change(change: RowTablesChange): void {
    if ('put' in change) {
      this.#of(change.put).put(change.row)
      return
    }
    const key = this.#of(change.remove).remove(change)
    for (const statement of this.#dependents.get(change.remove) ?? []) statement.run(key)
  }

  /** Prepares the removal of some of the many rows that go with an owner. Each takes its id twice and the number of rows. */
  removalsOfSome(owner: RowKind): Statement<unknown[]>[] {
    return dependentsOf(owner, 'many').map(({ kind, by }) => this.#of(kind).removalOfSome(by))
  }

  /** Throws StorageError DAMAGED. */
  recover(): RowTablesFound {
    const found: Record<string, readonly object[]> = {}
    const warnings: string[] = []
    for (const kind of ROW_KINDS) {
      const { recoveredAs, leftOut, hasChecksum } = declarationOf(kind)
      if (recoveredAs === undefined) continue
      const rows = this.#of(kind).all()
      const { damaged } = rows
      found[recoveredAs] = leftOut === undefined ? this.#of(kind).sound(rows) : rows.sound
      if (leftOut === undefined || damaged.length === 0) continue
      const keys = damaged.map(({ key }) => key).join(', ')
      const isWrong = hasChecksum ? 'do not match their checksums' : 'are damaged'
      warnings.push(`${recoveredAs} ${isWrong} (${keys}): ${leftOut}`)
    }
    const fences = this.#of('fence')
    const agents = this.#of('qmf agent')
    return {
      // Their names and types are those of the declarations.
      ...(found as unknown as RecoveredRows),
      fences: fences.sound(fences.all()).map(({ sensor }) => sensor),
      qmfAgent: agents.sound(agents.all())[0],
      warnings,
    }
  }

  #of<Kind extends RowKind>(kind: Kind): RowTable<RowOf<Kind>> {
    return this.#tables.get(kind) as RowTable<RowOf<Kind>>
  }
}
