/** Connections between servers of one process, in memory. */
import { type Duplex, duplexPair } from 'node:stream'
import { streamTransport } from '../../client/dial/stream.ts'
import { ConnectionError } from '../../client/errors.ts'
import type { Transport } from '../../client/transport.ts'

/** The consumer's end, and the producer's. As those of a socket do, they notice that the other was destroyed. */
export function joinedPair(): readonly [Duplex, Duplex] {
  const [near, far] = duplexPair()
  near.once('close', () => far.destroy())
  // What was sent before an orderly end is still to be read.
  far.once('close', () => {
    if (!far.writableFinished) near.destroy()
  })
  return [near, far]
}

/** Connects to hosts: each gives the consumer's end of a new connection, or nothing while it is down. */
export function dialAmong(hosts: Readonly<Record<string, () => Duplex | undefined>>) {
  return async (url: string): Promise<Transport> => {
    const near = hosts[new URL(url).hostname]?.()
    if (near === undefined) throw new ConnectionError('UNREACHABLE', `cannot connect to ${url}: nobody listens there`)
    return streamTransport(near, { encrypted: false, loopback: true })
  }
}
