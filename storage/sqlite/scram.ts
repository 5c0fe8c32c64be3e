/** SCRAM verifiers as columns: all four are there, or none. */
import type { ScramRow } from '../store.ts'

export interface StoredScram {
  readonly scram_salt: Uint8Array | null
  readonly scram_iterations: number | null
  readonly scram_stored_key: Uint8Array | null
  readonly scram_server_key: Uint8Array | null
}

/** For the parameters @salt, @iterations, @storedKey and @serverKey. */
export function scramColumns(scram: ScramRow | undefined): Record<keyof ScramRow, Uint8Array | number | null> {
  const { salt = null, iterations = null, storedKey = null, serverKey = null } = scram ?? {}
  return { salt, iterations, storedKey, serverKey }
}

export function scramOf(row: StoredScram): ScramRow | undefined {
  const {
    scram_salt: salt,
    scram_iterations: iterations,
    scram_stored_key: storedKey,
    scram_server_key: serverKey,
  } = row
  return salt && iterations && storedKey && serverKey ? { salt, iterations, storedKey, serverKey } : undefined
}
