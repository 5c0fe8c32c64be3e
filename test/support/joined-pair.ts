/** A connection in memory, whose ends notice, as those of a socket do, that the other was destroyed. */
import { type Duplex, duplexPair } from 'node:stream'

/** The consumer's end, and the producer's. */
export function joinedPair(): readonly [Duplex, Duplex] {
  const [near, far] = duplexPair()
  near.once('close', () => far.destroy())
  // What was sent before an orderly end is still to be read.
  far.once('close', () => {
    if (!far.writableFinished) near.destroy()
  })
  return [near, far]
}
