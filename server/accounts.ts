/** The users of all tenants, in memory and in the store. Ids are never given twice [MON 5]. */
import type { Account, Accounts } from '../auth/mechanism.ts'
import type { Change, UserRow } from '../storage/store.ts'

export class AccountBook implements Accounts {
  readonly #users = new Map<string, UserRow>()
  readonly #tenants = new Set<string>()
  readonly #change: (change: Change) => void
  #nextId: number

  constructor(users: readonly UserRow[], tenants: readonly string[], nextId: number, change: (change: Change) => void) {
    for (const user of users) this.#users.set(keyOf(user.tenant, user.name), user)
    for (const tenant of tenants) this.#tenants.add(tenant)
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

  /** Ascending by tenant and name. */
  list(): Account[] {
    return [...this.#users.entries()].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, user]) => user)
  }

  /** Adds a user, and its tenant if it is new. The name is free: the caller looked. */
  add(user: Omit<UserRow, 'id'>): Account {
    const row = { ...user, id: this.#nextId++ }
    if (!this.#tenants.has(row.tenant)) {
      this.#tenants.add(row.tenant)
      this.#change({ put: 'tenant', row: { name: row.tenant } })
    }
    this.#put(row)
    return row
  }

  /** Replaces what proves who a user is. */
  setVerifiers(account: Account, verifiers: Pick<UserRow, 'bcrypt' | 'scram'>): void {
    this.#put({ ...account, ...verifiers })
  }

  #put(row: UserRow): void {
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
