/** Other servers whose metrics this one serves: those of each tenant are one sensor. A reload adds and ends some, and leaves the others alone. */

import type { Control, RemoteControl, RemoteControls } from '../../kit/controls.ts'
import type { Listening } from '../../kit/door.ts'
import { type Address, formatAddress } from '../../kit/io/address.ts'
import type { Kit } from '../../kit/kit.ts'
import type { LabelledFamily } from '../../kit/labelled-sensor.ts'
import { type Identity, maySee, type StatusEntry } from '../../kit/metrics.ts'
import type { Source } from '../../kit/source.ts'
import { ofProducer } from './catalogue.ts'
import type { UpstreamTable, upstreamSection } from './config.ts'
import { NodeLinks } from './node-links.ts'
import { type KeptUpstream, keptUpstream, openUpstream } from './open-upstream.ts'
import { Reception } from './reception.ts'
import { UpstreamReport } from './report.ts'
import { UpstreamSensor } from './sensor.ts'
import type { Upstream } from './upstream.ts'

export const upstream: Source<typeof upstreamSection> = {
  open(kit, tables) {
    const { nodes } = kit.peer.producers
    const links = nodes && new NodeLinks(kit, nodes)
    const upstreams = new Upstreams(kit, links?.statuses)
    upstreams.replace(tables)
    kit.controls.reach(upstreams)
    return {
      statuses: upstreams.statuses,
      begin: async () => links?.begin(),
      listen: () => upstreams.start(),
      reload: (tables) => upstreams.replace(tables),
      async close() {
        await links?.close()
        await upstreams.close()
      },
    }
  },
}

class Upstreams implements RemoteControls {
  /** One of each; it changes with them. */
  readonly statuses: StatusEntry[] = []
  readonly #kit: Kit
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
  constructor(kit: Kit, others: readonly StatusEntry[] = []) {
    this.#kit = kit
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
    const followed = Promise.all([...changed].map((sensor) => this.#kit.peer.producers.changed(sensor)))
    // What is bound there would count as unwanted before those who want it follow it.
    if (!this.#isStarted) return
    void followed.then(() => {
      for (const upstream of added) upstream.start()
    })
  }

  /** Rejects with ListenError. */
  async start(): Promise<void> {
    this.#isStarted = true
    for (const upstream of this.#upstreams.values()) upstream.start()
    for (const listening of await Promise.all(this.#receive())) {
      this.#kit.door.listener({ key: 'upstream.listen', use: 'upstreams', transport: 'tcp' }, listening)
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
  #receive(): readonly Promise<Listening>[] {
    const { clock, log, peer } = this.#kit
    const wanted = new Map<string, Address>()
    for (const { table } of this.#upstreams.values()) {
      if (table.listen !== undefined) wanted.set(formatAddress(table.listen), table.listen)
    }
    for (const [key, reception] of this.#receptions) {
      if (wanted.has(key)) continue
      this.#receptions.delete(key)
      void reception.close()
    }
    const fresh: Promise<Listening>[] = []
    const open = async (reception: Reception): Promise<Listening> => {
      const address = await reception.open()
      return { address, close: () => reception.close() }
    }
    for (const [key, address] of wanted) {
      const known = this.#receptions.get(key)
      if (known !== undefined) {
        // Its port may be free by now.
        if (!known.isOpen) fresh.push(open(known))
        continue
      }
      const find = (name: string): Upstream | undefined =>
        [...this.#upstreams.values()].find(
          ({ table }) => table.name === name && table.listen !== undefined && formatAddress(table.listen) === key,
        )
      const reception = new Reception({ clock, log, ...peer.producers.callers, address, find })
      this.#receptions.set(key, reception)
      fresh.push(open(reception))
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
    const { clock, log, peer } = this.#kit
    const family = this.#familyOfReports()
    const report = new UpstreamReport({ clock, log, notice: peer.notice, name, kind: 'upstream', tenant, family })
    const upstream = openUpstream(this.#kit, { table, report, ...this.#keptOf(table), sensor })
    this.#upstreams.set(key, upstream)
    return upstream
  }

  /** One for each name, also where a reload puts another table in its place: what was stored at the start is old by then. */
  #keptOf({ tenant, name }: UpstreamTable): KeptUpstream {
    const key = `${tenant}/${name}`
    const kept = this.#kept.get(key) ?? keptUpstream(this.#kit, key)
    this.#kept.set(key, kept)
    return kept
  }

  /** Made with the first upstream: a server without any has no such metrics. */
  #familyOfReports(): LabelledFamily {
    this.#reports ??= this.#kit.door.family({
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
    this.#kit.feed.add(sensor)
    return sensor
  }
}
