/** How a connection is to be protected, on Node. A browser knows its own certificates, and has no layers. */
import type { Layer } from './transport.ts'

/** Each a file in PEM, or its text. Files are read anew for each connection. */
export interface TlsOptions {
  /** Who may have signed the other end's certificate; those that Node trusts unless given. */
  readonly ca?: string | undefined
  /** Our own certificate, with its chain. */
  readonly cert?: string | undefined
  readonly key?: string | undefined
  /** The name that the certificate has to be for, where it is not the host of the URL. */
  readonly servername?: string | undefined
  /** False: anybody's certificate is taken. Passwords and tokens are then not sent but to this machine. */
  readonly rejectUnauthorized?: boolean | undefined
}

export interface Security {
  /** For `tls://` and `wss://`, and for the layer `tls`. */
  readonly tls?: TlsOptions | undefined
  /** Layers to be put on [MON 12]: `tls` before the login, over `tcp://`; `deflate` behind it. Never done without. */
  readonly wrap?: readonly Layer[] | undefined
}
