/** Reads and checks the files of `[tls]` together: the options of new handshakes, and the client certificates to trust. */
import { constants, createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import { createSecureContext, type TlsOptions } from 'node:tls'
import type { PeerCertificate } from '../../../auth/mechanism.ts'
import type { WatchedFile } from '../../core/watched-file.ts'

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g

/** Those of TLS 1.3, and of TLS 1.2 those with forward secrecy and authenticated encryption (RFC 9325 section 4.2). */
const SUITES = [
  'TLS_AES_256_GCM_SHA384',
  'TLS_CHACHA20_POLY1305_SHA256',
  'TLS_AES_128_GCM_SHA256',
  'ECDHE-ECDSA-AES256-GCM-SHA384',
  'ECDHE-RSA-AES256-GCM-SHA384',
  'ECDHE-ECDSA-CHACHA20-POLY1305',
  'ECDHE-RSA-CHACHA20-POLY1305',
  'ECDHE-ECDSA-AES128-GCM-SHA256',
  'ECDHE-RSA-AES128-GCM-SHA256',
].join(':')

export interface MaterialFiles {
  readonly cert: WatchedFile
  readonly key: WatchedFile
  readonly clientCa?: WatchedFile | undefined
  readonly clientRevoked?: WatchedFile | undefined
}

export interface Material {
  readonly options: TlsOptions
  /** The server's own certificate. */
  readonly own: X509Certificate
  readonly trust: ClientTrust
  /** When the server's own certificate expires, milliseconds since 1970. */
  readonly validUntil: number
}

/** Throws FileError for the first file that cannot be used. */
export function readMaterial({ cert, key, clientCa, clientRevoked }: MaterialFiles): Material {
  const certPem = cert.text()
  const own = certificatesOf(cert, certPem)[0]
  const keyPem = key.text()
  if (own?.checkPrivateKey(keyOf(key, keyPem)) !== true) {
    throw key.error(`does not belong to the certificate in ${cert.path}; install the key with which it was made`)
  }
  const caPem = clientCa?.text()
  const authorities = clientCa && caPem !== undefined ? certificatesOf(clientCa, caPem) : []
  const revoked = clientRevoked ? revokedOf(clientRevoked) : new Set<string>()
  const options: TlsOptions = {
    cert: certPem,
    key: keyPem,
    ...(caPem === undefined ? {} : { ca: caPem, requestCert: true }),
    // A client without a certificate, or with an unknown one, may still log in by another method.
    rejectUnauthorized: false,
    minVersion: 'TLSv1.2',
    ciphers: SUITES,
    // No tickets: a resumed session would present a certificate that was not checked again.
    secureOptions: constants.SSL_OP_NO_TICKET | constants.SSL_OP_NO_RENEGOTIATION,
  }
  try {
    createSecureContext(options)
  } catch (error) {
    throw cert.error('cannot be used for TLS, although it is a certificate: its key may be too short', error)
  }
  return { options, own, trust: new ClientTrust(authorities, revoked), validUntil: Date.parse(own.validTo) }
}

function certificatesOf(file: WatchedFile, pem: string): X509Certificate[] {
  let found: X509Certificate[]
  try {
    found = readCertificates(pem)
  } catch (error) {
    throw file.error('contains a damaged certificate; write it again', error)
  }
  if (found.length === 0) throw file.error('contains no certificate; a PEM file is needed')
  return found
}

function keyOf(file: WatchedFile, pem: string): KeyObject {
  try {
    return createPrivateKey(pem)
  } catch (error) {
    throw file.error('contains no usable private key; a PEM file without a passphrase is needed', error)
  }
}

function revokedOf(file: WatchedFile): Set<string> {
  const read = readRevoked(file.text())
  if (typeof read !== 'number') return read
  throw file.error(`contains no serial number or SHA-256 fingerprint in line ${read}; hexadecimal is needed`)
}

/**
 * Decides which client certificates are valid now: issued by one of the operator's authorities, not revoked, not expired. It
 * is asked again every second for each certificate with which somebody logged in, so the costly part is cached.
 */
export class ClientTrust {
  readonly #authorities: readonly X509Certificate[]
  readonly #revoked: ReadonlySet<string>
  readonly #issued = new WeakMap<PeerCertificate, boolean>()

  constructor(authorities: readonly X509Certificate[], revoked: ReadonlySet<string>) {
    this.#authorities = authorities
    this.#revoked = revoked
  }

  isTrusted(certificate: PeerCertificate, nowMs: number): boolean {
    if (nowMs >= certificate.validUntil) return false
    const { serial, fingerprint } = certificate
    if (this.#revoked.has(digitsOf(serial)) || this.#revoked.has(digitsOf(fingerprint))) return false
    let isIssued = this.#issued.get(certificate)
    if (isIssued === undefined) {
      isIssued = this.#isIssued(new X509Certificate(certificate.raw))
      this.#issued.set(certificate, isIssued)
    }
    return isIssued
  }

  #isIssued(certificate: X509Certificate): boolean {
    return this.#authorities.some(
      (authority) => certificate.checkIssued(authority) && certificate.verify(authority.publicKey),
    )
  }
}

/** Reads the certificates of a PEM file. Throws if one cannot be parsed. */
export function readCertificates(pem: string): X509Certificate[] {
  return (pem.match(CERTIFICATE) ?? []).map((text) => new X509Certificate(text))
}

/**
 * Reads serial numbers and SHA-256 fingerprints, one per line, in hexadecimal digits of any case and with or without colons;
 * `#` begins a comment. Returns the number of the first invalid line instead.
 */
export function readRevoked(text: string): Set<string> | number {
  const revoked = new Set<string>()
  for (const [index, line] of text.split('\n').entries()) {
    const entry = line.replace(/#.*/, '').trim()
    if (entry === '') continue
    if (!/^[0-9A-Fa-f][0-9A-Fa-f:]*$/.test(entry)) return index + 1
    revoked.add(digitsOf(entry))
  }
  return revoked
}

function digitsOf(hex: string): string {
  return hex.replaceAll(':', '').replace(/^0+/, '').toUpperCase()
}
