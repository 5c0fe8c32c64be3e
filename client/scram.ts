/**
 * The login by SCRAM [MON 11], loaded where there is a password: it shows the secret to nobody, and the producer has to
 * prove that it knows it too.
 */
import { AuthError } from '../auth/errors.ts'
import { ScramClient } from '../auth/scram/client.ts'
import type { Connection } from './connection.ts'
import type { PasswordCredentials } from './credentials.ts'

/** Settles when the producer has proven itself; what is left is the AUTH that it answers with OK. Rejects with AuthError too. */
export async function prove(
  connection: Connection,
  { identity, password }: PasswordCredentials,
  channelBinding: Uint8Array | 'not-offered' | undefined,
): Promise<void> {
  const scram = new ScramClient({ identity, password, channelBinding })
  const first = await connection.authenticate(scram.method, scram.first(), false)
  if ('channel' in first) throw unproven()
  const final = await connection.authenticate('', await scram.final(first.data), false)
  if ('channel' in final) throw unproven()
  scram.verify(final.data)
}

function unproven(): AuthError {
  return new AuthError('SERVER_NOT_PROVEN', 'it admitted us without proving that it knows the secret')
}
