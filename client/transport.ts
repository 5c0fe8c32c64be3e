/**
 * What carries the bytes, as the client core sees it; client/dial makes them. Nothing is delivered before `open`,
 * so that no byte is lost between dialling and listening.
 */
export interface Transport {
  /** Whether nobody on the way can read along. */
  readonly encrypted: boolean
  /** Whether the bytes never leave this machine. */
  readonly loopback: boolean
  /** To be called once. */
  open(listener: TransportListener): void
  /** Takes ownership of `bytes`. */
  send(bytes: Uint8Array): void
  /** Asks for no more bytes until `resume`; what was already on its way may still come. */
  pause(): void
  resume(): void
  /** Closes once what was sent has gone out. Harmless when closed. */
  close(): void
}

export interface TransportListener {
  /** `bytes` may be a view of a buffer that is used again. */
  data(bytes: Uint8Array): void
  /** Once, whichever end closed. `cause` where something broke. */
  closed(cause?: Error): void
}
