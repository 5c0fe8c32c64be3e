/** HTTP requests that hand something over, such as those of a drain. Redirects are not followed: a destination is what the operator has named. */
import { Agent as HttpAgent, request as httpRequest } from 'node:http'
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https'
import { isIPv6, type LookupFunction } from 'node:net'
import { unlessAborted } from '../../../protocol/kept/pause.ts'
import type { Clock } from '../running.ts'
import { authorizationFrom, type CredentialFiles, type TlsPaths, tlsFrom } from './address.ts'

/** What is read of an answer. */
const MAX_ANSWER_BYTES = 64 << 10

export interface ReceiverAnswer {
  readonly status: number
  /** Seconds, or a date; undefined if it says nothing. */
  readonly retryAfter: string | undefined
  readonly body: Uint8Array
}

/** Sends requests, each with what proves who we are as it is in its files now. */
export interface Receiver {
  /** Rejects if there is no answer, or if a file cannot be read. */
  post(body: Uint8Array, headers: Readonly<Record<string, string>>): Promise<ReceiverAnswer>
  close(): void
}

export interface ReceiverOptions extends CredentialFiles, TlsPaths {
  readonly href: string
  readonly timeoutMs: number
  /**
   * The only address that may be connected to, or what judges the destination for each request and gives that address; undefined if the
   * name is resolved for each connection.
   */
  readonly address?: string | (() => Promise<string>) | undefined
  /** A token, instead of a file with one. */
  readonly bearer?: () => Uint8Array | undefined
}

export function openReceiver(options: ReceiverOptions, clock: Pick<Clock, 'setTimeout' | 'clear'>): Receiver {
  const { href, timeoutMs, address } = options
  const isTls = href.startsWith('https:')
  const settings = { keepAlive: true, maxSockets: 1 }
  const agent = isTls ? new HttpsAgent(settings) : new HttpAgent(settings)
  const aborting = new AbortController()
  return {
    async post(body, given) {
      const [authorization, tls] = await Promise.all([
        authorizationOf(options),
        isTls ? tlsFrom(options, new URL(href).hostname) : {},
      ])
      const headers = {
        ...given,
        'content-length': String(body.length),
        'user-agent': 'cinnabar',
        ...(authorization !== undefined && { authorization }),
      }
      const late = new AbortController()
      const timer = clock.setTimeout(() => late.abort(new Error(`no answer within ${timeoutMs} ms`)), timeoutMs)
      const signal = AbortSignal.any([aborting.signal, late.signal])
      try {
        const only = typeof address === 'function' ? await unlessAborted(signal, address()) : address
        const lookup = only === undefined ? {} : { lookup: onlyTo(only) }
        return await exchange({ url: href, isTls, agent, headers, options: { ...tls, ...lookup }, signal }, body)
      } finally {
        clock.clear(timer)
      }
    },
    close() {
      aborting.abort()
      agent.destroy()
    },
  }
}

interface Exchange {
  readonly url: string
  readonly isTls: boolean
  readonly agent: HttpAgent | HttpsAgent
  readonly headers: Readonly<Record<string, string>>
  /** Of the connection. */
  readonly options: object
  readonly signal: AbortSignal
}

function exchange(
  { url, isTls, agent, headers, options: more, signal }: Exchange,
  body: Uint8Array,
): Promise<ReceiverAnswer> {
  return new Promise((resolve, reject) => {
    const failed = (error: Error): void => {
      reject(signal.aborted && signal.reason instanceof Error ? signal.reason : error)
    }
    const options = { method: 'POST', agent, headers, signal, ...more }
    const request = (isTls ? httpsRequest : httpRequest)(url, options, (response) => {
      const parts: Buffer[] = []
      let length = 0
      response.on('data', (part: Buffer) => {
        if (length < MAX_ANSWER_BYTES) parts.push(part)
        length += part.length
      })
      response.once('error', failed)
      response.once('end', () => {
        const answer = Buffer.concat(parts).subarray(0, MAX_ANSWER_BYTES)
        resolve({ status: response.statusCode ?? 0, retryAfter: response.headers['retry-after'], body: answer })
      })
    })
    // Otherwise 101 would end the connection, and be no answer and no error.
    request.once('upgrade', ({ statusCode = 0 }, socket) => {
      socket.destroy()
      resolve({ status: statusCode, retryAfter: undefined, body: new Uint8Array() })
    })
    request.once('error', failed)
    request.end(body)
  })
}

/** Resolves every name to an address that was checked. */
function onlyTo(address: string): LookupFunction {
  const family = isIPv6(address) ? 6 : 4
  return (_name, options, found) => {
    if (options.all === true) found(null, [{ address, family }])
    else found(null, address, family)
  }
}

async function authorizationOf({ bearer, ...files }: ReceiverOptions): Promise<string | undefined> {
  const token = bearer?.()
  return token === undefined ? authorizationFrom(files) : `Bearer ${Buffer.from(token).toString('latin1')}`
}

/** What is shown of an answer. */
const MAX_TEXT = 200
const utf8 = new TextDecoder()

/** The beginning of an answer, for people. */
export function answerText(body: Uint8Array): string {
  return utf8
    .decode(body.subarray(0, MAX_TEXT))
    .replace(/[\p{Cc}\ufffd]+/gu, ' ')
    .trim()
}

/** Longer than this nobody waits, whatever the destination says. */
const MAX_RETRY_AFTER_MS = 600_000
const SECOND_MS = 1_000

/** `Retry-After` in seconds or as a date; 0 if there is none. */
export function retryAfterMs(header: string | undefined, wallMs: number): number {
  if (header === undefined) return 0
  const ms = /^\d+$/.test(header) ? Number(header) * SECOND_MS : Date.parse(header) - wallMs
  return ms > 0 ? Math.min(ms, MAX_RETRY_AFTER_MS) : 0
}
