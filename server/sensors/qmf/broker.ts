/**
 * One broker: what its console tells becomes series and values, and what consumers want of it is wanted from the console.
 * When the broker goes its series end, and those it has when it comes back are found by the same names.
 */
import { BasicType } from '../../../protocol/monitor/constants.ts'
import type { Value } from '../../../protocol/monitor/value.ts'
import type { ClassKey, ObjectId, Properties, QmfValue, Schema, SchemaMethod } from '../../../protocol/qmf/types.ts'
import type { Measured } from '../../metrics/metric.ts'
import { QmfObject } from './broker-object.ts'
import { isTable, type KnownClass, type KnownEvent, type KnownTable, type QmfCatalogue } from './catalogue.ts'
import type { CallResult, Console, ConsoleEvents, ObjectSample, QmfEvent } from './console.ts'
import { eventValue } from './events.ts'
import { BROKER_UP, labelOf, nameOfObject } from './names.ts'
import { keyText } from './schemas.ts'
import { BrokerSeries, type QmfSeries } from './series.ts'

/** What brokers share: their sensor. */
export interface Receiver {
  readonly catalogue: QmfCatalogue
  readonly counters: { values: number; badTime: number; tooLong: number }
  readonly clock: { microseconds(): number }
  /** Whether somebody ever asked for series of that name: only then they are made. */
  isAsked(name: string): boolean
  born(series: QmfSeries): void
  /** `time`: microseconds since 1970. */
  tell(series: QmfSeries, value: Value, time: number): void
  died(series: QmfSeries): void
  /** Other classes are known than before. */
  changed(): void
}

/** A console as long as its connection is there. */
export type Connected = Pick<Console, 'want' | 'call'>

/** A class of this broker. */
interface Class<K extends KnownClass> {
  readonly known: K
  /** Learned on the connection that there is. */
  isCurrent: boolean
  /** Series that somebody wants. */
  wanted: number
}
interface TableClass extends Class<KnownTable> {
  readonly objects: Map<ObjectId, QmfObject>
  readonly labels: Set<string>
}
interface EventClass extends Class<KnownEvent> {
  series: BrokerSeries | undefined
}

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
      if (before !== undefined) this.#forget(key, before)
      const one = { isCurrent: true, wanted: 0 }
      if (isTable(known)) this.#tables.set(key, { ...one, known, objects: new Map(), labels: new Set() })
      else this.#events.set(key, { ...one, known, series: undefined })
      this.#receiver.changed()
    }
    const event = this.#events.get(key)
    if (event !== undefined) this.#bear(event)
  }

  ready(): void {
    this.isKnown = true
    this.#touch(true)
    for (const [key, one] of [...this.#tables, ...this.#events]) if (!one.isCurrent) this.#forget(key, one)
  }

  object(_agent: string, sample: ObjectSample): void {
    const { header, properties } = sample
    const table = this.#tables.get(keyText(header.key))
    if (table === undefined || header.deleted !== 0n) return
    if (this.#isUp) this.#touch(true)
    let object = table.objects.get(header.id)
    if (object === undefined) {
      // What it is called is not known before.
      if (properties === undefined) return
      this.gone(header.id)
      object = this.#newObject(table, header.id, properties)
    }
    object.take(sample, this.#timeOf(header.sampled), (series, value, time) => this.#tell(series, value, time))
  }

  gone(id: ObjectId): void {
    const table = this.#objects.get(id)
    const object = table?.objects.get(id)
    if (table === undefined || object === undefined) return
    this.#objects.delete(id)
    table.objects.delete(id)
    table.labels.delete(object.label)
    // Series that die are not told that nobody wants them any more.
    this.#want(table, -object.wantedSeries)
    for (const series of object.made()) this.#receiver.died(series)
  }

  event(key: ClassKey, event: QmfEvent): void {
    const one = this.#events.get(keyText(key))
    if (one?.series === undefined) return
    const value = eventValue(one.known.schema, event)
    if (value === undefined) this.#receiver.counters.tooLong++
    else this.#tell(one.series, value, this.#timeOf(event.time))
  }

  heartbeat(time: bigint): void {
    this.#touch(true, this.#timeOf(time))
  }

  /** `reason`: for people. */
  down(reason: string): void {
    this.#console = undefined
    this.detail = reason
    for (const id of [...this.#objects.keys()]) this.gone(id)
    for (const event of this.#events.values()) this.#bury(event)
    if (this.#isUp) this.#touch(false)
  }

  /** Of the classes that it has, or had when it was there last. */
  *schemas(): Generator<Schema> {
    for (const { known } of [...this.#tables.values(), ...this.#events.values()]) yield known.schema
  }

  /** Those alive of a class, or of all; with labels as in the parameter `object`. */
  *objects(of?: { readonly packageName: string; readonly className: string }): Generator<QmfObject> {
    for (const { known, objects } of this.#tables.values()) {
      const { packageName, className } = known.schema.key
      if (of === undefined || (of.packageName === packageName && of.className === className)) yield* objects.values()
    }
  }

  objectsOf(known: KnownTable): Iterable<QmfObject> {
    const table = this.#tables.get(keyText(known.schema.key))
    return table?.known === known ? table.objects.values() : []
  }

  /** Of events. */
  *series(): Generator<BrokerSeries> {
    for (const { series } of this.#events.values()) if (series !== undefined) yield series
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

  #newObject(table: TableClass, id: ObjectId, properties: Properties): QmfObject {
    const called = nameOfObject(table.known.schema, properties)
    const label = labelOf(called, id, table.labels.has(called.name))
    const object = new QmfObject(table.known, { id, label, broker: this.name }, (isWanted) => {
      this.#want(table, isWanted ? 1 : -1)
    })
    table.labels.add(label)
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
  #forget(key: string, one: TableClass | EventClass): void {
    if ('objects' in one) {
      for (const id of [...one.objects.keys()]) this.gone(id)
      this.#tables.delete(key)
    } else {
      this.#bury(one)
      this.#events.delete(key)
    }
    this.#receiver.catalogue.leave(one.known)
    this.#receiver.changed()
  }

  #want(one: TableClass | EventClass, more: number): void {
    const before = one.wanted
    one.wanted += more
    const isWanted = one.wanted > 0
    if (before > 0 === isWanted || (!isWanted && this.#isWanted(one.known.schema))) return
    this.#console?.want(one.known.schema, isWanted)
  }

  /** In any version: they come together. */
  #isWanted({ kind, key: { packageName, className } }: Schema): boolean {
    return [...(kind === 'table' ? this.#tables : this.#events).values()].some(({ wanted, known: { schema } }) => {
      return wanted > 0 && schema.key.packageName === packageName && schema.key.className === className
    })
  }

  #tell(series: QmfSeries, value: Value, time: number): void {
    if (series.taps.length > 0) this.#receiver.tell(series, value, time)
  }

  /** It is there (or not), as of `time`; told when that changes, and with each heartbeat. */
  #touch(isUp: boolean, heartbeat?: number): void {
    const time = heartbeat ?? this.#receiver.clock.microseconds()
    const value: Value = { type: BasicType.BOOLEAN, value: isUp }
    const measured: Measured = { value, time }
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
