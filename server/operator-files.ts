/** Certificates and keys of the operator's, read at the start and looked at every second. */
import type { Certificates } from '../auth/mechanism.ts'
import type { JwtKeys } from '../auth/token/jwt-keys.ts'
import type { Clock } from './clock.ts'
import type { Config } from './config.ts'
import { JwtKeysFile } from './jwt-keys-file.ts'
import type { Logger } from './log.ts'
import type { Notices } from './sensors/notices.ts'
import { TlsFiles } from './tls/files.ts'

export class OperatorFiles {
  readonly tls: TlsFiles | undefined
  readonly #jwt: JwtKeysFile | undefined
  readonly #log: Logger

  /** Throws FileError where one is no good. */
  constructor({ tls, jwt }: Pick<Config, 'tls' | 'jwt'>, clock: Pick<Clock, 'wallMs'>, log: Logger) {
    this.#log = log
    this.tls = TlsFiles.open(tls, clock)
    this.#jwt = jwt.keys === undefined ? undefined : new JwtKeysFile(jwt.keys)
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
