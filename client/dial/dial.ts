/** Chooses the transport by the URL's scheme. What is not needed is not loaded. */
import { ConnectionError } from '../errors.ts'
import type { Security } from '../security.ts'
import type { Transport } from '../transport.ts'
import { parseUrl } from './url.ts'

/**
 * Throws ConnectionError BAD_URL, BAD_TLS, UNTRUSTED, UNREACHABLE. Once `signal` is aborted it throws and leaves nothing
 * open. The layers of `wrap` are not put on yet, but can be.
 */
export async function dial(text: string, signal: AbortSignal, security: Security = {}): Promise<Transport> {
  const url = parseUrl(text, ['tcp:', 'tls:', 'ws:', 'wss:'])
  const { wrap = [] } = security
  if (wrap.includes('tls') && url.protocol !== 'tcp:') {
    const instead =
      url.protocol === 'ws:' ? 'use wss:// instead' : `leave it out: ${url.protocol}// is under TLS already`
    throw new ConnectionError('BAD_URL', `the layer \`tls\` is for tcp:// only; ${instead}`)
  }
  const transport = await carrier(url, signal, security)
  if (!wrap.includes('deflate')) return transport
  const { deflatable } = await import('./deflate.ts')
  return deflatable(transport)
}

async function carrier(url: URL, signal: AbortSignal, { tls, wrap }: Security): Promise<Transport> {
  switch (url.protocol) {
    case 'tcp:': {
      const startTls = wrap?.includes('tls') ? await (await import('./tls.ts')).tlsLayer(url, tls) : undefined
      const { dialTcp } = await import('./tcp.ts')
      signal.throwIfAborted()
      return dialTcp(url, signal, startTls)
    }
    case 'tls:': {
      const { dialTls } = await import('./tls.ts')
      return dialTls(url, signal, tls)
    }
    default: {
      const { dialWebSocket } = await import('./websocket.ts')
      const { nodeWebSocket } = await import('./node-websocket.ts')
      const { clientTls, handshakeError } = await import('./tls.ts')
      const settings = url.protocol === 'wss:' ? await clientTls(url, tls) : {}
      signal.throwIfAborted()
      return dialWebSocket(url, nodeWebSocket(settings), signal, (error) => handshakeError(url, error))
    }
  }
}
