/**
 * What nodes say to each other when one connects to another: a header of the PROXY protocol with the consumer's address, and
 * in a TLV what the stream is for. Nothing of the consumer's own bytes is looked at.
 */
import { connect as connectPlain, type Socket } from 'node:net'
import { encodeProxyHeader, type ProxyHeader } from '../../protocol/proxy/header.ts'
import type { Leader } from './leadership.ts'
import { isOfThisMachine, type NodeCertificates } from './node-certificates.ts'

export const NODE_SOCKET_OPTIONS = {
  allowHalfOpen: true,
  noDelay: true,
  keepAlive: true,
  keepAliveInitialDelay: 15_000,
} as const

/** A type that the specification leaves to applications. Its value says what a stream is for, in UTF-8. */
const KIND_TYPE = 0xe0
const MAX_KIND_BYTES = 320

/** The header of a consumer's connection that is passed on; undefined if it has ended already. */
export function passingHeader(consumer: Socket, kind: string): Uint8Array | undefined {
  const { remoteAddress, remotePort, localAddress, localPort } = consumer
  return headerOf([remoteAddress, remotePort], [localAddress, localPort], kind)
}

/** The header of a connection that a node makes for itself; undefined if it has ended already. */
export function ownHeader({ remoteAddress, remotePort, localAddress, localPort }: Socket, kind: string) {
  return headerOf([localAddress, localPort], [remoteAddress, remotePort], kind)
}

type End = readonly [address: string | undefined, port: number | undefined]

function headerOf([from, fromPort = 0]: End, [to, toPort = 0]: End, kind: string): Uint8Array | undefined {
  if (from === undefined || to === undefined) return undefined
  return encodeProxyHeader({
    route: {
      from: { address: withoutZone(from), port: fromPort },
      to: { address: withoutZone(to), port: toPort },
    },
    tlvs: [{ type: KIND_TYPE, value: Buffer.from(kind) }],
  })
}

/** What the stream is for; undefined if the header does not say so, or says it more than once. */
export function kindOf({ tlvs }: ProxyHeader): string | undefined {
  const [kind, ...more] = tlvs.filter(({ type }) => type === KIND_TYPE)
  if (kind === undefined || more.length > 0 || kind.value.length > MAX_KIND_BYTES) return undefined
  return Buffer.from(kind.value).toString()
}

/** The interface of a link-local address means nothing on another machine. */
function withoutZone(address: string): string {
  return address.replace(/%.*$/s, '')
}

/** Begins to connect to a node; the event says when the socket can be used. */
export function dialNode(
  { name, address: { host, port } }: Leader,
  certificates: NodeCertificates | undefined,
): [Socket, 'connect' | 'secureConnect'] {
  const to = { host, port, ...NODE_SOCKET_OPTIONS }
  if (certificates !== undefined) return [certificates.connect(to, [name, host]), 'secureConnect']
  const socket = connectPlain(to)
  if (!isOfThisMachine(host)) {
    socket.destroy(new Error('it is on another machine, so `cluster.tls_ca`, `tls_cert` and `tls_key` are needed'))
  }
  return [socket, 'connect']
}
