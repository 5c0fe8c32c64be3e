/** The door of the consumer library in a browser: the same as on Node, over `ws://` and `wss://` only. */
import { type Connect, connector } from './connect.ts'
import { parseUrl } from './dial/url.ts'
import { dialWebSocket } from './dial/websocket.ts'
import { ConnectionError } from './errors.ts'

export * from './public.ts'

/** Connects to `ws://host:port/monitor` or `wss://`, and logs in. Rejects with ConnectionError. */
export const connect: Connect = connector(
  (text, signal) => dialWebSocket(parseUrl(text, ['ws:', 'wss:']), WebSocket, signal),
  () => Promise.reject(new ConnectionError('NO_LAYER', 'a page cannot put on layers: use wss://')),
)
