/**
 * `producer.series`: every series that there is, ascending by metric and labels: which hosts have a metric, and which metrics a
 * host has. Rights are judged for each series, as for a QUERY of its metric.
 */
import { BasicType, labelNames } from '../../../protocol/monitor/constants.ts'
import type { Field } from '../../../protocol/monitor/value.ts'
import type { Clock } from '../core/clock.ts'
import { StatusError } from '../core/errors.ts'
import type { Steps } from '../core/fair-work.ts'
import { isNewer } from '../metrics/current.ts'
import type { Hub } from '../metrics/hub.ts'
import { openFields } from '../metrics/instance.ts'
import { byKind, isListening, type SensorsByKind } from '../metrics/kinds.ts'
import { AllLabelsBut, labelText, MAX_SERIES_BYTES, otherLabels } from '../metrics/labels.ts'
import { RecordList } from '../metrics/measure.ts'
import type { Arguments, Labels, Metric, Sensor } from '../metrics/metric.ts'
import { compilePattern, literalPrefix } from '../metrics/pattern.ts'
import { type JudgingRights, ReadRights } from '../metrics/read-rights.ts'
import { metricsInOrder } from './catalogue.ts'
import type { ProducerView } from './sensor.ts'

const { ARRAY, STRING, UINT32, UINT64 } = BasicType

const sourceLabels = labelNames.slice(1)
const allLabels = new AllLabelsBut()
/** Arguments that are no labels. */
const ownArguments: ReadonlySet<string> = new Set(['match', 'with', 'after', 'limit'])
/** Series that are passed over in one step. */
const PASSED_PER_STEP = 64
/** Room for a field `after`: JSON may write a byte of names and labels as six. */
const AFTER_BYTES = 6 * MAX_SERIES_BYTES + 1024

/** A place in the list: a metric, and the key of one of its series. */
type Place = readonly [name: string, key: string]
const START: Place = ['', '[]']

interface ShownSeries {
  readonly sensor: Sensor
  readonly labels: Labels
  /** The time of its last value, microseconds since 1970; 0 if it has none, or is measured on request. */
  readonly time: number
  /** Its sensor is measured with arguments, which may name a part that the labels do not. */
  readonly hasArguments: boolean
}

export interface SeriesOptions {
  readonly hub: Pick<Hub, 'sensors' | 'fences'>
  readonly rights: JudgingRights
  readonly clock: Pick<Clock, 'microseconds'>
}

export function seriesView({ hub, rights, clock }: SeriesOptions): ProducerView {
  return {
    metric: {
      name: 'producer.series',
      exposition: 'none',
      kind: 'continuous',
      type: ARRAY,
      unit: '',
      description: 'All series that you may read: each metric with each of its sources, ordered by name and labels.',
      parameters: [
        { name: 'match', type: STRING, description: 'Only metrics whose name matches this pattern.' },
        ...sourceLabels.map((name) => ({ name, type: STRING, description: `Only series with this \`${name}\`.` })),
        { name: 'with', type: STRING, description: 'Only series that have the label of this name.' },
        { name: 'after', type: STRING, description: 'Only series after this place in the list.' },
        { name: 'limit', type: UINT32, description: 'The largest number of series to return.' },
      ],
      takesLabels: true,
    },
    check(args) {
      // The place would be the same again and again.
      if (args.get('limit') === 0) throw new StatusError('INVALID_ARGUMENT', '`limit` is a number from 1 on')
      placeOf(args)
      matchersOf(args)
    },
    *show(reader, args) {
      const { matchesName, matchesLabels, needed, prefix } = matchersOf(args)
      const limit = (args.get('limit') as number | undefined) ?? Number.POSITIVE_INFINITY
      const readRights = new ReadRights(reader, rights)
      const list = new RecordList(AFTER_BYTES)
      let [count, place] = [0, placeOf(args)]
      // Sensors of others are passed over before their names are looked at, so that time tells nothing of them.
      const mine = hub.sensors.filter(
        (sensor) => readRights.maySee(sensor) && !hub.fences.has(sensor) && !lacksSome(sensor, needed),
      )
      const ofKind = byKind(mine)
      const now = clock.microseconds()
      for (const name of namesFrom(mine, prefix, place[0])) {
        yield
        if (!matchesName(name) || !readRights.covers(name)) continue
        const after = name === place[0] ? place[1] : ''
        for (const [key, series] of yield* seriesOf(ofKind, name, { matchesLabels, after, now })) {
          yield
          if (!isShown(readRights, name, series)) continue
          const rest: Field[] = [{ name: 'after', type: STRING, value: `[${JSON.stringify(place[0])},${place[1]}]` }]
          if (count++ === limit) {
            list.more(rest)
            return list.value()
          }
          if (!list.add(describe(series), rest)) return list.value()
          place = [name, key]
        }
      }
      return list.value()
    },
  }
}

/** Whether no series of a sensor has all these labels, as far as it has counted. */
function lacksSome(sensor: Sensor, needed: readonly string[]): boolean {
  return isListening(sensor) && needed.some((label) => sensor.hasLabel?.(label) === false)
}

/** What takes arguments is shown if it may be read with some of them. */
function isShown(readRights: ReadRights, name: string, { sensor, labels, hasArguments }: ShownSeries): boolean {
  return hasArguments ? readRights.mayReadSome(sensor, name) : readRights.mayRead(sensor, name, labels)
}

/** Names of metrics from `first` on, ascending, each once. */
function* namesFrom(sensors: readonly Sensor[], prefix: string, first: string): Generator<string> {
  if (first !== '') yield first
  let last = first
  for (const [{ name, type }] of metricsInOrder(sensors, prefix, first)) {
    // Lists, such as producer.metrics, are no series.
    if (name <= last || type === ARRAY) continue
    last = name
    yield name
  }
}

interface Wanted extends Pick<Matchers, 'matchesLabels'> {
  readonly after: string
  readonly now: number
}

/**
 * The matching series of one metric whose keys are above `after`, by their keys, in their order. Those of several tenants with the
 * same labels are one, with the time of the latest value. Only those that match get a key, which costs more than all else.
 */
function* seriesOf(
  { listening, polled, events, remote }: SensorsByKind,
  name: string,
  { matchesLabels, after, now }: Wanted,
): Steps<[string, ShownSeries][]> {
  const all = new Map<string, ShownSeries>()
  let passed = 0
  const add = (series: ShownSeries): void => {
    const key = keyOf(series.labels)
    const other = all.get(key)
    if (key > after && (other === undefined || !isNewer(other.time, series.time, now))) all.set(key, series)
  }
  const addOne = (sensor: Sensor, labelsOf: (metric: Metric) => Labels): void => {
    const metric = name.startsWith(sensor.family) ? sensor.metric(name) : undefined
    const labels = metric && labelsOf(metric)
    if (labels !== undefined && matchesLabels(labels)) add({ sensor, labels, time: 0, hasArguments: true })
  }
  for (const sensor of listening) {
    if (!name.startsWith(sensor.family)) continue
    for (const series of sensor.series(name)) {
      if (series.name !== name || !matchesLabels(series.labels)) {
        if (++passed % PASSED_PER_STEP === 0) yield
        continue
      }
      yield
      add({ sensor, labels: series.labels, time: sensor.last(series)?.time ?? 0, hasArguments: false })
    }
  }
  for (const sensor of polled) addOne(sensor, (metric) => sensor.labels(metric))
  for (const sensor of [...events, ...remote]) addOne(sensor, () => ({ name }))
  return [...all].sort(([one], [other]) => (one < other ? -1 : 1))
}

/** Tells the series of a metric apart, and orders them: an array in JSON of texts, and of names and texts of other labels. */
function keyOf(labels: Labels): string {
  const others = otherLabels(labels).flatMap((name) => [name, labelText(labels, name) ?? ''])
  return JSON.stringify([...sourceLabels.map((label) => labels[label] ?? ''), ...others])
}

function describe({ labels, time }: ShownSeries): Field[] {
  return [...openFields(labels, allLabels), { name: 'time', type: UINT64, value: BigInt(Math.floor(time)) }]
}

interface Matchers {
  readonly matchesName: (name: string) => boolean
  readonly matchesLabels: (labels: Labels) => boolean
  /** The labels that every matching series has. */
  readonly needed: readonly string[]
  /** What all matching names begin with. */
  readonly prefix: string
}

/** Throws StatusError INVALID_ARGUMENT. */
function matchersOf(args: Arguments): Matchers {
  const match = (args.get('match') as string | undefined) ?? '*'
  const given = [...args].flatMap(([label, pattern]) => {
    return ownArguments.has(label) ? [] : [{ label, matches: compilePattern(String(pattern)) }]
  })
  const having = args.get('with')
  if (having !== undefined) given.push({ label: String(having), matches: (text) => text !== '' })
  return {
    matchesName: compilePattern(match),
    matchesLabels: (labels) => given.every(({ label, matches }) => matches(labelText(labels, label) ?? '')),
    needed: given.flatMap(({ label, matches }) => (matches('') ? [] : [label])),
    prefix: literalPrefix(match),
  }
}

/** Throws StatusError INVALID_ARGUMENT. */
function placeOf(args: Arguments): Place {
  const after = args.get('after')
  if (after === undefined || after === '') return START
  try {
    const place: unknown = JSON.parse(String(after))
    const [name, labels] = Array.isArray(place) && place.length === 2 ? (place as unknown[]) : []
    if (typeof name === 'string' && Array.isArray(labels)) return [name, JSON.stringify(labels)]
  } catch {}
  throw new StatusError('INVALID_ARGUMENT', '`after` is not a place in the list: give back that of the last record')
}
