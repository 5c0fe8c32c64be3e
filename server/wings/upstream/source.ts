/** Other servers whose metrics this one serves: those of each tenant are one sensor. A reload adds and ends some, and leaves the others alone. */

import { type Identity, maySee } from '../../../auth/permissions.ts'
import type { Control, RemoteControl, RemoteControls } from '../../kernel/controls/control.ts'
import { type Address, formatAddress } from '../../kernel/core/address.ts'
import type { StatusEntry } from '../../kernel/producer/status.ts'
import { LabelledFamily } from '../../kit/labelled-sensor.ts'
import type { Source, SourceContext, SourceListeners } from '../../kit/source.ts'
import { ofProducer } from './catalogue.ts'
import type { UpstreamTable, upstreamSection } from './config.ts'
import { NodeLinks } from './node-links.ts'
import { type KeptUpstream, keptUpstream, openUpstream } from './open-upstream.ts'
import { Reception } from './reception.ts'
import { UpstreamReport } from './report.ts'
import { UpstreamSensor } from './sensor.ts'
import type { Upstream } from './upstream.ts'

export const upstream: Source<typeof upstreamSection> = {
  open(context, tables) {
    const links = context.nodes && new NodeLinks(context, context.nodes)
    const upstreams = new Upstreams(context, links?.statuses)
    upstreams.replace(tables)
    return {
      statuses: upstreams.statuses,
      remoteControls: upstreams,
      ...(links && {
        async begin(listeners: SourceListeners) {
          listeners.opened(links)
          await links.begin()
        },
      }),
      async listen(listeners) {
        listeners.opened(upstreams)
        await upstreams.start(listeners)
      },
      reload: (tables) => upstreams.replace(tables),
    }
  },
}

class Upstreams implements RemoteControls {
  /** One of each; it changes with them. */
  readonly statuses: StatusEntry[] = []
  readonly #context: SourceContext
  readonly #others: readonly StatusEntry[]
  /** By their tables, as text. */
  readonly #upstreams = new Map<string, Upstream>()
  readonly #sensors = new Map<string, UpstreamSensor>()
  readonly #kept = new Map<string, KeptUpstream>()
  #reports: LabelledFamily | undefined
  /** By their addresses. */
  readonly #receptions = new Map<string, Reception>()
  #isStarted = false

  /** `others`: entries of `producer.sensors` that stay. */
  constructor(context: SourceContext, others: readonly StatusEntry[] = []) {
    this.#context = context
    this.#others = others
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
    const added: Upstream[] = []
    for (const [key, table] of wanted) {
      if (this.#upstreams.has(key)) continue
      const sensor = this.#sensorOf(table.tenant)
      added.push(this.#add(key, table, sensor))
      changed.add(sensor)
    }
    for (const upstream of removed) upstream.moveFollowers()
    // What cannot be opened is in the statuses.
    if (this.#isStarted) for (const opening of this.#receive()) opening.catch(() => {})
    else this.#listStatuses()
    const followed = Promise.all([...changed].map((sensor) => this.#context.hub.producersChanged(sensor)))
    // What is bound there would count as unwanted before those who want it follow it.
    if (!this.#isStarted) return
    void followed.then(() => {
      for (const upstream of added) upstream.start()
    })
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
      ({ table, owner }) => table.name === first && maySee(identity, owner),
    )
    return named?.control(producer, name)
  }

  *of(producers: (path: string) => boolean, identity: Identity): Generator<RemoteControl> {
    for (const upstream of this.#upstreams.values()) {
      if (!maySee(identity, upstream.owner)) continue
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
    const all = [...this.#upstreams.values(), ...this.#receptions.values(), ...this.#others]
    this.statuses.splice(0, Number.POSITIVE_INFINITY, ...all)
  }

  #add(key: string, table: UpstreamTable, sensor: UpstreamSensor): Upstream {
    const { name, tenant } = table
    const family = this.#familyOfReports()
    const report = new UpstreamReport({ ...this.#context, name, kind: 'upstream', tenant, family })
    const upstream = openUpstream(this.#context, { table, report, ...this.#keptOf(table), sensor })
    this.#upstreams.set(key, upstream)
    return upstream
  }

  /** One for each name, also where a reload puts another table in its place: what was stored at the start is old by then. */
  #keptOf({ tenant, name }: UpstreamTable): KeptUpstream {
    const key = `${tenant}/${name}`
    const kept = this.#kept.get(key) ?? keptUpstream(this.#context, key)
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
