/** A server whose users put notifiers and rules, and a receiver that keeps what it is sent. Ann may do both, and root everything. */
import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect } from 'vitest'
import { defaultConfig } from '../../server/start/config.ts'
import { done } from './administration.ts'
import { eventually } from './eventually.ts'
import type { TestProducerOptions } from './producer.ts'
import { PublishingProducer } from './publisher.ts'
import type { Json } from './records.ts'
import type { Seat } from './seat.ts'

const EVER_MS = 36_500 * 86_400_000
/** Those that the configuration permits; the first resolves to an address of an internal network. */
const NAMES = ['inside.example', 'nowhere.example']

interface Received {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

export class NotifiedServer {
  readonly received: Received[] = []
  /** What the receiver answers with. */
  status = 204
  readonly configuration: NonNullable<TestProducerOptions['config']>
  server: PublishingProducer
  readonly ann: Seat
  readonly #receiver: Server

  private constructor(
    receiver: Server,
    configuration: NotifiedServer['configuration'],
    server: PublishingProducer,
    ann: Seat,
  ) {
    this.#receiver = receiver
    this.configuration = configuration
    this.server = server
    this.ann = ann
    receiver.on('request', async (request, response) => {
      const parts: Buffer[] = []
      for await (const part of request) parts.push(part as Buffer)
      this.received.push({
        path: request.url ?? '',
        headers: request.headers,
        body: Buffer.concat(parts).toString(),
      })
      response.writeHead(this.status, { location: '/elsewhere' }).end()
    })
  }

  /** `allow`: further destinations that the configuration permits. */
  static async start(allow: readonly string[] = []): Promise<NotifiedServer> {
    const receiver = createServer()
    receiver.listen(0, '127.0.0.1')
    await once(receiver, 'listening')
    const { port } = receiver.address() as AddressInfo
    const { history, alerts, dial } = defaultConfig()
    const kinds = ['webhook', 'heartbeat', 'ntfy', 'json'].map((kind) => `${kind}+http://127.0.0.1:${port}`)
    const configuration = {
      history: { ...history, keepMs: EVER_MS, keepRollupsMs: EVER_MS, metrics: ['test.*', 'rules.*'] },
      alerts: { ...alerts, builtin: false },
      dial: { ...dial, allow: [...kinds, ...NAMES.map((name) => `webhook+http://${name}:${port}`), ...allow] },
    }
    const resolve = async (name: string) => {
      if (name === 'inside.example') return ['10.1.2.3']
      throw new Error('ENOTFOUND')
    }
    const server = await PublishingProducer.start({ config: configuration, resolve })
    for (const object of ['rules.*', 'notify.*'])
      await done(server.root, 'role.allow', { role: 'author', command: 'EXECUTE', object })
    await server.producer.addUser('ann', { role: 'author' })
    return new NotifiedServer(receiver, configuration, server, await server.producer.seat('ann'))
  }

  get root(): Seat {
    return this.server.root
  }

  get port(): number {
    return (this.#receiver.address() as AddressInfo).port
  }

  /** The table of a notifier that tells of each transition at once. */
  tableOf(name: string, more = '', kind = 'webhook'): string {
    const url = `${kind}+http://127.0.0.1:${this.port}/secret-${name}`
    return `[[notify]]\nname = "${name}"\nurl = "${url}"\ngroup_wait = "0s"\ngroup_interval = "0s"\n${more}\n`
  }

  /** What webhooks were told, as `receiver status alertname`. */
  get told(): readonly string[] {
    return this.received.map(({ body }) => {
      const { receiver, status, alerts } = JSON.parse(body) as Json
      return `${receiver} ${status} ${alerts.map(({ labels }: Json) => labels.alertname).join(' ')}`
    })
  }

  async passes(): Promise<void> {
    this.server.producer.clock.advance(5_000)
    await this.server.producer.settle()
  }

  /** Time goes on until this was told. */
  async tells(...texts: readonly string[]): Promise<void> {
    await this.until(() => expect(this.told).toEqual(texts))
  }

  /** Time goes on until this throws nothing. */
  async until(check: () => void | Promise<void>): Promise<void> {
    await eventually(async () => {
      await this.passes()
      await check()
    })
  }

  async stop(): Promise<void> {
    await this.server.stop()
    this.#receiver.closeAllConnections()
    this.#receiver.close()
  }
}

/** A file of rules whose alerts always fire. */
export function firing(...names: readonly string[]): string {
  const rules = names.map(
    (name) => `      - alert: ${name}\n        expr: vector(1)\n        labels: { severity: page }\n`,
  )
  return `groups:\n  - name: g\n    interval: 10s\n    rules:\n${rules.join('')}`
}
