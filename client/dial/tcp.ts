/** TCP, and any other stream of Node, as a transport. */
import { connect, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { ConnectionError } from '../errors.ts'
import type { Transport } from '../transport.ts'
import { isLoopback } from './loopback.ts'

const DEFAULT_PORT = 7650
/** An idle dead peer is noticed in about 25 s [MON 15]: Node sends 10 probes, a second apart. */
const KEEP_ALIVE_MS = 15_000
/** A peer that takes no byte for so long is not waited for when closing. */
const CLOSE_MS = 5_000

export function dialTcp(url: URL, signal: AbortSignal): Promise<Transport> {
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1')
  const port = url.port === '' ? DEFAULT_PORT : Number(url.port)
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port, noDelay: true, keepAlive: true, keepAliveInitialDelay: KEEP_ALIVE_MS })
    const abort = () => socket.destroy(signal.reason)
    signal.addEventListener('abort', abort)
    const refuse = (error: Error) => {
      signal.removeEventListener('abort', abort)
      reject(new ConnectionError('UNREACHABLE', `cannot connect to ${url.href}: ${reason(error)}`, { cause: error }))
    }
    socket.once('error', refuse)
    socket.once('connect', () => {
      signal.removeEventListener('abort', abort)
      socket.off('error', refuse)
      resolve(streamTransport(socket, { loopback: isLoopback(socket.remoteAddress ?? ''), encrypted: false }))
    })
  })
}

/** A host name with several addresses fails with one error for each, under one without words. */
function reason(error: Error): string {
  return error instanceof AggregateError ? error.errors.map(({ message }) => message).join('; ') : error.message
}

/** What the stream itself cannot say is in `facts`. */
export function streamTransport(stream: Duplex, facts: Pick<Transport, 'encrypted' | 'loopback'>): Transport {
  let broken: Error | undefined
  stream.on('error', (error) => {
    broken = error
  })
  return {
    ...facts,
    open(listener) {
      stream.on('close', () => listener.closed(broken))
      // A producer that has said its last word takes none of ours.
      stream.on('end', () => stream.destroy())
      stream.on('data', (bytes) => listener.data(bytes))
    },
    send: (bytes) => stream.write(bytes),
    pause: () => stream.pause(),
    resume: () => stream.resume(),
    close() {
      stream.end(() => stream.destroy())
      stream.resume()
      if (isSocket(stream)) stream.setTimeout(CLOSE_MS, () => stream.destroy())
    },
  }
}

function isSocket(stream: Duplex): stream is Socket {
  return 'setTimeout' in stream
}
