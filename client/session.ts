/**
 * A session is a connection that is logged in and has its layers, made from a transport within one deadline. The protection
 * that was requested is provided, or there is no session: nothing falls back to less.
 */
import { AuthError } from '../auth/errors.ts'
import { XdrWriter } from '../protocol/bytes/writer.ts'
import { onAbort } from '../protocol/kept/pause.ts'
import type { ClientClock } from './clock.ts'
import { ClientConnection, type ConnectionListener, type ConnectionOptions } from './connection.ts'
import { ALL_METHODS, type Method, type Proof } from './credentials.ts'
import { ConnectionError, StatusError } from './errors.ts'
import type { Layer, Transport, TransportSecurity } from './transport.ts'

const DEADLINE_MS = 10_000
/** A timer that is set to more runs at once: 24 days. */
const MAX_TIMEOUT_MS = 2 ** 31 - 1
const NO_DATA = new Uint8Array(0)

/** Provides the connections of a consumer, which either connects to the producer or is connected to by it. */
export interface SessionSource {
  /** Used in messages. */
  readonly url: string
  /** Whether one of several addresses is taken for each session: then they have to be those of one producer. */
  readonly hasSeveralAddresses: boolean
  /** Throws ConnectionError and then leaves nothing open. `signal` makes it give up. */
  next(listener: ConnectionListener, signal?: AbortSignal): Promise<ClientSession>
  /** Whether another session may follow one that has ended for this reason. */
  mayContinue(reason: ConnectionError): boolean
}

export interface ClientSession {
  readonly connection: ClientConnection
  /** The channel that the producer has made for this connection, or for which it has connected to us. */
  readonly channel: number
  /** Whether nobody on the way can read along: the connection is encrypted, or stays on this machine. */
  readonly isConfidential: boolean
  /** Present if the producer connected to us. The values of the channel are held back until this is called. */
  readonly release?: () => void
}

export interface OpenSessionOptions extends ConnectionOptions {
  /** Undefined if the producer connects to us, and our certificate is all that it wants. */
  readonly proof: Proof | undefined
  readonly wrap: readonly Layer[]
  readonly signal: AbortSignal
  /** How long the producer may be silent after the login, if not for 30 s. */
  readonly silenceMs?: number | undefined
}

/** Throws ConnectionError or the reason of `signal`, and closes the transport then. */
export async function openSession(transport: Transport, options: OpenSessionOptions): Promise<ClientSession> {
  const { proof, wrap, signal, silenceMs } = options
  const connection = new ClientConnection(transport, { ...options, isReceiver: proof === undefined })
  const abort = () => connection.close(signal.reason)
  const release = onAbort(signal, abort)
  if (signal.aborted) abort()
  try {
    if (wrap.includes('tls')) await addLayer(connection, transport, 'tls')
    const channel = await logIn(connection, transport, proof)
    if (wrap.includes('deflate')) await addLayer(connection, transport, 'deflate')
    // Not before: nothing may be sent while a layer is added, and a node of a cluster may hold the connection until another one leads.
    if (silenceMs !== undefined) connection.allowSilence(silenceMs)
    return { connection, channel, isConfidential: transport.encrypted || transport.loopback }
  } catch (error) {
    connection.close()
    throw error
  } finally {
    release()
  }
}

export interface InTimeOptions {
  readonly clock: ClientClock
  readonly signal: AbortSignal | undefined
  readonly peer: string
  /** How long it may take: 10,000 if it is not given. */
  readonly forMs?: number | undefined
  /** What to say if it takes longer. */
  readonly lastError?: () => Error | undefined
}

/** Gives `work` a signal that is aborted with `signal`, or when the time is over. The work has to end then. */
export async function inTime<T>(options: InTimeOptions, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const { clock, signal, peer, forMs = DEADLINE_MS, lastError } = options
  const abort = new AbortController()
  const giveUp = () => abort.abort(signal?.reason)
  const release = onAbort(signal, giveUp)
  if (signal?.aborted) giveUp()
  const expire = () => {
    const cause = lastError?.()
    const what = `${peer}: not connected and logged in after ${forMs / 1000} s`
    abort.abort(new ConnectionError('TIMEOUT', cause ? `${what}: ${cause.message}` : what, { cause }))
  }
  const timer = clock.setTimeout(expire, Math.min(forMs, MAX_TIMEOUT_MS))
  try {
    return await work(abort.signal)
  } catch (error) {
    throw abort.signal.aborted ? abort.signal.reason : error
  } finally {
    timer.cancel()
    release()
  }
}

/**
 * Adds a layer by WRAP [MON 12]. Nothing may be sent before this settles. Rejects with StatusError or ConnectionError, and
 * then the connection must not be used without the layer.
 */
async function addLayer(connection: ClientConnection, transport: Transport, layer: Layer): Promise<void> {
  const { layer: offered } = await connection.ready
  const refuse = (why: string) => new ConnectionError('NO_LAYER', `${connection.peer}: ${why}`)
  if (!transport.wrap) throw refuse(`layers such as ${layer} cannot be added here; use tls:// or wss://`)
  if (!offered.includes(layer)) {
    const others = offered.length === 0 ? 'it offers none' : `it offers ${offered.join(', ')}`
    throw refuse(`the producer does not offer the requested layer ${layer} (${others})`)
  }
  let added: Promise<void> | undefined
  await connection.request('WRAP', { layer }, () => {
    added = beginLayer(connection, transport, layer)
    // It is awaited below, but may fail before that.
    added.catch(() => {})
  })
  await added
}

/** To be called while the response is read: the bytes after it belong to the layer. */
async function beginLayer(connection: ClientConnection, transport: Transport, layer: Layer): Promise<void> {
  const rest = connection.takeRemainder()
  if (layer === 'deflate') connection.separateSecrets()
  else {
    if (rest.length > 0) {
      const what = 'the producer sent something in the clear after its response to WRAP; somebody may be in between'
      throw new ConnectionError('PROTOCOL', `${connection.peer}: ${what}`)
    }
    connection.forgetCapabilities()
  }
  await transport.wrap?.(layer, rest)
}

type LoginMethod = (connection: ClientConnection) => Promise<number>

/**
 * Logs in [MON 11] and returns the id of the current channel. A password is used by SCRAM wherever that is offered, since it
 * shows the secret to nobody and makes the producer prove itself, and is bound to the TLS connection if possible. A password
 * or token is sent in the clear only to this machine or under encryption. Throws ConnectionError.
 */
async function logIn(
  connection: ClientConnection,
  security: TransportSecurity,
  proof: Proof | undefined,
): Promise<number> {
  const { auth, extension, channel } = await connection.ready
  if (proof === undefined) {
    if (extension.includes('dialled') && channel !== undefined) return channel
    const why = 'the producer expects a login: its channel was defined with a secret, which has to be given here too'
    throw new ConnectionError('NO_METHOD', `${connection.peer}: ${why}`)
  }
  const method = chooseMethod(auth, security, proof)
  if (!method) {
    const why = explainNoMethod(auth, security, proof)
    throw new ConnectionError('NO_METHOD', `${connection.peer}: cannot log in safely: ${why}`)
  }
  try {
    return await method(connection)
  } catch (error) {
    throw loginError(error, connection.peer)
  }
}

function chooseMethod(auth: readonly string[], security: TransportSecurity, proof: Proof): LoginMethod | undefined {
  const isPrivate = security.encrypted || security.loopback
  if ('token' in proof) return auth.includes('token') && isPrivate ? directly('token', utf8(proof.token)) : undefined
  if ('certificate' in proof) return auth.includes('certificate') ? directly('certificate', NO_DATA) : undefined
  const { identity, password, methods = ALL_METHODS } = proof
  const mayUse = (method: Method) => auth.includes(method) && methods.includes(method)
  const exporter = methods.includes('scram-sha-256-plus') ? security.exporter : undefined
  if ((exporter && mayUse('scram-sha-256-plus')) || mayUse('scram-sha-256')) {
    return async (connection) => (await import('./scram.ts')).logInByScram(connection, proof, auth, exporter)
  }
  if (!mayUse('password') || !isPrivate) return undefined
  return directly('password', new XdrWriter().string(identity).string(password).copy())
}

function directly(method: string, data: Uint8Array): LoginMethod {
  return async (connection) => {
    const reply = await connection.authenticate(method, data, true)
    if ('channel' in reply) return reply.channel
    throw new AuthError('SCRAM_REFUSED', 'the producer asks for more than this method provides')
  }
}

function utf8(text: string): Uint8Array {
  return new TextEncoder().encode(text)
}

function loginError(error: unknown, peer: string): unknown {
  if (error instanceof StatusError) {
    const why = error.status === 'AUTH_FAILED' ? `login refused: ${error.detail}` : error.message
    return new ConnectionError('LOGIN_FAILED', `${peer}: ${why}`, { cause: error })
  }
  if (error instanceof AuthError) {
    const code = error.code === 'SERVER_NOT_PROVEN' ? 'SERVER_NOT_PROVEN' : 'LOGIN_FAILED'
    return new ConnectionError(code, `${peer}: ${error.message}`, { cause: error })
  }
  return error
}

/** Says why none of the offered methods can be used, and what would help. */
function explainNoMethod(
  auth: readonly string[],
  { encrypted, loopback, exporter }: TransportSecurity,
  proof: Proof,
): string {
  const offered = `the producer offers ${auth.join(', ') || 'no method'}`
  const isClear = !encrypted && !loopback
  if ('token' in proof) return isClear ? couldBeRead('token') : `${offered}, and accepts no tokens here`
  if ('certificate' in proof) {
    const needs = '`tls.cert` and `tls.key`, and a producer that trusts the authority that signed the certificate'
    return `${offered}; the login with a certificate needs TLS, ${needs}`
  }
  const { methods = ALL_METHODS } = proof
  if (isClear && auth.includes('password') && methods.includes('password')) return couldBeRead('password')
  if (auth.includes('scram-sha-256-plus') && methods.includes('scram-sha-256-plus') && !exporter) {
    return `${offered}; scram-sha-256-plus needs TLS 1.3, which this connection does not use or a page cannot access`
  }
  return `${offered}; these credentials allow ${methods.join(', ')}`
}

function couldBeRead(what: string): string {
  return (
    `the ${what} could be read on the way, or by whatever server answers there. Use tls:// or wss://, or the layer ` +
    '`tls` (`wrap`), and have the certificate verified'
  )
}
