/** The entry of the client library on Node: `import { connect } from 'cinnabar/client'`. */
import { type Connect, connector } from './connect.ts'
import { dial } from './dial/dial.ts'
import { Calls, type ListenOptions } from './listen.ts'

export type { QualifiedName } from '../auth/identity.ts'
export { parseIdentity } from '../auth/prepare.ts'
export { valueToJson } from '../protocol/monitor/json-value.ts'
export type { Address, Calls, ListenOptions } from './listen.ts'
export * from './public.ts'

/**
 * Connects to `tcp://host:port`, `tls://host:port`, `ws://host:port/monitor` or `wss://`, and logs in. Rejects with ConnectionError.
 *
 *     const consumer = await connect('tcp://127.0.0.1:7650', { identity: 'alice', password })
 *     await consumer.follow('host.load.one')
 *     for await (const sample of consumer) console.log(sample.name, sample.plain)
 */
export const connect: Connect = connector(dial)

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
