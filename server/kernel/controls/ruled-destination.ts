/**
 * Destinations in rules, as the object of DEF_CHANNEL or in a condition of EXECUTE, in their canonical spelling: a rule in another spelling would match nothing, so a
 * denial would deny nothing. A spelling that no URL can have is refused.
 */
import { matcher } from '../../../auth/pattern.ts'
import { splitUrl, type UrlParts } from '../../../auth/url-pattern.ts'
import { dialPorts } from '../config/destination.ts'
import { StatusError } from '../core/errors.ts'

/** Parses a URL into its canonical spelling. Throws StatusError INVALID_ARGUMENT. */
type ParseUrl = (url: string) => { readonly url: string }

/** A host with `*`: a name, or an address whose numbers are decimal. */
const HOST = /^[a-z0-9_*-]+(\.[a-z0-9_*-]+)*$/
const ODD_NUMBER = /^(?=[\da-fx.*]+$)(.*\.)?0[\dx]/
/** An IPv6 address with `*`: groups without leading zeros, and two zero groups or more as `::`. */
const IPV6 = /^\[(?!.*\b0:0\b)(::?)?([0*]|[1-9a-f*][0-9a-f*]*)?(::?([0*]|[1-9a-f*][0-9a-f*]*))*(::)?\]$/
const PORT = /^(\*|[1-9*][\d*]{0,4})$/

/** Throws StatusError INVALID_ARGUMENT. */
export function ruledDestination(text: string, parse: ParseUrl): string {
  if (text === '*') return text
  const parts = splitUrl(text)
  if (parts === undefined)
    throw refused('it must have the form tls://*.example.org:7650, or be * for every destination')
  if (!text.includes('*')) {
    const { url } = parse(text)
    // A URL without a path means the path "/", a rule without one means every path.
    return parts.path === undefined ? url.replace(/\/$/, '') : url
  }
  const { scheme } = parts
  const schemes = Object.keys(dialPorts).filter(matcher(scheme))
  if (schemes.length === 0) throw refused('its scheme is none of tcp, tls, ws, wss and gmetric')
  const path = pathOf(parts, schemes)
  return `${scheme}://${hostOf(parts, parse)}:${portOf(parts)}${path}`
}

/** scheme://host:port of a connection that the producer made. Throws StatusError INVALID_ARGUMENT. */
export function ruledOrigin(text: string, parse: ParseUrl): string {
  const origin = ruledDestination(text, parse)
  if (splitUrl(origin)?.path === undefined) return origin
  throw refused('the condition of a rule has no path, since it is about the whole connection')
}

function hostOf({ host }: UrlParts, parse: ParseUrl): string {
  if (!host.includes('*')) return splitUrl(parse(`tcp://${host}:1`).url)?.host ?? host
  const name = host.replace(/\.$/, '')
  if (host.startsWith('[') ? IPV6.test(host) : HOST.test(name) && !ODD_NUMBER.test(name)) return name
  throw refused('no host is spelled like that: names are ASCII, numbers of addresses have no leading zeros')
}

function portOf({ port }: UrlParts): string {
  if (port === undefined) throw refused('a pattern needs a port, or :* for every port')
  if (PORT.test(port) && (port.includes('*') || Number(port) <= 65_535)) return port
  throw refused('its port is neither 1 to 65535 nor a pattern like * or 80*')
}

/** Canonical as in a URL, which has an empty path unless the scheme is ws or wss. */
function pathOf({ path }: UrlParts, schemes: readonly string[]): string {
  const hasPath = schemes.some((scheme) => scheme.startsWith('ws'))
  if (path === undefined || (!hasPath && (path === '/' || path === '/*'))) return ''
  if (!hasPath) throw refused('only ws and wss have a path')
  if (/[?#@\\]/.test(path)) throw refused('it has a query, a fragment, a @ or a backslash')
  return new URL(`ws://host${path}`).pathname
}

function refused(why: string): StatusError {
  return new StatusError('INVALID_ARGUMENT', `no rule can be about this destination: ${why}`)
}
