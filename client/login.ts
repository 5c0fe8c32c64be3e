/**
 * Logs in [MON 11]. With a password by SCRAM wherever it is offered, since that shows the secret to nobody and makes the
 * producer prove itself; bound to the TLS connection where that can be. A password or token goes out in the clear only to
 * this machine or under encryption.
 */
import { AuthError } from '../auth/errors.ts'
import { XdrWriter } from '../protocol/bytes/writer.ts'
import type { Connection } from './connection.ts'
import { ALL_METHODS, type Method, type PasswordCredentials, type Proof } from './credentials.ts'
import { ConnectionError, StatusError } from './errors.ts'
import type { Wire } from './transport.ts'

const NO_DATA = new Uint8Array(0)

/** Gives the id of the current channel. Throws ConnectionError. */
export async function logIn(connection: Connection, wire: Wire, proof: Proof): Promise<number> {
  const { auth } = await connection.ready
  const way = wayOf(auth, wire, proof)
  if (!way) {
    const { whyNot } = await import('./no-method.ts')
    throw new ConnectionError(
      'NO_METHOD',
      `${connection.peer}: no way to log in here: ${whyNot(auth, methodsOf(proof), wire, proof)}`,
    )
  }
  try {
    return await way(connection)
  } catch (error) {
    throw explained(error, connection.peer)
  }
}

type Way = (connection: Connection) => Promise<number>

function wayOf(auth: readonly string[], wire: Wire, proof: Proof): Way | undefined {
  const isPrivate = wire.encrypted || wire.loopback
  if ('token' in proof) return auth.includes('token') && isPrivate ? plainly('token', utf8(proof.token)) : undefined
  if ('certificate' in proof) return auth.includes('certificate') ? plainly('certificate', NO_DATA) : undefined
  const { identity, password } = proof
  const methods = methodsOf(proof)
  const mayUse = (method: Method) => auth.includes(method) && methods.includes(method)
  const { exporter } = wire
  if (exporter && mayUse('scram-sha-256-plus')) return byScram(proof, exporter)
  if (mayUse('scram-sha-256')) {
    const isMissed = exporter && methods.includes('scram-sha-256-plus')
    return byScram(proof, isMissed ? 'not-offered' : undefined)
  }
  if (!mayUse('password') || !isPrivate) return undefined
  return plainly('password', new XdrWriter().string(identity).string(password).copy())
}

function methodsOf(proof: Proof): readonly Method[] {
  return ('methods' in proof && proof.methods) || ALL_METHODS
}

function byScram(proof: PasswordCredentials, channelBinding: Uint8Array | 'not-offered' | undefined): Way {
  return async (connection) => {
    const { prove } = await import('./scram.ts')
    await prove(connection, proof, channelBinding)
    return admittedTo(await connection.authenticate('', NO_DATA, true))
  }
}

function plainly(method: string, data: Uint8Array): Way {
  return async (connection) => admittedTo(await connection.authenticate(method, data, true))
}

function admittedTo(step: Awaited<ReturnType<Connection['authenticate']>>): number {
  if ('channel' in step) return step.channel
  throw new AuthError('SCRAM_REFUSED', 'the producer asks for more than this method has')
}

function utf8(text: string): Uint8Array {
  return new TextEncoder().encode(text)
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
