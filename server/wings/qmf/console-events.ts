/** The reports of a console, events for its sensor and counters for `producer.sensors`, and its limits. */
import type {
  ClassKey,
  DecodeStop,
  ObjectHeader,
  ObjectId,
  Properties,
  Schema,
  Statistics,
} from '../../../protocol/qmf/types.ts'

export interface ConsoleLimits {
  readonly objects: number
  /** About as many bytes as the values of all objects may take. */
  readonly objectBytes: number
  readonly schemas: number
  /** About as many bytes as the texts of all schemas may take. */
  readonly schemaBytes: number
  readonly packages: number
  readonly agents: number
  /** Calls without a reply yet. */
  readonly calls: number
}
export const consoleLimits: ConsoleLimits = {
  ...objectLimits(20_000),
  schemas: 1_000,
  schemaBytes: 32 << 20,
  packages: 200,
  agents: 64,
  calls: 64,
}

/** So many objects, with values of 4 KiB each on average. */
export function objectLimits(objects: number): Pick<ConsoleLimits, 'objects' | 'objectBytes'> {
  return { objects, objectBytes: objects * 4_096 }
}

export interface ConsoleEvents {
  /** Called once for each class. */
  learned(schema: Schema): void
  /** Called once: packages, classes, schemas and objects are known, except for what was not answered. */
  ready(): void
  /** Not called for the console's own objects. The first sample of an object has properties. */
  object(sample: ObjectSample): void
  /** An object was deleted or has disappeared; only called for those that `object` has reported. */
  gone(id: ObjectId): void
  /** Not called for events about the console's own objects. */
  event(key: ClassKey, event: QmfEvent): void
  /** The broker itself sent a heartbeat. */
  heartbeat(time: bigint): void
  /** Called once, last, with a reason for people. `isProgress`: the next connection will get further. */
  down(reason: string, isProgress: boolean): void
}

export interface ObjectSample {
  readonly header: ObjectHeader
  readonly properties?: Properties
  readonly statistics?: Statistics
}
export interface QmfEvent {
  /** Nanoseconds since 1970. */
  readonly time: bigint
  readonly severity: number
  readonly arguments: Statistics
}
export interface MethodReply {
  readonly status: number
  readonly text: string
  /** The arguments with direction O or IO. */
  readonly arguments: Statistics
}
/** `unreadable`: the answer cannot be decoded; `full`: too many calls are pending; undefined: the connection ended. */
export type CallResult = MethodReply | 'timeout' | 'unreadable' | 'full' | undefined

/** The counters of all consoles of a sensor. Only they show what was dropped. */
export type QmfCounters = ReturnType<typeof newCounters>

export function newCounters() {
  return {
    /** Transfers of brokers, and the QMF messages in them. */
    transfers: 0,
    messages: 0,
    /** Transfers of QMF v2 to a console that speaks v1. */
    qmf2: 0,
    /** Bodies whose rest was dropped, by reason. */
    malformed: 0,
    unknownMagic: 0,
    unknownOp: 0,
    unknownClass: 0,
    unknownMethod: 0,
    unsupportedType: 0,
    /** Answers to no current request, and messages that no console gets. */
    unexpected: 0,
    /** Requests without an answer in time. */
    unanswered: 0,
    /** Objects, schemas, packages, agents and requests beyond the limits. */
    objectsFull: 0,
    /** Objects whose values are too large, together with those of all others. */
    bytesFull: 0,
    schemasFull: 0,
    packagesFull: 0,
    agentsFull: 0,
    requestsFull: 0,
    /** Classes that a broker refuses to send. */
    refusedClasses: 0,
    /** Statistics of objects whose properties never came. */
    unknownObjects: 0,
  }
}

const counterOf = {
  malformed: 'malformed',
  'unknown-magic': 'unknownMagic',
  'unknown-op': 'unknownOp',
  'unknown-class': 'unknownClass',
  'unknown-method': 'unknownMethod',
  'unsupported-type': 'unsupportedType',
} as const satisfies Record<DecodeStop['reason'], keyof QmfCounters>

export function countStop(counters: QmfCounters, { reason }: DecodeStop): void {
  counters[counterOf[reason]]++
}
