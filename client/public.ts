/** What both doors of the consumer library show; they differ in how they dial. */
export { BasicType, GapReason, NoticeCode } from '../protocol/monitor/constants.ts'
export type { Gap, Notice, ValueMessage } from '../protocol/monitor/message.ts'
export type { StatusName } from '../protocol/monitor/status.ts'
export { type Field, type Value, VOID } from '../protocol/monitor/value.ts'
export type { Arguments, ArgumentValue } from './arguments.ts'
export type { WaitOptions } from './commands.ts'
export type { Connect, ConnectOptions } from './connect.ts'
export type { Consumer } from './consumer.ts'
export type {
  CertificateCredentials,
  Credentials,
  Method,
  PasswordCredentials,
  TokenCredentials,
} from './credentials.ts'
export { ConnectionError, type ConnectionErrorCode, StatusError } from './errors.ts'
export type { ConsumerEvents, Listener } from './events.ts'
export type { Followed, Handler } from './follows.ts'
export type { ChannelOptions } from './options.ts'
export { type Plain, type PlainRecord, plainOf } from './plain.ts'
export type { Sample } from './sample.ts'
export type { Security, TlsOptions } from './security.ts'
export type { Layer, Transport, TransportListener } from './transport.ts'
