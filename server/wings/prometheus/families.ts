/**
 * What version 1.0 of remote write says of metrics: in requests of its own, not together with their values, and of families, not
 * of series. It is kept for each tenant, as long as there is the tenant.
 */
import { BasicType } from '../../../protocol/monitor/constants.ts'
import { distributionNumbered } from '../../../protocol/prometheus/distribution.ts'
import { split, type TextColumn, textsIn } from '../../kit/columns.ts'
import { boundedMetadata, type MetricMetadata } from '../../kit/metrics.ts'
import type { Steps } from '../../kit/running.ts'
import { isCounter, PARTS } from './metric-types.ts'

/** What is kept for a tenant, unless its quota of series is lower; further families are not described. */
const MAX_FAMILIES = 20_000
const MAX_BYTES = 8 << 20
const FAMILIES_PER_STEP = 64
/** What a family costs besides its texts, about. */
const FAMILY_BYTES = 200

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

export class DescribedFamilies {
  readonly #tenants = new Map<string, Known>()

  /** What is known of a series by its family. */
  of(tenant: string, name: string): MetricMetadata | undefined {
    const known = this.#tenants.get(tenant)?.families
    const family = known?.get(name) ?? known?.get(name.replace(PARTS, ''))
    if (family === undefined) return undefined
    const { type, unit, description } = family
    return {
      type: BasicType.DOUBLE,
      unit,
      description,
      isCounter: isCounter(name, type),
      distribution: distributionNumbered(type),
    }
  }

  /** Keeps what may be kept: bounded, and in copies, since the texts of a request hold its memory. */
  *learn(tenant: string, families: TextColumn, { may, most }: Describing): Steps<void> {
    const textAt = textsIn(families)
    for (let place = 0; place < families.ends.length; place++) {
      if ((place + 1) % FAMILIES_PER_STEP === 0) yield
      const [name = '', type, unit, help] = split(textAt(place))
      // Others may have learned, or the tenant may have ended, since the last step.
      const known = this.#tenants.get(tenant) ?? { families: new Map(), bytes: 0 }
      const before = known.families.get(name)
      if (before === undefined && known.families.size >= Math.min(MAX_FAMILIES, most)) continue
      if (!may(name)) continue
      const kept: Family = {
        type: Number(type),
        ...boundedMetadata({ unit: unit || undefined, description: help || undefined }),
      }
      const bytes = known.bytes + costOf(name, kept) - (before === undefined ? 0 : costOf(name, before))
      if (bytes > MAX_BYTES) continue
      known.bytes = bytes
      known.families.set(Buffer.from(name).toString(), kept)
      this.#tenants.set(tenant, known)
    }
  }

  /** The tenant has ended. */
  forget(tenant: string): void {
    this.#tenants.delete(tenant)
  }
}

function costOf(name: string, { unit = '', description = '' }: Family): number {
  return FAMILY_BYTES + 2 * (name.length + unit.length + description.length)
}
