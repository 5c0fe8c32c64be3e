/** Who asks by HTTP: a bearer token or a client certificate says so with each request. */
import type { Socket } from 'node:net'
import type { FastifyRequest } from 'fastify'
import type { AuthPeer } from '../../../auth/mechanism.ts'
import type { Asker } from '../../kernel/accounts/rights.ts'
import type { SessionContext } from '../../kernel/sessions/context.ts'
import { SessionLogin } from '../../kernel/sessions/login.ts'

export interface AskerOptions {
  readonly context: SessionContext
  /** What is known of the other end of a connection of the listener. */
  readonly peerOf: (socket: Socket) => AuthPeer
}

export interface Refused {
  readonly status: number
  readonly refused: string
}

const NO_TOKEN = 'a token is needed: Authorization: Bearer <token>'

export async function askerByToken(request: FastifyRequest, options: AskerOptions): Promise<Asker | Refused> {
  const [, token] = /^Bearer +(\S+)$/i.exec(request.headers.authorization ?? '') ?? []
  if (token === undefined) return { status: 401, refused: NO_TOKEN }
  return logIn('token', Buffer.from(token, 'latin1'), options.peerOf(request.socket), options)
}

/** By the token of the request or, without one, by the certificate of its connection; undefined if there is neither. */
export async function askerByProof(
  request: FastifyRequest,
  options: AskerOptions,
): Promise<Asker | Refused | undefined> {
  if (request.headers.authorization !== undefined) return askerByToken(request, options)
  const peer = options.peerOf(request.socket)
  return peer.certificate === undefined ? undefined : logIn('certificate', Buffer.alloc(0), peer, options)
}

async function logIn(
  method: 'token' | 'certificate',
  data: Uint8Array,
  peer: AuthPeer,
  { context }: AskerOptions,
): Promise<Asker | Refused> {
  const step = await new SessionLogin(context, peer).step(method, data)
  if (step.outcome === 'ok') return { identity: step.identity, credential: step.credential }
  if (step.outcome !== 'continue' && step.status === 'UNSUPPORTED') {
    return { status: 403, refused: 'without TLS a token is taken on this machine only: use https' }
  }
  return { status: 401, refused: `the ${method} is not valid` }
}
