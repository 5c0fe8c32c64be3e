/**
 * A transport carries the bytes of a connection; client/dial has the ones that there are. It delivers nothing before `open`,
 * so that no byte is lost between dialling and listening.
 */
export interface Transport {
  /** Whether nobody on the way can read along: TLS is used, and the other end's certificate was verified. */
  readonly encrypted: boolean
  /** Whether the bytes never leave this machine. */
  readonly loopback: boolean
  /** 32 bytes that only the two ends of this TLS 1.3 connection know (RFC 9266). */
  readonly exporter?: Uint8Array | undefined
  /** To be called once. */
  open(listener: TransportListener): void
  /** Takes ownership of `bytes`. `isSecret`: they must not be compressed together with anything else. */
  send(bytes: Uint8Array, isSecret?: boolean): void
  /** Asks for no more bytes until `resume`. Those already on their way may still arrive. */
  pause(): void
  resume(): void
  /** Closes after everything given to `send` was sent. Does nothing if it is closed already. */
  close(): void
  /**
   * Adds a layer below everything that follows, in both directions [MON 12]. `rest` has arrived after the response to WRAP.
   * Nothing may be sent until the promise settles; it rejects with ConnectionError. Absent if there are no layers.
   */
  wrap?(layer: Layer, rest: Uint8Array): Promise<void>
}

/** The properties of a transport that decide how to log in. */
export type TransportSecurity = Pick<Transport, 'encrypted' | 'loopback' | 'exporter'>

/** The layers that WRAP can add. */
export type Layer = 'tls' | 'deflate'

export interface TransportListener {
  /** `bytes` may be a view of a buffer that is used again. */
  data(bytes: Uint8Array): void
  /** Called once, whichever end closed. `cause` is given if something broke. */
  closed(cause?: Error): void
}

/** Each is a PEM file or its text. Files are read anew for each connection. */
export interface TlsOptions {
  /** The certificates of the authorities that are trusted to sign the other end's; those of Node if it is not given. */
  readonly ca?: string | undefined
  /** Our own certificate with its chain. */
  readonly cert?: string | undefined
  readonly key?: string | undefined
  /** The name that the other end's certificate must be for, if it is not the host of the URL. */
  readonly servername?: string | undefined
  /** With false any certificate is accepted. Passwords and tokens are then sent only to this machine. */
  readonly rejectUnauthorized?: boolean | undefined
}

/** How a connection is to be protected, on Node. A browser has its own certificates, and no layers. */
export interface Security {
  /** For `tls://` and `wss://`, and for the layer `tls`. */
  readonly tls?: TlsOptions | undefined
  /** The layers to add [MON 12]: `tls` before the login, over `tcp://`; `deflate` after it. There is no fallback without. */
  readonly wrap?: readonly Layer[] | undefined
}
