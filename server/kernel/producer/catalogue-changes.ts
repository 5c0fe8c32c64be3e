/** `producer.catalogue`: says that the catalogue of somebody has changed, at most once a second [MON 9.3]. */
import { ADMIN_ROLE, type Identity, type Owner } from '../../../auth/permissions.ts'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import type { Clock } from '../core/clock.ts'
import type { EventSensor, Measurement, Metric, Sensor } from '../metrics/metric.ts'

const metric: Metric = {
  name: 'producer.catalogue',
  kind: 'event',
  type: BasicType.REC,
  unit: '',
  description: 'The metrics that `producer.metrics` shows you are other ones now.',
  parameters: [],
}

interface Listener {
  readonly identity: Identity
  readonly listen: (event: Measurement) => void
  /** The changes that it knows of. */
  known: number
}

export class CatalogueChanges implements EventSensor {
  readonly polled = 'event'
  readonly family = 'producer.'
  readonly owner: Owner = 'producer'
  readonly #sensors: () => readonly Sensor[]
  readonly #clock: Pick<Clock, 'microseconds'>
  readonly #listeners = new Set<Listener>()

  constructor(sensors: () => readonly Sensor[], clock: Pick<Clock, 'microseconds'>) {
    this.#sensors = sensors
    this.#clock = clock
  }

  metrics(): Iterable<Metric> {
    return [metric]
  }

  metric(name: string): Metric | undefined {
    return name === metric.name ? metric : undefined
  }

  subscribe(_metric: Metric, identity: Identity, listen: (event: Measurement) => void): () => void {
    const listener = { identity, listen, known: changesFor(identity, this.#changes()) }
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** To be called once a second. */
  sweep(): void {
    if (this.#listeners.size === 0) return
    const changes = this.#changes()
    const time = this.#clock.microseconds()
    for (const listener of this.#listeners) {
      const now = changesFor(listener.identity, changes)
      if (now === listener.known) continue
      listener.known = now
      const field = { name: 'changes', type: BasicType.UINT64, value: BigInt(now) } as const
      listener.listen({ value: { type: BasicType.REC, value: [field] }, time })
    }
  }

  /** How often the metrics of each tenant have changed; those that everybody sees have the empty name. A new sensor is a change. */
  #changes(): ReadonlyMap<string, number> {
    const changes = new Map<string, number>()
    for (const { owner, metricsChanges = 0 } of this.#sensors()) {
      const tenant = owner === 'producer' ? '' : owner.tenant
      changes.set(tenant, (changes.get(tenant) ?? 0) + 1 + metricsChanges)
    }
    return changes
  }
}

function changesFor({ tenant, role }: Identity, changes: ReadonlyMap<string, number>): number {
  if (role !== ADMIN_ROLE) return (changes.get('') ?? 0) + (changes.get(tenant) ?? 0)
  let sum = 0
  for (const one of changes.values()) sum += one
  return sum
}
