/** Chooses the transport by the URL's scheme. What is not needed is not loaded. */
import type { Transport } from '../transport.ts'
import { parseUrl } from './url.ts'

/** Throws ConnectionError BAD_URL, UNREACHABLE. Once `signal` is aborted it throws and leaves nothing open. */
export async function dial(text: string, signal: AbortSignal): Promise<Transport> {
  const url = parseUrl(text, ['tcp:', 'ws:', 'wss:'])
  if (url.protocol === 'tcp:') {
    const { dialTcp } = await import('./tcp.ts')
    signal.throwIfAborted()
    return dialTcp(url, signal)
  }
  const { dialWebSocket } = await import('./websocket.ts')
  const { NodeWebSocket } = await import('./node-websocket.ts')
  signal.throwIfAborted()
  return dialWebSocket(url, NodeWebSocket, signal)
}
