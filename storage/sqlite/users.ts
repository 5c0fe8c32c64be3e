/** The tables of tenants and users. User ids are never reused: `meta` keeps the next one. */
import type { Database, Statement } from 'better-sqlite3'
import type { Change, Recovered, ScramRow, TenantRow, UserRow } from '../store.ts'

/** A SCRAM verifier as columns: all four are there, or none. */
export interface StoredScram {
  readonly scram_salt: Uint8Array | null
  readonly scram_iterations: number | null
  readonly scram_stored_key: Uint8Array | null
  readonly scram_server_key: Uint8Array | null
}

interface StoredUser extends Omit<UserRow, 'bcrypt' | 'scram' | 'loopbackOnly'>, StoredScram {
  readonly bcrypt: string | null
  readonly loopback_only: number
}
export type UsersChange = Extract<Change, { put: 'tenant' | 'user' } | { remove: 'tenant' | 'user' }>

export class UserTables {
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
        @salt, @iterations, @storedKey, @serverKey, @loopbackOnly, @created)`)
    this.#removeUser = [
      database.prepare('delete from user where id = ?'),
      database.prepare('delete from token where user = ?'),
      database.prepare('delete from lost_name where user = ?'),
    ]
    this.#nextUser = database.prepare('update meta set next_user = max(next_user, ? + 1)')
    this.#tenants = database.prepare('select * from tenant order by name')
    this.#users = database.prepare('select * from user order by id')
  }

  /** The caller removes the executions of a user. */
  change(change: UsersChange): void {
    if ('remove' in change) {
      if (change.remove === 'tenant') this.#removeTenant.run(change.name)
      else for (const statement of this.#removeUser) statement.run(change.id)
    } else if (change.put === 'tenant') this.#putTenant.run(change.row)
    else this.#put(change.row)
  }

  #put(user: UserRow): void {
    const { id, tenant, name, role, scram, created } = user
    const loopbackOnly = Number(user.loopbackOnly)
    const bcrypt = user.bcrypt ?? null
    this.#putUser.run({ id, tenant, name, role, bcrypt, ...scramColumns(scram), loopbackOnly, created })
    this.#nextUser.run(id)
  }

  recover(): Pick<Recovered, 'tenants' | 'users'> {
    return { tenants: this.#tenants.all(), users: this.#users.all().map(userOf) }
  }
}

function userOf(row: StoredUser): UserRow {
  const { id, tenant, name, role, created } = row
  const bcrypt = row.bcrypt ?? undefined
  return { id, tenant, name, role, bcrypt, scram: scramOf(row), loopbackOnly: row.loopback_only === 1, created }
}

/** The parameters @salt, @iterations, @storedKey and @serverKey. */
export function scramColumns(scram: ScramRow | undefined): Record<keyof ScramRow, Uint8Array | number | null> {
  const { salt = null, iterations = null, storedKey = null, serverKey = null } = scram ?? {}
  return { salt, iterations, storedKey, serverKey }
}

export function scramOf(row: StoredScram): ScramRow | undefined {
  const {
    scram_salt: salt,
    scram_iterations: iterations,
    scram_stored_key: storedKey,
    scram_server_key: serverKey,
  } = row
  return salt && iterations && storedKey && serverKey ? { salt, iterations, storedKey, serverKey } : undefined
}
