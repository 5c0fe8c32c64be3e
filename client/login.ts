/**
 * Logs in [MON 11]: by scram-sha-256 wherever it is offered, since it shows the secret to nobody and makes the producer
 * prove itself. A password goes out in the clear only to this machine or under encryption, and only where there is no other way.
 */
import { AuthError } from '../auth/errors.ts'
import { ScramClient } from '../auth/scram/client.ts'
import { XdrWriter } from '../protocol/bytes/writer.ts'
import type { Connection } from './connection.ts'
import { ConnectionError, StatusError } from './errors.ts'
import type { Transport } from './transport.ts'

export type Method = 'scram-sha-256' | 'password'

export interface Credentials {
  /** `tenant/user`, or `user` for the tenant `default`. */
  readonly identity: string
  readonly password: string
  /** What may be used; all unless given. */
  readonly methods?: readonly Method[] | undefined
}

const NO_DATA = new Uint8Array(0)

/** Gives the id of the birth channel. Throws ConnectionError. */
export async function logIn(
  connection: Connection,
  transport: Pick<Transport, 'encrypted' | 'loopback'>,
  credentials: Credentials,
): Promise<number> {
  const { auth } = await connection.ready
  const { methods = ['scram-sha-256', 'password'] } = credentials
  const mayUse = (method: Method) => auth.includes(method) && methods.includes(method)
  try {
    if (mayUse('scram-sha-256')) return await byScram(connection, credentials)
    if (mayUse('password') && (transport.encrypted || transport.loopback)) {
      return await byPassword(connection, credentials)
    }
  } catch (error) {
    throw explained(error, connection.peer)
  }
  const offered = auth.join(', ') || 'nothing'
  throw new ConnectionError('NO_METHOD', `${connection.peer}: no way to log in that is safe here; offered: ${offered}`)
}

async function byScram(connection: Connection, { identity, password }: Credentials): Promise<number> {
  const scram = new ScramClient({ identity, password })
  const first = await connection.authenticate('scram-sha-256', scram.first())
  if ('channel' in first) throw unproven()
  const final = await connection.authenticate('', await scram.final(first.data))
  if ('channel' in final) throw unproven()
  scram.verify(final.data)
  return admitted(await connection.authenticate('', NO_DATA))
}

async function byPassword(connection: Connection, { identity, password }: Credentials): Promise<number> {
  const data = new XdrWriter().string(identity).string(password).copy()
  return admitted(await connection.authenticate('password', data))
}

function admitted(step: Awaited<ReturnType<Connection['authenticate']>>): number {
  if ('channel' in step) return step.channel
  throw new AuthError('SCRAM_REFUSED', 'the producer asks for more than this method has')
}

function unproven(): AuthError {
  return new AuthError('SERVER_NOT_PROVEN', 'it admitted us without proving that it knows the secret')
}

function explained(error: unknown, peer: string): unknown {
  if (error instanceof StatusError) {
    const why = error.status === 'AUTH_FAILED' ? 'not admitted with this secret' : error.message
    return new ConnectionError('LOGIN_FAILED', `${peer}: ${why}`, { cause: error })
  }
  if (error instanceof AuthError) {
    const code = error.code === 'SERVER_NOT_PROVEN' ? 'SERVER_NOT_PROVEN' : 'LOGIN_FAILED'
    return new ConnectionError(code, `${peer}: ${error.message}`, { cause: error })
  }
  return error
}
