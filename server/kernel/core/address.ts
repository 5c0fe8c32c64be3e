/**
 * Addresses to listen on and networks to accept from, as the configuration spells them. An IPv6 address needs brackets before
 * a port; it is parsed to the form without them that `node:net` expects.
 */
import { isIP, isIPv4, isIPv6 } from 'node:net'

export interface Address {
  readonly host: string
  /** 0 = any free port. */
  readonly port: number
}

/** Fits `BlockList.addSubnet(address, prefix, family)` of `node:net`. */
export interface Network {
  readonly address: string
  readonly prefix: number
  readonly family: 'ipv4' | 'ipv6'
}

/** A sender. */
export interface PeerAddress {
  readonly address: string
  readonly port: number | undefined
}

/** Not only those of DNS: containers and /etc/hosts have names with `_`. */
const HOST_NAME = /^(?=.{1,253}$)([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?$/i
/** A name that ends in a number was meant as an IPv4 address: "127.0.0.300" is a mistake, not a host name. */
const LOOKS_LIKE_IPV4 = /(^|\.)\d+$/

/** Parses "host:port" or "[IPv6]:port"; returns undefined if `text` is neither. */
export function parseAddress(text: string): Address | undefined {
  const match = /^(?:\[([^\]]*)\]|([^:[\]]+)):(\d{1,5})$/.exec(text)
  if (!match) return undefined
  const [, bracketed, plain = '', digits] = match
  const port = Number(digits)
  if (port > 65_535) return undefined
  if (bracketed !== undefined) return isIPv6(bracketed) ? { host: bracketed, port } : undefined
  return isIPv4(plain) || isHostName(plain) ? { host: plain, port } : undefined
}

/** Whether `text` is a host name, and no address. */
export function isHostName(text: string): boolean {
  return HOST_NAME.test(text) && !LOOKS_LIKE_IPV4.test(text)
}

/** The address as the configuration would spell it. */
export function formatAddress({ host, port }: Address): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}

/**
 * Parses "IP", "IPv4:port" or "[IPv6]:port" of a peer into Node's spelling; an undefined `port` means any. Returns undefined
 * if `text` is none of these.
 */
export function parsePeer(text: string): PeerAddress | undefined {
  if (isIP(text) !== 0) return { address: canonical(text), port: undefined }
  const named = parseAddress(text)
  if (named === undefined || isIP(named.host) === 0 || named.port === 0) return undefined
  return { address: canonical(named.host), port: named.port }
}

function canonical(address: string): string {
  return isIPv6(address) ? new URL(`http://[${address}]`).hostname.slice(1, -1) : address
}

/** Parses "address/prefix", or a single address; returns undefined if `text` is neither. */
export function parseNetwork(text: string): Network | undefined {
  const match = /^([^/%]+)(?:\/(\d{1,3}))?$/.exec(text)
  const address = match?.[1] ?? ''
  const version = isIP(address)
  if (version === 0) return undefined
  const longest = version === 4 ? 32 : 128
  const prefix = match?.[2] === undefined ? longest : Number(match[2])
  return prefix <= longest ? { address, prefix, family: version === 4 ? 'ipv4' : 'ipv6' } : undefined
}
