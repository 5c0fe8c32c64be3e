/**
 * What the server has kept in memory of the recent values of pushed metrics (metrics/recent.ts): the part of `producer.recent` that no
 * history records. Rights are judged for each series, as for a QUERY of its metric.
 */
import type { Reader } from '../../../auth/permissions.ts'
import { BasicType, labelNames } from '../../../protocol/monitor/constants.ts'
import type { Field, Value } from '../../../protocol/monitor/value.ts'
import type { Clock } from '../core/clock.ts'
import { StatusError } from '../core/errors.ts'
import type { Steps } from '../core/fair-work.ts'
import type { Hub } from '../metrics/hub.ts'
import { openFields } from '../metrics/instance.ts'
import { AllLabelsBut } from '../metrics/labels.ts'
import { RecordList } from '../metrics/measure.ts'
import type { Arguments } from '../metrics/metric.ts'
import { compilePattern } from '../metrics/pattern.ts'
import { type JudgingRights, ReadRights } from '../metrics/read-rights.ts'
import { Selection } from '../metrics/selection.ts'
import type { ProducerView } from './sensor.ts'

const { ARRAY, DOUBLE, STRING, UINT32, UINT64 } = BasicType

const sourceLabels = labelNames.slice(1)
const allLabels = new AllLabelsBut()
/** Arguments that are no labels. */
const ownArguments: ReadonlySet<string> = new Set(['metric', 'last_ms', 'after'])
/** A field `after` with a number of 15 digits. */
const AFTER_BYTES = 48
/** Series that are looked at in one step. */
const SERIES_PER_STEP = 16
/** A record has at most this many samples, so that any fits a frame; there are no more in the longest time that is kept. */
const MAX_SAMPLES = 16_384

export interface RecentOptions {
  readonly hub: Pick<Hub, 'sensors' | 'recent' | 'fences'>
  readonly rights: JudgingRights
  readonly clock: Pick<Clock, 'microseconds'>
}

export function recentView({ hub, rights, clock }: RecentOptions): Required<ProducerView> {
  return {
    metric: {
      name: 'producer.recent',
      exposition: 'none',
      kind: 'continuous',
      type: ARRAY,
      unit: '',
      description:
        'The recent values of metrics: from the history, or of pushed ones from memory, at most one per series and second.',
      parameters: [
        { name: 'metric', type: STRING, description: 'The name of a metric, or a pattern.' },
        ...sourceLabels.map((name) => ({ name, type: STRING, description: `Only series with this \`${name}\`.` })),
        { name: 'last_ms', type: UINT32, description: 'Only values of the last so many milliseconds.' },
        { name: 'after', type: STRING, description: 'Only series after this place in the list.' },
      ],
      takesLabels: true,
    },
    check(args) {
      compilePattern(metricOf(args))
      for (const { value } of labelsIn(args)) compilePattern(value)
      placeOf(args)
    },
    *show(reader, args) {
      const list = new RecordList(AFTER_BYTES)
      const selection = yield* selectionOf(reader, args)
      if (selection === undefined) return list.value()
      const readRights = new ReadRights(reader, rights)
      const lastMs = (args.get('last_ms') as number | undefined) ?? Number.POSITIVE_INFINITY
      const since = clock.microseconds() - lastMs * 1000
      let [place, looked] = [placeOf(args), 0]
      const { exactName } = selection
      const all =
        exactName === undefined
          ? hub.recent.above(place)
          : yield* hub.recent.named(exactName, selection.listening(), place)
      for (const kept of all) {
        if (++looked % SERIES_PER_STEP === 0) yield
        if (kept === undefined || hub.fences.has(kept.sensor)) continue
        if (!readRights.covers(kept.series.name)) continue
        if (selection.openFor(kept.sensor, kept.series) === undefined) continue
        yield
        const { times, values } = hub.recent.samples(kept, since)
        if (times.length === 0) continue
        const record = describe(kept.series, times.slice(-MAX_SAMPLES), values.slice(-MAX_SAMPLES))
        if (!list.add(record, [{ name: 'after', type: STRING, value: String(place) }])) break
        place = kept.number
      }
      return list.value()
    },
  }

  /** Undefined if nothing that the reader may know of has this name. */
  function* selectionOf(reader: Reader, args: Arguments): Steps<Selection | undefined> {
    try {
      return yield* Selection.of(hub.sensors, reader, metricOf(args), labelsIn(args), { intervalMs: 1000, rights })
    } catch (error) {
      if (error instanceof StatusError) return undefined
      throw error
    }
  }
}

function describe(
  { labels, name }: { readonly labels: Parameters<typeof openFields>[0]; readonly name: string },
  times: readonly number[],
  values: readonly number[],
): Field[] {
  const array = (field: string, element: BasicType, items: readonly Value['value'][]): Field =>
    ({ name: field, type: ARRAY, value: { element, items } }) as Field
  return [
    ...openFields({ ...labels, name }, allLabels),
    array(
      'times',
      UINT64,
      times.map((time) => BigInt(Math.floor(time))),
    ),
    array('values', DOUBLE, values),
  ]
}

/** The arguments that select by a label. */
function labelsIn(args: Arguments): { readonly name: string; readonly type: typeof STRING; readonly value: string }[] {
  const given = [...args].filter(([name]) => !ownArguments.has(name))
  return given.map(([name, value]) => ({ name, type: STRING, value: String(value) }))
}

/** Throws StatusError INVALID_ARGUMENT. */
function metricOf(args: Arguments): string {
  const metric = args.get('metric')
  if (typeof metric === 'string' && metric !== '') return metric
  throw new StatusError('INVALID_ARGUMENT', '`metric` is missing: the name of a metric, or a pattern')
}

/** Throws StatusError INVALID_ARGUMENT. */
function placeOf(args: Arguments): number {
  const after = args.get('after') ?? '0'
  if (typeof after === 'string' && /^\d{1,15}$/.test(after)) return Number(after)
  throw new StatusError('INVALID_ARGUMENT', '`after` is not a place in the list: give back that of the last record')
}
