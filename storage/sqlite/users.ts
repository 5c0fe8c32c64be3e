/** Tenants and users. Ids of users are never given twice: the next one is kept in `meta`, whoever goes. */
import type { Database, Statement } from 'better-sqlite3'
import type { Change, Recovered, TenantRow, UserRow } from '../store.ts'
import { type StoredScram, scramColumns, scramOf } from './scram.ts'

interface StoredUser extends Omit<UserRow, 'bcrypt' | 'scram' | 'loopbackOnly'>, StoredScram {
  readonly bcrypt: string | null
  readonly loopback_only: number
}
export type UsersChange = Extract<Change, { put: 'tenant' | 'user' } | { remove: 'tenant' | 'user' }>

/** What goes with a user. */
const OF_USER = ['token', 'execution'] as const

export class UserRows {
  readonly #putTenant: Statement<unknown[]>
  readonly #removeTenant: Statement<unknown[]>
  readonly #putUser: Statement<unknown[]>
  readonly #removeUser: readonly Statement<unknown[]>[]
  readonly #nextUser: Statement<unknown[]>
  readonly #tenants: Statement<unknown[], TenantRow>
  readonly #users: Statement<unknown[], StoredUser>

  constructor(database: Database) {
    this.#putTenant = database.prepare('insert or replace into tenant values (@name, @quota)')
    this.#removeTenant = database.prepare('delete from tenant where name = ?')
    this.#putUser = database.prepare(`
      insert or replace into user values (@id, @tenant, @name, @role, @bcrypt,
        @salt, @iterations, @storedKey, @serverKey, @loopbackOnly)`)
    this.#removeUser = [
      database.prepare('delete from user where id = ?'),
      ...OF_USER.map((table) => database.prepare<unknown[]>(`delete from ${table} where user = ?`)),
    ]
    this.#nextUser = database.prepare('update meta set next_user = max(next_user, ? + 1)')
    this.#tenants = database.prepare('select * from tenant order by name')
    this.#users = database.prepare('select * from user order by id')
  }

  change(change: UsersChange): void {
    if ('remove' in change) {
      if (change.remove === 'tenant') this.#removeTenant.run(change.name)
      else for (const statement of this.#removeUser) statement.run(change.id)
    } else if (change.put === 'tenant') this.#putTenant.run(change.row)
    else this.#put(change.row)
  }

  #put(user: UserRow): void {
    const { id, tenant, name, role, scram } = user
    const loopbackOnly = Number(user.loopbackOnly)
    const bcrypt = user.bcrypt ?? null
    this.#putUser.run({ id, tenant, name, role, bcrypt, ...scramColumns(scram), loopbackOnly })
    this.#nextUser.run(id)
  }

  recover(): Pick<Recovered, 'tenants' | 'users'> {
    return { tenants: this.#tenants.all(), users: this.#users.all().map(userOf) }
  }
}

function userOf(row: StoredUser): UserRow {
  const { id, tenant, name, role } = row
  const bcrypt = row.bcrypt ?? undefined
  return { id, tenant, name, role, bcrypt, scram: scramOf(row), loopbackOnly: row.loopback_only === 1 }
}
