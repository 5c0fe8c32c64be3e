/** The WebSocket of Node before version 22, which has none of its own. */
export { WebSocket as NodeWebSocket } from 'ws'
