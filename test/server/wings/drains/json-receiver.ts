/**
 * A receiver of JSON as somebody writes it who has read Standard Webhooks and docs/drains.md: it checks signatures with node:crypto,
 * and keeps what it does not have yet, by the largest transaction of each stream.
 */
import { createHmac, timingSafeEqual } from 'node:crypto'
import {
  createServer as createHttpServer,
  type IncomingHttpHeaders,
  type RequestListener,
  type Server,
} from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { Issued } from '../../../support/certificates.ts'

/** An element of `values`. */
export interface ReceivedItem {
  readonly type: string
  readonly transaction: number
  readonly name?: string
  readonly value?: unknown
  readonly [key: string]: unknown
}

export interface ReceivedRequest {
  readonly headers: IncomingHttpHeaders
  readonly text: string
  readonly isSigned: boolean
  readonly stream: string
  readonly first?: number
  readonly last?: number
  readonly values: readonly ReceivedItem[]
}

export interface JsonAnswer {
  /** 0: the request is taken, and its answer is lost. */
  readonly status: number
  readonly headers?: Record<string, string>
}

const TAKEN: JsonAnswer = { status: 204 }

export class JsonReceiver {
  readonly requests: ReceivedRequest[] = []
  /** What was new to it, of all requests that it has taken. */
  readonly kept: ReceivedItem[] = []
  secret = ''
  /** Of requests whose signature is right, or of all where it has no secret. */
  answer: (request: ReceivedRequest) => JsonAnswer = () => TAKEN
  port = 0
  readonly #server: Server
  readonly #last = new Map<string, number>()

  /** With a certificate it speaks TLS. */
  constructor(certificate?: Issued) {
    const listener: RequestListener = (request, response) => {
      const parts: Buffer[] = []
      request.on('data', (part: Buffer) => parts.push(part))
      request.on('end', () => {
        const { status, headers = {} } = this.#take(request.headers, Buffer.concat(parts).toString())
        if (status === 0) request.socket.destroy()
        else response.writeHead(status, headers).end()
      })
    }
    this.#server = certificate === undefined ? createHttpServer(listener) : createHttpsServer(certificate, listener)
  }

  async open(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(this.port, '127.0.0.1', resolve))
    this.port = (this.#server.address() as AddressInfo).port
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections()
    if (this.#server.listening) await new Promise((resolve) => this.#server.close(resolve))
  }

  #take(headers: IncomingHttpHeaders, text: string): JsonAnswer {
    const isSigned = this.#isSigned(headers, text)
    const request: ReceivedRequest = { ...JSON.parse(text), headers, text, isSigned }
    this.requests.push(request)
    if (this.secret !== '' && !isSigned) return { status: 400 }
    const answer = this.answer(request)
    if (answer.status < 300) this.#keep(request)
    return answer
  }

  #keep({ stream, values }: ReceivedRequest): void {
    const last = this.#last.get(stream) ?? 0
    this.kept.push(...values.filter(({ transaction }) => transaction > last))
    this.#last.set(stream, Math.max(last, ...values.map(({ transaction }) => transaction)))
  }

  /** "Verifying signatures" of Standard Webhooks, written out. */
  #isSigned(headers: IncomingHttpHeaders, text: string): boolean {
    const { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signatures = '' } = headers
    const key = Buffer.from(this.secret.replace('whsec_', ''), 'base64')
    const wanted = createHmac('sha256', key).update(`${id}.${timestamp}.${text}`).digest()
    return String(signatures)
      .split(' ')
      .some((one) => {
        const [version, signature = ''] = one.split(',')
        const given = Buffer.from(signature, 'base64')
        return version === 'v1' && given.length === wanted.length && timingSafeEqual(given, wanted)
      })
  }
}
