/** The files of `[tls]`, read and checked together: what new handshakes are led with, and whom to trust. */
import { constants, createPrivateKey, type KeyObject, type X509Certificate } from 'node:crypto'
import { createSecureContext, type TlsOptions } from 'node:tls'
import type { WatchedFile } from '../../core/watched-file.ts'
import { ClientTrust, readCertificates, readRevoked } from './client-trust.ts'

export interface MaterialFiles {
  readonly cert: WatchedFile
  readonly key: WatchedFile
  readonly clientCa?: WatchedFile | undefined
  readonly clientRevoked?: WatchedFile | undefined
}

export interface Material {
  readonly options: TlsOptions
  readonly trust: ClientTrust
  /** When the server's own certificate ends, milliseconds since 1970. */
  readonly validUntil: number
}

/** Throws FileError: the first file that is no good. */
export function readMaterial({ cert, key, clientCa, clientRevoked }: MaterialFiles): Material {
  const certPem = cert.text()
  const own = certificatesOf(cert, certPem)[0]
  const keyPem = key.text()
  if (own?.checkPrivateKey(keyOf(key, keyPem)) !== true) {
    throw key.error(`does not belong to the certificate in ${cert.path}; put there the key it was made with`)
  }
  const caPem = clientCa?.text()
  const authorities = clientCa && caPem !== undefined ? certificatesOf(clientCa, caPem) : []
  const revoked = clientRevoked ? revokedOf(clientRevoked) : new Set<string>()
  const options: TlsOptions = {
    cert: certPem,
    key: keyPem,
    ...(caPem === undefined ? {} : { ca: caPem, requestCert: true }),
    // Who has no certificate, or one of somebody else's, may still log in by another method.
    rejectUnauthorized: false,
    minVersion: 'TLSv1.2',
    // No tickets: a session that is taken up again would bring a certificate that nobody has looked at since.
    secureOptions: constants.SSL_OP_NO_TICKET | constants.SSL_OP_NO_RENEGOTIATION,
  }
  try {
    createSecureContext(options)
  } catch (error) {
    throw cert.error('cannot be used for TLS, although it is a certificate: its key may be too short', error)
  }
  return { options, trust: new ClientTrust(authorities, revoked), validUntil: Date.parse(own.validTo) }
}

function certificatesOf(file: WatchedFile, pem: string): X509Certificate[] {
  let found: X509Certificate[]
  try {
    found = readCertificates(pem)
  } catch (error) {
    throw file.error('holds a certificate that is damaged; write it anew', error)
  }
  if (found.length === 0) throw file.error('holds no certificate; a PEM file is needed')
  return found
}

function keyOf(file: WatchedFile, pem: string): KeyObject {
  try {
    return createPrivateKey(pem)
  } catch (error) {
    throw file.error('holds no private key that can be used; a PEM file without a passphrase is needed', error)
  }
}

function revokedOf(file: WatchedFile): Set<string> {
  const read = readRevoked(file.text())
  if (typeof read !== 'number') return read
  throw file.error(
    `has something else than a serial number or SHA-256 fingerprint in line ${read}; hexadecimal is needed`,
  )
}
