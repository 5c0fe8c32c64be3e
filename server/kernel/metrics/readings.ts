/**
 * All that a selection has now, one value after another, for answers that are no list of the protocol: nothing bounds their
 * number. It selects and judges as an answer to QUERY does (measure.ts).
 */
import { BasicType } from '../../../protocol/monitor/constants.ts'
import type { ArrayValue, Field } from '../../../protocol/monitor/value.ts'
import type { Clock } from '../core/clock.ts'
import { isSteps, type Party, type Steps } from '../core/fair-work.ts'
import { isNewer } from './current.ts'
import type { PolledTarget } from './local-targets.ts'
import { type MeasuringHub, refresh } from './measure.ts'
import type { Labels, Measurement, Metric } from './metric.ts'
import type { NodeReading } from './remote-selection.ts'
import type { Selection } from './selection.ts'

export interface Reading {
  readonly metric: Metric
  readonly labels: Labels
  /** Undefined if it has no value, or none that is fresh. */
  readonly measured: Measurement | undefined
  /** When its host was heard of last, monotonic milliseconds; undefined if it has none that reports by itself. */
  readonly hostHeardMs?: number | undefined
}

export interface ReadingsOptions {
  readonly hub: MeasuringHub
  readonly clock: Pick<Clock, 'setTimeout' | 'clear' | 'microseconds'>
  readonly work: { run<T>(party: Party, steps: Steps<T>): T | Promise<T> }
  readonly deadlineMs: number
  /** True once nobody wants the rest. */
  readonly isOver: () => boolean
}

/** Gives everything to `take`. What does not answer until the deadline is left out. */
export async function readAll(
  selection: Selection,
  { hub, clock, work, deadlineMs, isOver }: ReadingsOptions,
  take: (reading: Reading) => void,
): Promise<void> {
  const { identity } = selection
  const party = { tenant: identity.tenant }
  const later = new Map<PolledTarget, Promise<Measurement>>()
  const waiting: Promise<unknown>[] = [...refresh(selection, hub.fences)]
  const answered = (target: PolledTarget, measured: Measurement): void => {
    take({ metric: target.metric, labels: target.labels, measured })
  }
  await work.run(party, measureAll(selection, hub, isOver, answered, later))
  const ofNodes = new Map<string, NodeReading>()
  waiting.push(
    ...selection.remote
      .askNodes(isOver)
      .map((asked) => asked.then((all) => keepNewest(ofNodes, all, clock.microseconds()))),
  )
  for (const [target, measuring] of later) {
    waiting.push(measuring.then((measured) => later.delete(target) && answered(target, measured)))
  }
  if (waiting.length > 0) await untilDeadline(Promise.all(waiting), deadlineMs, clock)
  // What comes from now on is too late.
  later.clear()
  await work.run(party, readSeries(selection, hub, isOver, ofNodes, clock.microseconds(), take))
}

/** Keeps the newest reading of each series, whichever node has it. */
function keepNewest(kept: Map<string, NodeReading>, readings: readonly NodeReading[], now: number): void {
  for (const reading of readings) {
    const key = keyOfReading(reading.metric, reading.labels)
    const other = kept.get(key)
    if (other === undefined || !isNewer(other.measured.time, reading.measured.time, now)) kept.set(key, reading)
  }
}

function keyOfReading({ name }: Metric, labels: Labels): string {
  const texts = Object.entries(labels).filter(([label, text]) => label !== 'name' && text !== undefined && text !== '')
  return JSON.stringify([name, ...texts.sort(([one], [other]) => (one < other ? -1 : 1))])
}

function* measureAll(
  selection: Selection,
  { fences, faults }: MeasuringHub,
  isOver: () => boolean,
  answered: (target: PolledTarget, measured: Measurement) => void,
  later: Map<PolledTarget, Promise<Measurement>>,
): Steps<void> {
  if (selection.isPushed) return
  for (const target of yield* selection.polled()) {
    yield
    if (isOver()) return
    if (fences.has(target.sensor)) continue
    let measured = faults.measure(target, selection.identity)
    if (isSteps<Measurement>(measured)) measured = yield* measured
    if (measured instanceof Promise) later.set(target, measured)
    else {
      answered(target, measured)
      yield* measureRest(target, measured, selection, faults, answered)
    }
  }
}

/** A list says in its last record that it goes on; the argument `after` continues it. */
function* measureRest(
  target: PolledTarget,
  first: Measurement,
  selection: Selection,
  faults: MeasuringHub['faults'],
  answered: (target: PolledTarget, measured: Measurement) => void,
): Steps<void> {
  const { sensor, metric, args } = target
  const after = typeof metric.exposition === 'object' ? metric.exposition.after : undefined
  if (after === undefined) return
  for (let place = continuation(first, after); place !== undefined; ) {
    yield
    const next = { sensor, metric, args: new Map(args).set('after', place.value) }
    const measured = faults.measure(next, selection.identity)
    const list = isSteps<Measurement>(measured) ? yield* measured : measured
    if (list instanceof Promise) return
    answered(target, list)
    place = continuation(list, after)
  }
}

/** Where a list goes on that is not complete: the field `after` of its last whole record. */
function continuation({ value }: Measurement, after: string): Field | undefined {
  if (value.type !== BasicType.ARRAY || value.value.element !== BasicType.REC) return undefined
  const items = (value.value as ArrayValue).items as readonly (readonly Field[])[]
  if (items.at(-1)?.[0]?.name !== 'more') return undefined
  return items.at(-2)?.find(({ name }) => name === after)
}

function* readSeries(
  selection: Selection,
  { fences }: MeasuringHub,
  isOver: () => boolean,
  ofNodes: Map<string, NodeReading>,
  now: number,
  take: (reading: Reading) => void,
): Steps<void> {
  for (const sensor of selection.listening()) {
    if (fences.has(sensor)) continue
    for (const series of selection.series(sensor)) {
      yield
      if (isOver()) return
      if (series === undefined || selection.openFor(sensor, series) === undefined) continue
      const metric = sensor.metric(series.name)
      if (metric === undefined) continue
      const hostHeardMs = sensor.hostHeardMs?.(series)
      const measured = sensor.last(series)
      if (ofNodes.size > 0) {
        const key = keyOfReading(metric, series.labels)
        const other = ofNodes.get(key)
        if (other !== undefined && (measured === undefined || isNewer(other.measured.time, measured.time, now)))
          continue
        ofNodes.delete(key)
      }
      take({ metric, labels: series.labels, measured, hostHeardMs })
    }
  }
  for (const reading of ofNodes.values()) {
    yield
    if (isOver()) return
    take(reading)
  }
}

function untilDeadline(
  all: Promise<unknown>,
  deadlineMs: number,
  clock: Pick<Clock, 'setTimeout' | 'clear'>,
): Promise<void> {
  return new Promise((resolve) => {
    const timer = clock.setTimeout(resolve, deadlineMs)
    void all.then(() => {
      clock.clear(timer)
      resolve()
    })
  })
}
