/**
 * The real store where a test producer takes one in memory. A crash copies the files as they are and opens the copy; it is
 * to come only when nothing is under way. Batches cannot be held: what they would hold back is the model's question, not SQLite's.
 */
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SqliteStore } from '../../../storage/sqlite/store.ts'
import type { Batch, BlockBytes, Recovered, StoreEvents } from '../../../storage/store.ts'
import { forgetDirectory } from '../../support/forget-directory.ts'
import { MemoryStore } from '../../support/memory-store/store.ts'

export class SqliteBacked extends MemoryStore {
  /** All directories of a family of stores, for its end. */
  readonly #directories: string[]
  readonly #directory: string
  #store: SqliteStore
  #reading = 0
  /** How often the thread has answered: whatever waits for that happens in the turns after it. */
  answers = 0

  constructor(directories: string[] = [], from?: string) {
    super()
    this.#directory = mkdtempSync(join(tmpdir(), 'cinnabar-commands-'))
    this.#directories = directories
    directories.push(this.#directory)
    if (from !== undefined) {
      cpSync(from, this.#directory, { recursive: true })
      forgetDirectory(this.#directory)
    }
    this.#store = new SqliteStore({ directory: this.#directory })
  }

  /** Something is being read back. */
  get isReading(): boolean {
    return this.#reading > 0
  }

  override open(events: StoreEvents): Promise<Recovered> {
    this.#store = new SqliteStore({ directory: this.#directory })
    const onDurable: StoreEvents['onDurable'] = (number, buffer) => {
      this.answers++
      events.onDurable(number, buffer)
    }
    return this.#store.open({ ...events, onDurable })
  }

  override write(batch: Batch): void {
    this.#store.write(batch)
  }

  override async read(ids: readonly number[]): Promise<BlockBytes[]> {
    this.#reading++
    try {
      return await this.#store.read(ids)
    } finally {
      this.#reading--
      this.answers++
    }
  }

  override close(): Promise<void> {
    return this.#store.close()
  }

  override complete(): void {}

  override crash(): SqliteBacked {
    const survivor = new SqliteBacked(this.#directories, this.#directory)
    void this.#store.close()
    return survivor
  }

  /** Removes the files of this store and of all that came of it. */
  removeAll(): void {
    for (const directory of this.#directories) rmSync(directory, { recursive: true, force: true })
  }
}
