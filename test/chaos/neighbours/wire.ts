/** How both neighbours come in: connections from an address of their choice, and logins by password and SCRAM. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { setTimeout } from 'node:timers/promises'
import { connect as secure } from 'node:tls'
import { command, join, status, str } from '../../support/bytes.ts'
import { RawPeer } from '../../support/raw-peer.ts'
import { RfcScram } from '../../support/rfc-scram.ts'

/** Where the server listens. */
export interface Reach {
  readonly host: string
  readonly tcp: number
  readonly tls: number
  readonly http: number
}

export interface TenantUser {
  readonly user: string
  readonly password: string
}

export type LoginMethod = 'password' | 'scram-sha-256'

/** Numbers of AUTHs, beyond those that a Seat counts up to. */
const AUTH_SEQ = 0xfff00000

/** `from`: the address to come from; any if undefined. Rejects if there is no connection. */
export async function dialled(host: string, port: number, from?: string): Promise<Socket> {
  const socket = connect({ host, port, noDelay: true, ...(from === undefined ? {} : { localAddress: from }) })
  socket.on('error', () => {})
  await connected(socket, 'connect')
  return socket
}

/** The same under TLS, which a password needs; whom the certificate names is not what is tested here. */
export async function dialledTls({ host, tls }: Reach, from?: string): Promise<Duplex> {
  const socket = secure({ socket: await dialled(host, tls, from), rejectUnauthorized: false })
  socket.on('error', () => {})
  await connected(socket, 'secureConnect')
  return socket
}

async function connected(socket: Socket, event: string): Promise<void> {
  const over = new AbortController()
  const { signal } = over
  const ended = once(socket, 'close', { signal }).then(() => {
    throw new Error('the connection was refused or ended')
  })
  try {
    await Promise.race([once(socket, event, { signal }), ended])
  } finally {
    ended.catch(() => {})
    over.abort()
  }
}

interface ConnectAsOptions {
  readonly method?: LoginMethod
  /** The address to come from. */
  readonly from?: string
  readonly withinMs?: number
}

/** Logs in on a connection of its own. Rejects with the reason if that fails. */
export async function connectAs(
  reach: Reach,
  { user, password }: TenantUser,
  { method = 'scram-sha-256', from, withinMs = 30_000 }: ConnectAsOptions = {},
): Promise<{ readonly peer: RawPeer; readonly channel: number }> {
  const opened: Duplex[] = []
  const attempt = async () => {
    const stream = method === 'password' ? await dialledTls(reach, from) : await dialled(reach.host, reach.tcp, from)
    opened.push(stream)
    const peer = new RawPeer(stream)
    const channel = method === 'password' ? await byPassword(peer, user, password) : await byScram(peer, user, password)
    return { peer, channel }
  }
  try {
    return await within(withinMs, 'no login', attempt())
  } catch (error) {
    for (const stream of opened) stream.destroy()
    throw error
  }
}

async function byPassword(peer: RawPeer, user: string, password: string): Promise<number> {
  peer.send(command.auth(AUTH_SEQ, 'password', join(str(user), str(password))))
  return resultOf(await peer.response(AUTH_SEQ))
}

async function byScram(peer: RawPeer, username: string, password: string): Promise<number> {
  const scram = new RfcScram({ username, password })
  const step = async (seq: number, method: string, data: Uint8Array): Promise<Uint8Array> => {
    peer.send(command.auth(seq, method, data))
    resultOf(await peer.response(seq))
    return (await peer.until('auth')).data
  }
  const serverFirst = await step(AUTH_SEQ, scram.method, scram.clientFirst())
  const serverFinal = await step(AUTH_SEQ + 1, '', scram.clientFinal(serverFirst))
  if (!scram.isProvenBy(serverFinal)) throw new Error('the server did not prove that it knows the password')
  peer.send(command.auth(AUTH_SEQ + 2, '', new Uint8Array(0)))
  return resultOf(await peer.response(AUTH_SEQ + 2))
}

function resultOf({ status: found, result, detail }: { status: number; result: number; detail: string }): number {
  if (found === status.OK || found === status.AUTH_NEEDED) return result
  throw new Error(`AUTH was answered with status ${found}: ${detail}`)
}

/** What a promise gives within that time; rejects after it. */
export async function within<T>(ms: number, what: string, promise: Promise<T>): Promise<T> {
  const over = new AbortController()
  const late = setTimeout(ms, undefined, { signal: over.signal }).then(
    () => {
      throw new Error(`${what} within ${ms / 1_000} s`)
    },
    () => new Promise<never>(() => {}),
  )
  try {
    return await Promise.race([promise, late])
  } finally {
    over.abort()
  }
}
