/** The HTTP door of a server, for commands that use it with a token: where it is, and one request. */
import { readFileSync } from 'node:fs'
import { request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import type { ConnectOptions } from '../client/index.ts'
import { ExitCode, errorCode, Failure } from './failure.ts'
import type { TokenOptions } from './login.ts'
import type { Terminal } from './terminal.ts'

/** More of an answer is not read. */
const MAX_BODY_BYTES = 256 << 20
/** Without a byte for so long a request ends. */
const SILENCE_MS = 150_000

/** `what`: what goes there, for messages. Rejects with Failure. */
export async function httpUrlOf({ url, config }: TokenOptions, { env }: Terminal, what: string): Promise<string> {
  const given = url ?? (env['CINNABAR_URL'] || undefined)
  if (given !== undefined) {
    if (/^https?:\/\//i.test(given)) return given
    const from = url === undefined ? 'CINNABAR_URL' : '--url'
    throw new Failure(
      ExitCode.USAGE,
      `${from} does not begin with http:// or https://: ${what} \`listen.http\` or \`listen.https\` of the server, ` +
        'such as http://127.0.0.1:7651',
    )
  }
  const { readConfiguration } = await import('./configuration.ts')
  const { http } = (await readConfiguration(config, env)).listen
  if (http === undefined)
    throw new Failure(ExitCode.USAGE, '`listen.http` is switched off in the configuration: give an https:// --url')
  const host = http.host === '0.0.0.0' ? '127.0.0.1' : http.host === '::' ? '::1' : http.host
  return `http://${host.includes(':') ? `[${host}]` : host}:${http.port}`
}

export interface HttpAnswer {
  readonly status: number
  readonly bytes: Buffer
  /** As UTF-8. */
  readonly body: string
  /** How long the server wants to be left alone; undefined if it does not say. */
  readonly retryAfterS: number | undefined
}

export interface FormRequest {
  /** http:// only to this machine: others could read the token. */
  readonly url: string
  readonly path: string
  readonly token: string
  readonly tls: ConnectOptions['tls'] | undefined
}

/** POSTs a form. Rejects with Failure. */
export function postForm(request: FormRequest, form: URLSearchParams, signal: AbortSignal): Promise<HttpAnswer> {
  const headers = { 'content-type': 'application/x-www-form-urlencoded' }
  return postWithToken(request, { headers, body: Buffer.from(form.toString()) }, signal)
}

/** POSTs a body of another type. Rejects with Failure. */
export function postWithToken(
  { url, path, token, tls }: FormRequest,
  { headers, body }: Pick<PostRequest, 'headers' | 'body'>,
  signal: AbortSignal,
): Promise<HttpAnswer> {
  const withToken = { ...headers, authorization: `Bearer ${token}` }
  return postBytes({ url: formUrl(url, path), headers: withToken, body, tls }, signal)
}

export interface PostRequest {
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
  readonly tls: ConnectOptions['tls'] | undefined
  /** Where the address and the authorities come from, for messages. */
  readonly advice?: ConnectionAdvice
}

interface ConnectionAdvice {
  readonly address: string
  readonly trust: string
}

const OF_SERVER: ConnectionAdvice = {
  address: 'The address must be that of `listen.http` or `listen.https` of the server: see --url',
  trust: 'The authorities are those of --ca FILE or CINNABAR_CA; no secret was sent',
}

/** Rejects with Failure if there is no answer. */
export async function postBytes(
  { url, headers, body, tls = {}, advice = OF_SERVER }: PostRequest,
  signal: AbortSignal,
): Promise<HttpAnswer> {
  const options = {
    method: 'POST',
    headers: { ...headers, 'content-length': body.length },
    signal,
    timeout: SILENCE_MS,
    agent: false,
  }
  return new Promise((resolve, reject) => {
    const fail = (error: Error): void => reject(unreachable(url, error, advice))
    const isTls = url.protocol === 'https:'
    const request = isTls ? requestHttps(url, { ...options, ...filesOf(tls) }) : requestHttp(url, options)
    request.once('error', fail)
    request.once('timeout', () => request.destroy(new Error(`no answer within ${SILENCE_MS / 1_000} s`)))
    request.once('response', (response) => {
      const chunks: Buffer[] = []
      let length = 0
      response.on('data', (chunk: Buffer) => {
        chunks.push(chunk)
        length += chunk.length
        if (length > MAX_BODY_BYTES) response.destroy(new Error('the answer is longer than 256 MiB: ask for less'))
      })
      response.once('error', fail)
      response.once('end', () => {
        const after = Number(response.headers['retry-after'] ?? Number.NaN)
        const bytes = Buffer.concat(chunks)
        resolve({
          status: response.statusCode ?? 0,
          bytes,
          get body() {
            return bytes.toString()
          },
          retryAfterS: Number.isFinite(after) ? after : undefined,
        })
      })
    })
    request.end(body)
  })
}

/** Throws Failure. */
function formUrl(text: string, path: string): URL {
  const url = httpUrl(text, 'the URL must be like https://monitor.example:7653')
  checkSecret(url, 'a token')
  url.pathname = `${url.pathname.replace(/\/$/, '')}${path}`
  return url
}

/** Throws Failure. No message repeats the text, which may contain a password. */
export function httpUrl(text: string, expected: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined
  const isPlain = url !== undefined && url.username === '' && url.password === ''
  if (isPlain && /^https?:$/.test(url.protocol)) return url
  throw new Failure(ExitCode.USAGE, `${expected}, without a user or password`)
}

/** Throws Failure if others could read what is secret on the way. */
export function checkSecret({ protocol, hostname, origin }: URL, what: string): void {
  const isHere = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(hostname)
  if (protocol === 'https:' || isHere) return
  throw new Failure(
    ExitCode.USAGE,
    `${what} is not sent to ${origin}, where others could read it: use https:// or run this on that machine`,
  )
}

function filesOf({ ca, cert, key }: NonNullable<ConnectOptions['tls']>): Record<string, Buffer> {
  const files = Object.entries({ ca, cert, key }).filter((entry): entry is [string, string] => entry[1] !== undefined)
  return Object.fromEntries(files.map(([name, file]) => [name, readFileSync(file)]))
}

function unreachable({ origin }: URL, error: Error, { address, trust }: ConnectionAdvice): Failure {
  const code = String(errorCode(error) ?? '')
  const isTrust = /CERT|SIGNED|ISSUER/.test(code)
  const message = `cannot reach ${origin}: ${error.message || code}\n${isTrust ? trust : address}`
  return new Failure(ExitCode.FAILED, message, { cause: error })
}
