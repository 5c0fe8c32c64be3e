/**
 * A metric instance: what COLLECT makes [MON 6.5]. It measures nothing itself; the hub binds it to sinks. It also makes the
 * prefixes of its VALUE frames: everything in a frame that is the same for all values of one series under one metric id.
 */
import type { Identity } from '../../../auth/permissions.ts'
import { XdrWriter } from '../../../protocol/bytes/writer.ts'
import { BasicType, labelNames } from '../../../protocol/monitor/constants.ts'
import { type Field, writeTyped } from '../../../protocol/monitor/value.ts'
import { AllLabelsBut, otherLabels } from './labels.ts'
import type { Labels, OpenLabels, Series } from './metric.ts'
import type { Selection } from './selection.ts'

export class MetricInstance {
  readonly id: number
  readonly selection: Selection
  /** True once it is written to the store, which happens when it is bound on a durable channel. */
  stored = false
  /** The instances of its connection that were never bound, while this is one of them. */
  unbound: Set<MetricInstance> | undefined
  /** Ids of the channels it is bound on. */
  readonly boundOn = new Set<number>()
  readonly #framePrefixes = new WeakMap<Series, Uint8Array>()

  constructor(id: number, selection: Selection) {
    this.id = id
    this.selection = selection
  }

  get owner(): Identity {
    return this.selection.identity
  }

  /** The frame prefix of a series. It is made once, and its identity also tells series apart on keep-latest channels. */
  framePrefixOf(series: Series, open: OpenLabels): Uint8Array {
    let prefix = this.#framePrefixes.get(series)
    if (prefix === undefined) {
      prefix = framePrefix(this.id, this.selection.shownLabels(series.labels), open)
      this.#framePrefixes.set(series, prefix)
    }
    return prefix
  }

  framePrefix(labels: Labels, open: OpenLabels): Uint8Array {
    return framePrefix(this.id, this.selection.shownLabels(labels), open)
  }
}

/**
 * The start of a VALUE frame. Length, transaction id and time are filled in for each value; basic type and value follow.
 * `open` holds the labels that are sent with each value; if it is empty, the value stands alone.
 */
export function framePrefix(metricId: number, labels: Labels, open: OpenLabels): Uint8Array {
  // Labels of usual length have room: to grow takes as long as to write them.
  const writer = new XdrWriter(256)
  writer.uint32(0).uint32(metricId).uint53(0).uint53(0)
  if (open.size === 0) return writer.copy()
  const fields = openFields(labels, open)
  writer.uint32(BasicType.REC).uint32(fields.length + 1)
  for (const field of fields) {
    writer.string(field.name)
    writeTyped(writer, field)
  }
  return writer.string('value').copy()
}

/** The labels of a pattern's REC, in their order [MON 9 Patterns]; `value` follows them. No label with open names is lost. */
export function openFields(labels: Labels, open: OpenLabels): Field[] {
  const fields: Field[] = []
  for (const name of labelNames) {
    const value = labels[name]
    if (!open.has(name) || value === undefined) continue
    fields.push({ name, type: BasicType.STRING, value })
  }
  if (!(open instanceof AllLabelsBut)) return fields
  for (const name of otherLabels(labels)) {
    const value = labels[name]
    if (open.has(name) && value !== undefined) fields.push({ name, type: BasicType.STRING, value })
  }
  return fields
}
