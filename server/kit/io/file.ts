/**
 * A file as a stream: its content from start to end and, if it is followed, whatever is appended later. If it was truncated,
 * or replaced by another file, a new stream begins after the old one was processed to its end.
 */
import { constants } from 'node:fs'
import { type FileHandle, open as openFile } from 'node:fs/promises'
import type { Clock, Timer } from '../../kernel/core/clock.ts'
import type { PacedStream, Pacer, StreamTaker } from './pacer.ts'

const POLL_MS = 500
const PIECE_BYTES = 64 << 10
/** Opening a pipe, which is refused afterwards, must not block until it has a writer. */
const OPEN_FLAGS = constants.O_RDONLY | constants.O_NONBLOCK

export interface FileOptions {
  readonly path: string
  readonly follow: boolean
  readonly clock: Pick<Clock, 'setTimeout' | 'clear'>
  readonly pacer: Pacer
  /** Called when a stream begins; returns what takes its bytes, undefined if nothing does. */
  readonly open: () => StreamTaker | undefined
  /** Called once if the file cannot be read; a followed file is tried again. */
  readonly failed: (error: Error) => void
}

/** Starts immediately. */
export function followFile(options: FileOptions): { close(): Promise<void> } {
  const following = new Following(options)
  return { close: () => following.close() }
}

class Following {
  readonly #options: FileOptions
  #handle: FileHandle | undefined
  #inode = 0
  #offset = 0
  #feed: PacedStream | undefined
  /** Whether the pacer has paused the reader. */
  #isPaused = false
  #hasFailed = false
  #isClosed = false
  #timer: Timer | undefined
  /** Ends a wait for the pacer. */
  #wake: () => void = () => {}
  #reading: Promise<void>

  constructor(options: FileOptions) {
    this.#options = options
    this.#reading = this.#poll()
  }

  async close(): Promise<void> {
    this.#isClosed = true
    if (this.#timer !== undefined) this.#options.clock.clear(this.#timer)
    this.#wake()
    await this.#reading
    await this.#handle?.close()
  }

  async #poll(): Promise<void> {
    const { follow, failed, clock } = this.#options
    try {
      // Data may have been appended before the file was moved away.
      if (this.#handle !== undefined) await this.#read(this.#handle)
      const handle = await this.#replaced()
      if (handle !== undefined) await this.#read(handle)
      this.#hasFailed = false
    } catch (error) {
      if (!this.#hasFailed) failed(error as Error)
      this.#hasFailed = true
    }
    if (this.#isClosed || !follow) return
    this.#timer = clock.setTimeout(() => {
      this.#reading = this.#poll()
    }, POLL_MS)
  }

  /** Begins a new stream if the file was replaced or truncated. */
  async #replaced(): Promise<FileHandle | undefined> {
    const handle = await openFile(this.#options.path, OPEN_FLAGS)
    const status = await handle.stat()
    const isNew = this.#handle === undefined || status.ino !== this.#inode || status.size < this.#offset
    if (!isNew || !status.isFile()) {
      await handle.close()
      if (isNew) throw new Error('not a regular file')
      return undefined
    }
    await this.#handle?.close()
    this.#handle = handle
    this.#inode = status.ino
    this.#offset = 0
    const ended = this.#feed && this.#wait()
    this.#feed?.end()
    await ended
    this.#feed = this.#isClosed ? undefined : this.#begin()
    return handle
  }

  #begin(): PacedStream | undefined {
    const taker = this.#options.open()
    if (taker === undefined) return undefined
    const taking = {
      push: (bytes: Uint8Array) => taker.push(bytes),
      end: () => {
        taker.end()
        this.#wake()
      },
    }
    const reading = {
      pause: () => {
        this.#isPaused = true
      },
      resume: () => {
        this.#isPaused = false
        this.#wake()
      },
      // The rest is read and dropped, until another file takes its place.
      destroy: () => {
        this.#isPaused = false
        this.#wake()
      },
    }
    return this.#options.pacer.feed(taking, reading)
  }

  async #read(handle: FileHandle): Promise<void> {
    while (!this.#isClosed) {
      const { bytesRead, buffer } = await handle.read(new Uint8Array(PIECE_BYTES), 0, PIECE_BYTES, this.#offset)
      if (bytesRead === 0) return
      this.#offset += bytesRead
      this.#feed?.push(buffer.subarray(0, bytesRead))
      if (this.#isPaused) await this.#wait()
    }
  }

  #wait(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve
    })
  }
}
