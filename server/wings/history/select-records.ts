/** The records of `producer.history.select` [MON 9.16]: samples of a series, windows of it, and ranges of loss. */
import { BasicType } from '../../../protocol/monitor/constants.ts'
import type { Field, Value } from '../../../protocol/monitor/value.ts'
import { STALE_NAN } from '../../../protocol/prometheus/stale-marker.ts'
import type { HistoryFamily, HistoryLoss, HistorySeries, HistoryWindows } from '../../../storage/history/store.ts'
import type { SelectedSamples } from './messages.ts'

const { ARRAY, DOUBLE, REC, STRING, UINT64 } = BasicType

const MICROSECONDS = 1_000
/** A record has at most so many samples, or windows, so that it is made in well under a millisecond. */
const MOST_SAMPLES = 2_048
const MOST_WINDOWS = 512

const STALE_BITS = (BigInt(STALE_NAN.high) << 32n) | BigInt(STALE_NAN.low)

/** Something with rows, of which a record has some. */
export interface Shown {
  readonly rows: number
  /** The most that one record has. */
  readonly most: number
  record(from: number, to: number): Field[]
}

/** What there is of a series. */
export function shownOf(tenant: string, { series, times, values, windows, family }: SelectedSamples): Shown[] {
  const shown: Shown[] = []
  if (windows !== undefined) {
    const record: Shown['record'] = (from, to) => [
      ...seriesFields(tenant, series, family),
      ...windowsFields(windows, from, to),
    ]
    shown.push({ rows: windows.ends.length, most: MOST_WINDOWS, record })
  }
  if (times.length > 0) {
    const record: Shown['record'] = (from, to) => [
      ...seriesFields(tenant, series, family),
      ...samplesFields(times, values, from, to),
    ]
    shown.push({ rows: times.length, most: MOST_SAMPLES, record })
  }
  return shown
}

export function shownLoss(tenant: string, { native, fromMs, toMs, count, reason }: HistoryLoss): Shown {
  const fields: Field[] = [
    { name: 'tenant', type: STRING, value: tenant },
    { name: 'metric', type: STRING, value: native },
    { name: 'from', type: UINT64, value: microseconds(fromMs) },
    { name: 'to', type: UINT64, value: microseconds(toMs) },
    { name: 'lost', type: UINT64, value: BigInt(count) },
    { name: 'reason', type: STRING, value: reason },
  ]
  return { rows: 1, most: 1, record: () => fields }
}

function samplesFields(times: Float64Array, values: Float64Array, from: number, to: number): Field[] {
  const words = new BigUint64Array(values.buffer, values.byteOffset, values.length)
  const [shownTimes, shownValues, ended]: [bigint[], number[], bigint[]] = [[], [], []]
  for (let at = from; at < to; at++) {
    const time = microseconds(times[at] as number)
    if (words[at] === STALE_BITS) ended.push(time)
    else {
      shownTimes.push(time)
      shownValues.push(values[at] as number)
    }
  }
  return [
    arrayField('times', UINT64, shownTimes),
    arrayField('values', DOUBLE, shownValues),
    arrayField('ended', UINT64, ended),
  ]
}

function windowsFields(windows: HistoryWindows, from: number, to: number): Field[] {
  const times = (column: Float64Array): bigint[] => Array.from(column.subarray(from, to), microseconds)
  const numbers = (column: Float64Array): number[] => Array.from(column.subarray(from, to))
  return [
    { name: 'step_ms', type: UINT64, value: BigInt(windows.stepMs) },
    arrayField('ends', UINT64, times(windows.ends)),
    arrayField('min', DOUBLE, numbers(windows.min)),
    arrayField('max', DOUBLE, numbers(windows.max)),
    arrayField('sum', DOUBLE, numbers(windows.sum)),
    arrayField('count', UINT64, Array.from(windows.count.subarray(from, to), BigInt)),
    arrayField('first', DOUBLE, numbers(windows.first)),
    arrayField('first_times', UINT64, times(windows.firstTimes)),
    arrayField('last', DOUBLE, numbers(windows.last)),
    arrayField('last_times', UINT64, times(windows.lastTimes)),
    arrayField('resets', DOUBLE, numbers(windows.resets)),
  ]
}

function seriesFields(tenant: string, series: HistorySeries, family: HistoryFamily | undefined): Field[] {
  const labels = series.labels.map(([name, value]): Field => ({ name, type: STRING, value }))
  return [
    { name: 'tenant', type: STRING, value: tenant },
    { name: 'metric', type: STRING, value: series.native },
    { name: 'name', type: STRING, value: series.name },
    { name: 'labels', type: REC, value: labels },
    ...(family === undefined ? [] : [{ name: 'family', type: REC, value: familyFields(family) } as const]),
  ]
}

function familyFields({ name, type, help, unit }: HistoryFamily): Field[] {
  return Object.entries({ name, type, help, unit }).map(([field, value]): Field => {
    return { name: field, type: STRING, value }
  })
}

function microseconds(ms: number): bigint {
  return BigInt(ms) * BigInt(MICROSECONDS)
}

function arrayField(name: string, element: BasicType, items: readonly Value['value'][]): Field {
  return { name, type: ARRAY, value: { element, items } }
}
