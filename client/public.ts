/** What the library exports both on Node and in a browser. The two differ in how they dial. */
export { BasicType, type GapReasonName, type NoticeName } from '../protocol/monitor/constants.ts'
export type { StatusName } from '../protocol/monitor/status.ts'
export { type Field, type Value, VOID } from '../protocol/monitor/value.ts'
export type { ChannelOptions } from './channel-options.ts'
export type { CommandOptions, WaitOptions } from './commands.ts'
export type { Connect, ConnectOptions } from './connect.ts'
export type { Consumer } from './consumer.ts'
export {
  type CertificateCredentials,
  type Credentials,
  type Method,
  newToken,
  type PasswordCredentials,
  type Token,
  type TokenCredentials,
} from './credentials.ts'
export { ConnectionError, type ConnectionErrorCode, ExpressionError, StatusError } from './errors.ts'
export type { ConsumerEvents, GapEvent, Listener, NoticeEvent, RetryEvent } from './events.ts'
export type { ExpressionOptions, ExpressionResult, ExpressionSeries } from './expression.ts'
export type { HistoryReadOptions, LossRange, SeriesFamily, SeriesHistory, SeriesWindows } from './history.ts'
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
  type SampleLabels,
} from './values.ts'
