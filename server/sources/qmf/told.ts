/** What a console tells its sensor, and what a call comes to. */
import type {
  ClassKey,
  ObjectHeader,
  ObjectId,
  Properties,
  QmfValue,
  Schema,
  Statistics,
} from '../../../protocol/qmf/types.ts'

export interface ObjectSample {
  readonly header: ObjectHeader
  readonly properties?: Properties
  readonly statistics?: Statistics
}
export interface QmfEvent {
  /** Nanoseconds since 1970. */
  readonly time: bigint
  readonly severity: number
  readonly arguments: readonly QmfValue[]
}
export interface MethodReply {
  readonly status: number
  readonly text: string
  /** Those with direction O or IO. */
  readonly arguments: readonly QmfValue[]
}
/** `unreadable`: answered by what does not decode; `full`: too many are under way; undefined: the connection ended. */
export type CallResult = MethodReply | 'timeout' | 'unreadable' | 'full' | undefined

export interface ConsoleEvents {
  /** Once for each class. */
  learned(schema: Schema): void
  /** Once: packages, classes, schemas and objects are known, but for what was not answered. */
  ready(): void
  /** Not of the console's own; with properties when it is told of first. */
  object(sample: ObjectSample): void
  /** Deleted, or not there any more; only of those that `object` told of. */
  gone(id: ObjectId): void
  /** Not about the console's own. */
  event(key: ClassKey, event: QmfEvent): void
  /** Of the broker itself. */
  heartbeat(time: bigint): void
  /** Told once; nothing comes after. For people. */
  down(reason: string): void
}
