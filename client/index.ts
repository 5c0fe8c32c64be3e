/** The entry of the client library on Node: `import { connect } from 'cinnabar/client'`. */

import { LabelledReader } from '../protocol/monitor/labelled.ts'
import { realClock } from './clock.ts'
import { type Connect, connector } from './connect.ts'
import { dial } from './dial/dial.ts'
import { Calls, type ListenOptions } from './listen.ts'
import { type Publish, publisher } from './publish.ts'

export type { QualifiedName } from '../auth/identity.ts'
export { parseIdentity } from '../auth/prepare.ts'
export { valueToJson } from '../protocol/monitor/json-value.ts'
export { PublishError, type PublishRefusal } from './errors.ts'
export type { Address, Calls, ListenOptions } from './listen.ts'
export * from './public.ts'
export type { Publish, PublishedValue, PublishOptions } from './publish.ts'

/**
 * Connects to `tcp://host:port`, `tls://host:port`, `ws://host:port/monitor` or `wss://`, and logs in. Rejects with ConnectionError.
 *
 *     const consumer = await connect('tcp://127.0.0.1:7650', { identity: 'alice', password })
 *     await consumer.follow('host.load.one')
 *     for await (const sample of consumer) console.log(sample.name, sample.plain)
 */
export const connect: Connect = connector(dial, () => new LabelledReader())

/**
 * Accepts the connections of producers, for channels that were defined with a URL. Rejects with ConnectionError or RangeError.
 *
 *     const calls = await listen({ url: 'tls://0.0.0.0:7655', identity: 'alice', secret, tls: { cert, key } })
 *     for await (const consumer of calls) void handle(consumer)
 */
export async function listen(options: ListenOptions): Promise<Calls> {
  const { openInboundListener } = await import('./dial/accept.ts')
  return Calls.open(options, openInboundListener)
}

/**
 * Publishes values as `otlp.` and their names, with a token: `http://host:port` or `https://`. It resolves when they are stored,
 * and rejects with ConnectionError, or with PublishError if the server does not take all of them.
 *
 *     await publish('https://monitor.example:7653', { token }, [{ name: 'jobs.done', value: 17, labels: { queue: 'mail' } }])
 */
export const publish: Publish = publisher(async (...request) => {
  const { post } = await import('./dial/post.ts')
  return post(...request)
}, realClock())
