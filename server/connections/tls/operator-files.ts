/** Certificates and keys of the operator's, read at the start and looked at every second. */
import type { Certificates } from '../../../auth/mechanism.ts'
import type { JwtKeys } from '../../../auth/token/jwt-keys.ts'
import type { Clock } from '../../core/clock.ts'
import type { Logger } from '../../core/log.ts'
import { FileError, WatchedFile } from '../../core/watched-file.ts'
import type { Notices } from '../../sources/producer/notices.ts'
import type { DialSection, JwtSection, TlsSection } from '../config.ts'
import { readCertificates } from './client-trust.ts'
import { TlsFiles } from './files.ts'
import { JwtKeysFile } from './jwt-keys-file.ts'

export interface OperatorFilesOptions {
  readonly tls: TlsSection
  readonly jwt: Pick<JwtSection, 'keys'>
  readonly dial: Pick<DialSection, 'ca'>
}

export class OperatorFiles {
  readonly tls: TlsFiles | undefined
  readonly #jwt: JwtKeysFile | undefined
  readonly #log: Logger

  /** Throws FileError where one is no good. */
  constructor({ tls, jwt, dial }: OperatorFilesOptions, clock: Pick<Clock, 'wallMs'>, log: Logger) {
    this.#log = log
    this.tls = TlsFiles.open(tls, clock)
    this.#jwt = jwt.keys === undefined ? undefined : new JwtKeysFile(jwt.keys)
    if (dial.ca !== undefined) checkAuthorities(new WatchedFile(dial.ca, 'dial.ca'))
    for (const warning of this.tls?.warnings() ?? []) log.warn(warning)
  }

  get certificates(): Certificates | undefined {
    return this.tls
  }

  get jwtKeys(): JwtKeys | undefined {
    return this.#jwt?.keys
  }

  /** Reads again what has changed, and tells. */
  look(notices: Pick<Notices, 'emit'>): void {
    for (const file of [this.tls, this.#jwt]) {
      const change = file?.look()
      if (change === undefined) continue
      this.#log[change.severity](change.detail)
      notices.emit({ ...change, subject: 'files' })
    }
  }
}

/** It is read at each attempt to dial; one that is no good from the start is a mistake. */
function checkAuthorities(file: WatchedFile): void {
  try {
    if (readCertificates(file.text()).length > 0) return
  } catch (error) {
    if (error instanceof FileError) throw error
    throw file.error('holds a certificate that cannot be read', error)
  }
  throw file.error('holds no certificate in PEM form')
}
