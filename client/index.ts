/** The door of the consumer library on Node: `import { connect } from 'cinnabar/client'`. */
import { type Connect, connector } from './connect.ts'
import { dial } from './dial/dial.ts'

export { parseIdentity, type QualifiedName } from '../auth/identity.ts'
export { valueToJson } from '../protocol/monitor/json-value.ts'
export * from './public.ts'

/**
 * Connects to `tcp://host:port`, `ws://host:port/monitor` or `wss://`, and logs in. Rejects with ConnectionError.
 *
 *     const consumer = await connect('tcp://127.0.0.1:7650', { identity: 'alice', password })
 *     await consumer.follow('host.load.one')
 *     for await (const sample of consumer) console.log(sample.name, sample.plain)
 */
export const connect: Connect = connector(dial)
