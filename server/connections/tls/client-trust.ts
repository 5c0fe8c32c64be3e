/**
 * Which client certificates are good now: issued by one of the operator's authorities, not revoked, not expired. Asked
 * again every second for each that somebody logged in with, so what costs time is remembered with the certificate.
 */
import { X509Certificate } from 'node:crypto'
import type { PeerCertificate } from '../../../auth/mechanism.ts'

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g

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
    if (this.#revoked.has(plain(serial)) || this.#revoked.has(plain(fingerprint))) return false
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

/** The certificates of a PEM file. Throws where one does not parse. */
export function readCertificates(pem: string): X509Certificate[] {
  return (pem.match(CERTIFICATE) ?? []).map((text) => new X509Certificate(text))
}

/**
 * Serial numbers and SHA-256 fingerprints, one a line, hexadecimal, colons and case as you like; `#` begins a comment.
 * Gives the number of a line that is none of these instead.
 */
export function readRevoked(text: string): Set<string> | number {
  const revoked = new Set<string>()
  for (const [index, line] of text.split('\n').entries()) {
    const entry = line.replace(/#.*/, '').trim()
    if (entry === '') continue
    if (!/^[0-9A-Fa-f][0-9A-Fa-f:]*$/.test(entry)) return index + 1
    revoked.add(plain(entry))
  }
  return revoked
}

function plain(hex: string): string {
  return hex.replaceAll(':', '').replace(/^0+/, '').toUpperCase()
}
