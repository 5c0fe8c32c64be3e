/**
 * Boards of charts that users keep here, in memory and in the store. What is on a board is text of the console, and means nothing
 * here. Ids are never reused, so that the link of a board never shows another one.
 */
import type { Account } from '../../../auth/mechanism.ts'
import type { Identity } from '../../../auth/permissions.ts'
import type { BoardRow, Change } from '../../../storage/store.ts'

export const MAX_BOARDS = 100
/** UTF-8 bytes of what is on a board: more than forty charts of eight lines usually have. */
export const MAX_CHARTS_BYTES = 32_768
export const MAX_BOARD_NAME = 80

/** What the user decides of a board. */
export type BoardContent = Pick<BoardRow, 'name' | 'charts' | 'shared'>
type Whose = Pick<Identity, 'userId' | 'tenant'>

export class StoredBoards {
  /** By tenant and id, ascending. */
  readonly #boards = new Map<string, Map<number, BoardRow>>()
  readonly #accounts: { byId(id: number): Pick<Account, 'tenant' | 'name'> | undefined }
  readonly #change: (change: Change) => void
  #next: number

  constructor(
    rows: readonly BoardRow[],
    next: number,
    accounts: { byId(id: number): Pick<Account, 'tenant' | 'name'> | undefined },
    change: (change: Change) => void,
  ) {
    this.#accounts = accounts
    for (const row of rows) this.#of(accounts.byId(row.user)?.tenant ?? '').set(row.id, row)
    this.#next = next
    this.#change = change
  }

  /** The boards of a tenant, ascending by id. */
  ofTenant(tenant: string): Iterable<BoardRow> {
    return this.#boards.get(tenant)?.values() ?? []
  }

  ownerOf({ user }: BoardRow): string {
    return this.#accounts.byId(user)?.name ?? ''
  }

  /** A board of the user's own. */
  own({ userId, tenant }: Whose, id: number): BoardRow | undefined {
    const board = this.#boards.get(tenant)?.get(id)
    return board?.user === userId ? board : undefined
  }

  allOf({ userId, tenant }: Whose): BoardRow[] {
    return [...this.ofTenant(tenant)].filter(({ user }) => user === userId)
  }

  add({ userId, tenant }: Whose, content: BoardContent, saved: number): BoardRow {
    const row = { ...content, id: this.#next++, user: userId, version: 1, saved }
    return this.#put(tenant, row)
  }

  /** The caller has checked that the name is free and the version the one that was changed. */
  change({ tenant }: Whose, board: BoardRow, content: BoardContent, saved: number): BoardRow {
    return this.#put(tenant, { ...board, ...content, version: board.version + 1, saved })
  }

  delete({ tenant }: Whose, { id }: BoardRow): void {
    this.#boards.get(tenant)?.delete(id)
    this.#change({ remove: 'board', id })
  }

  /** Forgets the boards of a user; the store removes them together with the user. */
  forgetUser(user: number): void {
    for (const boards of this.#boards.values()) {
      for (const board of [...boards.values()]) if (board.user === user) boards.delete(board.id)
    }
  }

  #put(tenant: string, row: BoardRow): BoardRow {
    this.#of(tenant).set(row.id, row)
    this.#change({ put: 'board', row })
    return row
  }

  #of(tenant: string): Map<number, BoardRow> {
    let boards = this.#boards.get(tenant)
    if (boards === undefined) {
      boards = new Map()
      this.#boards.set(tenant, boards)
    }
    return boards
  }
}
