/**
 * WebSockets on Node, by `ws`, even if Node has a WebSocket of its own: only that of `ws` can stop reading, and gives access
 * to the TLS connection below it.
 */
import { TLSSocket } from 'node:tls'
import { WebSocket } from 'ws'
import type { TlsOptions, Transport } from '../transport.ts'
import { exporterOf } from './stream.ts'
import { type ClientTls, clientTls, handshakeError } from './tls.ts'
import { dialWebSocket, type WebSocketConstructor } from './websocket.ts'

/** Dials `ws://` and `wss://`. */
export async function dialNodeWebSocket(
  url: URL,
  signal: AbortSignal,
  tls: TlsOptions | undefined,
): Promise<Transport> {
  const settings = url.protocol === 'wss:' ? await clientTls(url, tls) : {}
  signal.throwIfAborted()
  return dialWebSocket(url, nodeWebSocket(settings), signal, (error) => handshakeError(url, error))
}

function nodeWebSocket(tls: ClientTls): WebSocketConstructor {
  return class NodeWebSocket extends WebSocket {
    /** Remains false without TLS. */
    isVerified = false
    /** The exporter of the TLS connection; undefined without TLS 1.3. */
    exporter: Uint8Array | undefined

    constructor(url: string, protocols: string[]) {
      // Compression is the job of the layer `deflate`: that of WebSockets would compress secrets together with values.
      super(url, protocols, { ...tls, perMessageDeflate: false })
      this.once('upgrade', ({ socket }) => {
        if (!(socket instanceof TLSSocket)) return
        this.isVerified = socket.authorized
        this.exporter = exporterOf(socket)
      })
    }
  }
}
