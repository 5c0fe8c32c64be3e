/** Results of two evaluations, series by series, and where they differ by more than rounding. */
import type { ResultData } from '../../../promql/query.ts'

/** Values by time, by labels; or an error. */
export interface Shown {
  readonly series: ReadonlyMap<string, ReadonlyMap<number, number>>
  readonly error?: string
}

const CLOSE = 1e-9

export function shownOf(data: ResultData): Shown {
  if (data.type === 'scalar') return { series: new Map([['', new Map([[data.timeMs, data.value]])]]) }
  if (data.type === 'string') return { series: new Map() }
  if (data.type === 'vector') {
    return {
      series: new Map(data.samples.map(({ labels, value }) => [keyOf(labels), new Map([[data.timeMs, value]])])),
    }
  }
  return {
    series: new Map(
      data.series.map(({ labels, times, values }) => [
        keyOf(labels),
        new Map(Array.from(times, (time, index) => [time, values[index] ?? Number.NaN])),
      ]),
    ),
  }
}

type Point = readonly [seconds: number, text: string]

export function theirsOf(answer: unknown): Shown {
  const { status, error, data } = answer as {
    readonly status: string
    readonly error?: string
    readonly data: {
      readonly resultType: string
      readonly result: readonly { metric: Record<string, string>; value?: Point; values?: Point[] }[]
    }
  }
  if (status !== 'success') return { series: new Map(), error: error ?? status }
  if (data.resultType === 'scalar') return { series: new Map([['', pointsOf([data.result as never])]]) }
  return {
    series: new Map(
      data.result.map(({ metric, value, values }) => [
        keyOf(Object.entries(metric)),
        pointsOf(values ?? (value === undefined ? [] : [value])),
      ]),
    ),
  }
}

function pointsOf(points: readonly Point[]): Map<number, number> {
  return new Map(points.map(([seconds, text]) => [Math.round(seconds * 1_000), numberOf(text)]))
}

function numberOf(text: string): number {
  return text === '+Inf' ? Number.POSITIVE_INFINITY : text === '-Inf' ? Number.NEGATIVE_INFINITY : Number(text)
}

function keyOf(labels: Iterable<readonly [string, string]>): string {
  return JSON.stringify([...labels].sort(([a], [b]) => (a < b ? -1 : 1)))
}

/** In a sentence; undefined if they are the same. */
export function differenceOf(ours: Shown, theirs: Shown): string | undefined {
  if (ours.error !== undefined || theirs.error !== undefined) {
    const isBoth = ours.error !== undefined && theirs.error !== undefined
    return isBoth ? undefined : `here ${ours.error ?? 'a result'}, there ${theirs.error ?? 'a result'}`
  }
  for (const key of new Set([...ours.series.keys(), ...theirs.series.keys()])) {
    const [mine, other] = [ours.series.get(key), theirs.series.get(key)]
    if (mine === undefined || other === undefined) return `${key} is only ${mine === undefined ? 'there' : 'here'}`
    for (const time of new Set([...mine.keys(), ...other.keys()])) {
      const [a, b] = [mine.get(time), other.get(time)]
      if (a === undefined || b === undefined || !isClose(a, b)) return `${key} at ${time}: here ${a}, there ${b}`
    }
  }
  return undefined
}

function isClose(a: number, b: number): boolean {
  if (Object.is(a, b) || a === b) return true
  return Math.abs(a - b) <= CLOSE * Math.max(Math.abs(a), Math.abs(b))
}
