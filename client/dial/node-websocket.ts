/** The WebSocket on Node: that of `ws`, also where Node has one of its own, since only `ws` can stop reading. */
import { TLSSocket } from 'node:tls'
import { WebSocket } from 'ws'
import { exporterOf } from './stream.ts'
import type { ClientTls } from './tls.ts'
import type { WebSocketConstructor } from './websocket.ts'

/** `tls`: for `wss://`. */
export function nodeWebSocket(tls: ClientTls = {}): WebSocketConstructor {
  return class NodeWebSocket extends WebSocket {
    isVerified = false
    exporter: Uint8Array | undefined

    constructor(url: string, protocols: string[]) {
      // Compression is the layer `deflate`: that of WebSockets would put secrets and values into one pot.
      super(url, protocols, { ...tls, perMessageDeflate: false })
      this.once('upgrade', ({ socket }) => {
        if (!(socket instanceof TLSSocket)) return
        this.isVerified = socket.authorized
        this.exporter = exporterOf(socket)
      })
    }
  }
}
