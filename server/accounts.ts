/** The users of all tenants, in memory and in the store. Ids are never given twice [MON 5]. */
import type { Account, Accounts } from '../auth/mechanism.ts'
import type { Identity } from '../auth/permissions.ts'
import type { Change, TenantRow, UserRow } from '../storage/store.ts'

export class AccountBook implements Accounts {
  readonly #users = new Map<string, UserRow>()
  readonly #tenants = new Set<string>()
  readonly #identities = new Map<number, { userId: number; tenant: string; name: string; role: string }>()
  readonly #change: (change: Change) => void
  #nextId: number

  constructor(
    users: readonly UserRow[],
    tenants: readonly TenantRow[],
    nextId: number,
    change: (change: Change) => void,
  ) {
    for (const user of users) this.#users.set(keyOf(user.tenant, user.name), user)
    for (const { name } of tenants) this.#tenants.add(name)
    this.#nextId = nextId
    this.#change = change
  }

  get size(): number {
    return this.#users.size
  }

  find(tenant: string, name: string): Account | undefined {
    return this.#users.get(keyOf(tenant, name))
  }

  byId(id: number): Account | undefined {
    for (const user of this.#users.values()) if (user.id === id) return user
    return undefined
  }

  /** The one object that stands for this user wherever it is kept: what of it changes, changes everywhere. */
  identity({ id, tenant, name, role }: Account): Identity {
    let identity = this.#identities.get(id)
    if (identity === undefined) {
      identity = { userId: id, tenant, name, role }
      this.#identities.set(id, identity)
    }
    return identity
  }

  /** Ascending by tenant and name. */
  list(): Account[] {
    return [...this.#users.entries()].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, user]) => user)
  }

  /** Adds a user, and its tenant if it is new. The name is free: the caller looked. */
  add(user: Omit<UserRow, 'id'>): Account {
    const row = { ...user, id: this.#nextId++ }
    if (!this.#tenants.has(row.tenant)) {
      this.#tenants.add(row.tenant)
      this.#change({ put: 'tenant', row: { name: row.tenant, quota: '{}' } })
    }
    this.#put(row)
    return row
  }

  /** Replaces what proves who a user is. */
  setVerifiers(account: Account, verifiers: Pick<UserRow, 'bcrypt' | 'scram'>): void {
    this.#put({ ...account, ...verifiers })
  }

  #put(row: UserRow): void {
    const identity = this.#identities.get(row.id)
    if (identity !== undefined) identity.role = row.role
    this.#users.set(keyOf(row.tenant, row.name), row)
    this.#change({ put: 'user', row })
  }

  remove(account: Account): void {
    this.#users.delete(keyOf(account.tenant, account.name))
    this.#change({ remove: 'user', id: account.id })
  }
}

function keyOf(tenant: string, name: string): string {
  return `${tenant}/${name}`
}
