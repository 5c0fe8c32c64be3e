/**
 * A link carries bytes both ways: over TCP, a WebSocket or, in tests, a pair of streams. It has what a session needs of a
 * connection, and nothing more.
 */
export interface Link {
  /** Queues bytes, which must not change before `written` is called: once, when they have left this process or never will. */
  write(bytes: Uint8Array, written?: () => void): void
  /** Queues a text message, on a WebSocket. */
  writeText?(text: string, written?: () => void): void
  /** Stops reading until `resume`, so that the peer is slowed down. */
  pause(): void
  resume(): void
  /** Closes once everything written is out. `code` and `reason` (at most 123 bytes) are those of a WebSocket. */
  end(code?: number, reason?: string): void
  /** Closes now. */
  destroy(): void
  /** Sets the listener, before anything arrives. A second one replaces the first: a layer comes between. */
  listen(listener: LinkListener): void
}

export interface LinkListener {
  /** `chunk` is valid until the end of the turn. */
  data(chunk: Uint8Array): void
  /** A text message, on a WebSocket. */
  text?(message: string): void
  /** The peer sends no more, but may still read. The session ends the link once it has answered. */
  finished(): void
  /** Called by a layer that can no longer read what arrives. Writing still works, so `detail` can be sent to the peer. */
  broken?(detail: string): void
  /** Called once, whichever side closed: nothing is read or written any more. */
  closed(): void
}
