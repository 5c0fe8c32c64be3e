/**
 * Removes rows in pieces. A transaction has to fit into the free space, or into the reserve when the disk is full, and a channel
 * may have gigabytes. So a batch removes as many rows as it may, and marks the rest in the table `removal`: what is marked is
 * removed for good, and is not recovered. The writer then removes the rows between the batches, also after a restart.
 */
import type { Database, Statement } from 'better-sqlite3'
import type { Change } from '../store.ts'
import type { BlockTables } from './blocks.ts'
import type { RowTables } from './row-tables.ts'

/** A change that is made here alone. */
export type RemovalsChange = Extract<Change, { remove: 'instance' | 'execution' }>

/** What a mark names: a block, the rows of a channel, the executions of a user, or those that were used before a time. */
interface Mark<Subject = 'block' | 'channel' | 'user' | 'execution'> {
  readonly subject: Subject
  readonly id: number
}
/** A mark of rows that are found when they are removed. */
type WideMark = Mark<'channel' | 'user' | 'execution'>

export class Removals {
  readonly #blocks: BlockTables
  readonly #mark: Statement<unknown[]>
  readonly #unmark: Statement<unknown[]>
  readonly #first: Statement<unknown[], Mark>
  readonly #markedBlocks: Statement<unknown[], number>
  /** Rows that go with their owner, besides the blocks of a channel. Each takes the owner twice and the number of rows. */
  readonly #rowsOf: Readonly<Record<'channel' | 'user', readonly Statement<unknown[]>[]>>
  readonly #executionsBefore: Statement<unknown[]>
  readonly #removeInstance: Statement<unknown[]>
  readonly #markedChannels: Statement<unknown[], number>
  /** The channels with a mark. */
  #channels: Set<number>
  /** Instances to remove. They need no mark: at a start the server removes those that are not bound. */
  readonly #instances = new Set<number>()
  /** Instances that the current transaction leaves to a later one, and those that it removes for an earlier one. */
  readonly #deferred = new Set<number>()
  #removedInstances: number[] = []
  /** The number of rows that the current transaction may still remove. */
  #left = 0
  #isPending: boolean

  constructor(database: Database, blocks: BlockTables, rows: RowTables) {
    const gaps = 'delete from gap where channel = ? and id in (select id from gap where channel = ? limit ?)'
    this.#blocks = blocks
    this.#mark = database.prepare('insert or ignore into removal values (?, ?)')
    this.#unmark = database.prepare('delete from removal where subject = ? and id = ?')
    this.#first = database.prepare('select subject, id from removal limit 1')
    this.#markedBlocks = database
      .prepare<unknown[], number>("select id from removal where subject = 'block' limit ?")
      .pluck()
    this.#rowsOf = {
      channel: [database.prepare(gaps), ...rows.removalsOfSome('channel')],
      user: rows.removalsOfSome('user'),
    }
    this.#executionsBefore = database.prepare(
      'delete from execution where rowid in (select rowid from execution where at < ? limit ?)',
    )
    this.#removeInstance = database.prepare('delete from instance where id = ?')
    this.#markedChannels = database
      .prepare<unknown[], number>("select id from removal where subject = 'channel'")
      .pluck()
    this.#channels = new Set(this.#markedChannels.all())
    this.#isPending = this.#first.get() !== undefined
  }

  /** Whether rows may be left to remove. */
  get isPending(): boolean {
    return this.#isPending || this.#instances.size > 0
  }

  /** A transaction begins, which may remove this many rows. */
  begin(rows: number): void {
    this.#left = rows
    this.#deferred.clear()
    this.#removedInstances = []
  }

  /** The transaction is stored. */
  committed(): void {
    for (const id of this.#removedInstances) this.#instances.delete(id)
    for (const id of this.#deferred) this.#instances.add(id)
  }

  /** The transaction was rolled back. */
  rolledBack(): void {
    this.#channels = new Set(this.#markedChannels.all())
    this.#isPending = this.#first.get() !== undefined
  }

  /** Removes or marks the rows that go with what a change removes. */
  change(change: Change): void {
    if ('put' in change) {
      // An id that is given again must find nothing of the one that had it before.
      if (change.put === 'channel' && this.#channels.has(change.row.id)) this.#finish(change.row.id)
      else if (change.put === 'instance') {
        this.#instances.delete(change.row.id)
        this.#deferred.delete(change.row.id)
      }
    } else if (change.remove === 'channel' || change.remove === 'user') {
      this.#remove({ subject: change.remove, id: change.id })
    } else if (change.remove === 'execution') {
      this.#remove({ subject: 'execution', id: Math.floor(change.before) })
    } else if (change.remove === 'instance') {
      if (this.#left-- > 0) this.#removeInstance.run(change.id)
      else this.#deferred.add(change.id)
    }
  }

  /** Removes or marks blocks. */
  blocks(ids: Float64Array): void {
    const now = Math.max(0, Math.min(ids.length, this.#left))
    this.#left -= now
    for (const id of ids.subarray(0, now)) this.#blocks.remove(id)
    for (const id of ids.subarray(now)) this.#mark.run('block', id)
    if (now < ids.length) this.#isPending = true
  }

  /** Removes as many rows of what is left as the transaction may. */
  step(): void {
    while (this.#left > 0 && this.#isPending) {
      const mark = this.#first.get()
      this.#isPending = mark !== undefined
      if (mark !== undefined) this.#left -= Math.max(1, this.#removeMarked(mark, this.#left))
    }
    for (const id of this.#instances) {
      if (this.#left-- <= 0) return
      this.#removeInstance.run(id)
      this.#removedInstances.push(id)
    }
  }

  /** The blocks that the next step of this size may remove. */
  next(rows: number): number[] {
    const ids = this.#markedBlocks.all(rows)
    for (const id of this.#channels) {
      if (ids.length < rows) ids.push(...this.#blocks.ofChannel(id, rows - ids.length))
    }
    return ids
  }

  #remove(mark: WideMark): void {
    const rows = Math.max(0, this.#left)
    const removed = this.#removeRows(mark, rows)
    this.#left -= removed
    if (removed < rows) return
    this.#mark.run(mark.subject, mark.id)
    if (mark.subject === 'channel') this.#channels.add(mark.id)
    this.#isPending = true
  }

  #removeMarked(mark: Mark, rows: number): number {
    const { subject, id } = mark
    if (subject === 'block') {
      const ids = this.#markedBlocks.all(rows)
      for (const id of ids) this.#blocks.remove(id)
      for (const id of ids) this.#unmark.run('block', id)
      return ids.length
    }
    const removed = this.#removeRows({ subject, id }, rows)
    if (removed < rows) this.#end(mark)
    return removed
  }

  /** Removes up to `rows` rows; fewer if no more are left. */
  #removeRows({ subject, id }: WideMark, rows: number): number {
    if (subject === 'execution') return this.#executionsBefore.run(id, rows).changes
    let removed = subject === 'channel' ? this.#blocks.removeOfChannel(id, rows) : 0
    for (const statement of this.#rowsOf[subject]) removed += statement.run(id, id, rows - removed).changes
    return removed
  }

  #finish(channel: number): void {
    const mark: WideMark = { subject: 'channel', id: channel }
    this.#removeRows(mark, Number.MAX_SAFE_INTEGER)
    this.#end(mark)
  }

  #end({ subject, id }: Mark): void {
    this.#unmark.run(subject, id)
    if (subject === 'channel') this.#channels.delete(id)
  }
}
