/**
 * SQLite's store without its thread, for tests that open many databases: to start a thread takes eight times as long as to open a
 * database. Messages are cloned and transferred as with a thread, and arrive as late. test/contracts/ has the thread of SQLite's
 * store, and test/storage/replicated/store.test.ts those of a node of a cluster.
 */
import { EventEmitter } from 'node:events'
import { MessageChannel, type MessagePort } from 'node:worker_threads'
import { serveStore } from '../../storage/sqlite/service.ts'
import { type SqliteOptions, SqliteStore, type StorageThread } from '../../storage/sqlite/store.ts'

export function threadlessStore(options: SqliteOptions): SqliteStore {
  return new SqliteStore(options, () => new ThisThread((port) => serveStore(port, options)))
}

/** What would be a thread of a store, in this one; it ends when `serve` closes its port. */
export class ThisThread extends EventEmitter implements StorageThread<object> {
  readonly #port: MessagePort

  constructor(serve: (port: MessagePort) => void) {
    super()
    const { port1, port2 } = new MessageChannel()
    this.#port = port1
    port1.on('message', (message) => this.emit('message', message))
    port1.on('close', () => this.emit('exit', 0))
    // Nobody listens yet.
    setImmediate(() => serve(port2))
  }

  postMessage(message: object, transfer: ArrayBuffer[]): void {
    this.#port.postMessage(message, transfer)
  }
}
