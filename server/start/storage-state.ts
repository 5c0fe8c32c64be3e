/** The state of the storage, as the store reports it; what takes values in asks for it. */
import { createHmac } from 'node:crypto'
import { statfsSync } from 'node:fs'
import type { StorageError, StoreEvents } from '../../storage/store.ts'
import type { FileSystemSpace } from '../kernel/accounts/quotas.ts'
import type { Logger } from '../kernel/core/log.ts'
import type { Notices } from '../kernel/producer/notices.ts'

/** Above this much that waits to be stored, or half of what there is room for, streams are not read. */
const BACKLOG_BYTES = 16 << 20

/** Above this much that waits to be stored, arriving values are dropped and reported: storage does not keep up. */
const MAX_UNSTORED_BYTES = 256 << 20

/** What follows each batch. */
interface BatchFollower {
  onDurable(number: number): void
  stop(): void
}

/** The space on the file system of a directory. */
export function fileSystemSpaceOf(directory: string): FileSystemSpace {
  const { blocks, bavail, bsize } = statfsSync(directory)
  return { sizeBytes: blocks * bsize, freeBytes: bavail * bsize }
}

/** Keys, each for a purpose, from which nothing follows of the secret or of the others. */
export function keysOf(secret: Uint8Array): (purpose: string) => Uint8Array {
  return (purpose) => createHmac('sha256', secret).update(`key for ${purpose}`).digest()
}

/** A random id that was made with the database, and is no secret. */
export function producerIdOf(secret: Uint8Array): string {
  return createHmac('sha256', secret).update('producer').digest('hex').slice(0, 16)
}

export interface StorageStateOptions {
  readonly log: Logger
  readonly notices: Pick<Notices, 'emit'>
  /** For the log. */
  readonly directory: string
  readonly onFailed: (error: StorageError) => void
}

export class StorageState implements StoreEvents {
  readonly #options: StorageStateOptions
  #state: 'ok' | 'full' | 'failed' = 'ok'
  /** Bytes of values that surely find room on the disk. */
  #room = Number.POSITIVE_INFINITY
  #follower: BatchFollower | undefined

  constructor(options: StorageStateOptions) {
    this.#options = options
  }

  get state(): 'ok' | 'full' | 'failed' {
    return this.#state
  }

  /** Called once, before the first batch is written. */
  follow(follower: BatchFollower): void {
    this.#follower = follower
  }

  /** Whether streams have to wait. On a full disk they need not: their values are refused and reported. */
  isBehind(unstored: number): boolean {
    return this.#state !== 'full' && unstored > Math.min(BACKLOG_BYTES, this.#room / 2)
  }

  /** Why values are refused. More than fits on the disk would stop the COMMITs after it too. */
  refusing(unstored: number): 'full' | 'overflow' | undefined {
    if (unstored <= this.refusesAbove) return undefined
    return this.#state === 'full' || unstored > this.#room ? 'full' : 'overflow'
  }

  /** Values are refused while more than this waits to be stored. */
  get refusesAbove(): number {
    return this.#state === 'full' ? -1 : Math.min(this.#room, MAX_UNSTORED_BYTES)
  }

  onDurable(number: number, room = Number.POSITIVE_INFINITY): void {
    this.#room = room
    this.#follower?.onDurable(number)
  }

  onRoom(): void {
    const { log, notices } = this.#options
    this.#state = 'ok'
    notices.emit({ severity: 'info', subject: 'storage', detail: 'there is room on the disk again' })
    log.warn('there is room on the disk again: values are stored')
  }

  onFull(): void {
    if (this.#state === 'full') return
    const { log, notices, directory } = this.#options
    this.#state = 'full'
    notices.emit({ severity: 'error', subject: 'storage', detail: 'the disk is full: arriving values are dropped' })
    log.error({ directory }, 'the disk is full: arriving values are dropped until there is room')
  }

  onFailed(error: StorageError): void {
    this.#state = 'failed'
    this.#follower?.stop()
    this.#options.onFailed(error)
  }
}
