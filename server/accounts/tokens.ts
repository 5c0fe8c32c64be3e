/** Opaque tokens in memory and in the store [MON 11]: only their hashes are known here. Ids are never given twice. */
import type { TokenLookup } from '../../auth/tokens.ts'
import type { Change, TokenRow } from '../../storage/store.ts'

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

  /** A hash does not tell how much of another one is right: it may be looked up like any key. */
  find(hash: Uint8Array): TokenRow | undefined {
    return this.#byHash.get(keyOf(hash))
  }

  byId(id: number): TokenRow | undefined {
    return this.#byId.get(id)
  }

  /** Ascending by id. */
  list(): TokenRow[] {
    return [...this.#byId.values()]
  }

  /** The hash is of no other token: the caller looked. */
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

  /** The store takes them away with their user. */
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
