/** What a peer has shown in a handshake, as the methods of login need it [MON 11]. */
import type { TLSSocket } from 'node:tls'
import type { AuthPeer, Certificates, PeerCertificate } from '../../../auth/mechanism.ts'

/** RFC 9266 */
const LABEL = 'EXPORTER-Channel-Binding'
const EXPORTER_BYTES = 32

export function peerFacts(socket: TLSSocket, certificates: Certificates): Partial<AuthPeer> {
  const certificate = socket.authorized ? certificateOf(socket) : undefined
  return {
    encrypted: true,
    // Below TLS 1.3 it would not be unique to the connection without more (RFC 9266 section 3).
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
  // One name and no other: several would be anybody's choice.
  if (typeof subject.CN !== 'string') return undefined
  return {
    subject: subject.CN,
    serial: certificate.serialNumber.toUpperCase(),
    fingerprint: certificate.fingerprint256,
    raw: certificate.raw,
    validUntil: Date.parse(certificate.validTo),
  }
}
