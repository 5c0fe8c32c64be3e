/**
 * The login by SCRAM [MON 11], which is loaded only if there is a password. It does not show the password to anybody, and
 * the producer has to prove that it knows the password too.
 */
import { AuthError } from '../auth/errors.ts'
import { ScramClient } from '../auth/scram/client.ts'
import type { ClientConnection } from './connection.ts'
import type { PasswordProof } from './credentials.ts'

const NO_DATA = new Uint8Array(0)

/**
 * Returns the id of the current channel. `auth` has the methods that the producer offers. The login is bound to the TLS
 * connection if there is an `exporter` and the producer offers such a login.
 *
 * Rejects with StatusError, ConnectionError or AuthError.
 */
export async function logInByScram(
  connection: ClientConnection,
  { identity, password, maxIterations }: PasswordProof,
  auth: readonly string[],
  exporter: Uint8Array | undefined,
): Promise<number> {
  // A producer that did offer it learns from 'not-offered' that somebody in between has removed the offer.
  const channelBinding = exporter && !auth.includes('scram-sha-256-plus') ? 'not-offered' : exporter
  const scram = new ScramClient({ identity, password, channelBinding, maxIterations })
  const challenge = await exchange(connection, scram.method, scram.first())
  scram.verify(await exchange(connection, '', await scram.final(challenge)))
  // Only now, after the producer's proof, does its OK admit us.
  const reply = await connection.authenticate('', NO_DATA, true)
  if ('channel' in reply) return reply.channel
  throw new AuthError('SCRAM_REFUSED', 'the producer continues a login that is complete')
}

/** Sends one message of the exchange and returns the producer's answer. */
async function exchange(connection: ClientConnection, method: string, message: Uint8Array): Promise<Uint8Array> {
  const reply = await connection.authenticate(method, message, false)
  if ('data' in reply) return reply.data
  throw new AuthError('SERVER_NOT_PROVEN', 'the producer admitted us without proving that it knows the password')
}
