/**
 * Fetches the text of one target over a connection that is kept. Redirects are not followed: they could lead a secret
 * elsewhere. Secrets and certificates are read at each scrape, so they can be renewed at any time. Errors are for people, and
 * hold no secret.
 */
import { Agent as HttpAgent, type IncomingMessage, type RequestOptions, request as requestHttp } from 'node:http'
import { Agent as HttpsAgent, request as requestHttps } from 'node:https'
import { pipeline } from 'node:stream'
import { createGunzip } from 'node:zlib'
import type { TextFormat } from '../../../../protocol/prometheus/text.ts'
import { authorizationFrom, tlsFrom } from '../../../kit/io/address.ts'
import type { TargetSpec } from './job.ts'

/** The newer format first, as far as it is known here. */
const ACCEPT = 'application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1'
const OPENMETRICS = /^application\/openmetrics-text\s*(?:;|$)/i
const PROTOBUF = /^application\/(?:vnd\.google\.protobuf|x-protobuf|protobuf)\b/i

/** What came of one request. */
export interface Fetched {
  readonly format: TextFormat
  /** Decompressed. It throws if the body is cut off, or longer than the target may send. */
  readonly body: AsyncIterable<Uint8Array>
}

export type FetchOptions = Pick<
  TargetSpec,
  'url' | 'maxBytes' | 'tokenFile' | 'username' | 'passwordFile' | 'ca' | 'cert' | 'key' | 'serverName'
> & {
  /** `<product>/<version>` */
  readonly software: string
  /** What the target is told, as Prometheus tells it. */
  readonly timeoutMs: number
}

export class Fetcher {
  readonly #options: FetchOptions
  readonly #url: URL
  readonly #agent: HttpAgent | HttpsAgent

  constructor(options: FetchOptions) {
    this.#options = options
    this.#url = new URL(options.url)
    const pool = { keepAlive: true, maxSockets: 1 }
    this.#agent = this.#url.protocol === 'https:' ? new HttpsAgent(pool) : new HttpAgent(pool)
  }

  /** Rejects with an error whose message says what went wrong; `signal` ends everything, also the body. */
  async fetch(signal: AbortSignal): Promise<Fetched> {
    const [headers, tls] = await Promise.all([this.#headers(), this.#tls()])
    const options = { agent: this.#agent, headers, signal, ...tls }
    const response = await this.#respond(options)
    const { statusCode = 0, headers: given } = response
    const problem = this.#problem(statusCode, given)
    if (problem !== undefined) {
      response.destroy()
      throw new Error(problem)
    }
    const format = OPENMETRICS.test(given['content-type'] ?? '') ? 'openmetrics' : 'prometheus'
    return { format, body: this.#body(response) }
  }

  close(): void {
    this.#agent.destroy()
  }

  #problem(status: number, headers: IncomingMessage['headers']): string | undefined {
    if (status >= 300 && status < 400) return `the target answers ${status}: redirects are not followed`
    if (status !== 200) return `the target answers ${status}`
    const encoding = headers['content-encoding'] ?? 'identity'
    if (!/^(?:gzip|identity)$/i.test(encoding))
      return `the target compresses by ${JSON.stringify(encoding)}, not by gzip`
    // Whoever sends that although it is not asked for would only be told that the bytes are not UTF-8.
    if (PROTOBUF.test(headers['content-type'] ?? ''))
      return 'the target answers in protocol buffers, as for native histograms: it has to send text'
    return undefined
  }

  async *#body(response: IncomingMessage): AsyncIterable<Uint8Array> {
    const isGzip = response.headers['content-encoding']?.toLowerCase() === 'gzip'
    const given = this.#bounded(response)
    if (!isGzip) {
      yield* given
      return
    }
    const inflated = createGunzip()
    // What fails is thrown by reading.
    pipeline(given, inflated, () => {})
    yield* this.#bounded(inflated)
  }

  async *#bounded(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    const { maxBytes } = this.#options
    let length = 0
    for await (const chunk of body) {
      length += chunk.length
      if (length > maxBytes) throw new Error(`the body has more than \`max_bytes\` (${maxBytes})`)
      yield chunk
    }
  }

  async #respond(options: RequestOptions): Promise<IncomingMessage> {
    try {
      return await this.#request(options)
    } catch (error) {
      // The target has closed a kept connection at this moment.
      if (!(error instanceof StaleConnection)) throw error
      return this.#request(options)
    }
  }

  #request(options: RequestOptions): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const begin = this.#url.protocol === 'https:' ? requestHttps : requestHttp
      const request = begin(this.#url, options, resolve)
      // Otherwise 101 would end the connection, and be no answer and no error.
      request.once('upgrade', (response, socket) => {
        socket.destroy()
        resolve(response)
      })
      request.once('error', (error: NodeJS.ErrnoException) => {
        const isStale = request.reusedSocket && error.code === 'ECONNRESET'
        reject(isStale ? new StaleConnection(error.message) : error)
      })
      request.end()
    })
  }

  async #headers(): Promise<Record<string, string>> {
    const { software, timeoutMs } = this.#options
    const headers = {
      accept: ACCEPT,
      'accept-encoding': 'gzip',
      'user-agent': software,
      'x-prometheus-scrape-timeout-seconds': String(timeoutMs / 1_000),
    }
    const authorization = await authorizationFrom(this.#options)
    return authorization === undefined ? headers : { ...headers, authorization }
  }

  async #tls(): Promise<RequestOptions> {
    return this.#url.protocol === 'https:' ? tlsFrom(this.#options, this.#url.hostname) : {}
  }
}

class StaleConnection extends Error {}
