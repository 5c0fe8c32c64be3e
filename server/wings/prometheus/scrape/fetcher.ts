/**
 * Fetches the text of one target over a connection that is kept. Redirects are not followed: they could lead a secret
 * elsewhere. Secrets and certificates are read at each scrape, so they can be renewed at any time. Errors are for people, and
 * hold no secret.
 */
import { Agent as HttpAgent, type IncomingMessage, type RequestOptions, request as requestHttp } from 'node:http'
import { Agent as HttpsAgent, request as requestHttps } from 'node:https'
import { pipeline } from 'node:stream'
import { createGunzip, gunzipSync } from 'node:zlib'
import type { TextFormat } from '../../../../protocol/prometheus/text-line.ts'
import { authorizationFrom, tlsFrom } from '../../../kit/io/address.ts'
import type { TargetSpec } from './job.ts'

/** The newer format first, as far as it is known here. */
const ACCEPT = 'application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1'
const OPENMETRICS = /^application\/openmetrics-text\s*(?:;|$)/i
const PROTOBUF = /^application\/(?:vnd\.google\.protobuf|x-protobuf|protobuf)\b/i

/** Bodies up to here, compressed or not, are read to their end before anything is done with them. */
const WHOLE_BYTES = 262_144
/**
 * Up to here bodies are inflated at once, for a third of what a stream costs: in less than a millisecond, or two if somebody has made
 * them as dear as possible.
 */
const INFLATED_AT_ONCE_BYTES = 262_144
const DEFLATED_AT_ONCE_BYTES = 16_384
/** Where gzip says how long the text is, from the end; and the shortest that has that. */
const LENGTH_AT = 4
const SHORTEST_GZIP = 18

/** What came of one request. */
export interface Fetched {
  readonly format: TextFormat
  /** Decompressed. It throws if the body is cut off, or longer than the target may send. */
  readonly body: Iterable<Uint8Array> | AsyncIterable<Uint8Array>
  /** The target has sent everything: what is still to be done is not its time. */
  readonly isWhole: boolean
}

/** What was read of an answer: all of it, or its beginning. */
interface Beginning {
  readonly bytes: Buffer
  readonly isWhole: boolean
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
    const beginning = await beginningOf(response, Math.min(WHOLE_BYTES, this.#options.maxBytes))
    const { isWhole } = beginning
    return { format, body: this.#body(response, beginning), isWhole }
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

  #body(response: IncomingMessage, { bytes, isWhole }: Beginning): Fetched['body'] {
    const isGzip = response.headers['content-encoding']?.toLowerCase() === 'gzip'
    if (isWhole && !isGzip) return [bytes]
    const most = Math.min(INFLATED_AT_ONCE_BYTES, this.#options.maxBytes)
    const isShort = isWhole && bytes.length <= DEFLATED_AT_ONCE_BYTES
    const length = isShort ? inflatedLength(bytes) : Number.POSITIVE_INFINITY
    // One byte more: otherwise zlib asks for more room to learn that it is at the end.
    if (length <= most) {
      const inflated = inflatedAtOnce(bytes, length + 1)
      if (inflated !== undefined) return [inflated]
    }
    return this.#streamed(joined(bytes, isWhole ? [] : response), isGzip)
  }

  async *#streamed(all: AsyncIterable<Uint8Array>, isGzip: boolean): AsyncIterable<Uint8Array> {
    const given = this.#bounded(all)
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

/** Reads an answer until it ends, or has more bytes than `most`: then the rest is still to be read. */
function beginningOf(response: IncomingMessage, most: number): Promise<Beginning> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let length = 0
    const finish = (isWhole: boolean): void => {
      response.off('data', take)
      response.off('end', end)
      resolve({ bytes: chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks), isWhole })
    }
    const take = (chunk: Buffer): void => {
      chunks.push(chunk)
      length += chunk.length
      if (length <= most) return
      response.pause()
      finish(false)
    }
    const end = (): void => finish(true)
    response.on('data', take)
    response.on('end', end)
    // It stays: what goes wrong before somebody reads on is thrown by reading on.
    response.on('error', reject)
  })
}

/** The length that a gzip of one member gives of its text, in bytes. */
function inflatedLength(bytes: Buffer): number {
  return bytes.length < SHORTEST_GZIP ? Number.POSITIVE_INFINITY : bytes.readUInt32LE(bytes.length - LENGTH_AT)
}

/** Undefined if there are more bytes than `most`: the length that was given was wrong. */
function inflatedAtOnce(bytes: Buffer, most: number): Buffer | undefined {
  try {
    return gunzipSync(bytes, { maxOutputLength: most, chunkSize: Math.max(64, most) })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') return undefined
    throw error
  }
}

async function* joined(
  first: Uint8Array,
  more: Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  yield first
  yield* more
}
