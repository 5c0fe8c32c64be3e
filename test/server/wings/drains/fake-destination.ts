/** What a drain delivers to, for tests: a server that remembers what came, and answers as a test says. */
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { decodeWriteRequest, decompress } from '../../../../protocol/prometheus/remote-write.ts'
import { finish } from '../../../../server/kernel/core/fair-work.ts'
import { defaultConfig } from '../../../../server/start/config.ts'
import type { SourcesConfig } from '../../../../server/start/wings.ts'
import type { DrainProtocol, DrainTable } from '../../../../server/wings/drains/config.ts'
import { EPOCH, type TestProducer } from '../../../support/producer.ts'

export const LIMITS = { bytes: 1 << 24, elements: 1_000_000 }

export interface Answer {
  readonly status: number
  readonly text?: string | Uint8Array
  readonly headers?: Record<string, string>
}

/** What came, and what is answered next. */
export class FakeDestination {
  readonly requests: { readonly body: Buffer; readonly headers: IncomingMessage['headers'] }[] = []
  /** Answers by what stands in a request; the default takes everything. */
  answer: (names: readonly string[], body: Buffer) => Answer = () => ({ status: 204 })
  readonly #server: Server
  port = 0

  constructor() {
    this.#server = createServer((request, response) => {
      const parts: Buffer[] = []
      request.on('data', (part: Buffer) => parts.push(part))
      request.on('end', () => {
        const body = Buffer.concat(parts)
        this.requests.push({ body, headers: request.headers })
        const { status, text = '', headers = {} } = this.answer(namesIn(body, request.url ?? ''), body)
        response.writeHead(status, headers).end(text)
      })
    })
  }

  async open(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(this.port, '127.0.0.1', resolve))
    this.port = (this.#server.address() as AddressInfo).port
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections()
    if (this.#server.listening) await new Promise((resolve) => this.#server.close(resolve))
  }

  /** All samples that came in requests, as `name{labels} value time`. */
  get samples(): string[] {
    return this.requests.flatMap(({ body }) => samplesIn(body))
  }
}

const requestIn = (body: Uint8Array) => finish(decodeWriteRequest(decompress(body, LIMITS), LIMITS))
const seriesIn = (body: Uint8Array) => requestIn(body).series

/** The names of the families that a request describes. */
export function familiesIn(body: Uint8Array): string[] {
  return [...requestIn(body).families.keys()]
}

export function samplesIn(body: Uint8Array): string[] {
  return seriesIn(body).flatMap(({ name, labels, samples }) => {
    const texts = labels.map(([label, text]) => `${label}=${text}`).join(',')
    return samples.map(({ value, time }) => `${name}{${texts}} ${value} ${(time - EPOCH) / 1_000}`)
  })
}

export function namesIn(body: Buffer, path: string): string[] {
  return path === '/write' ? seriesIn(body).map(({ name }) => name) : []
}

const PATHS: Readonly<Record<DrainProtocol, string>> = { prometheus: 'write', otlp: 'v1/metrics', json: 'values' }

const defaults = {
  tenant: 'default',
  tenantLabel: '',
  role: 'consumer',
  tokenFile: undefined,
  username: '',
  passwordFile: undefined,
  secretFile: undefined,
  ca: undefined,
  cert: undefined,
  key: undefined,
  batchSize: 4,
  batchAgeMs: 1_000,
  timeoutMs: 30_000,
}

export function tableTo(
  port: number,
  more: Partial<DrainTable> = {},
  protocol: DrainProtocol = 'prometheus',
): DrainTable {
  const href = `http://127.0.0.1:${port}/${PATHS[protocol]}`
  const url = { protocol, href, text: `${protocol}+${href}` }
  return { ...defaults, name: 'd', url, metrics: ['test.*'], ...more }
}

/** A reload with these tables. */
export function reload(producer: TestProducer | undefined, drain: readonly DrainTable[]): void {
  const sources = producer?.server.parts.sources ?? []
  for (const source of sources) source.reload?.({ ...defaultConfig(), drain } as unknown as SourcesConfig)
}
