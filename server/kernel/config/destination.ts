/**
 * What may be dialled, as it stands in `dial.allow`: a URL whose host is a name, `*.name`, `*`, an address or a network, and
 * whose port may be `*`. IPv6 stands in brackets with its prefix: `tcp://[fd00::/8]:7650`.
 */
import { type Network, parseNetwork } from '../core/address.ts'

/** The schemes that can be dialled [MON 14], each with the port that is meant where none stands. */
export const dialPorts = {
  tcp: 7650,
  tls: 7650,
  ws: 80,
  wss: 443,
  gmetric: 8649,
  'prometheus+http': 80,
  'prometheus+https': 443,
  'otlp+http': 80,
  'otlp+https': 443,
} as const
export type DialScheme = keyof typeof dialPorts

/** The schemes of the destinations of notifiers, to which requests are made, each with the port that is meant where none stands. */
export const requestPorts = {
  'webhook+http': 80,
  'webhook+https': 443,
  'alertmanager+http': 80,
  'alertmanager+https': 443,
  'ntfy+http': 80,
  'ntfy+https': 443,
  'json+http': 80,
  'json+https': 443,
  'heartbeat+http': 80,
  'heartbeat+https': 443,
  smtp: 587,
  smtps: 465,
} as const
export type RequestScheme = keyof typeof requestPorts

export interface DestinationPattern {
  readonly scheme: DialScheme | RequestScheme
  /** A name in lower case, perhaps with a leading `*`, or a network. */
  readonly host: string | Network
  /** undefined if any port is meant. */
  readonly port: number | undefined
}

const PATTERN =
  /^(tcp|tls|wss?|gmetric|(?:prometheus|otlp|webhook|alertmanager|ntfy|json|heartbeat)\+https?|smtps?):\/\/(?:\[([^\]]*)\]|([^:[\]/]+(?:\/\d{1,2})?))(?::(\d{1,5}|\*))?$/i
const NAME = /^(?:\*|(?:\*\.)?(?=[^*]{1,253}$)[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*)$/
/** A text that ends in a number is meant as IPv4: "127.0.0.300" is a slip, not the name of a host. */
const LOOKS_LIKE_IPV4 = /(^|\.)(\d+|0x[0-9a-f]*)$/

/** undefined where `text` is no such pattern. */
export function parseDestinationPattern(text: string): DestinationPattern | undefined {
  const match = PATTERN.exec(text)
  if (match === null) return undefined
  const scheme = (match[1] as string).toLowerCase() as DestinationPattern['scheme']
  const host = hostOf(match[2], (match[3] ?? '').toLowerCase())
  const port = match[4] === '*' ? undefined : Number(match[4] ?? { ...dialPorts, ...requestPorts }[scheme])
  if (host === undefined || (port !== undefined && (port < 1 || port > 65_535))) return undefined
  return { scheme, host, port }
}

function hostOf(bracketed: string | undefined, plain: string): string | Network | undefined {
  const network = parseNetwork(bracketed ?? plain)
  if (bracketed !== undefined) return network?.family === 'ipv6' ? network : undefined
  if (network !== undefined) return network
  return NAME.test(plain) && !LOOKS_LIKE_IPV4.test(plain) ? plain : undefined
}
