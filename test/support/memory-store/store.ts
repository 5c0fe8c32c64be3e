/**
 * A store in memory with the semantics of the real one, for tests: what is durable is what a batch was applied for, and
 * `crash` shows what a restart would find. Like the real one it takes the buffers of a batch away from the caller.
 */
import {
  type AuditRow,
  type Batch,
  type BlockBytes,
  type Recovered,
  StorageError,
  type Store,
  type StoreEvents,
} from '../../../storage/store.ts'
import { applyBatch } from './changes.ts'
import { type Contents, emptyContents, recovered } from './contents.ts'

export interface MemoryOptions {
  /** A batch becomes durable when `complete` is called, else at the end of the turn. */
  readonly manual?: boolean
}

export class MemoryStore implements Store {
  /** As in the options; may be changed while it is open. */
  manual: boolean
  #contents: Contents = emptyContents()
  #events: StoreEvents | undefined
  #batch: Batch | undefined
  #full = false
  #low = false
  #failed = false

  constructor({ manual = false }: MemoryOptions = {}) {
    this.manual = manual
  }

  async open(events: StoreEvents): Promise<Recovered> {
    this.#events = events
    this.#failed = false
    return recovered(this.#contents)
  }

  write(batch: Batch): void {
    if (this.#batch !== undefined) throw new Error('a batch is in flight already')
    if (this.#failed) return
    this.#batch = structuredClone(batch, { transfer: buffersOf(batch) })
    if (this.#full) this.#events?.onFull()
    else if (!this.manual) setImmediate(() => this.complete())
  }

  async read(ids: readonly number[]): Promise<BlockBytes[]> {
    const { blocks, damaged } = this.#contents
    return ids.map((id) => {
      const bytes = damaged.has(id) ? undefined : blocks.get(id)?.bytes.slice()
      if (bytes === undefined && blocks.has(id)) this.#setAside(id)
      return { id, bytes }
    })
  }

  async audit(after: number, limit: number): Promise<AuditRow[]> {
    const rows = [...this.#contents.rows.audit.values()].filter(({ number }) => number > after)
    return structuredClone(rows.slice(0, limit))
  }

  backup(path: string): Promise<number> {
    return Promise.reject(new StorageError('NOT_WRITABLE', `${path}: what is in memory has no backup`))
  }

  async close(): Promise<void> {
    if (!this.#full) this.complete()
    this.#events = undefined
    this.#batch = undefined
  }

  /** Makes the batch in flight durable, if there is one and there is room for it. */
  complete(): void {
    const batch = this.#batch
    if (batch === undefined || this.#full || this.#failed) return
    this.#batch = undefined
    applyBatch(this.#contents, batch)
    this.#events?.onDurable(batch.number)
  }

  /** Another store, not open, with what is durable here. */
  copy(): MemoryStore {
    const copy = new MemoryStore({ manual: this.manual })
    copy.#contents = structuredClone(this.#contents)
    return copy
  }

  /** What a restart would find now: a new store, not open, with what was durable. This one is of no use afterwards. */
  crash(): MemoryStore {
    const survivor = this.copy()
    this.#events = undefined
    this.#failed = true
    return survivor
  }

  /** While it is set, no batch becomes durable. */
  get full(): boolean {
    return this.#full
  }

  set full(full: boolean) {
    if (full === this.#full) return
    this.#full = full
    if (full) {
      if (this.#batch !== undefined) this.#events?.onFull()
      return
    }
    this.complete()
    this.#events?.onRoom?.()
  }

  /** While it is set, the disk counts as full, and batches are stored from the reserve. */
  set low(low: boolean) {
    if (low === this.#low) return
    this.#low = low
    if (low) this.#events?.onFull()
    else this.#events?.onRoom()
  }

  /** As after an I/O error: nothing becomes durable any more. */
  fail(error: StorageError): void {
    this.#failed = true
    this.#events?.onFailed(error)
  }

  /** The next read of this block finds it damaged. */
  damage(id: number): void {
    this.#contents.damaged.add(id)
  }

  #setAside(id: number): void {
    this.#contents.blocks.delete(id)
    this.#contents.settled.delete(id)
  }
}

function buffersOf(batch: Batch): ArrayBuffer[] {
  const { blocks, moved, settled, removed, channels, gaps, gapsRemoved } = batch
  const arrays = [blocks, moved, settled, removed, channels, gaps, gapsRemoved]
  const buffers = new Set<ArrayBufferLike>(arrays.map((array) => array.buffer))
  return [...buffers].filter((buffer) => buffer instanceof ArrayBuffer)
}
