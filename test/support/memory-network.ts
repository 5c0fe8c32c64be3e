/** Connections between servers of one process, in memory. */
import { type Duplex, duplexPair } from 'node:stream'
// A client loads this when it first logs in with a password, which would take time of which a false clock knows nothing.
import '../../client/scram.ts'

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
export function networkOf(hosts: Readonly<Record<string, () => Duplex | undefined>>): (url: string) => Duplex {
  return (url) => {
    const near = hosts[new URL(url).hostname]?.()
    if (near === undefined) throw new Error(`cannot connect to ${url}: nobody listens there`)
    return near
  }
}
