/** The users of all tenants, in memory and in the store. Ids are never reused [MON 5]. */
import type { Account, Accounts } from '../../../auth/mechanism.ts'
import type { Identity } from '../../../auth/permissions.ts'
import type { Change, UserRow } from '../../../storage/store.ts'

/** The part of the tenants that adding users needs. */
export interface TenantLookup {
  has(name: string): boolean
  set(name: string): void
}

/** Whether a user is one of the server itself in a tenant, which goes with the tenant. Nobody can log in as it, or add one. */
export function isOwnUser({ name }: Pick<UserRow, 'name'>): boolean {
  return name.endsWith(':')
}

/** What the names of the users of drains and notifiers begin with. */
export const OWN_USER_PREFIXES = { drain: 'drain:', notify: 'notify:' } as const

/** Whether the server has made a user for a channel of its own: nobody can log in as it, whatever role it has. */
export function hasNoLogin(user: Pick<UserRow, 'name'>): boolean {
  return isOwnUser(user) || Object.values(OWN_USER_PREFIXES).some((prefix) => user.name.startsWith(prefix))
}

export class Users implements Accounts {
  readonly #users = new Map<string, UserRow>()
  readonly #byId = new Map<number, UserRow>()
  readonly #tenants: TenantLookup
  readonly #identities = new Map<number, { userId: number; tenant: string; name: string; role: string }>()
  /** The roles in the store, by id of user, where they are others than those in memory. */
  readonly #storedRoles = new Map<number, string>()
  readonly #change: (change: Change) => void
  readonly #wallMs: () => number
  #nextId: number

  constructor(
    users: readonly UserRow[],
    tenants: TenantLookup,
    nextId: number,
    change: (change: Change) => void,
    wallMs: () => number,
  ) {
    for (const user of users) this.#keep(user)
    this.#tenants = tenants
    this.#nextId = nextId
    this.#change = change
    this.#wallMs = wallMs
  }

  get size(): number {
    return this.#users.size
  }

  find(tenant: string, name: string): Account | undefined {
    return this.#users.get(keyOf(tenant, name))
  }

  byId(id: number): Account | undefined {
    return this.#byId.get(id)
  }

  /** The one identity object of a user. Everyone keeps the same object, so that changes show everywhere. */
  identity({ id, tenant, name, role }: Account): Identity {
    let identity = this.#identities.get(id)
    if (identity === undefined) {
      identity = { userId: id, tenant, name, role }
      this.#identities.set(id, identity)
    }
    return identity
  }

  /** That of the user with an id; undefined if there is none. */
  identityOf(id: number): Identity | undefined {
    const account = this.byId(id)
    return account && this.identity(account)
  }

  /** Those as which somebody may log in: none of the server's own, also if one was added as such before that was refused. */
  get logins(): Accounts {
    const unlessOwn = (account: Account | undefined): Account | undefined =>
      account !== undefined && hasNoLogin(account) ? undefined : account
    return {
      find: (tenant, name) => unlessOwn(this.find(tenant, name)),
      byId: (id) => unlessOwn(this.byId(id)),
    }
  }

  /** All users, ascending by tenant and name. */
  list(): Account[] {
    return [...this.#users.entries()].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, user]) => user)
  }

  /** Adds a user, and its tenant if it is new. The caller has checked that the name is free. */
  add(user: Omit<UserRow, 'id' | 'created'>): Account {
    const row = { ...user, id: this.#nextId++, created: this.#wallMs() }
    if (!this.#tenants.has(row.tenant)) this.#tenants.set(row.tenant)
    this.#put(row)
    return row
  }

  /** Replaces the password verifiers of a user. */
  setVerifiers(account: Account, verifiers: Pick<UserRow, 'bcrypt' | 'scram'>): void {
    this.#put({ ...account, ...verifiers })
  }

  /** Sets and stores the role of a user, at once in all sessions. What only the old role allowed has ended. */
  setRole(account: Account, role: string): void {
    this.#storedRoles.delete(account.id)
    this.#put({ ...account, role })
  }

  /** The same in memory only: what the old role allowed is to end now, and then the role is set. Until then the old one stays stored. */
  assumeRole(account: Account, role: string): void {
    if (!this.#storedRoles.has(account.id)) this.#storedRoles.set(account.id, account.role)
    this.#assume({ ...account, role })
  }

  #put(row: UserRow): void {
    this.#assume(row)
    this.#change({ put: 'user', row: { ...row, role: this.#storedRoles.get(row.id) ?? row.role } })
  }

  #assume(row: UserRow): void {
    const identity = this.#identities.get(row.id)
    if (identity !== undefined) identity.role = row.role
    this.#keep(row)
  }

  #keep(row: UserRow): void {
    this.#users.set(keyOf(row.tenant, row.name), row)
    this.#byId.set(row.id, row)
  }

  remove(account: Account): void {
    this.#identities.delete(account.id)
    this.#storedRoles.delete(account.id)
    this.#byId.delete(account.id)
    this.#users.delete(keyOf(account.tenant, account.name))
    this.#change({ remove: 'user', id: account.id })
  }
}

function keyOf(tenant: string, name: string): string {
  return `${tenant}/${name}`
}
