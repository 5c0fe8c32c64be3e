/**
 * The contents of decoded QMF v1 messages ("AM2"). Object ids and hashes are text, since they are only compared, shown
 * and sent back: `flags-boot-brokerBank-agentBank-object` in decimal, and 32 hexadecimal digits.
 */
import type { FieldTable, FieldValue } from '../amqp/field-table.ts'

/** `0-0-1-0-2`. Boot 0 means that the object persists over restarts of the broker. */
export type ObjectId = string

/** The types of properties, statistics and arguments. */
export const QmfType = {
  UINT8: 1,
  UINT16: 2,
  UINT32: 3,
  UINT64: 4,
  SHORT_STRING: 6,
  LONG_STRING: 7,
  /** Nanoseconds since 1970. */
  ABSTIME: 8,
  /** Nanoseconds. */
  DELTATIME: 9,
  REFERENCE: 10,
  BOOL: 11,
  FLOAT: 12,
  DOUBLE: 13,
  UUID: 14,
  MAP: 15,
  INT8: 16,
  INT16: 17,
  INT32: 18,
  INT64: 19,
  /** Cannot be read: the rest of the body is dropped. */
  OBJECT: 20,
  LIST: 21,
  /** Cannot be read either. */
  ARRAY: 22,
} as const
export type QmfType = (typeof QmfType)[keyof typeof QmfType]

/**
 * number: 8 to 32 bits, float, double; bigint: 64 bits and times; string: texts, references (ObjectId) and uuids
 * (`xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx`); list for LIST.
 */
export type QmfValue = number | bigint | boolean | string | FieldTable | readonly FieldValue[]

export const QmfStatus = {
  OK: 0,
  UNKNOWN_OBJECT: 1,
  UNKNOWN_METHOD: 2,
  NOT_IMPLEMENTED: 3,
  INVALID_PARAMETER: 4,
  FEATURE_NOT_IMPLEMENTED: 5,
  FORBIDDEN: 6,
  EXCEPTION: 7,
} as const
export type QmfStatus = (typeof QmfStatus)[keyof typeof QmfStatus]

/** The names of severities by number, beginning with 0. */
export const severities = ['emergency', 'alert', 'critical', 'error', 'warning', 'notice', 'info', 'debug'] as const

export const Access = { READ_CREATE: 1, READ_WRITE: 2, READ_ONLY: 3 } as const
export type Access = (typeof Access)[keyof typeof Access]

export interface ClassKey {
  readonly packageName: string
  readonly className: string
  /** 32 hexadecimal digits; opaque. */
  readonly hash: string
}

/** The facts about every item of a schema; absent if its map does not hold them. */
export interface SchemaItem {
  readonly name: string
  readonly type: QmfType
  readonly unit?: string
  readonly description?: string
  readonly min?: number | bigint
  readonly max?: number | bigint
  readonly maxLength?: number
  readonly refPackage?: string
  readonly refClass?: string
}
export interface SchemaProperty extends SchemaItem {
  readonly access: Access
  readonly isIndex: boolean
  readonly isOptional: boolean
}
export type SchemaStatistic = SchemaItem
export type Direction = 'I' | 'O' | 'IO'
export interface SchemaArgument extends SchemaItem {
  readonly direction: Direction
  readonly default?: FieldValue
}
export interface SchemaMethod {
  readonly name: string
  readonly description?: string
  readonly arguments: readonly SchemaArgument[]
}
export interface TableSchema {
  readonly kind: 'table'
  readonly key: ClassKey
  readonly properties: readonly SchemaProperty[]
  readonly statistics: readonly SchemaStatistic[]
  readonly methods: readonly SchemaMethod[]
}
export interface EventSchema {
  readonly kind: 'event'
  readonly key: ClassKey
  readonly arguments: readonly SchemaItem[]
}
export type Schema = TableSchema | EventSchema

/** Times are nanoseconds since 1970; `deleted` is 0 while the object exists. */
export interface ObjectHeader {
  readonly key: ClassKey
  readonly sampled: bigint
  readonly created: bigint
  readonly deleted: bigint
  readonly id: ObjectId
}

/** The banks that a broker gives an agent: `agent.<brokerBank>.<agentBank>` is its address. */
export interface Banks {
  readonly brokerBank: number
  readonly agentBank: number
}

/** Values in the order of the schema, undefined for an absent optional property. */
export type Properties = readonly (QmfValue | undefined)[]
/** Undefined only in QMF v2, for a value that is absent or does not fit its type. */
export type Statistics = readonly (QmfValue | undefined)[]

/** The messages of both directions. `sequence` is that of the request, 0 for unsolicited messages. */
export type QmfMessage = { readonly sequence: number } & (
  | { readonly op: 'B' | 'P' | 'x' }
  | { readonly op: 'b'; readonly brokerId: string }
  | { readonly op: 'p' | 'Q'; readonly packageName: string }
  | { readonly op: 'q'; readonly kind: Schema['kind']; readonly key: ClassKey }
  /** `kind` is not sent in v1. */
  | { readonly op: 'S'; readonly key: ClassKey; readonly kind?: Schema['kind'] }
  | { readonly op: 's'; readonly schema: Schema }
  | { readonly op: 'G'; readonly query: FieldTable }
  | {
      readonly op: 'g'
      readonly header: ObjectHeader
      readonly properties: Properties
      readonly statistics: Statistics
    }
  | { readonly op: 'c'; readonly header: ObjectHeader; readonly properties: Properties }
  | { readonly op: 'i'; readonly header: ObjectHeader; readonly statistics: Statistics }
  | {
      readonly op: 'M'
      readonly id: ObjectId
      readonly key: ClassKey
      readonly method: string
      /** The arguments with direction I or IO, in the order of the schema. */
      readonly arguments: readonly QmfValue[]
    }
  | {
      readonly op: 'm'
      readonly status: number
      readonly text: string
      /** The arguments with direction O or IO, in the order of the schema; empty if the status is not 0. */
      readonly arguments: Statistics
    }
  | {
      readonly op: 'e'
      readonly key: ClassKey
      /** Nanoseconds since 1970. */
      readonly time: bigint
      readonly severity: number
      readonly arguments: Statistics
    }
  | { readonly op: 'h'; readonly time: bigint }
  | { readonly op: 'z'; readonly code: number; readonly text: string }
  | ({ readonly op: 'A'; readonly label: string; readonly systemId: string } & Banks)
  | ({ readonly op: 'a' } & Banks)
)

/** The knowledge a decoder needs: the bytes of objects, events and replies do not say how to read them. */
export interface SchemaLookup {
  schema(key: ClassKey): Schema | undefined
  /** The method that the request of that sequence called. */
  method(sequence: number): SchemaMethod | undefined
}

/** The reason why the rest of a body was dropped. `key` is the unknown class. */
export interface DecodeStop {
  readonly reason:
    | 'malformed'
    | 'unknown-magic'
    | 'unknown-op'
    | 'unknown-class'
    | 'unknown-method'
    | 'unsupported-type'
  readonly detail: string
  /** The position in the body. */
  readonly offset: number
  readonly key?: ClassKey
  /**
   * From the header of the message where decoding stopped, so that a request can be refused and a reply be assigned.
   */
  readonly op?: string
  readonly sequence?: number
}

/** The messages, one at a time, and why decoding stopped before the end; undefined if it did not. */
export type DecodeSteps = Generator<QmfMessage, DecodeStop | undefined, void>

export interface Decoded {
  /** The messages before decoding stopped. */
  readonly messages: readonly QmfMessage[]
  readonly stopped?: DecodeStop
}
