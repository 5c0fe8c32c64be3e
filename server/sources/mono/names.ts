/** The names of counters as metrics, and their metadata in the catalogue. */

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
  // Always the wider type, because the size of a word differs between machines in one catalogue.
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

/** `Mono GC`, `Major GC collections` -> `mono.gc.major_gc_collections`; undefined if that is not a valid name [MON 1]. */
export function metricName({ category, name }: MonoName): string | undefined {
  const family = category.replace(/^mono\s+/i, '')
  // Names that were not UTF-8 can neither be distinguished nor requested.
  if (family === '' || name === '' || `${category}${name}`.includes('\ufffd')) return undefined
  const metric = `${MONO_PREFIX}${family}.${name}`.toLowerCase().replaceAll(' ', '_')
  return nameProblem(metric) === undefined ? metric : undefined
}

/** The name by which the counter of a header is requested. */
export function counterName({ category, name }: MonoHeader): MonoName {
  if (category !== CUSTOM) return { category: CATEGORY_NAMES[category] ?? `category ${category}`, name }
  const colon = name.indexOf(':')
  return colon > 0
    ? { category: name.slice(0, colon), name: name.slice(colon + 1) }
    : { category: CATEGORY_NAMES[CUSTOM], name }
}

/** Whether a header can be that of the requested counter: some agents leave out a custom category. */
export function isHeaderOf({ name }: MonoHeader, counter: MonoName): boolean {
  const wanted = counter.name.toLowerCase()
  return [wanted, `${counter.category.toLowerCase()}:${wanted}`].includes(name.toLowerCase())
}

export function basicType({ type }: MonoHeader): (typeof TYPES)[MonoType] {
  return TYPES[type]
}

/** The metadata of a counter; before its header is known, it consists of its name. */
export function metadataOf({ category, name }: MonoName, header: MonoHeader | undefined): MetricMetadata {
  return {
    type: header && basicType(header),
    unit: header && UNITS[header.unit],
    description: `${category}: ${name}`,
  }
}

/** The details in the catalogue: the name by which the counter is requested, and how its values vary. */
export function counterDetails({ category, name }: MonoName, header: MonoHeader | undefined): Field[] {
  const variance = header && VARIANCES[header.variance]
  return [
    { name: 'category', type: BasicType.STRING, value: category },
    { name: 'counter', type: BasicType.STRING, value: name },
    ...(variance === undefined ? [] : [{ name: 'variance', type: BasicType.STRING, value: variance }]),
  ]
}
