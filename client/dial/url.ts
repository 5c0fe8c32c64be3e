/** URLs that can be dialled, and their hosts. */
import { ConnectionError } from '../errors.ts'

const MONITOR_PATH = '/monitor'

/** Throws ConnectionError BAD_URL. `schemes` are spelled as URL has them: `tcp:`. */
export function parseUrl(text: string, schemes: readonly string[]): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined
  // The message does not repeat the text: it may contain a secret, even if it cannot be parsed.
  if (text.includes('@')) {
    throw new ConnectionError('BAD_URL', 'the URL contains a user or password: pass them as credentials instead')
  }
  if (!url?.hostname) {
    const examples = 'tcp://127.0.0.1:7650 or ws://127.0.0.1:7651/monitor'
    throw new ConnectionError('BAD_URL', `"${text}" is not a URL such as ${examples}`)
  }
  if (schemes.includes(url.protocol)) return withPath(url, text)
  const known = schemes.map((scheme) => `${scheme}//`).join(', ')
  throw new ConnectionError('BAD_URL', `cannot dial ${url.protocol}// here: use one of ${known}`)
}

/** A WebSocket without a path is that of the server; behind a proxy, `/` may be another one. */
function withPath(url: URL, text: string): URL {
  if (/^wss?:$/.test(url.protocol) && url.pathname === '/' && !/[/?#]$/.test(text)) url.pathname = MONITOR_PATH
  return url
}

/** The host without the brackets that an IPv6 address has in a URL. */
export function hostOf(url: URL): string {
  return url.hostname.replace(/^\[(.*)\]$/, '$1')
}

/** Whether an address, or a host name as in a URL, certainly is this machine. */
export function isLoopbackHost(host: string): boolean {
  return host === 'localhost' || /^(::ffff:)?127\.\d+\.\d+\.\d+$/.test(host) || /^(::1|\[::1\])$/.test(host)
}
