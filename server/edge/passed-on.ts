/**
 * Connections of consumers that another node passes on. Here their sockets lead to that node, so each is made to show the
 * consumer's address instead: whatever counts, limits or records by address then means the consumer.
 */
import { isIPv6, type Socket } from 'node:net'
import { isLoopback } from '../../auth/network.ts'

/**
 * Takes a connection that another node passes on, as if it had come over a listener of this one; it never counts as local.
 * `isLocalThere`: it came to a listener of that node that is bound to loopback, so nobody could read it on the way: nodes prove to each
 * other who they are under TLS, or are all on one machine.
 */
export type TakePassed = (socket: Socket, isLocalThere: boolean) => void

/** What the section `[listen]` calls the listeners of consumers. */
export type ListenerName = 'tcp' | 'tls' | 'http' | 'https'

/** The other end of a connection as its socket shows it. */
export type ShownPeer = Pick<Socket, 'remoteAddress' | 'remotePort'>

/** From now on the socket shows `peer` as its other end. */
export function showPeer(socket: Socket, { remoteAddress, remotePort }: ShownPeer): void {
  const remoteFamily = isIPv6(remoteAddress ?? '') ? 'IPv6' : 'IPv4'
  const shown = { remoteAddress, remotePort, remoteFamily }
  for (const [name, value] of Object.entries(shown)) Object.defineProperty(socket, name, { value, configurable: true })
}

/**
 * The address of a consumer that came by a node at `nodeAddress`. A loopback address means the machine of that node, and must not
 * be taken for this one: what is decided by address, such as who is not throttled, favours loopback. As there is no address
 * for another machine's loopback, the text says so in words.
 */
export function passedAddress(address: string, nodeAddress: string): string {
  return isLoopback(address) ? `localhost@${nodeAddress}` : address
}
