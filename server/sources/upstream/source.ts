/** Other servers whose metrics this one serves: those of each tenant are one sensor. A reload adds and ends some, and leaves the others alone. */

import { type Identity, mayRead } from '../../../auth/permissions.ts'
import { ValueMeter } from '../../accounts/quotas.ts'
import type { Control, RemoteControl, RemoteControls } from '../../controls/control.ts'
import { type Address, formatAddress } from '../../core/address.ts'
import { Pacer } from '../io/pacer.ts'
import { LabelledFamily } from '../labelled-sensor.ts'
import type { StatusEntry } from '../producer/status.ts'
import type { Source, SourceContext, SourceListeners } from '../source.ts'
import { ofProducer } from './catalogue.ts'
import type { UpstreamTable, upstreamSection } from './config.ts'
import { Position } from './position.ts'
import { Reception } from './reception.ts'
import { UpstreamReport } from './report.ts'
import { UpstreamSensor } from './sensor.ts'
import { StoredBindings } from './stored-bindings.ts'
import { Upstream, type UpstreamOptions } from './upstream.ts'

export const upstream: Source<typeof upstreamSection> = {
  open(context, tables) {
    const upstreams = new Upstreams(context)
    upstreams.replace(tables)
    return {
      statuses: upstreams.statuses,
      remoteControls: upstreams,
      async listen(listeners) {
        listeners.opened(upstreams)
        await upstreams.start(listeners)
      },
      reload: (tables) => upstreams.replace(tables),
    }
  },
}

/** What is stored of an upstream. */
type Kept = Pick<UpstreamOptions, 'position' | 'stored'>

class Upstreams implements RemoteControls {
  /** One of each; it changes with them. */
  readonly statuses: StatusEntry[] = []
  readonly #context: SourceContext
  /** By their tables, as text. */
  readonly #upstreams = new Map<string, Upstream>()
  readonly #sensors = new Map<string, UpstreamSensor>()
  readonly #kept = new Map<string, Kept>()
  #reports: LabelledFamily | undefined
  /** By their addresses. */
  readonly #receptions = new Map<string, Reception>()
  #isStarted = false

  constructor(context: SourceContext) {
    this.#context = context
  }

  replace(tables: readonly UpstreamTable[]): void {
    const wanted = new Map(tables.map((table) => [JSON.stringify(table), table]))
    const changed = new Set<UpstreamSensor>()
    const removed: Upstream[] = []
    for (const [key, upstream] of this.#upstreams) {
      if (wanted.has(key)) continue
      this.#upstreams.delete(key)
      const sensor = this.#sensorOf(upstream.table.tenant)
      sensor.delete(upstream)
      changed.add(sensor)
      removed.push(upstream)
      // Its connections are closed at once; nothing is stopped at the upstream.
      void upstream.stop()
      upstream.report.end()
    }
    for (const [key, table] of wanted) if (!this.#upstreams.has(key)) changed.add(this.#add(key, table))
    for (const upstream of removed) upstream.moveFollowers()
    // What cannot be opened is in the statuses.
    if (this.#isStarted) for (const opening of this.#receive()) opening.catch(() => {})
    else this.#listStatuses()
    for (const sensor of changed) void this.#context.hub.producersChanged(sensor)
  }

  /** Rejects with ListenError. */
  async start(listeners: SourceListeners): Promise<void> {
    this.#isStarted = true
    for (const upstream of this.#upstreams.values()) upstream.start()
    for (const address of await Promise.all(this.#receive())) {
      listeners.bound({ key: 'upstream.listen', use: 'upstreams', transport: 'tcp' }, address)
    }
  }

  async close(): Promise<void> {
    await Promise.all([...this.#receptions.values()].map((reception) => reception.close()))
    await Promise.all([...this.#upstreams.values()].map((upstream) => upstream.stop()))
  }

  find(name: string, producer: string, identity: Identity): Control | undefined {
    const [first] = producer.split('/', 1)
    const named = [...this.#upstreams.values()].find(
      ({ table, owner }) => table.name === first && mayRead(identity, owner),
    )
    return named?.control(producer, name)
  }

  *of(producers: (path: string) => boolean, identity: Identity): Generator<RemoteControl> {
    for (const upstream of this.#upstreams.values()) {
      if (!mayRead(identity, upstream.owner)) continue
      for (const one of upstream.controls()) if (producers(one.producer)) yield one
    }
  }

  /** Listens where upstreams announce themselves, and nowhere else. The promises reject with ListenError. */
  #receive(): readonly Promise<Address>[] {
    const wanted = new Map<string, Address>()
    for (const { table } of this.#upstreams.values()) {
      if (table.listen !== undefined) wanted.set(formatAddress(table.listen), table.listen)
    }
    for (const [key, reception] of this.#receptions) {
      if (wanted.has(key)) continue
      this.#receptions.delete(key)
      void reception.close()
    }
    const fresh: Promise<Address>[] = []
    for (const [key, address] of wanted) {
      const known = this.#receptions.get(key)
      if (known !== undefined) {
        // Its port may be free by now.
        if (!known.isOpen) fresh.push(known.open())
        continue
      }
      const find = (name: string): Upstream | undefined =>
        [...this.#upstreams.values()].find(
          ({ table }) => table.name === name && table.listen !== undefined && formatAddress(table.listen) === key,
        )
      const reception = new Reception({ ...this.#context, address, find })
      this.#receptions.set(key, reception)
      fresh.push(reception.open())
    }
    this.#listStatuses()
    return fresh
  }

  #listStatuses(): void {
    this.statuses.splice(0, Number.POSITIVE_INFINITY, ...this.#upstreams.values(), ...this.#receptions.values())
  }

  #add(key: string, table: UpstreamTable): UpstreamSensor {
    const { quotas, clock, pacing, producer } = this.#context
    const sensor = this.#sensorOf(table.tenant)
    const meter = quotas.of(table.tenant).values
    const limit = table.valuesPerSecond === 0 ? Number.POSITIVE_INFINITY : table.valuesPerSecond
    const own = new ValueMeter(
      () => limit,
      () => clock.monotonicMs(),
    )
    const both = {
      take: () => own.take() && meter.take(),
      get waitMs() {
        return Math.max(own.waitMs, meter.waitMs)
      },
    }
    const whenStored = (resume: () => void): void => {
      const { waitMs } = both
      if (waitMs > 0) clock.setTimeout(resume, waitMs)
      else pacing.journal.wait({ durable: resume })
    }
    const { name, tenant } = table
    const report = new UpstreamReport({ ...this.#context, name, tenant, family: this.#familyOfReports() })
    const upstream = new Upstream({
      ...this.#context,
      report,
      table,
      meter: both,
      ...this.#keptOf(table),
      pacer: new Pacer({
        storage: { behind: () => both.waitMs > 0 || pacing.behind(), whenStored },
        turns: pacing.turns,
        clock,
        failed: (error) => this.#context.hub.faults.report(sensor, error),
      }),
      id: producer.id,
      producersChanged: () => this.#context.hub.producersChanged(sensor),
      catalogued: (upstream, before) => sensor.changed(upstream, before),
    })
    this.#upstreams.set(key, upstream)
    sensor.add(upstream)
    if (this.#isStarted) upstream.start()
    return sensor
  }

  /** One for each name, also where a reload puts another table in its place: what was stored at the start is old by then. */
  #keptOf({ tenant, name }: UpstreamTable): Kept {
    const { upstreams, upstreamBindings, journal } = this.#context
    const key = `${tenant}/${name}`
    const known = this.#kept.get(key)
    if (known !== undefined) return known
    const row = upstreams.find((row) => row.name === key)
    const position = new Position(key, row, journal)
    const rows = upstreamBindings.filter(({ upstream }) => upstream === key)
    const kept: Kept = { position, stored: new StoredBindings({ upstream: key, position, journal, rows }) }
    this.#kept.set(key, kept)
    return kept
  }

  /** Made with the first upstream: a server without any has no such metrics. */
  #familyOfReports(): LabelledFamily {
    this.#reports ??= new LabelledFamily({
      ...this.#context,
      family: 'upstream.',
      kind: 'upstreams',
      from: 'what upstreams report',
      parameters: [{ ...ofProducer, description: 'The server that is consumed.', selects: 'any' }],
      keptMs: () => Number.POSITIVE_INFINITY,
    })
    return this.#reports
  }

  #sensorOf(tenant: string): UpstreamSensor {
    const known = this.#sensors.get(tenant)
    if (known !== undefined) return known
    const sensor = new UpstreamSensor(tenant)
    this.#sensors.set(tenant, sensor)
    this.#context.hub.add(sensor)
    return sensor
  }
}
