/** A history in memory, simple enough to be right, and how it is compared with a real one: every bit of every sample. */
import { expect } from 'vitest'
import { wordsOf } from '../../../storage/history/codec/words.ts'
import type {
  HistoryBatch,
  HistoryLimits,
  HistoryLoss,
  HistoryPosition,
  HistoryQuery,
  HistorySamples,
  HistorySeries,
  HistoryStore,
} from '../../../storage/history/store.ts'

export const HOUR_MS = 3_600_000
export const DAY_MS = 24 * HOUR_MS
/** A Monday. */
export const START_MS = Date.UTC(2026, 7, 31)

export const STALE = 0x7ff0000000000002n

export const UNLIMITED: HistoryLimits = {
  keepMs: 30 * DAY_MS,
  keepRollupsMs: 730 * DAY_MS,
  maxBytes: 2 ** 40,
  quotas: new Map(),
}

export function series(name: string, labels: Record<string, string> = {}, tenant = 'acme'): HistorySeries {
  const sorted = Object.entries(labels).toSorted(([a], [b]) => (a < b ? -1 : 1))
  return { tenant, name, labels: sorted, native: name.replaceAll('_', '.') }
}

/** One sample to be appended; a bigint is the bits of a value. */
export type Sample = readonly [of: HistorySeries, timeMs: number, value: number | bigint]

/** Appends samples of one tenant. */
export function append(
  history: HistoryStore,
  samples: readonly Sample[],
  rest: Partial<Pick<HistoryBatch, 'tenant' | 'position' | 'losses'>> = {},
): void {
  const values = new Float64Array(samples.length)
  const bits = new BigUint64Array(values.buffer)
  for (const [index, [, , value]] of samples.entries()) {
    if (typeof value === 'bigint') bits[index] = value
    else values[index] = value
  }
  const references = new Map([...new Set(samples.map(([of]) => of))].map((of) => [of, history.seriesOf(of)]))
  history.append({
    tenant: rest.tenant ?? samples[0]?.[0].tenant ?? 'acme',
    position: rest.position,
    series: Uint32Array.from(samples, ([of]) => references.get(of) ?? 0),
    times: Float64Array.from(samples, ([, time]) => time),
    values,
    length: samples.length,
    losses: rest.losses ?? [],
  })
}

/** What steps give, to their end. */
export function all<Result>(steps: Generator<Result | undefined, void, void>): Result[] {
  return [...steps].filter((result) => result !== undefined)
}

/** The samples of a query as `name{labels} time bits`, without a query of a tenant. */
export function linesOf(found: readonly HistorySamples[]): string[] {
  return found.flatMap(({ series: of, times, values }) => {
    const words = wordsOf(values)
    return Array.from(times, (time, index) => lineOf(of, time, words[2 * index + 1]!, words[2 * index]!))
  })
}

function lineOf({ name, labels }: HistorySeries, time: number, high: number, low: number): string {
  return `${name}${JSON.stringify(labels)} ${time} ${high.toString(16)}:${low.toString(16)}`
}

export function query(tenant: string, rest: Partial<HistoryQuery> = {}): HistoryQuery {
  return { tenant, matchers: [], fromMs: 0, toMs: Number.MAX_SAFE_INTEGER, ...rest }
}

export class HistoryModel {
  readonly #tenants = new Map<string, Map<string, { of: HistorySeries; samples: Map<number, [number, number]> }>>()
  readonly positions = new Map<string, HistoryPosition>()
  readonly losses = new Map<string, HistoryLoss[]>()

  add(samples: readonly Sample[]): void {
    const value = new Float64Array(1)
    const words = wordsOf(value)
    for (const [of, time, given] of samples) {
      if (typeof given === 'number') value[0] = given
      else new BigUint64Array(value.buffer)[0] = given
      this.#of(of).samples.set(time, [words[1]!, words[0]!])
    }
  }

  #of(of: HistorySeries): { of: HistorySeries; samples: Map<number, [number, number]> } {
    const tenant = this.#tenants.get(of.tenant) ?? new Map()
    this.#tenants.set(of.tenant, tenant)
    const key = keyOf(of)
    const found = tenant.get(key) ?? { of, samples: new Map() }
    tenant.set(key, found)
    return found
  }

  copy(): HistoryModel {
    const copy = new HistoryModel()
    for (const [name, tenant] of this.#tenants) {
      copy.#tenants.set(
        name,
        new Map([...tenant].map(([key, { of, samples }]) => [key, { of, samples: new Map(samples) }])),
      )
    }
    for (const [tenant, position] of this.positions) copy.positions.set(tenant, position)
    for (const [tenant, losses] of this.losses) copy.losses.set(tenant, [...losses])
    return copy
  }

  drop(tenant: string, matches: (of: HistorySeries) => boolean): void {
    for (const { of, samples } of this.#tenants.get(tenant)?.values() ?? []) if (matches(of)) samples.clear()
  }

  remove(tenant: string): void {
    this.#tenants.delete(tenant)
    this.positions.delete(tenant)
    this.losses.delete(tenant)
  }

  lines(tenant: string, fromMs: number, toMs: number, matches: (of: HistorySeries) => boolean): string[] {
    const lines: string[] = []
    for (const key of [...(this.#tenants.get(tenant)?.keys() ?? [])].toSorted()) {
      const { of, samples } = this.#tenants.get(tenant)!.get(key)!
      if (!matches(of)) continue
      for (const time of [...samples.keys()].toSorted((a, b) => a - b)) {
        if (time >= fromMs && time <= toMs) lines.push(lineOf(of, time, ...samples.get(time)!))
      }
    }
    return lines
  }

  /** Expects that a history gives the same; `matches` has to be what the matchers say. */
  expectSame(
    history: HistoryStore,
    { tenant, fromMs, toMs, matchers }: HistoryQuery,
    matches: (of: HistorySeries) => boolean = () => true,
  ): void {
    const found = all(history.select({ tenant, fromMs, toMs, matchers }))
    // Each in one piece.
    expect(new Set(found.map(({ series: of }) => keyOf(of))).size).toBe(found.length)
    const lines = found
      .toSorted((a, b) => (keyOf(a.series) < keyOf(b.series) ? -1 : 1))
      .flatMap((one) => linesOf([one]))
    const expected = this.lines(tenant, fromMs, toMs, matches)
    // To compare very many lines one by one takes long.
    if (lines.join() !== expected.join()) expect(lines).toEqual(expected)
  }
}

function keyOf({ name, labels }: HistorySeries): string {
  return name + JSON.stringify(labels)
}
