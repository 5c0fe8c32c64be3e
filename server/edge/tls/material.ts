/** Reads and checks the files of `[tls]` together: the options of new handshakes, and the client certificates to trust. */
import { constants, createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import { createSecureContext, type TlsOptions } from 'node:tls'
import type { PeerCertificate } from '../../../auth/mechanism.ts'
import type { WatchedFile } from '../../kernel/core/watched-file.ts'

const PEM_BLOCK = /-----BEGIN ([A-Z0-9 ]+)-----(?:(?!-----)[\s\S])+-----END \1-----/g
/** A part of a block that is cut off; cut within its last line, a file ends with a dash. */
const CUT_BLOCK = /-----|-$/

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
  readonly own: OwnCertificate
  /** The authorities of client certificates, in PEM. */
  readonly ca: string | undefined
  readonly trust: ClientTrust
}

/** The server's own certificate with its key. Times are milliseconds since 1970. */
export interface OwnCertificate {
  readonly cert: string
  readonly key: string
  readonly certificate: X509Certificate
  readonly validFrom: number
  readonly validUntil: number
}

/** `previous` is in force now. Throws FileError for the first file that cannot be used. */
export function readMaterial(files: MaterialFiles, previous?: Material): Material {
  const { cert, clientCa, clientRevoked } = files
  const own = readOwn(files)
  const ca = clientCa?.text()
  const authorities = clientCa && ca !== undefined ? readCertificates(clientCa, ca) : []
  const revoked = clientRevoked ? revokedOf(clientRevoked, previous) : new Set<string>()
  const material = { own, ca, trust: new ClientTrust(authorities, revoked) }
  try {
    createSecureContext(optionsOf(material))
  } catch (error) {
    throw cert.error('cannot be used for TLS, although it is a certificate: its key may be too short', error)
  }
  return material
}

/** The options of new handshakes. */
export function optionsOf({ own, ca }: Pick<Material, 'own' | 'ca'>): TlsOptions {
  return {
    cert: own.cert,
    key: own.key,
    ...(ca === undefined ? {} : { ca, requestCert: true }),
    // A client without a certificate, or with an unknown one, may still log in by another method.
    rejectUnauthorized: false,
    minVersion: 'TLSv1.2',
    ciphers: SUITES,
    // No tickets: a resumed session would present a certificate that was not checked again.
    secureOptions: constants.SSL_OP_NO_TICKET | constants.SSL_OP_NO_RENEGOTIATION,
  }
}

function readOwn(files: Pick<MaterialFiles, 'cert' | 'key'>): OwnCertificate {
  const [cert, key] = [files.cert.text(), files.key.text()]
  const certificate = readCertificates(files.cert, cert)[0] as X509Certificate
  if (!certificate.checkPrivateKey(keyOf(files.key, key))) {
    throw files.key.error(
      `does not belong to the certificate in ${files.cert.path}; install the key with which it was made`,
    )
  }
  const { validFrom, validTo } = certificate
  return { cert, key, certificate, validFrom: Date.parse(validFrom), validUntil: Date.parse(validTo) }
}

/** Reads the certificates of a PEM file, at least one. Throws FileError, also if the file is cut off. */
export function readCertificates(file: WatchedFile, pem: string): X509Certificate[] {
  const damaged = 'contains a damaged certificate, or a part of one; write it again'
  if (CUT_BLOCK.test(pem.replace(PEM_BLOCK, ''))) throw file.error(damaged)
  const blocks = [...pem.matchAll(PEM_BLOCK)].filter(([, label]) => label === 'CERTIFICATE')
  if (blocks.length === 0) throw file.error('contains no certificate; a PEM file is needed')
  try {
    return blocks.map(([block]) => new X509Certificate(block))
  } catch (error) {
    throw file.error(damaged, error)
  }
}

function keyOf(file: WatchedFile, pem: string): KeyObject {
  try {
    return createPrivateKey(pem)
  } catch (error) {
    throw file.error('contains no usable private key; a PEM file without a passphrase is needed', error)
  }
}

/** A file that is being written may be cut off anywhere: what it does not revoke yet would be trusted again. */
function revokedOf(file: WatchedFile, previous: Material | undefined): Set<string> {
  const text = file.text()
  if (text === '' && previous?.trust.hasRevoked === true) {
    throw file.error('is empty; if nothing is to be revoked any more, write a comment (`# none`)')
  }
  if (text !== '' && !text.endsWith('\n')) throw file.error('is cut off: its last line does not end with a newline')
  const read = readRevoked(text)
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

  get hasRevoked(): boolean {
    return this.#revoked.size > 0
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
