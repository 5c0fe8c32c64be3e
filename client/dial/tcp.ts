/** TCP, as it is or to be put under TLS by WRAP. */
import { connect } from 'node:net'
import { ConnectionError } from '../errors.ts'
import type { Transport } from '../transport.ts'
import { type StartTls, socketFacts, streamTransport } from './stream.ts'

const DEFAULT_PORT = 7650
/** An idle dead peer is noticed in about 25 s [MON 15]: Node sends 10 probes, a second apart. */
export const KEEP_ALIVE = { noDelay: true, keepAlive: true, keepAliveInitialDelay: 15_000 } as const

export function dialTcp(url: URL, signal: AbortSignal, startTls?: StartTls): Promise<Transport> {
  const port = url.port === '' ? DEFAULT_PORT : Number(url.port)
  return new Promise((resolve, reject) => {
    const socket = connect({ host: hostOf(url), port, ...KEEP_ALIVE })
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
      resolve(streamTransport(socket, socketFacts(socket), startTls))
    })
  })
}

/** Without the brackets that an IPv6 address has in a URL. */
export function hostOf(url: URL): string {
  return url.hostname.replace(/^\[(.*)\]$/, '$1')
}

/** A host name with several addresses fails with one error for each, under one without words. */
function reason(error: Error): string {
  return error instanceof AggregateError ? error.errors.map(({ message }) => message).join('; ') : error.message
}
