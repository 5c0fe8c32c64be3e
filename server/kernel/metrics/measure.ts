/**
 * One measurement of a selection, as QUERY and GET of a continuous metric answer it [MON 8 Answers]. A pattern is answered
 * with an ARRAY of RECs. Records that do not fit one frame are left out, and the last REC then says {more = true}.
 */
import { MAX_FRAME_BYTES } from '../../../protocol/bytes/framer.ts'
import { XdrReader } from '../../../protocol/bytes/reader.ts'
import { XdrWriter } from '../../../protocol/bytes/writer.ts'
import { BasicType, VALUE_HEADER_BYTES } from '../../../protocol/monitor/constants.ts'
import {
  type ArrayValue,
  type Field,
  readBareValue,
  type Value,
  VOID,
  writeBareValue,
} from '../../../protocol/monitor/value.ts'
import { finish, isSteps, type Steps } from '../core/fair-work.ts'
import { isNewer } from './current.ts'
import type { Fences } from './fences.ts'
import type { Hub } from './hub.ts'
import { openFields } from './instance.ts'
import type { PolledTarget } from './local-targets.ts'
import type { Labels, Measurement, OpenLabels } from './metric.ts'
import type { RemoteMeasurement } from './remote-selection.ts'
import type { Selection } from './selection.ts'

/** The hub says which sensors are fenced, and measures: what fails gives VOID. */
export type MeasuringHub = Pick<Hub, 'fences' | 'faults'>
type Now = () => number
/** Says which sensors are fenced; those give no values. */
type Fenced = Pick<Fences, 'has'>

/** A measurement, or a promise of one that is there when all sensors have answered; a list is then made of what they said. */
export type Measured = Measurement | Promise<Measurement | Steps<Measurement>>

/** Measures a selection. `now` gives the time of values that have none of their own, in microseconds: most have one. */
export function* measure(selection: Selection, now: Now, hub: MeasuringHub): Steps<Measured> {
  const { fences, faults } = hub
  const targets = selection.isPushed ? [] : yield* selection.polled()
  const asked = selection.remote.ask()
  if (selection.carriesLabels()) return yield* measurePattern(selection, targets, asked, now, hub)
  for (const target of targets) {
    if (fences.has(target.sensor)) return { value: VOID, time: now() }
    const measured = faults.measure(target, selection.identity)
    return isSteps<Measurement>(measured) ? yield* measured : measured
  }
  if (selection.remote.isReached)
    return Promise.all(asked).then((answers) => asItCame(selection, answers.flat(), now, fences))
  const refreshing = refresh(selection, fences)
  const read = () => measureSeries(selection, now, fences)
  if (asked.length === 0 && refreshing.length === 0) return yield* read()
  return Promise.all([Promise.all(asked), ...refreshing]).then(([answers]) =>
    newest(finish(read()), answers.flat(), now()),
  )
}

/** Of a series that several nodes have, the newest value. */
function newest(here: Measurement, answers: readonly RemoteMeasurement[], now: number): Measurement {
  let newest = here
  for (const { measured } of answers) {
    if (isVoid(newest) || isNewer(measured.time, newest.time, now)) newest = measured
  }
  return newest
}

const isVoid = ({ value }: Measurement): boolean => value.type === BasicType.VOID

/** Of a name that no catalogue has yet, only the answer says whether its values have labels, and so whether it is a list. */
function asItCame(selection: Selection, answers: readonly RemoteMeasurement[], now: Now, fences: Fenced): Measurement {
  if (answers.some(({ isBare }) => !isBare)) return finish(listOf(selection, [], [], answers, now, fences))
  return answers[0]?.measured ?? { value: VOID, time: now() }
}

/** Lets sensors request what they do not receive otherwise. */
export function refresh(selection: Selection, fences: Fenced): readonly Promise<unknown>[] {
  const refreshing: Promise<unknown>[] = []
  for (const sensor of selection.candidates.ofKind.listening) {
    if (sensor.refresh === undefined || fences.has(sensor)) continue
    const asked = selection.refresh(sensor)
    if (asked !== undefined) refreshing.push(asked)
  }
  return refreshing
}

function* measureSeries(selection: Selection, now: Now, fences: Fenced): Steps<Measurement> {
  for (const sensor of selection.listening()) {
    if (fences.has(sensor)) continue
    for (const series of sensor.series(selection.exactName)) {
      if (selection.openFor(sensor, series) === undefined) {
        yield
        continue
      }
      const last = sensor.last(series)
      if (last !== undefined) return last
    }
  }
  return { value: VOID, time: now() }
}

interface LabelledMeasurement extends Pick<RemoteMeasurement, 'labels' | 'open'> {
  readonly measured: Measurement | Promise<Measurement>
}

function* measurePattern(
  selection: Selection,
  targets: readonly PolledTarget[],
  asked: readonly Promise<readonly RemoteMeasurement[]>[],
  now: Now,
  { fences, faults }: MeasuringHub,
): Steps<Measured> {
  const readings: LabelledMeasurement[] = []
  for (const target of targets) {
    const { sensor, labels, open } = target
    if (fences.has(sensor)) continue
    const measured = faults.measure(target, selection.identity)
    readings.push({ labels, open, measured: isSteps<Measurement>(measured) ? yield* measured : measured })
    yield
  }
  const answered = readings.map(({ measured }) => measured)
  const list = (all: readonly Measurement[], remote: readonly RemoteMeasurement[] = []) =>
    listOf(selection, readings, all, remote, now, fences)
  const refreshing = refresh(selection, fences)
  if (asked.length > 0) {
    const waiting = Promise.all([Promise.all(asked), Promise.all(answered), ...refreshing])
    return waiting.then(([remote, all]) => list(all, remote.flat()))
  }
  if (refreshing.length > 0) return Promise.all(refreshing).then(async () => list(await Promise.all(answered)))
  if (answered.some((measured) => measured instanceof Promise)) return Promise.all(answered).then(list)
  return yield* list(answered as Measurement[])
}

function* listOf(
  selection: Selection,
  readings: readonly LabelledMeasurement[],
  answered: readonly Measurement[],
  remote: readonly RemoteMeasurement[],
  now: Now,
  fences: Fenced,
): Steps<Measurement> {
  const list = new PatternRecords()
  for (const [index, { labels, open }] of readings.entries()) {
    if (!list.addMeasured(selection.shownLabels(labels), open, answered[index] as Measurement)) break
    yield
  }
  const ofNodes = new Map<string, RemoteMeasurement>()
  for (const one of remote) {
    if (one.isOwn) {
      const key = keyOf(selection.shownLabels(one.labels), one.open)
      const other = ofNodes.get(key)
      if (other === undefined || !isNewer(other.measured.time, one.measured.time, now())) ofNodes.set(key, one)
    } else if (!list.addMeasured(one.labels, one.open, one.measured)) break
    yield
  }
  for (const sensor of selection.listening()) {
    if (fences.has(sensor) || list.isFull) continue
    for (const series of selection.series(sensor)) {
      yield
      const open = series && selection.openFor(sensor, series)
      if (series === undefined || open === undefined) continue
      const last = sensor.last(series)
      if (last === undefined) continue
      const labels = selection.shownLabels(series.labels)
      if (ofNodes.size > 0) {
        const key = keyOf(labels, open)
        const other = ofNodes.get(key)
        if (other !== undefined && isNewer(other.measured.time, last.time, now())) continue
        ofNodes.delete(key)
      }
      if (!list.addMeasured(labels, open, last)) break
    }
  }
  for (const { labels, open, measured } of ofNodes.values()) {
    if (!list.addMeasured(selection.shownLabels(labels), open, measured)) break
    yield
  }
  return { value: list.value(), time: list.time === 0 ? now() : list.time }
}

/** The same for the same labels as they are sent: a series that several nodes have is shown once, with its newest value. */
function keyOf(labels: Labels, open: OpenLabels): string {
  return JSON.stringify(openFields(labels, open))
}

/** One REC of the answer to a pattern: the time of each value stands before it (extension `element-time`). */
export function patternRecord(labels: Labels, open: OpenLabels, { value, time }: Measurement): Field[] {
  const microseconds = { name: 'time', type: BasicType.UINT64, value: BigInt(Math.floor(time)) } as const
  return [...openFields(labels, open), microseconds, { name: 'value', ...value }]
}

/** The last REC of a list that is not complete. */
const MORE: readonly Field[] = [{ name: 'more', type: BasicType.BOOLEAN, value: true }]
const MORE_BYTES = 20
/** The element type of the ARRAY; its count follows. */
const ELEMENT_BYTES = 4
const MAX_LIST_BYTES = MAX_FRAME_BYTES - VALUE_HEADER_BYTES - MORE_BYTES

/** An ARRAY of RECs that fits one frame. Each REC is encoded once, as it is added. */
export class RecordList {
  readonly #writer = new XdrWriter().uint32(BasicType.REC).uint32(0)
  readonly #maxBytes: number
  #count = 0
  #isFull = false

  /** `restBytes`: the room for what says how to go on, if the list is not complete. */
  constructor(restBytes = 0) {
    this.#maxBytes = MAX_LIST_BYTES - restBytes
  }

  get isFull(): boolean {
    return this.#isFull
  }

  /** Adds a record; returns false if it does not fit, and then `rest` says how to go on. */
  add(record: readonly Field[], rest: readonly Field[] = []): boolean {
    if (this.#isFull) return false
    const { length } = this.#writer
    this.#write(record)
    if (this.#writer.length > this.#maxBytes) {
      this.#writer.length = length
      this.#count--
      this.more(rest)
      return false
    }
    return true
  }

  /** Marks the list as incomplete; `rest` says how to go on. */
  more(rest: readonly Field[] = []): void {
    this.#isFull = true
    this.#write([...MORE, ...rest])
  }

  #write(record: readonly Field[]): void {
    writeBareValue(this.#writer, { type: BasicType.REC, value: record })
    this.#count++
  }

  /** The list; nothing may be added after this. */
  value(): Value {
    const { length } = this.#writer
    this.#writer.length = ELEMENT_BYTES
    this.#writer.uint32(this.#count).length = length
    return { type: BasicType.ARRAY, value: new EncodedArray(this.#writer.bytes()) }
  }
}

/** The answer to a pattern. */
class PatternRecords extends RecordList {
  /** The latest time of the values. */
  time = 0

  addMeasured(labels: Labels, open: OpenLabels, measured: Measurement): boolean {
    if (!this.add(patternRecord(labels, open, measured))) return false
    this.time = Math.max(this.time, measured.time)
    return true
  }
}

/** An ARRAY of RECs in its XDR form. Its items are decoded only for those that look at them. */
class EncodedArray implements ArrayValue {
  readonly element = BasicType.REC
  readonly encoded: Uint8Array

  constructor(encoded: Uint8Array) {
    this.encoded = encoded
  }

  get items(): ArrayValue['items'] {
    const { value } = readBareValue(new XdrReader(this.encoded), BasicType.ARRAY)
    return (value as ArrayValue).items
  }
}
