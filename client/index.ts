/** The door of the consumer library on Node: `import { connect } from 'cinnabar/client'`. */
import { type Connect, connector } from './connect.ts'
import { dial } from './dial/dial.ts'
import { Calls, type ListenOptions } from './listen.ts'
import { putOn } from './wrap.ts'

export { parseIdentity, type QualifiedName } from '../auth/identity.ts'
export { valueToJson } from '../protocol/monitor/json-value.ts'
export type { Address, Calls, ListenOptions } from './listen.ts'
export * from './public.ts'
export { newToken, type Token } from './token.ts'

/**
 * Connects to `tcp://host:port`, `tls://host:port`, `ws://host:port/monitor` or `wss://`, and logs in. Rejects with ConnectionError.
 *
 *     const consumer = await connect('tcp://127.0.0.1:7650', { identity: 'alice', password })
 *     await consumer.follow('host.load.one')
 *     for await (const sample of consumer) console.log(sample.name, sample.plain)
 */
export const connect: Connect = connector(dial, putOn)

/**
 * Takes the calls of producers, for channels that were defined with a URL. Rejects with ConnectionError, RangeError.
 *
 *     const calls = await listen({ url: 'tls://0.0.0.0:7655', identity: 'alice', secret, tls: { cert, key } })
 *     for await (const consumer of calls) void handle(consumer)
 */
export async function listen(options: ListenOptions): Promise<Calls> {
  const { openDoor } = await import('./dial/accept.ts')
  return Calls.open(options, openDoor)
}
