/**
 * Streamable HTTP at /mcp. Before the protocol sees anything of a request it is judged here: whether it means this server (Host and
 * Origin, against pages that rebind a name to this machine), whose it is (a bearer token, which the server of the metrics has to
 * accept), and how much it may cost.
 */
import { createHash, randomUUID, timingSafeEqual } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import { isInitializeRequest } from '@modelcontextprotocol/sdk/types.js'
import { ConnectionError } from '../../client/index.ts'
import type { ListenAt } from './options.ts'
import type { McpSession } from './session.ts'

const PATH = '/mcp'
const MAX_BODY_BYTES = 1 << 20
/** Of the request that begins a session, which is read before anybody has logged in. */
const MAX_FIRST_BODY_BYTES = 65_536
const MAX_HEADER_BYTES = 16_384
const MAX_SOCKETS = 512
const REQUEST_MS = 30_000
/** A session without a request or an open stream for so long is ended; its client begins another one. */
const IDLE_MS = 30 * 60_000
const SWEEP_MS = 10_000
/** Logins at the same time. */
const MAX_OPENING = 8
/** Logins that failed, from all addresses: who guesses tokens is slowed down, and so is the log of the server spared. */
const FAILURES_PER_MINUTE = 30

export interface StreamableHttpOptions {
  readonly listen: ListenAt
  readonly maxSessions: number
  /** Whether clients may bring this token at all. */
  readonly mayBring: (token: string) => boolean
  /** Logs in with a token. Rejects with ConnectionError. `ended` is called when the login has ended. */
  readonly open: (token: string, ended: () => void) => Promise<McpSession>
  readonly log: (text: string) => void
  /** Milliseconds that never go back. */
  readonly now: () => number
}

interface OpenSession {
  readonly session: McpSession
  readonly transport: StreamableHTTPServerTransport
  readonly tokenDigest: Buffer
  /** Requests that are being answered, streams included. */
  active: number
  lastMs: number
}

/** An answer that is not the protocol's own. */
class Refusal extends Error {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>

  constructor(status: number, message: string, headers: Readonly<Record<string, string>> = {}) {
    super(message)
    this.status = status
    this.headers = headers
  }
}

export class StreamableHttp {
  readonly #options: StreamableHttpOptions
  readonly #server: Server
  readonly #sessions = new Map<string, OpenSession>()
  readonly #sweeper: NodeJS.Timeout
  #opening = 0
  /** When logins failed in the last minute. */
  #failures: number[] = []
  #refused = 0

  private constructor(options: StreamableHttpOptions) {
    this.#options = options
    const { tls } = options.listen
    const limits = { maxHeaderSize: MAX_HEADER_BYTES, requestTimeout: REQUEST_MS, headersTimeout: REQUEST_MS }
    const answer = (request: IncomingMessage, response: ServerResponse) => void this.#answer(request, response)
    this.#server = tls
      ? createTlsServer({ ...limits, cert: readFileSync(tls.cert), key: readFileSync(tls.key) }, answer)
      : createServer(limits, answer)
    this.#server.maxConnections = MAX_SOCKETS
    this.#sweeper = setInterval(() => this.#sweep(), SWEEP_MS).unref()
  }

  /** Rejects with the system's error if it cannot listen. */
  static async open(options: StreamableHttpOptions): Promise<StreamableHttp> {
    const door = new StreamableHttp(options)
    const { host, port } = options.listen
    await new Promise<void>((resolve, reject) => {
      door.#server.once('error', reject)
      door.#server.listen(port, host, resolve)
    })
    return door
  }

  /** Where clients find it. */
  get url(): string {
    const { host, tls } = this.#options.listen
    const { port } = this.#server.address() as AddressInfo
    return `${tls ? 'https' : 'http'}://${host.includes(':') ? `[${host}]` : host}:${port}${PATH}`
  }

  async close(): Promise<void> {
    clearInterval(this.#sweeper)
    const closed = new Promise((resolve) => this.#server.close(resolve))
    for (const id of [...this.#sessions.keys()]) this.#end(id, 'the program ends')
    this.#server.closeAllConnections()
    await closed
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      this.#checkOrigin(request)
      const [path] = (request.url ?? '').split('?')
      if (path !== PATH) throw new Refusal(404, `there is nothing here: the path is ${PATH}`)
      const digest = this.#checkToken(request)
      const id = request.headers['mcp-session-id']
      if (id === undefined) await this.#begin(request, response, digest)
      else await this.#continue(String(id), request, response, digest)
    } catch (error) {
      this.#refuse(response, error)
    }
  }

  /** A page of the web that has made its name point to this machine names itself in both headers. */
  #checkOrigin({ headers: { host, origin } }: IncomingMessage): void {
    if (host === undefined || !this.#isOurs(host)) {
      throw new Refusal(403, 'the Host header does not name this server: see --allow-host')
    }
    if (origin === undefined) return
    const url = URL.canParse(origin) ? new URL(origin) : undefined
    if (url === undefined || !this.#isOurs(url.host)) throw new Refusal(403, 'pages of other origins may not ask')
  }

  #isOurs(host: string): boolean {
    const { host: own, names } = this.#options.listen
    const { port } = this.#server.address() as AddressInfo
    const [, name = '', given] = /^(\[[^\]]+\]|[^:]+)(?::(\d+))?$/.exec(host.toLowerCase()) ?? []
    const bare = name.replace(/^\[|\]$/g, '')
    // Behind a proxy the port is that of the proxy.
    if (names.some((one) => one.toLowerCase() === bare)) return true
    return Number(given) === port && [own, 'localhost', '127.0.0.1', '::1'].includes(bare)
  }

  #checkToken({ headers }: IncomingMessage): Buffer {
    const [, token] = /^Bearer +([\w.~+/=-]{1,512})$/i.exec(headers.authorization ?? '') ?? []
    if (token === undefined) throw unauthorized('a token of the server is needed: Authorization: Bearer TOKEN')
    if (!this.#options.mayBring(token)) throw unauthorized('the token is not the one that this program takes')
    return digestOf(token)
  }

  /** Only an `initialize` begins a session. */
  async #begin(request: IncomingMessage, response: ServerResponse, tokenDigest: Buffer): Promise<void> {
    if (request.method !== 'POST') throw new Refusal(400, 'the header Mcp-Session-Id is missing')
    const body = await bodyOf(request, MAX_FIRST_BODY_BYTES)
    const messages = Array.isArray(body) ? body : [body]
    if (!messages.some(isInitializeRequest)) throw new Refusal(400, 'the header Mcp-Session-Id is missing')
    const { maxSessions, now, log } = this.#options
    const full = () => {
      const message = `${maxSessions} sessions are open, which is the maximum: try again later`
      return new Refusal(503, message, { 'retry-after': '30' })
    }
    if (this.#opening >= MAX_OPENING) throw full()
    const id = randomUUID()
    const session = await this.#login(tokenOf(request), id)
    // Only now: whoever has no token that counts takes nobody's place.
    if (this.#sessions.size >= maxSessions && !this.#endIdlest()) {
      await session.close()
      throw full()
    }
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: () => id,
      onsessionclosed: () => this.#end(id, 'its client has ended it'),
    })
    await session.server.connect(transport as Transport)
    const open = { session, transport, tokenDigest, active: 0, lastMs: now() }
    this.#sessions.set(id, open)
    log(`session ${session.name} has begun`)
    await this.#pass(open, request, response, body)
    if (transport.sessionId === undefined) this.#end(id, 'it was not begun properly')
  }

  async #login(token: string, id: string): Promise<McpSession> {
    const { now, open } = this.#options
    this.#failures = this.#failures.filter((time) => time > now() - 60_000)
    if (this.#failures.length >= FAILURES_PER_MINUTE) {
      throw new Refusal(429, 'too many logins have failed: try again in a minute', { 'retry-after': '60' })
    }
    this.#opening++
    try {
      return await open(token, () => this.#end(id, 'the server has ended its login'))
    } catch (error) {
      const code = error instanceof ConnectionError ? error.code : undefined
      if (code !== 'LOGIN_FAILED') throw new Refusal(502, `the server cannot be asked: ${(error as Error).message}`)
      this.#failures.push(now())
      throw unauthorized('the server does not accept the token')
    } finally {
      this.#opening--
    }
  }

  /** To whoever has another token a session does not exist. */
  async #continue(id: string, request: IncomingMessage, response: ServerResponse, digest: Buffer): Promise<void> {
    const open = this.#sessions.get(id)
    if (open === undefined || !timingSafeEqual(open.tokenDigest, digest)) {
      throw new Refusal(404, 'there is no such session: begin one with `initialize`')
    }
    await this.#pass(
      open,
      request,
      response,
      request.method === 'POST' ? await bodyOf(request, MAX_BODY_BYTES) : undefined,
    )
  }

  async #pass(open: OpenSession, request: IncomingMessage, response: ServerResponse, body: unknown): Promise<void> {
    open.active++
    response.once('close', () => {
      open.active--
      open.lastMs = this.#options.now()
    })
    await open.transport.handleRequest(request, response, body)
  }

  #refuse(response: ServerResponse, error: unknown): void {
    this.#refused++
    const refusal = error instanceof Refusal ? error : new Refusal(500, 'an unexpected error')
    if (!(error instanceof Refusal)) this.#options.log(`unexpected error: ${(error as Error)?.stack ?? error}`)
    if (response.headersSent) {
      response.destroy()
      return
    }
    const { status, message, headers } = refusal
    const body = JSON.stringify({ jsonrpc: '2.0', error: { code: -32_000, message }, id: null })
    // What was not read of the request is not wanted.
    response.writeHead(status, { 'content-type': 'application/json', connection: 'close', ...headers })
    response.end(body)
  }

  #sweep(): void {
    const since = this.#options.now() - IDLE_MS
    for (const [id, { active, lastMs }] of this.#sessions) {
      if (active === 0 && lastMs < since) this.#end(id, 'nothing was asked for half an hour')
    }
    if (this.#refused > 0) this.#options.log(`${this.#refused} requests were refused`)
    this.#refused = 0
  }

  /** Makes room for one more: the one that was left alone for longest gives way. */
  #endIdlest(): boolean {
    const idle = [...this.#sessions].filter(([, { active }]) => active === 0)
    const [first] = idle.sort(([, one], [, other]) => one.lastMs - other.lastMs)
    if (first === undefined) return false
    this.#end(first[0], 'another one needs its place')
    return true
  }

  #end(id: string, why: string): void {
    const open = this.#sessions.get(id)
    if (open === undefined) return
    this.#sessions.delete(id)
    this.#options.log(`session ${open.session.name} has ended: ${why}`)
    open.session.close().catch((error: unknown) => this.#options.log(String(error)))
  }
}

function unauthorized(message: string): Refusal {
  return new Refusal(401, message, { 'www-authenticate': 'Bearer' })
}

function tokenOf({ headers }: IncomingMessage): string {
  return (headers.authorization ?? '').replace(/^Bearer +/i, '')
}

function digestOf(token: string): Buffer {
  return createHash('sha256').update(token).digest()
}

/** Rejects with Refusal if it is too long or no JSON. */
async function bodyOf(request: IncomingMessage, mostBytes: number): Promise<unknown> {
  const tooLong = () => new Refusal(413, `such a request has at most ${mostBytes} bytes`)
  if (Number(request.headers['content-length'] ?? 0) > mostBytes) throw tooLong()
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    length += chunk.length
    if (length > mostBytes) throw tooLong()
    chunks.push(chunk)
  }
  try {
    return JSON.parse(Buffer.concat(chunks).toString()) as unknown
  } catch {
    throw new Refusal(400, 'the body is no JSON')
  }
}
