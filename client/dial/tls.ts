/**
 * The client side of TLS: `tls://`, and the layer `tls` over `tcp://`. The other end's certificate is verified unless that is
 * switched off, and errors say what is wrong with it and what to do.
 */
import { readFile } from 'node:fs/promises'
import { isIP } from 'node:net'
import type { Duplex } from 'node:stream'
import { type ConnectionOptions, connect, type PeerCertificate, type TLSSocket } from 'node:tls'
import { ConnectionError } from '../errors.ts'
import type { TlsOptions, Transport } from '../transport.ts'
import { SOCKET_OPTIONS, type StartTls, streamTransport, tlsSecurityOf } from './stream.ts'
import { hostOf } from './url.ts'

/** The options of a TLS client, which `ws` takes too. */
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

/** Dials `tls://`. */
export async function dialTls(url: URL, signal: AbortSignal, options: TlsOptions | undefined): Promise<Transport> {
  if (url.port === '') throw new ConnectionError('BAD_URL', `${url.href} has no port, and tls:// has no default port`)
  const settings = await clientTls(url, options)
  signal.throwIfAborted()
  const socket = begin(url, { ...settings, ...SOCKET_OPTIONS, host: hostOf(url), port: Number(url.port) })
  const abort = () => socket.destroy(signal.reason)
  signal.addEventListener('abort', abort)
  try {
    await secured(socket, url)
  } finally {
    signal.removeEventListener('abort', abort)
  }
  return streamTransport(socket, tlsSecurityOf(socket))
}

/** For WRAP. The files are read here, so that errors in them are found before anything is sent. */
export async function tlsLayer(url: URL, options: TlsOptions | undefined): Promise<StartTls> {
  const settings = await clientTls(url, options)
  return (stream: Duplex) => {
    const socket = begin(url, { ...settings, socket: stream, host: hostOf(url) })
    return { socket, secured: secured(socket, url) }
  }
}

/** Reads certificates and keys that are given as a PEM file or as its text. Throws ConnectionError BAD_TLS. */
export async function readPem<K extends string>(given: { readonly [N in K]: string | undefined }) {
  const read: { [N in K]?: string } = {}
  for (const name of Object.keys(given) as K[]) {
    const text = given[name]
    if (text !== undefined) read[name] = await pemOf(name, text)
  }
  return read
}

async function pemOf(name: string, text: string): Promise<string> {
  if (text.includes('-----BEGIN ')) return text
  let read: string
  try {
    read = await readFile(text, 'utf8')
  } catch (error) {
    const why = (error as Error).message
    throw new ConnectionError('BAD_TLS', `\`tls.${name}\` cannot be read: ${why}`, { cause: error })
  }
  if (read.includes('-----BEGIN ')) return read
  throw new ConnectionError('BAD_TLS', `\`tls.${name}\`: ${text} contains no PEM`)
}

/** Explains why a handshake failed. */
export function handshakeError(url: URL, error: Error): ConnectionError {
  const code = 'code' in error ? String(error.code) : ''
  const what = `cannot connect to ${url.href}`
  const untrusted = untrustedBecause(code, error)
  if (untrusted) return new ConnectionError('UNTRUSTED', `${what}: ${untrusted}`, { cause: error })
  const why =
    code === 'ERR_SSL_WRONG_VERSION_NUMBER' || code === 'ERR_SSL_PACKET_LENGTH_TOO_LONG'
      ? 'the server there does not use TLS'
      : error.message
  return new ConnectionError('UNREACHABLE', `${what}: ${why}`, { cause: error })
}

/** Throws ConnectionError BAD_TLS for options that do not fit together, such as a key for another certificate. */
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
    const close = () => fail(new Error('the connection was closed during the TLS handshake'))
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
        `its certificate is for another host (${namesIn(error)}). ` +
        'Use a name from the certificate in the URL, or set `tls.servername` to one'
      )
    case 'CERT_HAS_EXPIRED':
      return 'its certificate has expired. Renew it on the server, or check the clock of this machine'
    case 'CERT_NOT_YET_VALID':
      return 'its certificate is not valid yet. Check the clocks of both machines'
    case 'DEPTH_ZERO_SELF_SIGNED_CERT':
    case 'SELF_SIGNED_CERT_IN_CHAIN':
    case 'UNABLE_TO_GET_ISSUER_CERT':
    case 'UNABLE_TO_GET_ISSUER_CERT_LOCALLY':
    case 'UNABLE_TO_VERIFY_LEAF_SIGNATURE':
      return (
        `its certificate is not signed by a trusted authority (${error.message}). ` +
        "Set `tls.ca` to the authority's certificate, or to the server's own if that is self-signed"
      )
    default:
      return /^(CERT_|CRL_|INVALID_CA|INVALID_PURPOSE|PATH_LENGTH_)/.test(code)
        ? `its certificate is not valid: ${error.message}`
        : undefined
  }
}

function namesIn(error: Error): string {
  const { cert } = error as { readonly cert?: Partial<PeerCertificate> }
  return cert?.subjectaltname || `CN:${cert?.subject?.CN}`
}
