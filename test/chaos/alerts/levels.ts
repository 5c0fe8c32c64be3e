/**
 * The data of the rig: series whose values change at random times, and the feed that hands them over by remote write long before their
 * time. So everybody knows what an evaluation at a time sees, whoever is killed meanwhile.
 */
import { encodeWriteRequest, type OutgoingSeries } from '../../../protocol/prometheus/write-request.ts'
import { finish } from '../../../server/kernel/core/fair-work.ts'
import { WRITE, WRITE_HEADERS } from '../../rig/prometheus-stack.ts'
import type { Random } from '../../support/random.ts'

export const LEVEL = 'level'
/** Values are whole numbers below this. */
const END = 10
/** How long a value holds at least and at most, in half seconds. */
const [LEAST_HELD, MOST_HELD] = [1, 16]
const HALF_SECOND_MS = 500
/** A sample that is handed over less before its time may not be seen at that time. */
const LEAST_AHEAD_MS = 3_000
const PATIENCE_MS = 10_000

interface Change {
  readonly timeMs: number
  readonly value: number
}

export class Levels {
  readonly #random: Random
  /** Of each series, ascending. */
  readonly #changes: Change[][]
  /** From then on all are 0. */
  endMs = Number.POSITIVE_INFINITY
  /** So many changes of each were handed over. */
  readonly #given: number[]

  readonly #aheadMs: number
  /** How often something was handed over. */
  given = 0

  /** They begin to have values at this time, and are handed over so long before: less than the minute that a server takes. */
  constructor(random: Random, series: number, startMs: number, aheadMs: number) {
    this.#random = random
    this.#aheadMs = aheadMs
    this.#changes = Array.from({ length: series }, () => [{ timeMs: startMs, value: random.below(END) }])
    this.#given = Array.from({ length: series }, () => 0)
  }

  get count(): number {
    return this.#changes.length
  }

  /** What a series comes to at a time; undefined before it begins. */
  at(series: number, timeMs: number): number | undefined {
    return this.#changes[series]?.findLast((change) => change.timeMs <= timeMs)?.value
  }

  /** All are 0 some time after what was handed over. Gives when. */
  end(): number {
    const last = this.#changes.map((changes) => changes.at(-1)?.timeMs ?? 0)
    this.endMs = Math.max(...last) + HALF_SECOND_MS
    for (const changes of this.#changes) changes.push({ timeMs: this.endMs, value: 0 })
    return this.endMs
  }

  /** Hands over what is due, by remote write; false if nobody has taken it. Throws if that is too late for the rig. */
  async give(url: string, token: string): Promise<boolean> {
    const toMs = Date.now() + this.#aheadMs
    if (this.endMs === Number.POSITIVE_INFINITY) for (const changes of this.#changes) this.#extend(changes, toMs)
    const counts = this.#changes.map(({ length }) => length)
    const series = this.#changes.map(
      (changes, n): OutgoingSeries => ({
        name: LEVEL,
        labels: [['n', String(n)]],
        samples: changes.slice(this.#given[n]),
      }),
    )
    const firstMs = Math.min(...series.map(({ samples }) => samples[0]?.timeMs ?? toMs))
    try {
      const { ok } = await fetch(url + WRITE, {
        method: 'POST',
        headers: { ...WRITE_HEADERS, authorization: `Bearer ${token}` },
        body: Uint8Array.from(finish(encodeWriteRequest(series))),
        signal: AbortSignal.timeout(PATIENCE_MS),
      })
      if (!ok) return false
    } catch {
      return false
    }
    if (Date.now() > firstMs - LEAST_AHEAD_MS)
      throw new Error('the servers were away for too long: samples were handed over after their time')
    for (const [n, count] of counts.entries()) this.#given[n] = count
    this.given++
    return true
  }

  #extend(changes: Change[], toMs: number): void {
    for (let last = changes.at(-1); last !== undefined && last.timeMs < toMs; last = changes.at(-1)) {
      const held = LEAST_HELD + this.#random.below(MOST_HELD - LEAST_HELD)
      changes.push({ timeMs: last.timeMs + held * HALF_SECOND_MS, value: this.#random.below(END) })
    }
  }
}
