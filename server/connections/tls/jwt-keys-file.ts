/** The file of `jwt.keys`: read at the start, and again when it changes; a bad one is told, and the keys read before go on. */
import { AuthError } from '../../../auth/errors.ts'
import { JwtKeys } from '../../../auth/token/jwt-keys.ts'
import { type FileChange, readAgain, WatchedFile } from '../../core/watched-file.ts'

export class JwtKeysFile {
  readonly keys = new JwtKeys()
  readonly #file: WatchedFile

  /** Throws FileError where it is no good. */
  constructor(path: string) {
    this.#file = new WatchedFile(path, 'jwt.keys')
    this.#read()
  }

  /** To be called every second. */
  look(): FileChange | undefined {
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
