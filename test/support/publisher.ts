/** A server in the test's own process whose HTTP doors are open on loopback, and a user whose token may publish. */
import { done, newToken } from './administration.ts'
import { TestProducer, type TestProducerOptions } from './producer.ts'
import type { Seat } from './seat.ts'

export class PublishingProducer {
  readonly producer: TestProducer
  /** The base of all URLs. */
  readonly url: string
  readonly root: Seat
  /** May publish all there is. */
  readonly token: string

  private constructor(producer: TestProducer, root: Seat, token: string) {
    this.producer = producer
    this.root = root
    this.token = token
    this.url = `http://127.0.0.1:${producer.server.http?.port}`
  }

  static async start(options: TestProducerOptions = {}): Promise<PublishingProducer> {
    const http = { host: '127.0.0.1', port: 0 }
    const { config } = options
    const producer = await TestProducer.start({
      ...options,
      config: { ...config, listen: { ...config?.listen, http } },
    })
    await producer.addUser('root', { role: 'admin' })
    return PublishingProducer.of(producer)
  }

  /** One that runs, and may have run before. */
  static async of(producer: TestProducer): Promise<PublishingProducer> {
    const root = await producer.seat('root')
    for (const family of ['otlp.*', 'prometheus.*', 'statsd.*']) {
      await done(root, 'role.allow', { role: 'operator', command: 'PUBLISH', object: family })
    }
    await producer.addUser('app', { role: 'operator' })
    return new PublishingProducer(producer, root, await tokenFor(root, 'app'))
  }

  /** POSTs a body; gives the answer. */
  post(
    path: string,
    body: Uint8Array | string,
    headers: Record<string, string>,
    token = this.token,
  ): Promise<Response> {
    const authorization = `Bearer ${token}`
    const bytes = typeof body === 'string' ? body : Uint8Array.from(body)
    return fetch(this.url + path, { method: 'POST', body: bytes, headers: { authorization, ...headers } })
  }

  async stop(): Promise<void> {
    await this.producer.stop()
  }
}

/** A new token of a user, with a scope; by default for PUBLISH of everything. */
export async function tokenFor(root: Seat, user: string, scope = 'PUBLISH *', tenant = 'default'): Promise<string> {
  const { token, hash } = newToken()
  await done(root, 'token.add', { user, tenant, hash, ...(scope !== '' && { scope }) })
  return token
}
