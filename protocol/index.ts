/** The public exports of the protocol: `import { ... } from 'cinnabar/protocol'`. */
export { Framer } from './bytes/framer.ts'
export { XdrReader } from './bytes/reader.ts'
export { XdrWriter } from './bytes/writer.ts'
export { ProtocolError, type ProtocolErrorCode } from './errors.ts'
export type { Argument, ArgumentList } from './monitor/arguments.ts'
export { type Capabilities, writeCapabilities } from './monitor/capabilities.ts'

export {
  type CommandArguments,
  type CommandName,
  commandName,
  commands,
  readCommand,
  writeCommand,
} from './monitor/commands.ts'
export * from './monitor/constants.ts'
export { messageToJson } from './monitor/json.ts'
export { LabelledReader } from './monitor/labelled.ts'
export {
  type Message,
  readMessage,
  writeAuth,
  writeGap,
  writeNotice,
  writeResponse,
  writeValueMessage,
} from './monitor/message.ts'
export { type StatusName, statuses, statusName } from './monitor/status.ts'
export type { Field, Value } from './monitor/value.ts'
export { SmonDecoder, type SmonLimits, type SmonShare, type SmonSink } from './smon/decode.ts'
export { SmonEncoder, type SmonValue } from './smon/encode.ts'
export type { SmonToken } from './smon/stream-state.ts'
