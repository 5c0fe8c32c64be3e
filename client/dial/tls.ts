/**
 * TLS as its client: `tls://`, and the layer `tls` over `tcp://`. The other end's certificate is verified unless that is
 * switched off, and what is wrong with it is said in words that tell what to do.
 */
import { isIP } from 'node:net'
import type { Duplex } from 'node:stream'
import { type ConnectionOptions, connect, type PeerCertificate, type TLSSocket } from 'node:tls'
import { ConnectionError } from '../errors.ts'
import type { TlsOptions } from '../security.ts'
import type { Transport } from '../transport.ts'
import { readPem } from './pem.ts'
import { type StartTls, streamTransport, tlsFacts } from './stream.ts'
import { hostOf, KEEP_ALIVE } from './tcp.ts'

/** Also what `ws` takes. */
export type ClientTls = Pick<
  ConnectionOptions,
  'ca' | 'cert' | 'key' | 'servername' | 'rejectUnauthorized' | 'minVersion'
>

/** Reads the files. Throws ConnectionError BAD_TLS. */
export async function clientTls(url: URL, options: TlsOptions = {}): Promise<ClientTls> {
  const { ca, cert, key, servername, rejectUnauthorized = true } = options
  const name = servername ?? (isIP(hostOf(url)) === 0 ? hostOf(url) : undefined)
  return {
    minVersion: 'TLSv1.2',
    rejectUnauthorized,
    ...(await readPem({ ca, cert, key })),
    ...(name === undefined ? {} : { servername: name }),
  }
}

/** `tls://`. */
export async function dialTls(url: URL, signal: AbortSignal, options: TlsOptions | undefined): Promise<Transport> {
  if (url.port === '') throw new ConnectionError('BAD_URL', `${url.href} names no port, and tls:// has none of its own`)
  const settings = await clientTls(url, options)
  signal.throwIfAborted()
  const socket = begin(url, { ...settings, ...KEEP_ALIVE, host: hostOf(url), port: Number(url.port) })
  const abort = () => socket.destroy(signal.reason)
  signal.addEventListener('abort', abort)
  try {
    await secured(socket, url)
  } finally {
    signal.removeEventListener('abort', abort)
  }
  return streamTransport(socket, tlsFacts(socket))
}

/** For WRAP. The files are read now, so that what is wrong with them is known before anything is sent. */
export async function tlsLayer(url: URL, options: TlsOptions | undefined): Promise<StartTls> {
  const settings = await clientTls(url, options)
  return (stream: Duplex) => {
    const socket = begin(url, { ...settings, socket: stream, host: hostOf(url) })
    return { socket, secured: secured(socket, url) }
  }
}

/** Why a handshake failed, for people. */
export function handshakeError(url: URL, error: Error): ConnectionError {
  const code = 'code' in error ? String(error.code) : ''
  const what = `cannot connect to ${url.href}`
  const untrusted = untrustedBecause(code, error)
  if (untrusted) return new ConnectionError('UNTRUSTED', `${what}: ${untrusted}`, { cause: error })
  const why =
    code === 'ERR_SSL_WRONG_VERSION_NUMBER' || code === 'ERR_SSL_PACKET_LENGTH_TOO_LONG'
      ? 'what listens there does not speak TLS'
      : error.message
  return new ConnectionError('UNREACHABLE', `${what}: ${why}`, { cause: error })
}

/** Options that contradict each other, such as a key for another certificate, are found here. */
function begin(url: URL, options: ConnectionOptions): TLSSocket {
  try {
    return connect(options)
  } catch (error) {
    throw new ConnectionError('BAD_TLS', `cannot connect to ${url.href}: ${(error as Error).message}`, { cause: error })
  }
}

function secured(socket: TLSSocket, url: URL): Promise<void> {
  return new Promise((resolve, reject) => {
    const fail = (error: Error) => reject(handshakeError(url, error))
    const close = () => fail(new Error('closed before TLS was there'))
    socket.once('error', fail).once('close', close)
    socket.once('secureConnect', () => {
      socket.off('error', fail).off('close', close)
      resolve()
    })
  })
}

function untrustedBecause(code: string, error: Error): string | undefined {
  switch (code) {
    case 'ERR_TLS_CERT_ALTNAME_INVALID':
      return (
        `its certificate is for somebody else (${namesIn(error)}). ` +
        'Use a name that stands in it in the URL, or say as `tls.servername` which one is meant'
      )
    case 'CERT_HAS_EXPIRED':
      return 'its certificate has expired. It has to be renewed there; or the clock of this machine is wrong'
    case 'CERT_NOT_YET_VALID':
      return 'its certificate is not valid yet. One of the two clocks is wrong'
    case 'DEPTH_ZERO_SELF_SIGNED_CERT':
    case 'SELF_SIGNED_CERT_IN_CHAIN':
    case 'UNABLE_TO_GET_ISSUER_CERT':
    case 'UNABLE_TO_GET_ISSUER_CERT_LOCALLY':
    case 'UNABLE_TO_VERIFY_LEAF_SIGNATURE':
      return (
        `nobody who is trusted here has signed its certificate (${error.message}). ` +
        'Give the certificate of whoever has, or the self-signed one, as `tls.ca`'
      )
    default:
      return /^(CERT_|CRL_|INVALID_CA|INVALID_PURPOSE|PATH_LENGTH_)/.test(code)
        ? `its certificate is not good: ${error.message}`
        : undefined
  }
}

function namesIn(error: Error): string {
  const { cert } = error as { readonly cert?: Partial<PeerCertificate> }
  return cert?.subjectaltname || `CN:${cert?.subject?.CN}`
}
