/**
 * The real store where a test producer takes one in memory. A crash copies the files as they are and opens the copy; it is
 * to come only when nothing is under way. Batches cannot be held: what they would hold back is the model's question, not SQLite's.
 */
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Batch, BlockBytes, Recovered, Store, StoreEvents } from '../../../storage/store.ts'
import { forgetDirectory } from '../../support/forget-directory.ts'
import { MemoryStore } from '../../support/memory-store/store.ts'
import { threadlessStore } from '../../support/threadless-store.ts'

export class SqliteBacked extends MemoryStore {
  /** All directories of a family of stores, for its end. */
  protected readonly directories: string[]
  protected readonly directory: string
  #store: Store | undefined
  #reading = 0
  /** How often the store has answered: whatever waits for that happens in the turns after it. */
  answers = 0

  constructor(directories: string[] = [], from?: string) {
    super()
    this.directory = mkdtempSync(join(tmpdir(), 'cinnabar-commands-'))
    this.directories = directories
    directories.push(this.directory)
    if (from !== undefined) {
      cpSync(from, this.directory, { recursive: true })
      forgetDirectory(this.directory)
    }
  }

  /** The store over the files. */
  protected make(): Store {
    return threadlessStore({ directory: this.directory })
  }

  /** Whether it is open; if not, it is where others begin. */
  protected get isOpen(): boolean {
    return this.#store !== undefined
  }

  /** Something is being read back. */
  get isReading(): boolean {
    return this.#reading > 0
  }

  override open(events: StoreEvents): Promise<Recovered> {
    const store = this.make()
    this.#store = store
    const onDurable: StoreEvents['onDurable'] = (number, buffer) => {
      this.answers++
      events.onDurable(number, buffer)
    }
    return store.open({ ...events, onDurable })
  }

  override write(batch: Batch): void {
    this.#store?.write(batch)
  }

  override async read(ids: readonly number[]): Promise<BlockBytes[]> {
    this.#reading++
    try {
      return (await this.#store?.read(ids)) ?? []
    } finally {
      this.#reading--
      this.answers++
    }
  }

  override async close(): Promise<void> {
    const store = this.#store
    this.#store = undefined
    await store?.close()
  }

  override complete(): void {}

  override crash(): SqliteBacked {
    const survivor = this.survivor()
    void this.close()
    return survivor
  }

  /** What goes on with a copy of the files. */
  protected survivor(): SqliteBacked {
    return new SqliteBacked(this.directories, this.directory)
  }

  /** Removes the files of this store and of all that came of it. */
  removeAll(): void {
    for (const directory of this.directories) rmSync(directory, { recursive: true, force: true })
  }
}
