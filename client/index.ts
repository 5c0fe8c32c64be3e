/** The public door of the consumer library: `import { connect } from 'cinnabar/client'`. */
export type { Gap, Notice, ValueMessage } from '../protocol/monitor/message.ts'
export type { Arguments, ArgumentValue } from './arguments.ts'
export { type ConnectOptions, connect } from './connect.ts'
export { Consumer, type ConsumerOptions, type Entries, type Entry } from './consumer.ts'
export { ConnectionError, type ConnectionErrorCode, StatusError } from './errors.ts'
export type { Credentials, Method } from './login.ts'
export type { Transport, TransportListener } from './transport.ts'
