/** The entry of the client library in a browser: as on Node, but over `ws://` and `wss://` only. */
import { type Connect, connector } from './connect.ts'
import { parseUrl } from './dial/url.ts'
import { dialWebSocket, type WebSocketConstructor } from './dial/websocket.ts'

export * from './public.ts'

/** Connects to `ws://host:port/monitor` or `wss://`, and logs in. Rejects with ConnectionError. */
export const connect: Connect = connector((text, signal) =>
  // With the types of a browser, `send` takes no view of shared memory, which is never given to it.
  dialWebSocket(parseUrl(text, ['ws:', 'wss:']), WebSocket as unknown as WebSocketConstructor, signal),
)
