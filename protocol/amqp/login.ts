/** SASL as qpidd offers it: ANONYMOUS, or PLAIN (RFC 4616), in one step. */
export interface Credentials {
  /** Left out: ANONYMOUS. */
  readonly user?: string
  readonly password?: string
}

export interface Login {
  readonly mechanism: 'ANONYMOUS' | 'PLAIN'
  /** Holds the password. */
  readonly response: Uint8Array
}

/** A string: why there is no login, for people. Never tries the other mechanism than the one that was configured. */
export function chooseLogin({ user, password = '' }: Credentials, offered: readonly string[]): Login | string {
  const mechanism = user === undefined ? 'ANONYMOUS' : 'PLAIN'
  if (offered.includes(mechanism)) {
    const response = user === undefined ? '' : `\0${user}\0${password}`
    return { mechanism, response: new TextEncoder().encode(response) }
  }
  const list = offered.length === 0 ? 'no way to log in' : offered.join(', ')
  return mechanism === 'ANONYMOUS'
    ? `the server offers ${list}, not ANONYMOUS: configure a user and a password`
    : `the server offers ${list}, not PLAIN: with the configured user nobody can log in there`
}
