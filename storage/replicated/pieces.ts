/**
 * Copies of what the leader has, over NATS, in pieces, a few ahead of the receiver. The receiver names an inbox; the leader answers how
 * many bytes there will be, and sends pieces there, each of which is answered. The last piece is empty and has the SHA-256 of all.
 */
import { createHash } from 'node:crypto'
import {
  createInbox,
  headers,
  type Msg,
  type NatsConnection,
  RequestError,
  type Subscription,
} from '@nats-io/transport-node'
import { storageError } from '../sqlite/errors.ts'
import { StorageError } from '../store.ts'
import type { CopyProgress } from './role.ts'

/** The bytes of a piece; with its headers it fits into the 1 MiB that a nats-server takes by default. */
export const PIECE_BYTES = 512 * 1024
/** Pieces under way. */
const AHEAD = 16
/** How long a receiver may take for a piece, and the leader to begin and between two pieces. */
const PIECE_MS = 10_000
const BEGIN_MS = 600_000
/** Where a copy may be sent: to an inbox, as clients of NATS make them, and nowhere else. */
const INBOX = /^_INBOX\.[A-Za-z0-9_-]{1,64}(?:\.[A-Za-z0-9_-]{1,64})?$/
const MAX_INBOX_BYTES = 256
/** Characters of the leader's reason for a refusal that are shown. */
const MAX_REFUSAL = 400
const OFFSET = 'Cin-Offset'
const SHA256 = 'Cin-Sha256'

/** What is sent to a node that asks for a copy. */
export interface Offered {
  readonly bytes: number
  /** What the first answer says besides. */
  readonly more?: object
  readonly content: AsyncIterable<Uint8Array>
  /** It was sent, or is not sent any more. */
  readonly release: () => void
}

/** Sends copies to nodes that ask for one, one after the other. */
export class PieceSender {
  readonly #connection: NatsConnection
  readonly #offer: (isCancelled: () => boolean) => Promise<Offered>
  readonly #stopping = new AbortController()
  #isBusy = false

  /** `offer` makes what is sent. `queue`: of all that send at this subject, one is asked. */
  constructor(
    connection: NatsConnection,
    subject: string,
    offer: (isCancelled: () => boolean) => Promise<Offered>,
    queue?: string,
  ) {
    this.#connection = connection
    this.#offer = offer
    connection.subscribe(subject, {
      ...(queue !== undefined && { queue }),
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
    let offered: Offered | undefined
    try {
      offered = await this.#offer(() => this.#stopping.signal.aborted)
      message.respond(JSON.stringify({ ...offered.more, bytes: offered.bytes }))
      await this.#send(offered.content, to)
    } catch (error) {
      message.respond(JSON.stringify({ refused: storageError(error, 'the copy').message }))
    } finally {
      offered?.release()
      this.#isBusy = false
    }
  }

  async #send(content: AsyncIterable<Uint8Array>, to: string): Promise<void> {
    const hash = createHash('sha256')
    const underWay = new Set<Promise<unknown>>()
    let failure: unknown
    let offset = 0
    const request = (piece: Uint8Array, sum?: string): void => {
      const h = headers()
      h.set(OFFSET, String(offset))
      if (sum !== undefined) h.set(SHA256, sum)
      const sent = this.#connection
        .request(to, piece, { headers: h, timeout: PIECE_MS })
        .catch((error: unknown) => {
          failure ??= error
        })
        .finally(() => underWay.delete(sent))
      underWay.add(sent)
      offset += piece.length
    }
    for await (const piece of content) {
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

/** What takes the bytes of a copy. Its methods may throw. */
export interface PieceSink {
  write(bytes: Uint8Array): void
  /** Everything has come: it is made durable. */
  sync(): void
  close(): void
}

/** Takes the pieces of a copy, in order, and answers each when it is written. */
export class PieceReceiver {
  readonly subject = createInbox()
  readonly whenComplete: Promise<void>
  readonly #sink: PieceSink
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
    sink: PieceSink,
    progress: (progress: CopyProgress) => void,
    signal: AbortSignal,
  ) {
    this.#sink = sink
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

  /** Asks whoever sends copies at a subject, and settles when everything has come: with false if nobody does. `begins` is given the first answer. */
  async receive(
    connection: NatsConnection,
    subject: string,
    begins: (answer: unknown) => void = () => {},
  ): Promise<boolean> {
    try {
      const asked = connection.request(subject, this.subject, { timeout: BEGIN_MS })
      // Nobody waits for it after the receiver has failed.
      asked.catch(() => {})
      const answer = await Promise.race([asked, this.whenComplete])
      if (answer !== undefined) {
        const said: unknown = answer.json()
        begins(said)
        this.#begin(said)
      }
      await this.whenComplete
      return true
    } catch (error) {
      if (error instanceof RequestError && error.isNoResponders()) return false
      throw error
    } finally {
      this.#close()
    }
  }

  /** The leader's first answer. */
  #begin(answer: unknown): void {
    const { bytes, refused } = (answer ?? {}) as { readonly bytes?: unknown; readonly refused?: unknown }
    if (typeof refused === 'string') this.#fail(refused.slice(0, MAX_REFUSAL))
    else if (!Number.isSafeInteger(bytes) || Number(bytes) < 0) this.#fail('the leader answered nothing known')
    else this.#totalBytes = Number(bytes)
    this.#expectMore()
    for (const message of this.#early.splice(0)) this.#take(message)
  }

  #close(): void {
    this.#isOpen = false
    clearTimeout(this.#late)
    this.#signal.removeEventListener('abort', this.#abort)
    this.#subscription.unsubscribe()
    this.#sink.close()
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
      this.#sink.write(data)
      this.#hash.update(data)
      this.#receivedBytes += data.length
      const sum = message.headers?.get(SHA256) ?? ''
      if (sum === '') this.#progress({ receivedBytes: this.#receivedBytes, totalBytes: this.#totalBytes })
      else this.#complete(sum)
      message.respond()
      this.#expectMore()
    } catch (error) {
      this.#end(error instanceof StorageError ? error : storageError(error, 'the copy'))
    }
  }

  #complete(sum: string): void {
    this.#sink.sync()
    if (sum === this.#hash.digest('hex') && this.#receivedBytes === this.#totalBytes) this.#end()
    else this.#fail('its checksum is wrong')
  }

  #expectMore(): void {
    clearTimeout(this.#late)
    this.#late = setTimeout(() => this.#fail('the leader sent nothing for 10 s'), PIECE_MS)
  }

  #fail(reason: string): void {
    this.#end(new StorageError('IO', `a copy of what the leader has did not come whole: ${reason}`))
  }
}
