/** Tenants and users. Ids of users are never given twice: the next one is kept in `meta`, whoever goes. */
import type { Database, Statement } from 'better-sqlite3'
import type { UserRow } from '../store.ts'

interface StoredUser {
  readonly id: number
  readonly tenant: string
  readonly name: string
  readonly role: string
  readonly bcrypt: string | null
  readonly scram_salt: Uint8Array | null
  readonly scram_iterations: number | null
  readonly scram_stored_key: Uint8Array | null
  readonly scram_server_key: Uint8Array | null
  readonly loopback_only: number
}

export class Users {
  readonly #putTenant: Statement<unknown[]>
  readonly #putUser: Statement<unknown[]>
  readonly #removeUser: Statement<unknown[]>
  readonly #nextUser: Statement<unknown[]>
  readonly #tenants: Statement<unknown[], string>
  readonly #users: Statement<unknown[], StoredUser>

  constructor(database: Database) {
    this.#putTenant = database.prepare('insert or ignore into tenant values (?)')
    this.#putUser = database.prepare(`
      insert or replace into user values (@id, @tenant, @name, @role, @bcrypt,
        @salt, @iterations, @storedKey, @serverKey, @loopbackOnly)`)
    this.#removeUser = database.prepare('delete from user where id = ?')
    this.#nextUser = database.prepare('update meta set next_user = max(next_user, ? + 1)')
    this.#tenants = database.prepare<unknown[], string>('select name from tenant order by name').pluck()
    this.#users = database.prepare('select * from user order by id')
  }

  putTenant(name: string): void {
    this.#putTenant.run(name)
  }

  putUser(user: UserRow): void {
    const { id, tenant, name, role, scram } = user
    const { salt = null, iterations = null, storedKey = null, serverKey = null } = scram ?? {}
    const loopbackOnly = Number(user.loopbackOnly)
    const bcrypt = user.bcrypt ?? null
    this.#putUser.run({ id, tenant, name, role, bcrypt, salt, iterations, storedKey, serverKey, loopbackOnly })
    this.#nextUser.run(id)
  }

  removeUser(id: number): void {
    this.#removeUser.run(id)
  }

  recover(): { tenants: string[]; users: UserRow[] } {
    return { tenants: this.#tenants.all(), users: this.#users.all().map(userOf) }
  }
}

function userOf(row: StoredUser): UserRow {
  const { id, tenant, name, role } = row
  const {
    scram_salt: salt,
    scram_iterations: iterations,
    scram_stored_key: storedKey,
    scram_server_key: serverKey,
  } = row
  const scram = salt && iterations && storedKey && serverKey ? { salt, iterations, storedKey, serverKey } : undefined
  return { id, tenant, name, role, bcrypt: row.bcrypt ?? undefined, scram, loopbackOnly: row.loopback_only === 1 }
}
