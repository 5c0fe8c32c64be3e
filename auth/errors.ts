/**
 * The errors of auth/. `code` is stable; the message is for people and never contains a secret.
 * A wrong password is no error but an outcome (`AuthStep`), because it happens every day.
 */
export type AuthErrorCode =
  | 'BAD_IDENTITY'
  | 'BAD_KEYS'
  | 'BAD_PASSWORD'
  | 'BAD_SCOPE'
  | 'HASHER_BUSY'
  | 'HASHER_CLOSED'
  | 'NO_CRYPTO'
  | 'SCRAM_MALFORMED'
  | 'SCRAM_REFUSED'
  | 'SERVER_NOT_PROVEN'

export class AuthError extends Error {
  override readonly name = 'AuthError'
  readonly code: AuthErrorCode

  constructor(code: AuthErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}
