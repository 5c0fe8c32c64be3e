/** Samples of Prometheus and what a consumer of `prometheus.*` gets, in one form that can be compared. */
import { STALE_BITS } from '../support/real-prometheus.ts'
import { decoded } from '../support/records.ts'
import type { StoredSeries } from '../support/remote-read.ts'
import type { ValueMessage } from '../support/seat.ts'

export function byBytes([one]: readonly [string, string], [other]: readonly [string, string]): number {
  return Buffer.compare(Buffer.from(one), Buffer.from(other))
}

export function keyOf(name: string, labels: Iterable<readonly [string, string]>): string {
  return JSON.stringify([name, ...[...labels].filter(([, text]) => text !== '').sort(byBytes)])
}

/** What can be told of a value here: one NaN is like any other, but for the stale marker. */
function shown(bits: bigint): string {
  if (bits === STALE_BITS) return 'stale'
  const view = new DataView(new ArrayBuffer(8))
  view.setBigUint64(0, bits)
  return shownNumber(view.getFloat64(0))
}

export function shownNumber(value: number): string {
  return Object.is(value, -0) ? '-0' : String(value)
}

export type Shown = ReadonlyMap<string, readonly string[]>

/** The samples of each series in the order of their times. */
export function ofPrometheus(stored: readonly StoredSeries[]): Shown {
  const all = new Map<string, string[]>()
  for (const { labels, samples } of stored) {
    const own = [...labels].filter(([label]) => label !== '__name__')
    all.set(
      keyOf(labels.get('__name__') ?? '', own),
      samples.map(({ timeMs, bits }) => `${timeMs} ${shown(bits)}`),
    )
  }
  return sorted(all)
}

/** The same of what a consumer of `prometheus.*` got. */
export function ofConsumer(messages: readonly ValueMessage[]): Shown {
  const all = new Map<string, [number, string][]>()
  for (const message of messages) {
    const { time } = message
    const { name, value, ...labels } = decoded(message)
    const own = Object.entries<string>(labels).map(([label, text]) => [foreign(label), text] as const)
    const key = keyOf(name.slice('prometheus.'.length), own)
    const text = value === null ? 'stale' : shownNumber(value)
    all.set(key, [...(all.get(key) ?? []), [time, `${time / 1_000} ${text}`]])
  }
  const inOrder = (samples: [number, string][]) => samples.sort(([one], [other]) => one - other).map(([, text]) => text)
  return sorted(new Map(Array.from(all, ([key, samples]) => [key, inOrder(samples)])))
}

/** Names that were taken over as `exported_`: docs/protocol/monitoring.md#912-labels. */
function foreign(label: string): string {
  return /^(exported_)+(name|value|time|producer|node)$/.test(label) ? label.slice('exported_'.length) : label
}

export function sorted<T>(all: ReadonlyMap<string, T>): Map<string, T> {
  return new Map([...all].sort(([one], [other]) => (one < other ? -1 : 1)))
}
