/**
 * Publishes values over OTLP/HTTP, in JSON (`POST /v1/metrics`): for programs that have a few figures and no OpenTelemetry.
 * One call is one request, and needs no connection that stays. How it is sent is passed in, because Node and browsers differ.
 */
import type { ClientClock } from './clock.ts'
import { type TokenCredentials, tokenOf } from './credentials.ts'
import { isLoopbackHost, parseUrl } from './dial/url.ts'
import { ConnectionError, PublishError } from './errors.ts'
import type { TlsOptions } from './transport.ts'

/** A value to publish. It is served as `otlp.` and its name. */
export interface PublishedValue {
  readonly name: string
  /** A number becomes a DOUBLE, a bigint an INT64. */
  readonly value: number | bigint
  readonly labels?: Readonly<Record<string, string>> | undefined
  /** Microseconds since 1970; when the server received it if it is not given. */
  readonly time?: number | undefined
  readonly unit?: string | undefined
  readonly description?: string | undefined
  /** True for a sum that only grows, since its program has started. */
  readonly isCounter?: boolean | undefined
}

export interface PublishOptions {
  readonly tls?: TlsOptions | undefined
  /** How long the answer may take: 30,000. */
  readonly deadlineMs?: number | undefined
  readonly signal?: AbortSignal | undefined
}

/**
 * Resolves when every value is on the disk of the server, committed by its consumer, or dropped by the limits of a channel,
 * which reports that. Rejects with ConnectionError, or with PublishError if the server refused something.
 */
export type Publish = (
  url: string,
  credentials: TokenCredentials,
  values: readonly PublishedValue[],
  options?: PublishOptions,
) => Promise<void>

export interface Posted {
  readonly status: number
  /** In seconds, as the header `Retry-After` has it. */
  readonly retryAfter: string | undefined
  readonly body: string
}

/** Sends a request. Rejects with ConnectionError; `signal` ends it. */
export type Post = (
  url: URL,
  headers: Readonly<Record<string, string>>,
  body: string,
  signal: AbortSignal,
  tls: TlsOptions | undefined,
) => Promise<Posted>

const PATH = '/v1/metrics'
const DEADLINE_MS = 30_000
const CUMULATIVE = 2
const NANOSECONDS = 1_000n

export function publisher(post: Post, clock: ClientClock): Publish {
  return async (text, credentials, values, { tls, deadlineMs = DEADLINE_MS, signal } = {}) => {
    const url = parseUrl(text, ['http:', 'https:'])
    if (url.pathname === '/') url.pathname = PATH
    const isVerified = url.protocol === 'https:' && tls?.rejectUnauthorized !== false
    if (!isVerified && !isLoopbackHost(url.hostname)) {
      throw new ConnectionError(
        'NO_METHOD',
        `a token is not sent to ${url.origin}, where others could read it: use https://`,
      )
    }
    const body = JSON.stringify(requestOf(values))
    const token = await tokenOf(credentials)
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    signal?.throwIfAborted()
    const ended = new AbortController()
    const abort = () => ended.abort(signal?.reason)
    const timer = clock.setTimeout(() => ended.abort(), deadlineMs)
    signal?.addEventListener('abort', abort)
    try {
      judge(await post(url, headers, body, ended.signal, tls), values.length)
    } catch (error) {
      signal?.throwIfAborted()
      if (!ended.signal.aborted) throw error
      const why = `no answer of ${url.origin} within ${deadlineMs} ms: it is unknown whether the values were taken`
      throw new ConnectionError('TIMEOUT', why, { cause: error })
    } finally {
      timer.cancel()
      signal?.removeEventListener('abort', abort)
    }
  }
}

/** Throws PublishError unless everything was taken. */
function judge({ status, retryAfter, body }: Posted, count: number): void {
  const answer = parsed(body)
  if (status !== 200) {
    const seconds = Number(retryAfter)
    const retryAfterS = retryAfter !== undefined && Number.isFinite(seconds) ? seconds : undefined
    throw new PublishError({ status, rejected: count, detail: textOf(answer['message']), retryAfterS })
  }
  const partial = objectOf(answer['partialSuccess'])
  const rejected = Number(partial['rejectedDataPoints'] ?? 0)
  if (rejected > 0) throw new PublishError({ status, rejected, detail: textOf(partial['errorMessage']) })
}

/** `ExportMetricsServiceRequest` in the JSON of OTLP. Throws RangeError for a time or value that no request can have. */
function requestOf(values: readonly PublishedValue[]): object {
  return { resourceMetrics: [{ scopeMetrics: [{ metrics: values.map(metricOf) }] }] }
}

function metricOf({ name, value, labels = {}, time, unit, description, isCounter }: PublishedValue): object {
  const point = {
    attributes: Object.entries(labels).map(([key, text]) => ({ key, value: { stringValue: text } })),
    ...(time !== undefined && { timeUnixNano: String(BigInt(Math.floor(time)) * NANOSECONDS) }),
    ...(typeof value === 'bigint' ? { asInt: String(value) } : { asDouble: doubleOf(value) }),
  }
  const data = { dataPoints: [point] }
  return {
    name,
    ...(unit !== undefined && { unit }),
    ...(description !== undefined && { description }),
    ...(isCounter ? { sum: { ...data, aggregationTemporality: CUMULATIVE, isMonotonic: true } } : { gauge: data }),
  }
}

/** What is not finite is a text in the JSON of protocol buffers. */
function doubleOf(value: number): number | string {
  return Number.isFinite(value) ? value : String(value)
}

function parsed(body: string): Readonly<Record<string, unknown>> {
  try {
    return objectOf(JSON.parse(body))
  } catch {
    return {}
  }
}

function objectOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
