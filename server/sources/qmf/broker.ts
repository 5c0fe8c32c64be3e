/**
 * One broker: what its console tells becomes series and values, and what consumers want of it is wanted from the console.
 * When the broker goes its series end, and those it has when it comes back are found by the same names.
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
import type { Measurement } from '../../metrics/metric.ts'
import { QmfObject } from './broker-object.ts'
import { isTable, type KnownTable, type QmfCatalogue, type QmfField } from './catalogue.ts'
import { type EventClass, expectedOf, isAnyWanted, labelsOf, type TableClass } from './classes.ts'
import type { CallResult, Console, ConsoleEvents, ObjectSample, QmfEvent } from './console.ts'
import { eventValue } from './events.ts'
import { BROKER_UP, labelOf, nameOfObject } from './names.ts'
import { keyText } from './schemas.ts'
import { BrokerSeries, type ClassSeries, type QmfSeries } from './series.ts'

/** What brokers share: their sensor. */
export interface Receiver {
  readonly catalogue: QmfCatalogue
  readonly counters: { values: number; badTime: number; tooLong: number }
  readonly clock: { microseconds(): number }
  /** Whether somebody ever asked for series of that name: only then they are made. */
  isAsked(name: string): boolean
  born(series: QmfSeries): void
  /** There may be objects of it from now on. */
  expects(series: ClassSeries): void
  /** `time`: microseconds since 1970. */
  tell(series: QmfSeries, value: Value, time: number): void
  died(series: QmfSeries): void
}

/** A console as long as its connection is there. */
export type Connected = Pick<Console, 'want' | 'call'>

export type BrokerTable = Readonly<Pick<TableClass, 'known' | 'objects' | 'labels'>>

export class QmfBroker implements ConsoleEvents {
  readonly name: string
  /** How it stands with the connection, for people. */
  detail = 'not connected yet'
  /** The schemas of all its classes have been known once: other names than theirs name nothing. */
  isKnown = false
  readonly up: BrokerSeries
  readonly #receiver: Receiver
  readonly #tables = new Map<string, TableClass>()
  readonly #events = new Map<string, EventClass>()
  readonly #objects = new Map<ObjectId, TableClass>()
  /** Classes that are new on this connection, until all of them are known. */
  readonly #new = new Set<string>()
  #console: Connected | undefined
  #isUp = false

  constructor(name: string, receiver: Receiver) {
    this.name = name
    this.#receiver = receiver
    this.up = new BrokerSeries(BROKER_UP, name)
    this.#touch(false)
  }

  get isUp(): boolean {
    return this.#isUp
  }

  get objectCount(): number {
    return this.#objects.size
  }

  /** A connection is being made; its console tells its events here, until `down`. */
  connected(console: Connected): void {
    this.#console = console
    for (const one of [...this.#tables.values(), ...this.#events.values()]) one.isCurrent = false
  }

  learned(schema: Schema): void {
    const key = keyText(schema.key)
    const before = this.#tables.get(key) ?? this.#events.get(key)
    const known = this.#receiver.catalogue.enter(schema)
    if (before?.known === known) {
      this.#receiver.catalogue.leave(known)
      before.isCurrent = true
    } else {
      this.#forget(key)
      if (!this.#isUp) this.#new.add(key)
      if (isTable(known)) this.#enter(key, known)
      else this.#events.set(key, { isCurrent: true, wanted: 0, known, series: undefined })
    }
    // It was wanted all the time that there was no connection.
    if (before?.known === known && before.wanted > 0) this.#console?.want(schema, true)
    const event = this.#events.get(key)
    if (event !== undefined) this.#bear(event)
  }

  ready(): void {
    this.isKnown = true
    this.#touch(true)
    this.#new.clear()
    for (const [key, one] of [...this.#tables, ...this.#events]) if (!one.isCurrent) this.#forget(key)
  }

  object(sample: ObjectSample): void {
    const { header, properties } = sample
    const table = this.#tables.get(keyText(header.key))
    if (table === undefined) return
    const isEnd = header.deleted !== 0n
    if (this.#isUp) this.#touch(true)
    let object = table.objects.get(header.id)
    if (object === undefined) {
      // What it is called is not known before.
      if (properties === undefined || isEnd) return
      this.gone(header.id)
      object = this.#newObject(table, header, properties)
    }
    const time = this.#timeOf(isEnd ? header.deleted : header.sampled)
    object.take(sample, time, (series, value, time) => this.#tell(series, value, time))
  }

  gone(id: ObjectId): void {
    const table = this.#objects.get(id)
    const object = table?.objects.get(id)
    if (table === undefined || object === undefined) return
    this.#objects.delete(id)
    table.objects.delete(id)
    table.labels.delete(object.label)
    // Series that die are not told that nobody wants them any more.
    const { wantedSeries } = object
    this.#want(table, -wantedSeries.length)
    for (const series of wantedSeries) this.#receiver.died(series)
  }

  event(key: ClassKey, event: QmfEvent): void {
    const one = this.#events.get(keyText(key))
    if (one?.series === undefined) return
    const value = eventValue(one.known.schema, event)
    if (value === undefined) this.#receiver.counters.tooLong++
    else this.#tell(one.series, value, this.#timeOf(event.time))
  }

  heartbeat(time: bigint): void {
    if (this.#isUp) this.#touch(true, this.#timeOf(time))
  }

  /** `reason`: for people. */
  down(reason: string): void {
    this.#console = undefined
    this.detail = reason
    for (const id of [...this.#objects.keys()]) this.gone(id)
    for (const event of this.#events.values()) this.#bury(event)
    // A broker that never gets `ready` would be remembered with more classes each time.
    for (const key of this.#new) this.#forget(key)
    this.#new.clear()
    if (this.#isUp) this.#touch(false)
  }

  /** Classes that it has, or had when it was there last, with the objects that are there now. */
  tables(): Iterable<BrokerTable> {
    return this.#tables.values()
  }

  *objects(): Generator<QmfObject> {
    for (const { objects } of this.#tables.values()) yield* objects.values()
  }

  /** Whether it is there still. */
  has(object: QmfObject): boolean {
    return this.#objects.get(object.id)?.objects.get(object.id) === object
  }

  objectsOf(known: KnownTable): Iterable<QmfObject> {
    const table = this.#tables.get(keyText(known.schema.key))
    return table?.known === known ? table.objects.values() : []
  }

  /** Of events. */
  *series(): Generator<BrokerSeries> {
    for (const { series } of this.#events.values()) if (series !== undefined) yield series
  }

  /** Of objects that are not there yet: of one metric, or of all. */
  *expected(name?: string): Generator<ClassSeries> {
    for (const table of this.#tables.values()) {
      for (const field of table.known.fields) {
        if (name === undefined || field.name === name) yield this.#expectedOf(table, field)
      }
    }
  }

  /** As Console.call; undefined where there is no connection. */
  async call(
    object: QmfObject,
    method: SchemaMethod,
    args: readonly QmfValue[],
    timeoutMs?: number,
  ): Promise<CallResult> {
    return this.#console?.call(object.id, object.known.schema.key, method, args, timeoutMs)
  }

  #enter(key: string, known: KnownTable): void {
    const labels = labelsOf(this.#tables.values(), known.schema)
    const table: TableClass = { isCurrent: true, wanted: 0, known, objects: new Map(), labels, expected: new Map() }
    this.#tables.set(key, table)
    for (const field of known.fields) {
      if (this.#receiver.isAsked(field.name)) this.#receiver.expects(this.#expectedOf(table, field))
    }
  }

  #expectedOf(table: TableClass, field: QmfField): ClassSeries {
    return expectedOf(table, field, this.name, (isWanted) => this.#want(table, isWanted ? 1 : -1))
  }

  #newObject(table: TableClass, { id, created }: ObjectHeader, properties: Properties): QmfObject {
    const { known, labels } = table
    const called = nameOfObject(known.schema, properties)
    const other = labels.get(called.name)
    // Made anew before its end was heard of: it goes on under its name.
    if (other?.isReplacedBy({ known, id, created, properties })) this.gone(other.id)
    const label = labelOf(called, id, labels)
    const object = new QmfObject({ known, id, label, broker: this.name, created }, (isWanted) => {
      this.#want(table, isWanted ? 1 : -1)
    })
    labels.set(label, object)
    table.objects.set(id, object)
    this.#objects.set(id, table)
    for (const field of table.known.fields) {
      if (this.#receiver.isAsked(field.name)) this.#receiver.born(object.series(field))
    }
    return object
  }

  #bear(event: EventClass): void {
    const { name } = event.known
    if (name === undefined || event.series !== undefined) return
    event.series = new BrokerSeries(name, this.name, (isWanted) => this.#want(event, isWanted ? 1 : -1))
    this.#receiver.born(event.series)
  }

  #bury(event: EventClass): void {
    if (event.series !== undefined) this.#receiver.died(event.series)
    event.series = undefined
    event.wanted = 0
  }

  /** The broker does not have that class any more, or another version of it. */
  #forget(key: string): void {
    const one = this.#tables.get(key) ?? this.#events.get(key)
    if (one === undefined) return
    if ('objects' in one) {
      for (const id of [...one.objects.keys()]) this.gone(id)
      for (const series of one.expected.values()) this.#receiver.died(series)
      this.#tables.delete(key)
    } else {
      this.#bury(one)
      this.#events.delete(key)
    }
    this.#receiver.catalogue.leave(one.known)
  }

  #want(one: TableClass | EventClass, more: number): void {
    const before = one.wanted
    one.wanted += more
    const isWanted = one.wanted > 0
    const { schema } = one.known
    const versions = (schema.kind === 'table' ? this.#tables : this.#events).values()
    if (before > 0 === isWanted || (!isWanted && isAnyWanted(versions, schema))) return
    this.#console?.want(schema, isWanted)
  }

  #tell(series: QmfSeries, value: Value, time: number): void {
    if (series.subscriptions.length > 0) this.#receiver.tell(series, value, time)
  }

  /** It is there (or not), as of `time`; told when that changes, and with each heartbeat. */
  #touch(isUp: boolean, heartbeat?: number): void {
    const time = heartbeat ?? this.#receiver.clock.microseconds()
    const value: Value = { type: BasicType.BOOLEAN, value: isUp }
    const measured: Measurement = { value, time }
    this.up.last = measured
    const isTold = isUp !== this.#isUp || heartbeat !== undefined
    this.#isUp = isUp
    if (isTold) this.#tell(this.up, value, time)
  }

  /** Microseconds; now, if the given time is none. */
  #timeOf(nanoseconds: bigint): number {
    const time = Number(nanoseconds / 1_000n)
    if (time > 0 && time <= Number.MAX_SAFE_INTEGER) return time
    this.#receiver.counters.badTime++
    return this.#receiver.clock.microseconds()
  }
}
