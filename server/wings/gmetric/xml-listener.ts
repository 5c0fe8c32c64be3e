/**
 * A TCP listener that answers every connection with one document and closes it, whatever the reader sends. A reader gets the
 * complete document or a reset. A document is made over many turns of the event loop, once for all readers within a second.
 * Slow readers are bounded in number, in time, and in the bytes of the documents they hold.
 */
import { createServer, type Socket } from 'node:net'
import { type Address, bindTcp } from '../../kit/io/address.ts'

const MAX_READERS = 64
const READING_MS = 30_000
const MAX_HELD_BYTES = 256 * 1024 * 1024
const SAME_FOR_MS = 1000
/** These take about a millisecond. */
const CHARACTERS_A_TURN = 256 * 1024

export interface DocumentsOptions {
  readonly address: Address
  /** The configuration key, for the error if the address cannot be bound. */
  readonly key: string
  /** Whether an address may read the document. Checked when it connects, and again when the document is complete. */
  readonly allowed: (source: string) => boolean
  /** The document in pieces of ASCII, read over many turns. */
  readonly document: () => Iterable<string>
  /** Called if the document could not be made. */
  readonly failed: (error: unknown) => void
  /** The time in ms that a reader may take; half a minute by default. */
  readonly readingMs?: number
}

export interface DocumentCounts {
  /** Documents that were read completely. */
  served: number
  /** Connections from addresses that may not read the document. */
  refused: number
  /** Connections beyond the limit, that took too long, or whose document could not be made. */
  cutOff: number
}

export interface DocumentsListening {
  readonly address: Address
  readonly counts: Readonly<DocumentCounts>
  close(): Promise<void>
}

interface Document {
  readonly bytes: Buffer
  readers: number
}

/** Rejects with ListenError. */
export async function listenDocuments(options: DocumentsOptions): Promise<DocumentsListening> {
  const { address, key, allowed, readingMs = READING_MS } = options
  const server = createServer({ allowHalfOpen: true })
  const bound = await bindTcp(server, address, key)
  const counts: DocumentCounts = { served: 0, refused: 0, cutOff: 0 }
  const documents = new Documents(options)
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    // The content of what a reader sends does not matter, but it must be read: a reset would lose the document.
    socket.on('error', () => {})
    const source = socket.remoteAddress ?? ''
    const isAllowed = allowed(source)
    if (!isAllowed || sockets.size >= MAX_READERS) {
      if (isAllowed) counts.cutOff++
      else counts.refused++
      socket.resetAndDestroy()
      return
    }
    sockets.add(socket)
    socket.resume()
    const late = setTimeout(() => {
      if (!socket.writableFinished) counts.cutOff++
      socket.resetAndDestroy()
    }, readingMs)
    let held: Document | undefined
    socket.once('close', () => {
      clearTimeout(late)
      sockets.delete(socket)
      if (held) documents.release(held)
    })
    documents.take().then(
      (document) => {
        const isAllowed = allowed(source)
        if (document === undefined) counts.cutOff++
        else if (!isAllowed) counts.refused++
        if (document === undefined || !isAllowed || socket.destroyed) {
          if (document) documents.release(document)
          socket.resetAndDestroy()
          return
        }
        held = document
        // The socket is closed only when the reader closes: more data from it would reset the connection before it has read all.
        socket.once('finish', () => counts.served++)
        socket.end(document.bytes)
      },
      () => {
        counts.cutOff++
        socket.resetAndDestroy()
      },
    )
  })
  return {
    address: bound,
    counts,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        for (const socket of sockets) socket.resetAndDestroy()
      }),
  }
}

/** The latest document, and the bytes of those that are still being read. */
class Documents {
  readonly #options: Pick<DocumentsOptions, 'document' | 'failed'>
  #latest: Promise<Document> | undefined
  #heldBytes = 0

  constructor(options: Pick<DocumentsOptions, 'document' | 'failed'>) {
    this.#options = options
  }

  /** Returns a document, which must be released, or undefined if too many bytes are held. Rejects if it cannot be made. */
  async take(): Promise<Document | undefined> {
    this.#latest ??= this.#next()
    const document = await this.#latest
    if (document.readers === 0) {
      if (this.#heldBytes > 0 && this.#heldBytes + document.bytes.length > MAX_HELD_BYTES) return undefined
      this.#heldBytes += document.bytes.length
    }
    document.readers++
    return document
  }

  release(document: Document): void {
    if (--document.readers === 0) this.#heldBytes -= document.bytes.length
  }

  async #next(): Promise<Document> {
    try {
      return await this.#build()
    } catch (error) {
      this.#options.failed(error)
      throw error
    } finally {
      setTimeout(() => {
        this.#latest = undefined
      }, SAME_FOR_MS).unref()
    }
  }

  async #build(): Promise<Document> {
    const parts: Buffer[] = []
    let piece = ''
    for (const text of this.#options.document()) {
      piece += text
      if (piece.length < CHARACTERS_A_TURN) continue
      parts.push(Buffer.from(piece, 'latin1'))
      piece = ''
      await new Promise((resolve) => setImmediate(resolve))
    }
    parts.push(Buffer.from(piece, 'latin1'))
    return { bytes: Buffer.concat(parts), readers: 0 }
  }
}
