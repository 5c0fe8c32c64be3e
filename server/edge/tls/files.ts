/**
 * The certificates in force. When the files change, new handshakes use the new ones and open connections stay as they are. A
 * file that cannot be used is reported, and the previous ones stay in force. A certificate that is not valid never replaces
 * one that is: it is kept back until that has changed.
 */
import type { Duplex } from 'node:stream'
import { createServer, type Server, type TLSSocket, type TlsOptions } from 'node:tls'
import type { Certificates, PeerCertificate } from '../../../auth/mechanism.ts'
import type { Owner } from '../../../auth/permissions.ts'
import type { Clock } from '../../kernel/core/clock.ts'
import { type FileChange, readAgain, WatchedFile } from '../../kernel/core/watched-file.ts'
import type { SensorStatus } from '../../kernel/metrics/metric.ts'
import type { TlsSection } from '../config.ts'
import { type Material, type MaterialFiles, type OwnCertificate, optionsOf, readMaterial } from './material.ts'
import { forgetVerification } from './peer.ts'

/** Servers of Node's that are kept for the next handshake. */
const MAX_IDLE_SERVERS = 64

export class TlsFiles implements Certificates {
  readonly owner: Owner = 'producer'
  readonly #clock: Pick<Clock, 'wallMs'>
  readonly #files: MaterialFiles
  readonly #listeners: ((options: TlsOptions) => void)[] = []
  #material: Material
  /** What was read last. Its certificate differs from the one in force only while it is kept back. */
  #latest: Material
  #options: TlsOptions
  #handshakes: Handshakes
  #problem: string | undefined
  #counters = { read: 1, refused: 0 }

  private constructor(files: MaterialFiles, clock: Pick<Clock, 'wallMs'>) {
    this.#files = files
    this.#clock = clock
    this.#material = readMaterial(files)
    this.#latest = this.#material
    this.#options = optionsOf(this.#material)
    this.#handshakes = new Handshakes(this.#options)
  }

  /** Returns undefined if `[tls]` names no certificate. Throws FileError if a file cannot be used. */
  static open(tls: TlsSection, clock: Pick<Clock, 'wallMs'>): TlsFiles | undefined {
    if (tls.cert === undefined || tls.key === undefined) return undefined
    const files: MaterialFiles = {
      cert: new WatchedFile(tls.cert, 'tls.cert'),
      key: new WatchedFile(tls.key, 'tls.key'),
      clientCa: tls.clientCa === undefined ? undefined : new WatchedFile(tls.clientCa, 'tls.client_ca'),
      clientRevoked:
        tls.clientRevoked === undefined ? undefined : new WatchedFile(tls.clientRevoked, 'tls.client_revoked'),
    }
    return new TlsFiles(files, clock)
  }

  /** Reports files that can be used but should be corrected. */
  warnings(): string[] {
    const { key, cert } = this.#files
    const invalidity = this.#invalidity(this.#material.own)
    return [
      ...(key.isPublic ? [`everybody on this machine can read the private key ${key.path}; run chmod 600 on it`] : []),
      ...(invalidity ? [`the certificate in ${cert.path} ${invalidity}: clients will refuse it`] : []),
    ]
  }

  /** Why a certificate is not valid now; undefined if it is. */
  #invalidity({ validFrom, validUntil }: OwnCertificate): string | undefined {
    const nowMs = this.#clock.wallMs()
    if (nowMs >= validUntil) return 'has expired'
    return nowMs < validFrom ? `is not valid before ${new Date(validFrom).toISOString()}` : undefined
  }

  /** The options of new handshakes. */
  get options(): TlsOptions {
    return this.#options
  }

  /** Calls `listener` whenever new files come into force. */
  onRenewal(listener: (options: TlsOptions) => void): void {
    this.#listeners.push(listener)
  }

  /** The handshake of `TlsLink`. */
  readonly handshake = (raw: Duplex, done: (socket: TLSSocket) => void): void => this.#handshakes.begin(raw, done)

  /** Puts a stream under TLS, of whose other end no certificate is wanted. Destroys `raw` if the handshake fails. */
  accept(raw: Duplex, done: (socket: TLSSocket) => void): void {
    this.handshake(raw, (socket) => {
      forgetVerification(socket)
      done(socket)
    })
  }

  /** Whether the server's own certificate is for a host name. */
  isFor(name: string): boolean {
    return this.#material.own.certificate.checkHost(name) !== undefined
  }

  isTrusted(certificate: PeerCertificate): boolean {
    return this.#material.trust.isTrusted(certificate, this.#clock.wallMs())
  }

  /** Reads the files again if one has changed; must be called every second. */
  reloadIfChanged(): FileChange | undefined {
    const { cert, key, clientCa, clientRevoked } = this.#files
    const watched = [cert, key, clientCa, clientRevoked].filter((file) => file !== undefined)
    const read = readAgain(watched, () => {
      this.#latest = readMaterial(this.#files, this.#material)
    })
    const change = read?.severity === 'error' ? read : this.#renewed(read)
    if (change === undefined) return undefined
    const isRefused = change.severity === 'error'
    this.#counters[isRefused ? 'refused' : 'read']++
    this.#problem = isRefused ? change.detail : undefined
    return change
  }

  /** Puts into force what was read last, after a change of files or of the validity of certificates. */
  #renewed(read: FileChange | undefined): FileChange | undefined {
    const [latest, { own }] = [this.#latest, this.#material]
    const { cert } = this.#files
    const invalidity = this.#invalidity(latest.own)
    const isKeptBack = invalidity !== undefined && this.#invalidity(own) === undefined
    if (read === undefined && (isKeptBack || latest.own === own)) return undefined
    this.#material = isKeptBack ? { ...latest, own } : latest
    this.#options = optionsOf(this.#material)
    this.#handshakes = new Handshakes(this.#options)
    for (const listener of this.#listeners) listener(this.#options)
    if (!isKeptBack) return read ?? { severity: 'info', detail: `${cert.path}: its certificate is in force now` }
    const { message } = cert.error(`contains a certificate that ${invalidity}`)
    return { severity: 'error', detail: `${message}; the previous certificate stays in force while it is valid` }
  }

  /** The status for `producer.sensors`. */
  status(): SensorStatus {
    const { own } = this.#material
    const until = `the certificate is valid until ${new Date(own.validUntil).toISOString()}`
    const isValid = this.#problem === undefined && this.#invalidity(own) === undefined
    return { name: 'tls', state: isValid ? 'ok' : 'failed', detail: this.#problem ?? until, counters: this.#counters }
  }
}

/**
 * Handshakes with one certificate, over streams that are already open. A server of Node's performs one at a time, because it
 * does not report whose handshake has ended. Idle servers are reused, because creating one takes as long as a handshake.
 */
export class Handshakes {
  readonly #options: TlsOptions
  readonly #idle: Server[] = []

  constructor(options: TlsOptions) {
    this.#options = options
  }

  /** Calls `done` when the handshake has succeeded; destroys `raw` if it fails. */
  begin(raw: Duplex, done: (socket: TLSSocket) => void): void {
    const server = this.#idle.pop() ?? createServer(this.#options)
    const release = (): void => {
      server.off('secureConnection', succeeded)
      server.off('tlsClientError', failed)
      if (this.#idle.length < MAX_IDLE_SERVERS) this.#idle.push(server)
    }
    const succeeded = (socket: TLSSocket): void => {
      release()
      done(socket)
    }
    const failed = (): void => {
      release()
      raw.destroy()
    }
    server.on('secureConnection', succeeded)
    server.on('tlsClientError', failed)
    server.emit('connection', raw)
  }
}
