/**
 * What carries the bytes, as the client core sees it; client/dial makes them. Nothing is delivered before `open`,
 * so that no byte is lost between dialling and listening.
 */
export interface Transport {
  /** Whether nobody on the way can read along: under TLS, with the other end's certificate verified. */
  readonly encrypted: boolean
  /** Whether the bytes never leave this machine. */
  readonly loopback: boolean
  /** 32 bytes that only the two ends of this TLS 1.3 connection know (RFC 9266). */
  readonly exporter?: Uint8Array | undefined
  /** To be called once. */
  open(listener: TransportListener): void
  /** Takes ownership of `bytes`. `isSecret`: they are not to be compressed together with anything else. */
  send(bytes: Uint8Array, isSecret?: boolean): void
  /** Asks for no more bytes until `resume`; what was already on its way may still come. */
  pause(): void
  resume(): void
  /** Closes once what was sent has gone out. Harmless when closed. */
  close(): void
  /**
   * Puts a layer under everything that follows, both ways [MON 12]; `rest` has arrived behind the response to WRAP. Nothing
   * may be sent before it settles. Rejects with ConnectionError. Left out where there are no layers.
   */
  wrap?(layer: Layer, rest: Uint8Array): Promise<void>
}

/** What of it decides how to log in. */
export type Wire = Pick<Transport, 'encrypted' | 'loopback' | 'exporter'>

/** What WRAP can put under a connection. */
export type Layer = 'tls' | 'deflate'

export interface TransportListener {
  /** `bytes` may be a view of a buffer that is used again. */
  data(bytes: Uint8Array): void
  /** Once, whichever end closed. `cause` where something broke. */
  closed(cause?: Error): void
}
