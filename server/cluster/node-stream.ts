/**
 * What nodes say to each other when one connects to another: a header of the PROXY protocol with the consumer's address, and
 * in a TLV what the stream is for. Nothing of the consumer's own bytes is looked at.
 */
import { connect as connectPlain, isIP, type Socket } from 'node:net'
import { isLoopback } from '../../auth/network.ts'
import { encodeProxyHeader, type ProxyHeader, type ProxyTlv } from '../../protocol/proxy/header.ts'
import type { Leader } from './leadership.ts'
import { isOfThisMachine, type NodeCertificates } from './node-certificates.ts'

export const NODE_SOCKET_OPTIONS = {
  allowHalfOpen: true,
  noDelay: true,
  keepAlive: true,
  keepAliveInitialDelay: 15_000,
} as const

export interface NodeDialOptions {
  /** Undefined only if all nodes are on this machine. */
  readonly certificates: NodeCertificates | undefined
  /** The host of this node in `cluster.nodes`: connections to other nodes come from there, if it is an address. */
  readonly from?: string | undefined
}

/** A type that the specification leaves to applications. Its value says what a stream is for, in UTF-8. */
const KIND_TYPE = 0xe0
const MAX_KIND_BYTES = 320
/** Asks for an answer, by a field without content. */
const ANSWER_TYPE = 0xe1
/**
 * Says, by a field without content, that the consumer came to a listener that is bound to loopback. The addresses of a connection do not
 * prove that: it may be one of a proxy on the machine, to a listener that is open to all.
 */
const LOOPBACK_TYPE = 0xe2
/**
 * The answer: one byte, before all others, once the stream is taken. A node that does not take it closes it instead, and then it
 * can be passed on again, since nothing of it has been read.
 */
export const TAKEN = 0x06

/**
 * The header of a consumer's connection that is passed on; undefined if it has ended already. `isOfLoopback`: the listener that it
 * came to is bound to loopback.
 */
export function passingHeader(consumer: Socket, kind: string, isOfLoopback: boolean): Uint8Array | undefined {
  const { remoteAddress, remotePort, localAddress, localPort } = consumer
  const types = isOfLoopback ? [ANSWER_TYPE, LOOPBACK_TYPE] : [ANSWER_TYPE]
  const more = types.map((type) => ({ type, value: new Uint8Array(0) }))
  return headerOf([remoteAddress, remotePort], [localAddress, localPort], kind, more)
}

/** The header of a connection that a node makes for itself; undefined if it has ended already. */
export function ownHeader(socket: Socket, kind: string): Uint8Array | undefined {
  const { remoteAddress, remotePort, localAddress, localPort } = socket
  return headerOf([localAddress, localPort], [remoteAddress, remotePort], kind, [])
}

type End = readonly [address: string | undefined, port: number | undefined]

function headerOf(
  [from, fromPort = 0]: End,
  [to, toPort = 0]: End,
  kind: string,
  more: readonly ProxyTlv[],
): Uint8Array | undefined {
  if (from === undefined || to === undefined) return undefined
  return encodeProxyHeader({
    route: {
      from: { address: withoutZone(from), port: fromPort },
      to: { address: withoutZone(to), port: toPort },
    },
    tlvs: [{ type: KIND_TYPE, value: Buffer.from(kind) }, ...more],
  })
}

/** What the stream is for; undefined if the header does not say so, or says it more than once. */
export function kindOf({ tlvs }: ProxyHeader): string | undefined {
  const [kind, ...more] = tlvs.filter(({ type }) => type === KIND_TYPE)
  if (kind === undefined || more.length > 0 || kind.value.length > MAX_KIND_BYTES) return undefined
  return Buffer.from(kind.value).toString()
}

/** Whether the other end waits for TAKEN. */
export function asksForAnswer({ tlvs }: ProxyHeader): boolean {
  return tlvs.some(({ type }) => type === ANSWER_TYPE)
}

/** Whether the consumer came over loopback, to a listener that nobody else can reach. */
export function isFromLoopback({ route, tlvs }: ProxyHeader): boolean {
  return tlvs.some(({ type }) => type === LOOPBACK_TYPE) && isLoopback(route?.from.address ?? '')
}

/** The interface of a link-local address means nothing on another machine. */
function withoutZone(address: string): string {
  return address.replace(/%.*$/s, '')
}

/** Begins to connect to a node; the event says when the socket can be used. */
export function dialNode(
  { name, address: { host, port } }: Leader,
  { certificates, from = '' }: NodeDialOptions,
): [Socket, 'connect' | 'secureConnect'] {
  const isAlike = isIP(from) !== 0 && isIP(from) === isIP(host)
  const to = { host, port, ...(isAlike && { localAddress: from }), ...NODE_SOCKET_OPTIONS }
  if (certificates !== undefined) return [certificates.connect(to, [name, host]), 'secureConnect']
  const socket = connectPlain(to)
  if (!isOfThisMachine(host)) {
    socket.destroy(new Error('it is on another machine, so `cluster.tls_ca`, `tls_cert` and `tls_key` are needed'))
  }
  return [socket, 'connect']
}
