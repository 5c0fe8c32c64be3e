/**
 * One measurement of a selection, as QUERY and GET of a continuous metric answer it [MON 8 Answers]. A pattern is answered
 * with an ARRAY of RECs. Records that do not fit one frame are left out, and the last REC then says {more = true}.
 */
import { MAX_FRAME_BYTES } from '../../protocol/bytes/framer.ts'
import { XdrWriter } from '../../protocol/bytes/writer.ts'
import { BasicType, VALUE_HEADER_BYTES } from '../../protocol/monitor/constants.ts'
import { type Field, type Value, VOID, writeTyped } from '../../protocol/monitor/value.ts'
import type { Fences } from './fences.ts'
import type { Hub } from './hub.ts'
import { openFields } from './instance.ts'
import type { LabelName, Labels, Measurement } from './metric.ts'
import type { Selection } from './selection.ts'

/** Bytes reserved for the ARRAY's element type and count, and for the last REC. */
const RESERVED_BYTES = 8 + 20
/** Elements of an ARRAY have no type of their own. */
const TYPE_BYTES = 4

/**
 * Measures a selection. `now`, in microseconds, is the time of values that have none of their own. Returns a promise if a
 * sensor does not answer at once.
 */
export function measure(selection: Selection, now: number, hub: MeasuringHub): Measurement | Promise<Measurement> {
  return selection.isPattern ? measurePattern(selection, now, hub) : measureOne(selection, now, hub)
}

/** The hub says which sensors are fenced, and measures: what fails gives VOID. */
export type MeasuringHub = Pick<Hub, 'fences' | 'faults'>
/** Says which sensors are fenced; those give no values. */
type Fenced = Pick<Fences, 'has'>

function measureOne(
  selection: Selection,
  now: number,
  { fences, faults }: MeasuringHub,
): Measurement | Promise<Measurement> {
  for (const target of selection.polled()) {
    return fences.has(target.sensor) ? { value: VOID, time: now } : faults.measure(target, selection.identity)
  }
  for (const sensor of selection.listening()) {
    if (fences.has(sensor)) continue
    for (const series of sensor.series(selection.exactName)) {
      if (selection.openFor(sensor, series) === undefined) continue
      const last = sensor.last(series)
      if (last !== undefined) return last
    }
  }
  return { value: VOID, time: now }
}

function measurePattern(
  selection: Selection,
  now: number,
  { fences, faults }: MeasuringHub,
): Measurement | Promise<Measurement> {
  const targets = selection.polled().filter(({ sensor }) => !fences.has(sensor))
  const readings = targets.map((target) => {
    return { labels: target.labels, open: target.open, measured: faults.measure(target, selection.identity) }
  })
  const waited = readings.map(({ measured }) => measured)
  if (waited.every((measured) => !(measured instanceof Promise))) {
    return records(selection, readings as LabelledMeasurement[], now, fences)
  }
  return Promise.all(waited).then((all) => {
    return records(
      selection,
      readings.map((reading, index) => ({ ...reading, measured: all[index] as Measurement })),
      now,
      fences,
    )
  })
}

interface LabelledMeasurement {
  readonly labels: Labels
  readonly open: ReadonlySet<LabelName>
  readonly measured: Measurement
}

function records(
  selection: Selection,
  readings: readonly LabelledMeasurement[],
  now: number,
  fences: Fenced,
): Measurement {
  const list = new RecordList()
  for (const { labels, open, measured } of readings) {
    if (!list.add(patternRecord(labels, open, measured.value), measured.time)) break
  }
  for (const sensor of selection.listening()) {
    if (fences.has(sensor)) continue
    for (const series of sensor.series(selection.exactName)) {
      const open = selection.openFor(sensor, series)
      const last = open === undefined ? undefined : sensor.last(series)
      if (open === undefined || last === undefined) continue
      if (!list.add(patternRecord(series.labels, open, last.value), last.time)) break
    }
  }
  return { value: list.value(), time: list.time === 0 ? now : list.time }
}

/** One REC of the answer to a pattern. */
export function patternRecord(labels: Labels, open: ReadonlySet<LabelName>, value: Value): Field[] {
  return [...openFields(labels, open), { name: 'value', ...value }]
}

/** An ARRAY of RECs that fits one frame. */
export class RecordList {
  readonly #items: (readonly Field[])[] = []
  readonly #writer = new XdrWriter()
  #bytes = VALUE_HEADER_BYTES + RESERVED_BYTES
  #full = false
  /** The latest time of the records. */
  time = 0

  /** Adds a record; returns false if it does not fit. */
  add(record: readonly Field[], time = 0): boolean {
    if (this.#full) return false
    writeTyped(this.#writer.clear(), { type: BasicType.REC, value: record })
    const bytes = this.#writer.length - TYPE_BYTES
    if (this.#bytes + bytes > MAX_FRAME_BYTES) {
      this.#full = true
      this.more()
      return false
    }
    this.#bytes += bytes
    this.#items.push(record)
    this.time = Math.max(this.time, time)
    return true
  }

  /** Marks the list as incomplete. */
  more(): void {
    this.#full = true
    this.#items.push([{ name: 'more', type: BasicType.BOOLEAN, value: true }])
  }

  value(): Value {
    return { type: BasicType.ARRAY, value: { element: BasicType.REC, items: this.#items } }
  }
}
