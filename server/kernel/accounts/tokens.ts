/** Opaque tokens, in memory and in the store [MON 11]. Only their hashes are known; ids are never reused. */
import type { TokenLookup } from '../../../auth/mechanisms/token.ts'
import type { Change, TokenRow } from '../../../storage/store.ts'

export class Tokens implements TokenLookup {
  readonly #byId = new Map<number, TokenRow>()
  readonly #byHash = new Map<string, TokenRow>()
  readonly #change: (change: Change) => void
  #next: number

  constructor(rows: readonly TokenRow[], next: number, change: (change: Change) => void) {
    for (const row of rows) this.#keep(row)
    this.#next = next
    this.#change = change
  }

  /** Looks a token up by its hash. A hash reveals nothing about similar ones, so an ordinary lookup is safe. */
  find(hash: Uint8Array): TokenRow | undefined {
    return this.#byHash.get(keyOf(hash))
  }

  byId(id: number): TokenRow | undefined {
    return this.#byId.get(id)
  }

  /** Whether a token is neither revoked nor has expired. */
  isValid(id: number, wallMs: number): boolean {
    const row = this.#byId.get(id)
    return row !== undefined && (row.expires === undefined || wallMs < row.expires)
  }

  /** All tokens, ascending by id. */
  list(): TokenRow[] {
    return [...this.#byId.values()]
  }

  /** Adds a token. The caller has checked that no other has this hash. */
  add(token: Omit<TokenRow, 'id'>): TokenRow {
    const row = { ...token, id: this.#next++ }
    this.#keep(row)
    this.#change({ put: 'token', row })
    return row
  }

  revoke({ id }: TokenRow): void {
    this.#forget(id)
    this.#change({ remove: 'token', id })
  }

  /** Forgets the tokens of a user; the store removes them together with the user. */
  forgetUser(user: number): void {
    for (const row of this.list()) if (row.user === user) this.#forget(row.id)
  }

  #keep(row: TokenRow): void {
    this.#byId.set(row.id, row)
    this.#byHash.set(keyOf(row.hash), row)
  }

  #forget(id: number): void {
    const row = this.#byId.get(id)
    if (row === undefined) return
    this.#byId.delete(id)
    this.#byHash.delete(keyOf(row.hash))
  }
}

function keyOf(hash: Uint8Array): string {
  return Buffer.from(hash).toString('hex')
}
