/**
 * The sensors of a source, one per tenant, each with its own hosts, limits and counters, so that nothing one tenant sends
 * can be seen, renamed or crowded out by another. The address of a sender decides which tenant it sends for.
 */
import type { Quotas } from '../accounts/quotas.ts'
import type { Network } from '../core/address.ts'
import { AllowedSenders } from './allowed.ts'

/** Limits how many values a tenant's feeds may bring in. */
export interface Meter {
  /** Counts one value; false if it has to stay out. */
  take(): boolean
  /** Milliseconds until more may come in; 0: now. For feeds that can wait. */
  readonly waitMs: number
}

export const UNMETERED: Meter = { take: () => true, waitMs: 0 }

/** What a sensor is given beside its section. */
export interface TenantFeed {
  readonly meter?: Meter
  /** The tenant, unless it is that of the section itself. */
  readonly named?: string
}

/** The name of a sensor in `producer.sensors`: its kind alone for the tenant of the section itself. */
export function feedName(kind: string, tenant: string | undefined): string {
  return tenant === undefined ? kind : `${kind}/${tenant}`
}

/** What the sections of these sources have in common. */
interface FeedSection {
  readonly tenant: string
  readonly allow: readonly Network[]
  readonly feeds: readonly { readonly tenant: string; readonly allow: readonly Network[] }[]
}

/** Makes the sensor of the section's own tenant, and one for each tenant that `feed` names. */
export function sensorsByTenant<Section extends FeedSection, Sensor>(
  section: Section,
  quotas: Quotas,
  make: (section: Section, options: TenantFeed) => Sensor,
): SensorsByTenant<Sensor> {
  const meter = (tenant: string): Meter => quotas.of(tenant).values
  return new SensorsByTenant({
    own: make(section, { meter: meter(section.tenant) }),
    others: section.feeds.map(({ tenant, allow }) => ({
      allow,
      sensor: make({ ...section, tenant, allow }, { meter: meter(tenant), named: tenant }),
    })),
  })
}

export interface SensorsByTenantOptions<S> {
  /** For all senders that no other tenant has: its own `allow` decides. */
  readonly own: S
  readonly others: readonly { readonly allow: readonly Network[]; readonly sensor: S }[]
}

export class SensorsByTenant<S> {
  /** The sensor of the section's own tenant. */
  readonly own: S
  readonly #others: readonly { readonly senders: AllowedSenders; readonly sensor: S }[]

  constructor({ own, others }: SensorsByTenantOptions<S>) {
    this.own = own
    this.#others = others.map(({ allow, sensor }) => ({ senders: new AllowedSenders(allow), sensor }))
  }

  /** The sensor for a sender; `address` as Node gives it. */
  of(address: string): S {
    for (const { senders, sensor } of this.#others) if (senders.of(address).allowed) return sensor
    return this.own
  }

  all(): S[] {
    return [this.own, ...this.#others.map(({ sensor }) => sensor)]
  }
}
