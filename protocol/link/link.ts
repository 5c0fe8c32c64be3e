/**
 * A link carries bytes both ways; TCP, WebSocket and (in tests) a pair of streams become one. What a session needs of a
 * connection, and nothing more.
 */
export interface Link {
  /** Queues bytes. `written` is called once when they have left this process, or never will. The bytes must not change before. */
  write(bytes: Uint8Array, written?: () => void): void
  /** No more is read until `resume`: the peer feels it. */
  pause(): void
  resume(): void
  /** Closes after what was written is out. `code` and `reason` (at most 123 bytes) are a WebSocket's. */
  end(code?: number, reason?: string): void
  /** Closes now. */
  destroy(): void
  /** Set before anything arrives; set again, it takes the place of the one before: a layer comes between. */
  listen(listener: LinkListener): void
}

export interface LinkListener {
  /** `chunk` is valid until the end of the turn. */
  data(chunk: Uint8Array): void
  /** A text message, on a WebSocket. */
  text?(message: string): void
  /** The peer sends no more; it may still read. The session ends the link when it has answered. */
  finished(): void
  /** Of a layer: what arrives cannot be read any more. Writing goes on, so that the peer can be told `detail`. */
  broken?(detail: string): void
  /** Once, whoever closed: nothing is read or written any more. */
  closed(): void
}
