/**
 * The tables of rules and tokens. They decide who may do what, so each row has a checksum. A token that does not match is no
 * longer accepted. A rule that does not match prevents the start: without it, something it denied would be allowed.
 */
import { crc32 } from 'node:zlib'
import type { Database, Statement } from 'better-sqlite3'
import type { Change, Recovered, RuleRow, TokenRow } from '../store.ts'
import { refuse } from './errors.ts'

interface StoredToken extends Omit<TokenRow, 'expires'> {
  readonly expires: number | null
  readonly checksum: number
}
type StoredRule = RuleRow & { readonly checksum: number }
export type RightsChange = Extract<Change, { put: 'rule' | 'token' } | { remove: 'rule' | 'token' }>

export interface RightsFound extends Pick<Recovered, 'rules' | 'tokens'> {
  readonly warnings: readonly string[]
}

export class RightsTables {
  readonly #path: string
  readonly #putRule: Statement<unknown[]>
  readonly #nextRule: Statement<unknown[]>
  readonly #removeRule: Statement<unknown[]>
  readonly #rules: Statement<unknown[], StoredRule>
  readonly #putToken: Statement<unknown[]>
  readonly #nextToken: Statement<unknown[]>
  readonly #removeToken: Statement<unknown[]>
  readonly #tokens: Statement<unknown[], StoredToken>

  constructor(database: Database) {
    this.#path = database.name
    this.#putRule = database.prepare(
      'insert or replace into rule values (@number, @role, @effect, @command, @object, @where, @checksum)',
    )
    this.#nextRule = database.prepare('update meta set next_rule = max(next_rule, ? + 1)')
    this.#removeRule = database.prepare('delete from rule where number = ?')
    this.#rules = database.prepare('select * from rule order by number')
    this.#putToken = database.prepare(
      'insert or replace into token values (@id, @user, @name, @hash, @scope, @made, @expires, @checksum)',
    )
    this.#nextToken = database.prepare('update meta set next_token = max(next_token, ? + 1)')
    this.#removeToken = database.prepare('delete from token where id = ?')
    this.#tokens = database.prepare('select * from token order by id')
  }

  change(change: RightsChange): void {
    if ('remove' in change) {
      if (change.remove === 'rule') this.#removeRule.run(change.number)
      else this.#removeToken.run(change.id)
    } else if (change.put === 'rule') {
      const { row } = change
      this.#putRule.run({ ...row, checksum: sumOfRule(row) })
      this.#nextRule.run(row.number)
    } else {
      const row = { ...change.row, expires: change.row.expires ?? null }
      this.#putToken.run({ ...row, checksum: sumOfToken(row) })
      this.#nextToken.run(row.id)
    }
  }

  /** Throws StorageError DAMAGED. */
  recover(): RightsFound {
    const rules = this.#rules.all().map((row) => this.#sound(row))
    const [tokens, lost]: [TokenRow[], number[]] = [[], []]
    for (const { checksum, ...row } of this.#tokens.all()) {
      if (checksum !== sumOfToken(row)) lost.push(row.id)
      else tokens.push({ ...row, expires: row.expires ?? undefined })
    }
    const warning = `tokens do not match their checksums (${lost.join(', ')}): they are not accepted; revoke them`
    return { rules, tokens, warnings: lost.length > 0 ? [warning] : [] }
  }

  #sound({ checksum, ...row }: StoredRule): RuleRow {
    if (checksum === sumOfRule(row)) return row
    throw refuse('DAMAGED', this.#path, `rule ${row.number} of role ${row.role} does not match its checksum`)
  }
}

function sumOfRule({ number, role, effect, command, object, where }: RuleRow): number {
  return crc32(JSON.stringify([number, role, effect, command, object, where]))
}

function sumOfToken({ id, user, name, hash, scope, made, expires }: Omit<StoredToken, 'checksum'>): number {
  return crc32(JSON.stringify([id, user, name, [...hash], scope, made, expires]))
}
