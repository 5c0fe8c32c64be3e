/**
 * A metric instance: what COLLECT makes [MON 6.5]. It measures nothing itself; the hub binds it to sinks. It also makes the
 * prefixes of its VALUE frames: everything in a frame that is the same for all values of one series under one metric id.
 */
import type { Identity } from '../../../auth/permissions.ts'
import { BytePool } from '../../../protocol/bytes/byte-pool.ts'
import { XdrWriter } from '../../../protocol/bytes/writer.ts'
import { BasicType, labelNames } from '../../../protocol/monitor/constants.ts'
import { type Field, writeTyped } from '../../../protocol/monitor/value.ts'
import { AllLabelsBut, otherLabels } from './labels.ts'
import type { Labels, OpenLabels, Series } from './metric.ts'
import type { Selection } from './selection.ts'

/** A prefix without labels. */
const BARE_BYTES = 24
/** Some twenty prefixes stand together: as long as one of their series lives, all of them are kept. */
const POOL_BYTES = 4 << 10

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
  /** Where prefixes with labels are written, and kept: a pattern has one for each of its series, which may be very many. */
  #writing: { readonly writer: XdrWriter; readonly pool: BytePool } | undefined

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
      prefix = this.#framePrefix(series.labels, open)
      this.#framePrefixes.set(series, prefix)
    }
    return prefix
  }

  #framePrefix(labels: Labels, open: OpenLabels): Uint8Array {
    if (open.size === 0) return this.framePrefix(labels, open)
    this.#writing ??= { writer: new XdrWriter(), pool: new BytePool(POOL_BYTES) }
    const { writer, pool } = this.#writing
    return pool.keepBytes(writeFramePrefix(writer.clear(), this.id, this.selection.shownLabels(labels), open).bytes())
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
  return writeFramePrefix(new XdrWriter(open.size === 0 ? BARE_BYTES : 256), metricId, labels, open).copy()
}

function writeFramePrefix(writer: XdrWriter, metricId: number, labels: Labels, open: OpenLabels): XdrWriter {
  writer.uint32(0).uint32(metricId).uint53(0).uint53(0)
  if (open.size === 0) return writer
  const fields = openFields(labels, open)
  writer.uint32(BasicType.REC).uint32(fields.length + 1)
  for (const field of fields) {
    writer.string(field.name)
    writeTyped(writer, field)
  }
  return writer.string('value')
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
