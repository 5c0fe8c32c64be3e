/**
 * Addresses to bind and networks to accept from, as they stand in the configuration file.
 * An IPv6 address stands in brackets before a port, and comes out without them, as `node:net` wants it.
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

/** Who sends. */
export interface Peer {
  readonly address: string
  readonly port: number | undefined
}

const HOST_NAME = /^(?=.{1,253}$)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/i
/** What ends in a number is meant as IPv4: "127.0.0.300" is a slip, not the name of a host. */
const LOOKS_LIKE_IPV4 = /(^|\.)\d+$/

/** "host:port" or "[IPv6]:port"; undefined where `text` is neither. */
export function parseAddress(text: string): Address | undefined {
  const match = /^(?:\[([^\]]*)\]|([^:[\]]+)):(\d{1,5})$/.exec(text)
  if (!match) return undefined
  const [, bracketed, plain = '', digits] = match
  const port = Number(digits)
  if (port > 65_535) return undefined
  if (bracketed !== undefined) return isIPv6(bracketed) ? { host: bracketed, port } : undefined
  const isHost = isIPv4(plain) || (HOST_NAME.test(plain) && !LOOKS_LIKE_IPV4.test(plain))
  return isHost ? { host: plain, port } : undefined
}

/** As it would stand in the configuration. */
export function formatAddress({ host, port }: Address): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}

/** "IP", "IPv4:port" or "[IPv6]:port" of a peer, as Node writes it; `port` undefined = any. undefined where `text` is none. */
export function parsePeer(text: string): Peer | undefined {
  if (isIP(text) !== 0) return { address: canonical(text), port: undefined }
  const named = parseAddress(text)
  if (named === undefined || isIP(named.host) === 0 || named.port === 0) return undefined
  return { address: canonical(named.host), port: named.port }
}

function canonical(address: string): string {
  return isIPv6(address) ? new URL(`http://[${address}]`).hostname.slice(1, -1) : address
}

/** "address/prefix", or an address alone for itself; undefined where `text` is neither. */
export function parseNetwork(text: string): Network | undefined {
  const match = /^([^/%]+)(?:\/(\d{1,3}))?$/.exec(text)
  const address = match?.[1] ?? ''
  const version = isIP(address)
  if (version === 0) return undefined
  const longest = version === 4 ? 32 : 128
  const prefix = match?.[2] === undefined ? longest : Number(match[2])
  return prefix <= longest ? { address, prefix, family: version === 4 ? 'ipv4' : 'ipv6' } : undefined
}
