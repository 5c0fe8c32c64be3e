/** What the library exports both on Node and in a browser. The two differ in how they dial. */
export { BasicType, GapReason, NoticeCode } from '../protocol/monitor/constants.ts'
export type { Gap, Notice, ValueMessage } from '../protocol/monitor/message.ts'
export type { StatusName } from '../protocol/monitor/status.ts'
export { type Field, type Value, VOID } from '../protocol/monitor/value.ts'
export type { WaitOptions } from './commands.ts'
export type { Connect, ConnectOptions } from './connect.ts'
export type { ChannelOptions, Consumer, ConsumerEvents, Listener } from './consumer.ts'
export type {
  CertificateCredentials,
  Credentials,
  Method,
  PasswordCredentials,
  TokenCredentials,
} from './credentials.ts'
export { ConnectionError, type ConnectionErrorCode, StatusError } from './errors.ts'
export type { Restored } from './mailbox.ts'
export type { BoundMetric, Followed, Handler } from './subscriptions.ts'
export type { Layer, Security, TlsOptions, Transport, TransportListener } from './transport.ts'
export {
  type Arguments,
  type ArgumentValue,
  type Place,
  type Plain,
  type PlainRecord,
  plainOf,
  type Sample,
} from './values.ts'
