/** The names of counters as metrics, and what the catalogue says about them. */

import { BasicType } from '../../../protocol/monitor/constants.ts'
import { type Field, nameProblem } from '../../../protocol/monitor/value.ts'
import {
  CATEGORY_NAMES,
  CUSTOM,
  type MonoHeader,
  type MonoName,
  MonoType,
  MonoUnit,
  MonoVariance,
} from '../../../protocol/mono/constants.ts'
import type { MetricMetadata } from '../../metrics/catalogue.ts'

export const MONO_PREFIX = 'mono.'

const TYPES = {
  [MonoType.INT]: BasicType.INT32,
  [MonoType.LONG]: BasicType.INT64,
  // Always the wider one: what the size of a word is, a catalogue of many machines cannot say.
  [MonoType.WORD]: BasicType.INT64,
  [MonoType.DOUBLE]: BasicType.DOUBLE,
} as const
const UNITS: Readonly<Record<number, string>> = {
  [MonoUnit.BYTES]: 'B',
  [MonoUnit.TIME]: '100ns',
  [MonoUnit.EVENTS]: '1',
  [MonoUnit.PERCENTAGE]: 'percent',
}
const VARIANCES: Readonly<Record<number, string>> = {
  [MonoVariance.CONSTANT]: 'constant',
  [MonoVariance.MONOTONIC]: 'monotonic',
  [MonoVariance.VARIABLE]: 'variable',
}

/** `Mono GC`, `Major GC collections` -> `mono.gc.major_gc_collections`; undefined if that cannot be a name [MON 1]. */
export function metricName({ category, name }: MonoName): string | undefined {
  const family = category.replace(/^mono\s+/i, '')
  // Names that were not UTF-8 cannot be distinguished, nor asked for.
  if (family === '' || name === '' || `${category}${name}`.includes('\ufffd')) return undefined
  const metric = `${MONO_PREFIX}${family}.${name}`.toLowerCase().replaceAll(' ', '_')
  return nameProblem(metric) === undefined ? metric : undefined
}

/** The name by which a counter of a header is asked for. */
export function counterName({ category, name }: MonoHeader): MonoName {
  if (category !== CUSTOM) return { category: CATEGORY_NAMES[category] ?? `category ${category}`, name }
  const colon = name.indexOf(':')
  return colon > 0
    ? { category: name.slice(0, colon), name: name.slice(colon + 1) }
    : { category: CATEGORY_NAMES[CUSTOM], name }
}

/** Whether a header can be of the counter that was asked for: there are agents that leave a category of its own away. */
export function isHeaderOf({ name }: MonoHeader, called: MonoName): boolean {
  const wanted = called.name.toLowerCase()
  return [wanted, `${called.category.toLowerCase()}:${wanted}`].includes(name.toLowerCase())
}

export function basicType({ type }: MonoHeader): (typeof TYPES)[MonoType] {
  return TYPES[type]
}

/** Of a counter that is only offered nothing is known but its name. */
export function metadataOf({ category, name }: MonoName, header: MonoHeader | undefined): MetricMetadata {
  return {
    type: header && basicType(header),
    unit: header && UNITS[header.unit],
    description: `${category}: ${name}`,
  }
}

/** For the catalogue: how an agent is asked for it, and how its values go on. */
export function counterDetails({ category, name }: MonoName, header: MonoHeader | undefined): Field[] {
  const variance = header && VARIANCES[header.variance]
  return [
    { name: 'category', type: BasicType.STRING, value: category },
    { name: 'counter', type: BasicType.STRING, value: name },
    ...(variance === undefined ? [] : [{ name: 'variance', type: BasicType.STRING, value: variance }]),
  ]
}
