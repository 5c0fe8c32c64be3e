/**
 * The certificates in force. Good new files are used for every handshake from then on, while connections that are open stay
 * as they are; a bad one is told, and what was read before goes on.
 */
import type { Duplex } from 'node:stream'
import type { TLSSocket, TlsOptions } from 'node:tls'
import type { Certificates, PeerCertificate } from '../../../auth/mechanism.ts'
import type { Owner } from '../../../auth/permissions.ts'
import type { Clock } from '../../core/clock.ts'
import { type FileChange, readAgain, WatchedFile } from '../../core/watched-file.ts'
import type { SensorStatus } from '../../metrics/metric.ts'
import type { TlsSection } from '../config.ts'
import { Handshakes } from './handshakes.ts'
import { type Material, type MaterialFiles, readMaterial } from './material.ts'

export class TlsFiles implements Certificates {
  readonly owner: Owner = 'producer'
  readonly #clock: Pick<Clock, 'wallMs'>
  readonly #files: MaterialFiles
  readonly #listeners: ((options: TlsOptions) => void)[] = []
  #material: Material
  #handshakes: Handshakes
  #problem: string | undefined
  #counters = { read: 1, refused: 0 }

  private constructor(files: MaterialFiles, clock: Pick<Clock, 'wallMs'>) {
    this.#files = files
    this.#clock = clock
    this.#material = readMaterial(files)
    this.#handshakes = new Handshakes(this.#material.options)
  }

  /** Undefined where `[tls]` names no certificate. Throws FileError where a file is no good. */
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

  /** What can be used and should not stay so. */
  warnings(): string[] {
    const { key, cert } = this.#files
    return [
      ...(key.isPublic ? [`everybody on this machine can read the private key ${key.path}: chmod 600`] : []),
      ...(this.#isExpired ? [`the certificate in ${cert.path} has expired: clients will refuse it`] : []),
    ]
  }

  get #isExpired(): boolean {
    return this.#clock.wallMs() >= this.#material.validUntil
  }

  /** For handshakes from now on. */
  get options(): TlsOptions {
    return this.#material.options
  }

  /** Calls whenever new files are in force. */
  follow(listener: (options: TlsOptions) => void): void {
    this.#listeners.push(listener)
  }

  /** For `TlsLink`. */
  readonly handshake = (raw: Duplex, done: (socket: TLSSocket) => void): void => this.#handshakes.begin(raw, done)

  isTrusted(certificate: PeerCertificate): boolean {
    return this.#material.trust.isTrusted(certificate, this.#clock.wallMs())
  }

  /** Looks at the files, and reads them again if one has changed; to be called every second. */
  look(): FileChange | undefined {
    const { cert, key, clientCa, clientRevoked } = this.#files
    const watched = [cert, key, clientCa, clientRevoked].filter((file) => file !== undefined)
    const change = readAgain(watched, () => {
      this.#material = readMaterial(this.#files)
    })
    if (change?.severity === 'info') this.#renew()
    if (change?.severity === 'error') this.#counters.refused++
    if (change) this.#problem = change.severity === 'error' ? change.detail : undefined
    return change
  }

  #renew(): void {
    this.#counters.read++
    this.#handshakes = new Handshakes(this.#material.options)
    for (const listener of this.#listeners) listener(this.#material.options)
  }

  /** For `producer.sensors`. */
  status(): SensorStatus {
    const until = `the certificate is good until ${new Date(this.#material.validUntil).toISOString()}`
    const isGood = this.#problem === undefined && !this.#isExpired
    return { name: 'tls', state: isGood ? 'ok' : 'failed', detail: this.#problem ?? until, counters: this.#counters }
  }
}
