/**
 * The URL of DEF_CHANNEL [MON 14]. Its host is parsed as browsers parse it, so that every spelling of an address becomes that
 * address: `0x7f.1`, `2130706433`, `１２７.0.0.1` and `%31%32%37.0.0.1` are all 127.0.0.1. The parsed form is the one that is
 * checked, stored and connected to.
 */
import { isIP } from 'node:net'
import { MAX_URL_BYTES } from '../../../protocol/monitor/constants.ts'
import { type DialScheme, dialPorts, type RequestScheme, requestPorts } from '../../kernel/config/destination.ts'
import { StatusError } from '../../kernel/core/errors.ts'

export interface Destination {
  readonly scheme: DialScheme
  /** A name in lower case without a trailing dot, or an address without brackets. */
  readonly host: string
  readonly isAddress: boolean
  readonly port: number
  /** Empty unless it is that of a WebSocket or of a request. */
  readonly path: string
  /** The canonical spelling, with the port. */
  readonly url: string
  /** True if values are only pushed: the peer sends no commands, so there is no session. */
  readonly isPush: boolean
  /** True if they are pushed by requests of HTTP. */
  readonly isHttp: boolean
}

const SHAPE = /^(tcp|tls|wss?|gmetric|(?:prometheus|otlp)\+https?):\/\/(\[[^\]]*\]|[^[\]:/]+)(?::(\d{1,5}))?(\/.*)?$/i
const NAME = /^(?=.{1,253}$)[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*$/

/** Throws StatusError INVALID_ARGUMENT, which does not repeat the URL because it may contain a secret. */
export function parseDestination(text: string): Destination {
  if (Buffer.byteLength(text) > MAX_URL_BYTES) throw refused(`it is longer than ${MAX_URL_BYTES} bytes`)
  if (text.includes('@'))
    throw refused('it contains a user or password; the consumer proves its identity with `secret` instead')
  if (/[?#]/.test(text)) throw refused('it has a query or fragment')
  if (/[\s\\\p{Cc}]/u.test(text)) throw refused('it contains spaces, backslashes or control characters')
  const [, givenScheme, givenHost, digits, givenPath = ''] = SHAPE.exec(text) ?? []
  if (givenScheme === undefined || givenHost === undefined) {
    throw refused(
      'it must have the form tls://host:7650, with tcp, tls, ws, wss, gmetric, or prometheus or otlp with +http or +https',
    )
  }
  const scheme = givenScheme.toLowerCase() as DialScheme
  const host = hostOf(givenHost)
  const port = Number(digits ?? dialPorts[scheme])
  if (host === undefined) throw refused('its host is neither a name nor an address')
  if (port < 1 || port > 65_535) throw refused('its port is not 1 to 65535')
  const isHttp = scheme.includes('+')
  const path = pathOf(scheme, isHttp, givenPath)
  const url = `${scheme}://${host.includes(':') ? `[${host}]` : host}:${port}${path}`
  return { scheme, host, isAddress: isIP(host) !== 0, port, path, url, isPush: scheme === 'gmetric' || isHttp, isHttp }
}

/** Where requests go that a wing makes for users. */
export interface RequestOrigin extends Pick<Destination, 'host' | 'isAddress' | 'port'> {
  readonly scheme: RequestScheme
}

const ORIGIN = /^([a-z]+(?:\+https?)?):\/\/(\[[^\]]*\]|[^[\]:/@?#\s\\]+)(?::(\d{1,5}))?$/

/** Of `scheme://host:port`; undefined if it is none. */
export function parseRequestOrigin(text: string): RequestOrigin | undefined {
  const [, scheme = '', givenHost = '', digits] = ORIGIN.exec(text) ?? []
  const host = hostOf(givenHost)
  if (!Object.hasOwn(requestPorts, scheme) || host === undefined) return undefined
  const port = Number(digits ?? requestPorts[scheme as RequestScheme])
  return { scheme: scheme as RequestScheme, host, isAddress: isIP(host) !== 0, port }
}

/** Parses the host under a scheme that browsers know: under any other one, URL takes the text as it is. */
function hostOf(text: string): string | undefined {
  if (!URL.canParse(`ws://${text}/`)) return undefined
  const { hostname } = new URL(`ws://${text}/`)
  if (hostname.startsWith('[')) return hostname.slice(1, -1)
  const host = hostname.replace(/\.$/, '')
  return NAME.test(host) ? host : undefined
}

function pathOf(scheme: DialScheme, isHttp: boolean, path: string): string {
  if (scheme === 'ws' || scheme === 'wss' || isHttp) return new URL(`ws://host${path || '/'}`).pathname
  if (path === '' || path === '/') return ''
  throw refused('only ws, wss and what is delivered by HTTP have a path')
}

function refused(why: string): StatusError {
  return new StatusError('INVALID_ARGUMENT', `this URL cannot be dialled: ${why}`)
}
