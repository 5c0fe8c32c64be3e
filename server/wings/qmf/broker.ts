/**
 * One broker: turns the reports of its console into series and values, and wants from the console what consumers want.
 * When the broker goes its series end; those of its return are found by the same names.
 */
import { BasicType } from '../../../protocol/monitor/constants.ts'
import type { Value } from '../../../protocol/monitor/value.ts'
import type {
  ClassKey,
  ObjectHeader,
  ObjectId,
  Properties,
  QmfValue,
  Schema,
  SchemaMethod,
} from '../../../protocol/qmf/types.ts'
import type { Labels } from '../../kit/metrics.ts'
import {
  BROKER_UP,
  type KnownClass,
  type KnownEvent,
  type KnownTable,
  labelOf,
  nameOfObject,
  type QmfCatalogue,
  type QmfField,
} from './catalogue.ts'
import type { Console } from './console.ts'
import type { CallResult, ConsoleEvents, ObjectSample, QmfEvent } from './console-events.ts'
import { keyText } from './discovery.ts'
import { BrokerSeries, ClassSeries, QmfObject, type QmfSeries } from './series.ts'
import { eventValue } from './values.ts'

/** What the brokers of a sensor share, and where they report. */
export interface BrokerContext {
  readonly catalogue: QmfCatalogue
  readonly counters: { values: number; badTime: number; tooLong: number }
  readonly clock: { microseconds(): number }
  /** Whether somebody ever asked for series of that name: only then they are made. */
  isAsked(name: string): boolean
  born(series: QmfSeries): void
  /** From now on there may be objects of it. */
  expects(series: ClassSeries): void
  /** `time`: microseconds since 1970. */
  emit(series: QmfSeries, value: Value, time: number): void
  died(series: QmfSeries): void
}

/** The part of a console that a broker uses while it is connected. */
export type ConnectedConsole = Pick<Console, 'want' | 'refresh' | 'call' | 'problemOf' | 'remarks'>

interface BrokerClass<K extends KnownClass> {
  readonly known: K
  /** Whether it was learned on the current connection. */
  isCurrent: boolean
  /** The number of its series that somebody wants. */
  wanted: number
}
export interface BrokerTable extends BrokerClass<KnownTable> {
  readonly objects: Map<ObjectId, QmfObject>
  /** Objects by their labels, shared by all versions of the class. */
  readonly labels: Map<string, QmfObject>
  /** The series of future objects that somebody wants. */
  readonly expected: Map<QmfField, ClassSeries>
  /** Shared by all versions of the class too. */
  readonly ends: LabelEnds
}
interface BrokerEvent extends BrokerClass<KnownEvent> {
  series: BrokerSeries | undefined
}

export class QmfBroker implements ConsoleEvents {
  readonly name: string
  /** The state of the connection, for people. */
  state = 'not connected yet'
  /** Whether the schemas of all its classes have been known once, so that no other names can become metrics. */
  isKnown = false
  readonly up: BrokerSeries
  readonly #context: BrokerContext
  readonly #tables = new Map<string, BrokerTable>()
  readonly #events = new Map<string, BrokerEvent>()
  readonly #objects = new Map<ObjectId, BrokerTable>()
  readonly #other = (id: ObjectId): QmfObject | undefined => this.#objects.get(id)?.objects.get(id)
  /** Classes that are new on this connection, until all of them are known. */
  readonly #new = new Set<string>()
  #console: ConnectedConsole | undefined
  #isUp = false

  constructor(name: string, context: BrokerContext) {
    this.name = name
    this.#context = context
    this.up = new BrokerSeries(BROKER_UP, name)
    this.#setUp(false)
  }

  get isUp(): boolean {
    return this.#isUp
  }

  /** The state of the connection and what is missing, for people. */
  get detail(): string {
    const remarks = this.#console?.remarks() ?? []
    return remarks.length === 0 ? this.state : `${this.state}, but ${remarks.join(', and ')}`
  }

  get objectCount(): number {
    return this.#objects.size
  }

  /** A connection is being made; its console reports its events here, until `down`. */
  connected(console: ConnectedConsole): void {
    this.#console = console
    for (const one of [...this.#tables.values(), ...this.#events.values()]) one.isCurrent = false
  }

  learned(schema: Schema): void {
    const { catalogue } = this.#context
    const key = keyText(schema.key)
    const before = this.#tables.get(key) ?? this.#events.get(key)
    const known = catalogue.add(schema)
    if (before?.known === known) {
      catalogue.remove(known)
      before.isCurrent = true
      // It was wanted all the time while there was no connection.
      if (before.wanted > 0) this.#console?.want(schema, true)
    } else {
      this.#removeClass(key)
      if (!this.#isUp) this.#new.add(key)
      if ('fields' in known) this.#addTable(key, known)
      else this.#events.set(key, { isCurrent: true, wanted: 0, known, series: undefined })
    }
    const event = this.#events.get(key)
    if (event !== undefined) this.#startEvent(event)
  }

  ready(): void {
    this.isKnown = true
    this.#setUp(true)
    this.#new.clear()
    for (const [key, one] of [...this.#tables, ...this.#events]) if (!one.isCurrent) this.#removeClass(key)
  }

  object(sample: ObjectSample): void {
    const { header, properties } = sample
    const table = this.#tables.get(keyText(header.key))
    if (table === undefined) return
    const isEnd = header.deleted !== 0n
    if (this.#isUp) this.#setUp(true)
    let object = table.objects.get(header.id)
    if (object === undefined) {
      // Without properties it has no name.
      if (properties === undefined || isEnd) return
      this.gone(header.id)
      object = this.#addObject(table, header, properties)
    }
    const time = this.#timeOf(isEnd ? header.deleted : header.sampled)
    object.receive(sample, object.timeAfterEnd(time, this.#context.clock.microseconds()), (series, value, time) =>
      this.#emit(series, value, time),
    )
  }

  gone(id: ObjectId): void {
    const table = this.#objects.get(id)
    const object = table?.objects.get(id)
    if (table === undefined || object === undefined) return
    this.#objects.delete(id)
    table.objects.delete(id)
    table.labels.delete(object.label)
    // Series that die do not report that they are not wanted any more.
    const { wantedSeries } = object
    this.#want(table, -wantedSeries.length)
    if (wantedSeries.length === 0) return
    for (const series of wantedSeries) this.#context.died(series)
    table.ends.set(object.label, this.#context.clock.microseconds())
  }

  event(key: ClassKey, event: QmfEvent): void {
    const known = this.#events.get(keyText(key))
    if (known?.series === undefined) return
    const value = eventValue(known.known.schema, event)
    if (value === undefined) this.#context.counters.tooLong++
    else this.#emit(known.series, value, this.#timeOf(event.time))
  }

  heartbeat(time: bigint): void {
    if (this.#isUp) this.#setUp(true, this.#timeOf(time))
  }

  /** `reason` is for people. */
  down(reason: string): void {
    this.#console = undefined
    this.state = reason
    for (const id of [...this.#objects.keys()]) this.gone(id)
    for (const event of this.#events.values()) this.#endEvent(event)
    // A broker that never gets ready would be remembered with more classes each time.
    for (const key of this.#new) this.#removeClass(key)
    this.#new.clear()
    if (this.#isUp) this.#setUp(false)
  }

  /** The classes that it has, or had when it was last connected, with the objects that exist now. */
  tables(): Iterable<Readonly<BrokerTable>> {
    return this.#tables.values()
  }

  *objects(): Generator<QmfObject> {
    for (const { objects } of this.#tables.values()) yield* objects.values()
  }

  /** Whether the object still exists. */
  has(object: QmfObject): boolean {
    return this.#objects.get(object.id)?.objects.get(object.id) === object
  }

  objectsOf(known: KnownTable): Iterable<QmfObject> {
    const table = this.#tables.get(keyText(known.schema.key))
    return table?.known === known ? table.objects.values() : []
  }

  /** The series of its events. */
  *eventSeries(): Generator<BrokerSeries> {
    for (const { series } of this.#events.values()) if (series !== undefined) yield series
  }

  /** The series of objects that do not exist yet, of one metric or of all. */
  *expected(name?: string): Generator<ClassSeries> {
    if (name === undefined) {
      for (const table of this.#tables.values()) {
        for (const field of table.known.fields) yield this.#expectedOf(table, field)
      }
      return
    }
    for (const [known, field] of this.#context.catalogue.fields(name)) {
      const table = this.#tables.get(keyText(known.schema.key))
      if (table?.known === known) yield this.#expectedOf(table, field)
    }
  }

  /** Requests the classes that may have wanted series, unless they are known well enough: then undefined. */
  refresh(selects: (name: string, labels: Labels) => boolean): Promise<unknown> | undefined {
    const labels = { broker: this.name }
    const selected = [...this.#tables.values()].filter(({ known }) => {
      return known.fields.some(({ name }) => selects(name, labels))
    })
    const keys = selected.map(({ known }) => known.schema.key)
    return keys.length === 0 ? undefined : this.#console?.refresh(keys)
  }

  /** As Console.call; undefined without a connection. */
  async call(
    object: QmfObject,
    method: SchemaMethod,
    args: readonly QmfValue[],
    timeoutMs?: number,
  ): Promise<CallResult> {
    return this.#console?.call(object.id, object.known.schema.key, method, args, timeoutMs)
  }

  /** Why a call cannot be sent, for people; undefined if it can. */
  problemOf(object: QmfObject, method: SchemaMethod, args: readonly QmfValue[]): string | undefined {
    return this.#console?.problemOf(object.id, object.known.schema.key, method, args)
  }

  #addTable(key: string, known: KnownTable): void {
    const versions = [...this.#tables.values()]
    const other = versions.find((table) => isSameClass(table.known.schema, known.schema))
    const { labels = new Map(), ends = new LabelEnds() } = other ?? {}
    const own = { isCurrent: true, wanted: 0, known, objects: new Map(), expected: new Map() }
    const table: BrokerTable = { ...own, labels, ends }
    this.#tables.set(key, table)
    for (const field of known.fields) {
      if (this.#context.isAsked(field.name)) this.#context.expects(this.#expectedOf(table, field))
    }
  }

  /** Returns the same series as long as somebody wants it. */
  #expectedOf(table: BrokerTable, field: QmfField): ClassSeries {
    const { expected } = table
    const existing = expected.get(field)
    if (existing !== undefined) return existing
    const series: ClassSeries = new ClassSeries(field.name, this.name, (isWanted) => {
      if (isWanted) expected.set(field, series)
      else expected.delete(field)
      this.#want(table, isWanted ? 1 : -1)
    })
    return series
  }

  #addObject(table: BrokerTable, { id, created }: ObjectHeader, properties: Properties): QmfObject {
    const { known, labels, ends } = table
    const name = nameOfObject(known.schema, properties)
    const other = labels.get(name.name)
    // An object that was made anew before the end of the old one was reported keeps the name.
    if (other?.isReplacedBy({ known, id, created }, properties)) this.gone(other.id)
    const label = labelOf(name, id, labels)
    const identity = { known, id, label, broker: this.name, created, endedAt: ends.get(label), other: this.#other }
    const object = new QmfObject(identity, (isWanted) => {
      this.#want(table, isWanted ? 1 : -1)
    })
    labels.set(label, object)
    table.objects.set(id, object)
    this.#objects.set(id, table)
    for (const field of known.fields) {
      if (this.#context.isAsked(field.name)) this.#context.born(object.series(field))
    }
    return object
  }

  #startEvent(event: BrokerEvent): void {
    const { name } = event.known
    if (name === undefined || event.series !== undefined) return
    event.series = new BrokerSeries(name, this.name, (isWanted) => this.#want(event, isWanted ? 1 : -1))
    this.#context.born(event.series)
  }

  #endEvent(event: BrokerEvent): void {
    if (event.series !== undefined) this.#context.died(event.series)
    event.series = undefined
    event.wanted = 0
  }

  /** The broker no longer has this class, or has another version of it. */
  #removeClass(key: string): void {
    const table = this.#tables.get(key)
    const event = this.#events.get(key)
    if (table !== undefined) {
      for (const id of [...table.objects.keys()]) this.gone(id)
      for (const series of table.expected.values()) this.#context.died(series)
      this.#tables.delete(key)
      this.#context.catalogue.remove(table.known)
    } else if (event !== undefined) {
      this.#endEvent(event)
      this.#events.delete(key)
      this.#context.catalogue.remove(event.known)
    }
  }

  /** All versions of a class come together, so the console is asked for it as long as any version is wanted. */
  #want(one: BrokerTable | BrokerEvent, change: number): void {
    const before = one.wanted
    one.wanted += change
    const isWanted = one.wanted > 0
    if (before > 0 === isWanted) return
    const { schema } = one.known
    const all = [...(schema.kind === 'table' ? this.#tables : this.#events).values()]
    const isOtherWanted = all.some(({ wanted, known }) => wanted > 0 && isSameClass(known.schema, schema))
    if (isWanted || !isOtherWanted) this.#console?.want(schema, isWanted)
  }

  #emit(series: QmfSeries, value: Value, time: number): void {
    if (series.subscriptions.length > 0) this.#context.emit(series, value, time)
  }

  /** Emits the state when it changes, and with each heartbeat. */
  #setUp(isUp: boolean, heartbeat?: number): void {
    const time = heartbeat ?? this.#context.clock.microseconds()
    const value: Value = { type: BasicType.BOOLEAN, value: isUp }
    this.up.last = { value, time }
    const isNews = isUp !== this.#isUp || heartbeat !== undefined
    this.#isUp = isUp
    if (isNews) this.#emit(this.up, value, time)
  }

  /** Converts to microseconds; returns the current time instead of an impossible one. */
  #timeOf(nanoseconds: bigint): number {
    const time = Number(nanoseconds / 1_000n)
    if (time > 0 && time <= Number.MAX_SAFE_INTEGER) return time
    this.#context.counters.badTime++
    return this.#context.clock.microseconds()
  }
}

/** The limit for remembered ends of one class. */
const MAX_ENDS = 10_000

/**
 * When the objects of a class ended, by label: their subscribers were sent VOID at that time, and no value that follows may
 * have an earlier one. Beyond the limit the oldest ends are merged into one, which counts for every label.
 */
class LabelEnds {
  readonly #ends = new Map<string, number>()
  #merged = 0

  /** Microseconds since 1970; 0 if there is no end. */
  get(label: string): number {
    return this.#ends.get(label) ?? this.#merged
  }

  set(label: string, time: number): void {
    // The newest is last.
    this.#ends.delete(label)
    this.#ends.set(label, time)
    if (this.#ends.size <= MAX_ENDS) return
    const [oldest] = this.#ends
    if (oldest === undefined) return
    this.#ends.delete(oldest[0])
    this.#merged = oldest[1]
  }
}

/** Whether two schemas are versions of one class. */
function isSameClass({ key: one }: Schema, { key: other }: Schema): boolean {
  return one.packageName === other.packageName && one.className === other.className
}
