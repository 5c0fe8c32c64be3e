/** The WebSocket on Node: that of `ws`, also where Node has one of its own, since only `ws` can stop reading. */
export { WebSocket as NodeWebSocket } from 'ws'
