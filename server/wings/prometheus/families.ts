/**
 * What version 1.0 of remote write says of metrics: in requests of its own, not together with their values, and of families, not
 * of series. It is kept for each tenant, as long as there is the tenant.
 */
import type { WriteRequest, WrittenMetadata } from '../../../protocol/prometheus/remote-write.ts'
import { boundedMetadata, type MetricMetadata } from '../../kit/metrics.ts'

/** What is kept for a tenant, unless its quota of series is lower; further families are not described. */
const MAX_FAMILIES = 20_000
const MAX_BYTES = 8 << 20
/** What a family costs besides its texts, about. */
const FAMILY_BYTES = 200
/** What the series of a histogram or summary have after the name of their family. */
const PARTS = /_(?:bucket|sum|count|total|created|info)$/

/** Types of MetricMetadata, which both versions number in the same way. */
const [COUNTER, GAUGE, HISTOGRAM, SUMMARY] = [1, 2, 3, 5]

/** Which families somebody may describe, and how many there may be of his tenant. */
export interface Describing {
  may(family: string): boolean
  readonly most: number
}

interface Family extends Pick<MetricMetadata, 'unit' | 'description'> {
  readonly type: number
}

interface Known {
  readonly families: Map<string, Family>
  bytes: number
}

export class FamilyMetadata {
  readonly #tenants = new Map<string, Known>()

  /** Keeps what may be kept: bounded, and in copies, since the texts of a request hold its memory. */
  learn(tenant: string, families: WriteRequest['families'], { may, most }: Describing): void {
    if (families.size === 0) return
    const known = this.#tenants.get(tenant) ?? { families: new Map(), bytes: 0 }
    for (const [name, { type, help, unit }] of families) {
      const before = known.families.get(name)
      if (before === undefined && known.families.size >= Math.min(MAX_FAMILIES, most)) continue
      if (!may(name)) continue
      const kept: Family = { type, ...boundedMetadata({ unit: unit || undefined, description: help || undefined }) }
      const bytes = known.bytes + costOf(name, kept) - (before === undefined ? 0 : costOf(name, before))
      if (bytes > MAX_BYTES) continue
      known.bytes = bytes
      known.families.set(Buffer.from(name).toString(), kept)
    }
    if (known.families.size > 0) this.#tenants.set(tenant, known)
  }

  /** What is known of a series by its family. */
  of(tenant: string, name: string): Omit<MetricMetadata, 'type'> | undefined {
    const known = this.#tenants.get(tenant)?.families
    const family = known?.get(name) ?? known?.get(name.replace(PARTS, ''))
    return family && { unit: family.unit, description: family.description, isCounter: isCounter(name, family.type) }
  }

  /** The tenant has ended. */
  forget(tenant: string): void {
    this.#tenants.delete(tenant)
  }
}

function costOf(name: string, { unit = '', description = '' }: Family): number {
  return FAMILY_BYTES + 2 * (name.length + unit.length + description.length)
}

/** What a series says of itself, by version 2.0. */
export function metadataOf(name: string, { type, help, unit }: WrittenMetadata): Omit<MetricMetadata, 'type'> {
  return { unit: unit || undefined, description: help || undefined, isCounter: isCounter(name, type) }
}

/** Whether a series of a family only grows: those of a histogram or summary do, but for the quantiles. */
function isCounter(name: string, type: number): boolean | undefined {
  if (type === COUNTER) return true
  if (type === GAUGE) return false
  if (type === HISTOGRAM || type === SUMMARY) return /_(?:bucket|sum|count)$/.test(name)
  return undefined
}
