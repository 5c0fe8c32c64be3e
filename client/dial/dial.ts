/** Chooses the transport by the URL's scheme. Loaded when needed: a browser never meets `node:net` or `ws`. */
import { ConnectionError } from '../errors.ts'
import type { Transport } from '../transport.ts'

/** Throws ConnectionError BAD_URL, UNREACHABLE. Once `signal` is aborted it throws and leaves nothing open. */
export async function dial(text: string, signal: AbortSignal): Promise<Transport> {
  const url = parse(text)
  switch (url.protocol) {
    case 'tcp:': {
      const { dialTcp } = await import('./tcp.ts')
      signal.throwIfAborted()
      return dialTcp(url, signal)
    }
    case 'ws:':
    case 'wss:': {
      const { dialWebSocket } = await import('./websocket.ts')
      const WebSocket = await webSocketConstructor()
      signal.throwIfAborted()
      return dialWebSocket(url, WebSocket, signal)
    }
    default:
      throw new ConnectionError('BAD_URL', `cannot dial ${url.protocol}//: use tcp://, ws:// or wss://`)
  }
}

function parse(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined
  // Not repeated in the message: a secret may stand in it.
  if (url && (url.username || url.password)) {
    throw new ConnectionError('BAD_URL', 'the URL names a user or password: give them apart from it')
  }
  if (url?.hostname) return url
  throw new ConnectionError('BAD_URL', `"${text}" is no URL like tcp://127.0.0.1:7650 or ws://127.0.0.1:7651/monitor`)
}

async function webSocketConstructor() {
  if (globalThis.WebSocket) return globalThis.WebSocket
  const { NodeWebSocket } = await import('./node-websocket.ts')
  return NodeWebSocket
}
