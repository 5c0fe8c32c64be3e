/**
 * The connection to the nats-servers: which addresses are allowed, TLS, credentials, and how the connection is kept. It is made
 * once and then kept for good: the client connects again by itself, for as long as it takes, but only to servers that are
 * configured. Addresses that a nats-server announces are ignored, since they could lead out of loopback without TLS.
 */
import { readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import { checkServerIdentity, type PeerCertificate } from 'node:tls'
import {
  type Authenticator,
  type ConnectionOptions,
  connect,
  credsAuthenticator,
  type NatsConnection,
  usernamePasswordAuthenticator,
} from '@nats-io/transport-node'
import { StorageError } from '../store.ts'
import type { NatsOptions } from './options.ts'

export const ANSWER_MS = 2_000
const PING_MS = 700
/** The wait before a server is tried again: this, and up to as much again. */
const RECONNECT_MS = 100
/** The oldest nats-server whose replicas were found to be the same after each cut (docs/reliability.md); not all were tried. */
const SOUND_VERSION = '2.10.27'
/** What a message may have besides its part of a record: its headers. */
export const MESSAGE_HEADER_BYTES = 64 * 1024

/** Nothing but scheme, host and port: a user or a path would be read in different ways by different parsers. */
const ADDRESS = /^(nats|tls):\/\/([a-z0-9][a-z0-9.-]*|\[[0-9a-f:]+\])(?::(\d{1,5}))?$/i

/** Whether a nats-server may be connected to there: with TLS anywhere, without only on loopback. */
export function isAllowedNatsUrl(url: string): boolean {
  const [, scheme = '', host = '', port = '4222'] = ADDRESS.exec(url) ?? []
  if (host === '' || Number(port) < 1 || Number(port) > 65_535) return false
  return scheme.toLowerCase() === 'tls' || isOnLoopback(host.toLowerCase())
}

function isOnLoopback(host: string): boolean {
  return host === 'localhost' || host === '[::1]' || (isIP(host) === 4 && host.startsWith('127.'))
}

/**
 * Connects to one of the servers, in random order after `first`. Rejects with StorageError: IO if an address is not allowed or a file cannot be
 * used, UNREACHABLE if no server can be reached now; later it connects again for as long as it takes.
 */
export async function connectNats(options: NatsOptions, name: string): Promise<NatsConnection> {
  const { servers, timeoutMs = ANSWER_MS, pingMs = PING_MS } = options
  const refused = servers.find((url) => !isAllowedNatsUrl(url))
  if (refused !== undefined || servers.length === 0) throw new StorageError('IO', refusal(refused))
  const order = inOrder(options)
  let attempts = 0
  const connection = await connect({
    // The client forgets a server that it cannot reach the first time, so each is there twice.
    servers: [...order, ...order],
    noRandomize: true,
    ignoreClusterUpdates: true,
    name,
    timeout: timeoutMs,
    pingInterval: pingMs,
    maxPingOut: 2,
    maxReconnectAttempts: -1,
    ignoreAuthErrorAbort: true,
    // It is called before each attempt.
    reconnectDelayHandler: () => {
      attempts++
      return RECONNECT_MS * (1 + Math.random())
    },
    noAsyncTraces: true,
    ...encryption(options),
    ...authentication(options),
  }).catch((error: Error) => {
    const reason = `cannot connect to a nats-server of ${servers.join(', ')}: ${error.message}`
    throw new StorageError('UNREACHABLE', reason, error)
  })
  const { max_payload: bytes = 0 } = connection.info ?? {}
  if (bytes >= 2 * MESSAGE_HEADER_BYTES && attempts <= servers.length) {
    void leaveIfStale(connection)
    return connection
  }
  await connection.close()
  // Servers that could not be reached twice are forgotten, so another connection is made, now that one of them is there.
  if (bytes >= 2 * MESSAGE_HEADER_BYTES) return connectNats(options, name)
  throw new StorageError('IO', `max_payload of the nats-servers is ${bytes} bytes: set it to 1MB, which is the default`)
}

function inOrder({ servers, first }: NatsOptions): string[] {
  const isFirst = (url: string): boolean => {
    const [, , host = '', port = '4222'] = ADDRESS.exec(url) ?? []
    return `${host}:${port}`.toLowerCase() === first?.toLowerCase()
  }
  return servers.toSorted((one, other) => Number(isFirst(other)) - Number(isFirst(one)) || Math.random() - 0.5)
}

/** What is to be said to people about a version of nats-server, as a sentence; undefined if nothing bad is known of it. */
export function knownFault(version: string): string | undefined {
  if (version === '' || version.localeCompare(SOUND_VERSION, 'en', { numeric: true }) >= 0) return undefined
  return (
    `nats-server ${version} may keep a record that the others do not have, or lose one that they have, after it was cut off: ` +
    `then a node has to copy a database, or all nodes are needed to go on. Use ${SOUND_VERSION} or newer`
  )
}

/**
 * Leaves a server that answers no pings. The client does that by itself, but first waits until all that it has written to that server
 * was taken, which is never if it is frozen, or its machine is cut off. Only the client's own transport can be closed without that.
 */
async function leaveIfStale(connection: NatsConnection): Promise<void> {
  for await (const { type } of connection.status()) {
    if (type === 'staleConnection') await (connection as unknown as Transported).protocol.transport.close()
  }
}

/** What the client of NATS, whose version is pinned, has inside. */
interface Transported {
  readonly protocol: { readonly transport: { close(): Promise<void> } }
}

function refusal(url: string | undefined): string {
  if (url === undefined) return 'no nats-server is configured'
  // A password in an address is not shown.
  const shown = url.replace(/\/\/.*@/, '//')
  return `${shown} cannot be a nats-server: write tls://host:port, or nats://host:port for one on loopback`
}

function encryption({ servers, tls }: NatsOptions): Pick<ConnectionOptions, 'tls'> {
  if (tls === undefined && !servers.some((url) => /^tls:/i.test(url))) return {}
  const { ca, cert, key } = tls ?? {}
  const files = {
    ...(ca === undefined ? {} : { caFile: ca }),
    ...(cert === undefined ? {} : { certFile: cert }),
    ...(key === undefined ? {} : { keyFile: key }),
  }
  return { tls: { ...files, ...{ checkServerIdentity: identityCheck(servers) } } }
}

/**
 * The client passes the name of a server to TLS, but not an IP address, and Node then compares the certificate with "localhost".
 * Such a certificate has to be for one of the IP addresses that are configured.
 */
function identityCheck(servers: readonly string[]): typeof checkServerIdentity {
  const hosts = servers.map((url) => ADDRESS.exec(url)?.[2]?.replace(/[[\]]/g, '').toLowerCase() ?? '')
  return (host: string, certificate: PeerCertificate) => {
    const candidates = host === 'localhost' ? hosts.filter((one) => one === host || isIP(one) !== 0) : []
    const errors = (candidates.length > 0 ? candidates : [host]).map((one) => checkServerIdentity(one, certificate))
    return errors.includes(undefined) ? undefined : errors[0]
  }
}

function authentication({ credentials, user, passwordFile }: NatsOptions): Pick<ConnectionOptions, 'authenticator'> {
  if (credentials !== undefined)
    return { authenticator: fromFile(credentials, (content) => credsAuthenticator(content)) }
  if (user === undefined || passwordFile === undefined) return {}
  const login = (content: Uint8Array): Authenticator => {
    const [password = ''] = Buffer.from(content).toString().split(/\r?\n/, 1)
    return usernamePasswordAuthenticator(user, password)
  }
  return { authenticator: fromFile(passwordFile, login) }
}

/** Logs in with the present content of a file; if that cannot be used, as before, since an exception would end the client. */
function fromFile(path: string, make: (content: Uint8Array) => Authenticator): Authenticator {
  const load = (): Authenticator => {
    const authenticator = make(readFileSync(path))
    authenticator('')
    return authenticator
  }
  let latest: Authenticator
  try {
    latest = load()
  } catch (error) {
    // The error of a parser could quote the file.
    const reason =
      error instanceof Error && 'code' in error ? String(error.code) : 'its content is not what it should be'
    throw new StorageError('IO', `cannot use ${path} to log in to the nats-servers: ${reason}`)
  }
  return (nonce) => {
    try {
      latest = load()
    } catch {
      // Somebody is writing it.
    }
    return latest(nonce)
  }
}
