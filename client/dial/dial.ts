/** Chooses the transport by the URL's scheme, and loads only what it needs. */
import { ConnectionError } from '../errors.ts'
import type { Security, Transport } from '../transport.ts'
import { parseUrl } from './url.ts'

/**
 * Throws ConnectionError BAD_URL, BAD_TLS, UNTRUSTED, UNREACHABLE. Once `signal` is aborted it throws and leaves nothing
 * open. The layers of `wrap` can be added later.
 */
export async function dial(text: string, signal: AbortSignal, security: Security = {}): Promise<Transport> {
  const url = parseUrl(text, ['tcp:', 'tls:', 'ws:', 'wss:'])
  const { wrap = [] } = security
  if (wrap.includes('tls') && url.protocol !== 'tcp:') {
    const instead = url.protocol === 'ws:' ? 'use wss:// instead' : `omit it: ${url.protocol}// uses TLS already`
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
      const { dialTcp } = await import('./stream.ts')
      signal.throwIfAborted()
      return dialTcp(url, signal, startTls)
    }
    case 'tls:': {
      const { dialTls } = await import('./tls.ts')
      return dialTls(url, signal, tls)
    }
    default: {
      const { dialNodeWebSocket } = await import('./node-websocket.ts')
      return dialNodeWebSocket(url, signal, tls)
    }
  }
}
