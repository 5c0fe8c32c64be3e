/** A program that exposes metrics, whose answers a test decides. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http'
import { createServer as createTlsServer, type ServerOptions } from 'node:https'
import type { AddressInfo } from 'node:net'
import { scrapeSection } from '../../../../../server/wings/prometheus/scrape/config.ts'
import { type ScrapeJob, type TargetSpec, targetsOf } from '../../../../../server/wings/prometheus/scrape/job.ts'

export class ScriptedTarget {
  readonly port: number
  readonly url: string
  /** Requests so far. */
  readonly requests: IncomingMessage[] = []
  /** Sends an answer; by default `text`. */
  answer: RequestListener = (_request, response) => {
    response.setHeader('content-type', 'text/plain; version=0.0.4')
    response.end(this.text)
  }
  text = ''
  readonly #server: Server

  private constructor(server: Server, scheme: string) {
    this.#server = server
    this.port = (server.address() as AddressInfo).port
    this.url = `${scheme}://127.0.0.1:${this.port}/metrics`
    server.on('request', (request, response) => {
      this.requests.push(request)
      this.answer(request, response)
    })
  }

  static async start(tls?: ServerOptions): Promise<ScriptedTarget> {
    const server = tls === undefined ? createServer() : createTlsServer(tls)
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    return new ScriptedTarget(server, tls === undefined ? 'http' : 'https')
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections()
    if (!this.#server.listening) return
    this.#server.close()
    await once(this.#server, 'close')
  }
}

/** Tables as the file has them, with their defaults. */
export function scrapeTables(...tables: readonly object[]): readonly ScrapeJob[] {
  return scrapeSection.type.parse(tables)
}

/** The target of a table that has one. */
export function targetOf(table: object): TargetSpec {
  const [target] = scrapeTables(table).flatMap((job) => targetsOf(job).specs)
  if (target === undefined) throw new Error('the table has no target')
  return target
}
