/**
 * From a transport to a connection that is logged in and has its layers, within one deadline. What was asked for as
 * protection is had, or there is no session: nothing falls back to less.
 */
import type { Gap, Notice, ValueMessage } from '../protocol/monitor/message.ts'
import type { ClientClock } from './clock.ts'
import { Connection } from './connection.ts'
import type { Proof } from './credentials.ts'
import { ConnectionError } from './errors.ts'
import { logIn } from './login.ts'
import type { Layer, Transport } from './transport.ts'

const DEADLINE_MS = 10_000

/** Where a consumer's connections come from: it dials, or it is called. */
export interface Sessions {
  /** For messages. */
  readonly url: string
  /** Throws ConnectionError; nothing is left open then. `signal` gives up. */
  next(listener: SessionListener, signal?: AbortSignal): Promise<Session>
  /** Whether there may be another one after such an end. */
  goesOn(reason: ConnectionError): boolean
}

/** Who has what comes on a session's connection. */
export interface SessionListener {
  value(message: ValueMessage): void
  gap(gap: Gap): void
  notice(notice: Notice): void
  /** Once. `isOurs`: it was closed from here, without an error. */
  closed(connection: Connection, reason: ConnectionError, isOurs: boolean): void
}

export interface Session {
  readonly connection: Connection
  /** The channel that the producer has made for this connection; where it called, the one that it called for. */
  readonly channel: number
  /** Whether nobody on the way can read along: encrypted, or on this machine. */
  readonly isConfidential: boolean
  /** The producer called: it holds back what comes on the channel until this is called, so that names can be had first. */
  readonly release?: () => void
}

/** WRAP: see wrap.ts. A browser has none. */
export type PutOn = (connection: Connection, transport: Transport, layer: Layer) => Promise<void>

export interface OpenOptions {
  /** What errors call the other end, with the user: "tcp://127.0.0.1:7650 as alice". */
  readonly peer: string
  readonly clock: ClientClock
  readonly deadlineMs: number
  readonly proof: Proof
  readonly wrap: readonly Layer[]
  readonly putOn: PutOn
  readonly signal: AbortSignal
  readonly listener: SessionListener
}

/** Throws ConnectionError, or what `signal` was aborted for; the transport is closed then. */
export async function openSession(transport: Transport, options: OpenOptions): Promise<Session> {
  const { peer, clock, deadlineMs, proof, wrap, putOn, signal, listener } = options
  const connection: Connection = new Connection(transport, {
    clock,
    peer,
    deadlineMs,
    value: (message) => listener.value(message),
    gap: (gap) => listener.gap(gap),
    notice: (notice) => listener.notice(notice),
    closed: (reason, isOurs) => listener.closed(connection, reason, isOurs),
  })
  const abort = () => connection.close(signal.reason)
  signal.addEventListener('abort', abort)
  if (signal.aborted) abort()
  try {
    if (wrap.includes('tls')) await putOn(connection, transport, 'tls')
    const channel = await logIn(connection, transport, proof)
    if (wrap.includes('deflate')) await putOn(connection, transport, 'deflate')
    return { connection, channel, isConfidential: transport.encrypted || transport.loopback }
  } catch (error) {
    connection.close()
    throw error
  } finally {
    signal.removeEventListener('abort', abort)
  }
}

/** `work` gets a signal that is aborted with `signal`, or for `late` after ten seconds; it has to end then. */
export async function inTime<T>(
  {
    clock,
    signal,
    peer,
  }: { readonly clock: ClientClock; readonly signal: AbortSignal | undefined; readonly peer: string },
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const abort = new AbortController()
  const giveUp = () => abort.abort(signal?.reason)
  signal?.addEventListener('abort', giveUp)
  if (signal?.aborted) giveUp()
  const late = new ConnectionError('TIMEOUT', `${peer}: not connected and logged in after ${DEADLINE_MS / 1000} s`)
  const timer = clock.setTimeout(() => abort.abort(late), DEADLINE_MS)
  try {
    return await work(abort.signal)
  } catch (error) {
    throw abort.signal.aborted ? abort.signal.reason : error
  } finally {
    timer.cancel()
    signal?.removeEventListener('abort', giveUp)
  }
}
