/** Expressions over series that are written down, with results as lines. */

import { finished, MemorySource } from '../../promql/memory-source.ts'
import { PreparedQuery, QUERY_OPTIONS, type QueryResult } from '../../promql/query.ts'
import { parseScript } from './promqltest/script.ts'

/** Series with values at each minute: `up{job="a"} 1 2 _ stale`, one a line. */
export function minutely(lines: string): MemorySource {
  const source = new MemorySource()
  for (const command of parseScript(`load 1m\n${lines}`)) {
    if (command.kind !== 'load') continue
    for (const { labels, values } of command.series) {
      const samples = values.map((value, minute) => [minute * 60_000, value] as const)
      source.add(
        labels,
        samples.flatMap(([ms, value]) =>
          typeof value === 'number' || value === 'stale' ? [[ms, value] as const] : [],
        ),
      )
    }
  }
  return source
}

/** What an instant query gives at a minute: `{job="a"} 3`, one line for each series, in order; or a number or a text. */
export function at(minute: number, text: string, source: MemorySource, options = QUERY_OPTIONS): string[] {
  return linesOf(finished(new PreparedQuery(text).instant(source, minute * 60_000, options)))
}

/** What a range query gives from a minute to another, at each minute: `{job="a"} 3 _ 5`. */
export function over(from: number, to: number, text: string, source: MemorySource, options = QUERY_OPTIONS): string[] {
  const result = finished(new PreparedQuery(text).range(source, from * 60_000, to * 60_000, 60_000, options))
  if (result.data.type !== 'matrix') throw new Error('a range query gives a matrix')
  return result.data.series.map(({ labels, times, values }) => {
    const points = Array.from({ length: to - from + 1 }, (_, step) => {
      const index = times.indexOf((from + step) * 60_000)
      return index < 0 ? '_' : shown(values[index] ?? 0)
    })
    return `${labels} ${points.join(' ')}`
  })
}

/** What an instant query says besides its result. */
export function notesAt(minute: number, text: string, source: MemorySource): string[] {
  const { warnings, infos } = finished(new PreparedQuery(text).instant(source, minute * 60_000))
  return [...warnings, ...infos]
}

function linesOf({ data }: QueryResult): string[] {
  switch (data.type) {
    case 'scalar':
      return [shown(data.value)]
    case 'string':
      return [data.text]
    case 'vector':
      return data.samples.map(({ labels, value }) => `${labels} ${shown(value)}`)
    case 'matrix':
      return data.series.map(
        ({ labels, times, values }) =>
          `${labels} ${[...values].map((value, index) => `${shown(value)}@${(times[index] ?? 0) / 1000}`).join(' ')}`,
      )
  }
}

/** Six digits are enough, so that rounding does not show. */
function shown(value: number): string {
  return String(Number(value.toPrecision(6)))
}
