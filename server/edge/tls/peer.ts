/** The facts that a TLS handshake shows of a peer, as the login methods need them [MON 11]. */
import type { TLSSocket } from 'node:tls'
import type { AuthPeer, Certificates, PeerCertificate } from '../../../auth/mechanism.ts'

/** RFC 9266 */
const LABEL = 'EXPORTER-Channel-Binding'
const EXPORTER_BYTES = 32

/**
 * Must be called when a handshake ends, before anything is read. What OpenSSL reports of a certificate that does not verify
 * (in its queue of errors) would end the connection at the next read, although the certificate is not required; reading the
 * certificate clears the queue.
 */
export function forgetVerification(socket: TLSSocket): void {
  socket.getPeerX509Certificate()
}

/** What the handshake has shown; a certificate that does not verify counts as none. */
export function peerFacts(socket: TLSSocket, certificates: Certificates): Partial<AuthPeer> {
  forgetVerification(socket)
  const certificate = socket.authorized ? certificateOf(socket) : undefined
  return {
    encrypted: true,
    // Before TLS 1.3 the exporter alone is not unique to the connection (RFC 9266 section 3).
    exporter:
      socket.getProtocol() === 'TLSv1.3'
        ? socket.exportKeyingMaterial(EXPORTER_BYTES, LABEL, Buffer.alloc(0))
        : undefined,
    certificate: certificate && certificates.isTrusted(certificate) ? certificate : undefined,
  }
}

function certificateOf(socket: TLSSocket): PeerCertificate | undefined {
  const certificate = socket.getPeerX509Certificate()
  if (certificate === undefined) return undefined
  const { subject } = certificate.toLegacyObject()
  // Exactly one name, because among several the choice would be arbitrary.
  if (typeof subject.CN !== 'string') return undefined
  return {
    subject: subject.CN,
    serial: certificate.serialNumber.toUpperCase(),
    fingerprint: certificate.fingerprint256,
    raw: certificate.raw,
    validUntil: Date.parse(certificate.validTo),
  }
}
