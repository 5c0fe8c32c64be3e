/** The operator's certificates and keys, which are read at the start and again when they change. */
import { AuthError } from '../../../auth/errors.ts'
import type { Certificates } from '../../../auth/mechanism.ts'
import { JwtKeys } from '../../../auth/token/jwt-keys.ts'
import type { Clock } from '../../kernel/core/clock.ts'
import type { Logger } from '../../kernel/core/log.ts'
import { type FileChange, readAgain, WatchedFile } from '../../kernel/core/watched-file.ts'
import type { Notices } from '../../kernel/producer/notices.ts'
import type { DialSection, JwtSection, TlsSection } from '../config.ts'
import { TlsFiles } from './files.ts'
import { readCertificates } from './material.ts'

export interface OperatorFilesOptions {
  readonly tls: TlsSection
  readonly jwt: Pick<JwtSection, 'keys'>
  readonly dial: Pick<DialSection, 'ca'>
}

export class OperatorFiles {
  readonly tls: TlsFiles | undefined
  readonly #jwt: JwtKeysFile | undefined
  readonly #log: Logger

  /** Throws FileError if a file cannot be used. */
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

  /** Reads changed files again and reports the result. */
  reloadChanged(notices: Pick<Notices, 'emit'>): void {
    const [tls, jwt] = [this.tls?.reloadIfChanged(), this.#jwt?.reloadIfChanged()]
    for (const change of [tls, jwt]) {
      if (change === undefined) continue
      this.#log[change.severity](change.detail)
      notices.emit({ ...change, subject: 'files' })
    }
    if (tls?.severity !== 'info') return
    for (const detail of this.tls?.warnings() ?? []) {
      this.#log.warn(detail)
      notices.emit({ severity: 'warning', subject: 'files', detail })
    }
  }
}

/** Each outbound connection reads the file again, but a file that cannot be used from the start is a mistake. */
function checkAuthorities(file: WatchedFile): void {
  readCertificates(file, file.text())
}

/** The file of `jwt.keys`. A file that cannot be used is reported, and the previous keys stay in force. */
export class JwtKeysFile {
  readonly keys = new JwtKeys()
  readonly #file: WatchedFile

  /** Throws FileError if the file cannot be used. */
  constructor(path: string) {
    this.#file = new WatchedFile(path, 'jwt.keys')
    this.#read()
  }

  /** Must be called every second. */
  reloadIfChanged(): FileChange | undefined {
    return readAgain([this.#file], () => this.#read())
  }

  #read(): void {
    try {
      this.keys.reload(this.#file.text())
    } catch (error) {
      if (error instanceof AuthError) throw this.#file.error(`cannot be used: ${error.message}`, error)
      throw error
    }
  }
}
