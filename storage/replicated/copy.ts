/**
 * A copy of the leader's database, for a node that is new, too far behind the log, or has a damaged one: the leader makes a backup
 * and sends it over NATS in pieces, a few ahead of the receiver, which lays it where its own database was, and sets that one aside.
 * The copy knows its place in the log, so following begins there.
 */
import { createHash, randomUUID } from 'node:crypto'
import { closeSync, createReadStream, fsyncSync, openSync, renameSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import type { MessagePort } from 'node:worker_threads'
import { createInbox, headers, type Msg, type NatsConnection, type Subscription } from '@nats-io/transport-node'
import { backUp } from '../sqlite/backup.ts'
import { takeLock } from '../sqlite/database.ts'
import { openSqlite } from '../sqlite/driver.ts'
import { storageError } from '../sqlite/errors.ts'
import { syncDirectory } from '../sqlite/generation.ts'
import { LogPlaces } from '../sqlite/log-places.ts'
import type { PostMessage, StorageService } from '../sqlite/service.ts'
import { DATABASE_FILE, StorageError } from '../store.ts'
import { Log } from './log.ts'
import type { LogPlace } from './place.ts'
import type { Copied, CopyProgress, FromRole, RoleOptions, ToRole } from './role.ts'
import { setAside } from './set-aside.ts'

/** The bytes of a piece; with its headers it fits into the 1 MiB that a nats-server takes by default. */
const PIECE_BYTES = 512 * 1024
/** Pieces under way. */
const AHEAD = 16
/** How long a receiver may take for a piece, and the leader to begin and between two pieces. */
const PIECE_MS = 10_000
const BEGIN_MS = 600_000
/** The directory in the data directory where backups are made to be sent. */
const COPIES = 'copies'
/** Where a copy may be sent: to an inbox, as clients of NATS make them, and nowhere else. */
const INBOX = /^_INBOX\.[A-Za-z0-9_-]{1,64}(?:\.[A-Za-z0-9_-]{1,64})?$/
const MAX_INBOX_BYTES = 256
/** Characters of the leader's reason for a refusal that are shown. */
const MAX_REFUSAL = 400
const OFFSET = 'Cin-Offset'
const SHA256 = 'Cin-Sha256'

function subjectOf(cluster: string, node: string): string {
  return `cin.${cluster}.copy.${node}`
}

/** Removes what a node was sending whose lead has ended, or whose process was killed. */
export function removeCopies(directory: string): void {
  rmSync(join(directory, COPIES), { recursive: true, force: true })
}

export interface CopySource {
  readonly connection: NatsConnection
  readonly cluster: string
  /** The node that leads. */
  readonly node: string
  readonly directory: string
}

/** The leader's side: sends copies to nodes that ask for one, one after the other. */
export class CopySender {
  readonly #source: CopySource
  readonly #service: StorageService
  readonly #stopping = new AbortController()
  #isBusy = false

  constructor(source: CopySource, service: StorageService) {
    const { connection, cluster, node } = source
    this.#source = source
    this.#service = service
    removeCopies(source.directory)
    connection.subscribe(subjectOf(cluster, node), {
      callback: (error, message) => {
        if (error === null) void this.#take(message)
      },
    })
  }

  stop(): void {
    this.#stopping.abort()
  }

  async #take(message: Msg): Promise<void> {
    if (this.#isBusy) {
      message.respond(JSON.stringify({ refused: 'another node is being sent a copy: it is tried again later' }))
      return
    }
    const to = message.data.length > MAX_INBOX_BYTES ? '' : message.string()
    if (!INBOX.test(to)) {
      message.respond(JSON.stringify({ refused: 'the request does not say where the copy is to go' }))
      return
    }
    this.#isBusy = true
    const path = join(this.#source.directory, COPIES, randomUUID())
    const isCancelled = (): boolean => this.#stopping.signal.aborted
    try {
      const bytes = await backUp(this.#service.opened.database, path, { progress() {}, isCancelled })
      message.respond(JSON.stringify({ bytes }))
      await this.#send(path, to)
    } catch (error) {
      message.respond(JSON.stringify({ refused: storageError(error, path).message }))
    } finally {
      rmSync(path, { force: true })
      this.#isBusy = false
    }
  }

  async #send(path: string, to: string): Promise<void> {
    const { connection } = this.#source
    const hash = createHash('sha256')
    const underWay = new Set<Promise<unknown>>()
    let failure: unknown
    let offset = 0
    const request = (piece: Uint8Array, sum?: string): void => {
      const h = headers()
      h.set(OFFSET, String(offset))
      if (sum !== undefined) h.set(SHA256, sum)
      const sent = connection
        .request(to, piece, { headers: h, timeout: PIECE_MS })
        .catch((error: unknown) => {
          failure ??= error
        })
        .finally(() => underWay.delete(sent))
      underWay.add(sent)
      offset += piece.length
    }
    for await (const piece of createReadStream(path, { highWaterMark: PIECE_BYTES }) as AsyncIterable<Buffer>) {
      hash.update(piece)
      request(piece)
      if (underWay.size >= AHEAD) await Promise.race(underWay)
      if (failure !== undefined || this.#stopping.signal.aborted) break
    }
    if (failure === undefined && !this.#stopping.signal.aborted) request(new Uint8Array(0), hash.digest('hex'))
    await Promise.all(underWay)
    if (failure !== undefined) throw failure
  }
}

/** The role of a node that needs a copy: posts how far it has come, and its place. Rejects with StorageError. */
export async function fetchCopy(
  port: MessagePort,
  { store: { directory }, log: where, wall, from = '' }: RoleOptions,
  post: PostMessage<FromRole>,
): Promise<void> {
  const stopping = new AbortController()
  port.on('message', (message: ToRole) => {
    if (message.type === 'close') stopping.abort()
  })
  const log = await Log.connect(where)
  try {
    const { connection } = log
    const source = { connection, cluster: where.cluster, node: from, directory }
    const progress = (progress: CopyProgress): void => post({ type: 'received', progress })
    const copied = await receiveCopy(source, wall, progress, stopping.signal)
    post({ type: 'fetched', copied })
  } finally {
    await log.close()
  }
}

/**
 * Asks the leader for a copy and puts it where the database of this directory has to be. The one that is there, which nothing may
 * have open, is set aside when the copy is whole: until then it may be the best that is left. Rejects with StorageError, and then
 * the directory is as it was.
 */
export async function receiveCopy(
  { connection, cluster, node, directory }: CopySource,
  wallMs: number,
  progress: (progress: CopyProgress) => void,
  signal: AbortSignal,
): Promise<Copied> {
  const lock = takeLock(directory)
  const path = join(directory, DATABASE_FILE)
  const part = `${path}.copying`
  try {
    const receiver = new Receiver(connection, part, progress, signal)
    try {
      const asked = connection.request(subjectOf(cluster, node), receiver.subject, { timeout: BEGIN_MS })
      // Nobody waits for it after the receiver has failed.
      asked.catch(() => {})
      const answer = await Promise.race([asked, receiver.whenComplete])
      if (answer !== undefined) receiver.begin(answer.json())
      await receiver.whenComplete
    } finally {
      receiver.close()
    }
    const place = placeOf(part)
    const aside = setAside(directory, wallMs)
    renameSync(part, path)
    syncDirectory(directory)
    return { place, aside }
  } catch (error) {
    throw storageError(error, path)
  } finally {
    for (const end of ['', '-wal', '-shm', '-journal']) rmSync(`${part}${end}`, { force: true })
    lock.close()
  }
}

/** Checks the copy as a whole. */
function placeOf(path: string): LogPlace {
  const database = openSqlite(path, { fileMustExist: true })
  try {
    const found = database.pragma('quick_check(1)', { simple: true })
    const { place } = new LogPlaces(database)
    if (found !== 'ok') throw new StorageError('DAMAGED', `the copy ${path} is damaged (${String(found)})`)
    if (place.log === 0) throw new StorageError('FOREIGN', `the copy ${path} is part of no log`)
    return place
  } finally {
    database.close()
  }
}

/** Writes the pieces to a file, in order, and answers each when it is written. */
class Receiver {
  readonly subject = createInbox()
  readonly whenComplete: Promise<void>
  readonly #file: number
  readonly #progress: (progress: CopyProgress) => void
  readonly #hash = createHash('sha256')
  readonly #subscription: Subscription
  readonly #signal: AbortSignal
  #end: (error?: StorageError) => void = () => {}
  #receivedBytes = 0
  /** As the leader said, in its first answer. */
  #totalBytes: number | undefined
  /** Pieces that came before that answer was looked at. */
  readonly #early: Msg[] = []
  #isOpen = true
  #late: NodeJS.Timeout | undefined

  constructor(
    connection: NatsConnection,
    path: string,
    progress: (progress: CopyProgress) => void,
    signal: AbortSignal,
  ) {
    rmSync(path, { force: true })
    this.#file = openSync(path, 'wx', 0o600)
    this.#progress = progress
    this.#signal = signal
    this.whenComplete = new Promise((resolve, reject) => {
      this.#end = (error) => (error === undefined ? resolve() : reject(error))
    })
    // It may fail before anybody waits for it.
    this.whenComplete.catch(() => {})
    signal.addEventListener('abort', this.#abort)
    // It may have been given up while the connection was made.
    if (signal.aborted) this.#abort()
    this.#subscription = connection.subscribe(this.subject, {
      callback: (error, message) => {
        if (error === null && this.#isOpen) this.#take(message)
      },
    })
  }

  readonly #abort = (): void => this.#fail('it was given up')

  /** The leader's first answer. */
  begin(answer: unknown): void {
    const { bytes, refused } = (answer ?? {}) as { readonly bytes?: unknown; readonly refused?: unknown }
    if (typeof refused === 'string') this.#fail(refused.slice(0, MAX_REFUSAL))
    else if (!Number.isSafeInteger(bytes) || Number(bytes) < 0) this.#fail('the leader answered nothing known')
    else this.#totalBytes = Number(bytes)
    this.#expectMore()
    for (const message of this.#early.splice(0)) this.#take(message)
  }

  close(): void {
    this.#isOpen = false
    clearTimeout(this.#late)
    this.#signal.removeEventListener('abort', this.#abort)
    this.#subscription.unsubscribe()
    closeSync(this.#file)
  }

  #take(message: Msg): void {
    if (this.#totalBytes === undefined) {
      if (this.#early.push(message) > AHEAD + 1) this.#fail('more came than the leader has announced')
      return
    }
    const { data } = message
    if (Number(message.headers?.get(OFFSET)) !== this.#receivedBytes) {
      this.#fail('a piece is missing')
      return
    }
    if (this.#receivedBytes + data.length > this.#totalBytes) {
      this.#fail('more came than the leader has announced')
      return
    }
    try {
      writeSync(this.#file, data)
      this.#hash.update(data)
      this.#receivedBytes += data.length
      const sum = message.headers?.get(SHA256) ?? ''
      if (sum === '') this.#progress({ receivedBytes: this.#receivedBytes, totalBytes: this.#totalBytes })
      else this.#complete(sum)
      message.respond()
      this.#expectMore()
    } catch (error) {
      this.#end(storageError(error, 'the copy'))
    }
  }

  #complete(sum: string): void {
    fsyncSync(this.#file)
    if (sum === this.#hash.digest('hex') && this.#receivedBytes === this.#totalBytes) this.#end()
    else this.#fail('its checksum is wrong')
  }

  #expectMore(): void {
    clearTimeout(this.#late)
    this.#late = setTimeout(() => this.#fail('the leader sent nothing for 10 s'), PIECE_MS)
  }

  #fail(reason: string): void {
    this.#end(new StorageError('IO', `the copy of the leader's database did not come whole: ${reason}`))
  }
}
