/** The stores that the model runs over, each with a way to be killed. */
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type {
  AuditRow,
  BackupProgress,
  Batch,
  BlockBytes,
  Recovered,
  Store,
  StoreEvents,
} from '../../../../../storage/store.ts'
import { MemoryStore } from '../../../../support/memory-store/store.ts'
import { threadlessStore } from '../../../../support/threadless-store.ts'
import type { Storage } from './world.ts'

export function memoryStorage(store = new MemoryStore({ manual: true })): Storage {
  return {
    store,
    complete: async () => store.complete(),
    crash: async () => memoryStorage(store.crash()),
    close: () => store.close(),
    damage: (block) => store.damage(block),
    setFull: (full) => {
      store.full = full
    },
  }
}

export function sqliteStorage(
  directory = mkdtempSync(join(tmpdir(), 'cinnabar-model-')),
): Storage & { directory: string } {
  const store = new Watched(threadlessStore({ directory }))
  return {
    directory,
    store,
    complete: () => store.done,
    // What was not handed over as a batch is lost, as in a crash; the batch in flight is let through.
    crash: async () => {
      await store.done
      await store.close()
      return sqliteStorage(directory)
    },
    close: () => store.close(),
  }
}

/** A store whose batch in flight can be waited for. */
class Watched implements Store {
  readonly #store: Store
  #resolve = (): void => {}
  done: Promise<void> = Promise.resolve()

  constructor(store: Store) {
    this.#store = store
  }

  open(events: StoreEvents): Promise<Recovered> {
    return this.#store.open({
      ...events,
      onDurable: (number) => {
        events.onDurable(number)
        this.#resolve()
      },
    })
  }

  write(batch: Batch): void {
    this.done = new Promise((resolve) => {
      this.#resolve = resolve
    })
    this.#store.write(batch)
  }

  read(ids: readonly number[]): Promise<BlockBytes[]> {
    return this.#store.read(ids)
  }

  backup(path: string, progress: (progress: BackupProgress) => void): Promise<number> {
    return this.#store.backup(path, progress)
  }

  audit(after: number, limit: number): Promise<AuditRow[]> {
    return this.#store.audit(after, limit)
  }

  close(): Promise<void> {
    return this.#store.close()
  }
}
