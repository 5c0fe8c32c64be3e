/** Random expressions over random series, evaluated by Prometheus and here, have the same results. */
import fc from 'fast-check'
import { PromqlError } from '../../../promql/errors.ts'
import { finished, type MemorySource } from '../../../promql/memory-source.ts'
import { PreparedQuery } from '../../../promql/query.ts'
import { encodeWriteRequest, type OutgoingSeries } from '../../../protocol/prometheus/write-request.ts'
import { finish } from '../../../server/kernel/core/fair-work.ts'
import { StackProgram, WRITE, WRITE_HEADERS } from '../../rig/prometheus-stack.ts'
import { Random } from '../../support/random.ts'
import { differenceOf, type Shown, shownOf, theirsOf } from './compare.ts'
import { expressions } from './expressions.ts'
import { knownDifference, knownError } from './known-differences.ts'
import { memoryOf, randomSeries } from './series.ts'

export const STEP_MS = 25_000
/** A fixed time, so that a seed gives the same always: 2026-01-01. */
const START_MS = 1_767_225_600_000
const DEFAULTS = { minutes: 1, expressions: 0, seed: 1 }

/** What was compared; of each reason to pass over an expression, how often; and the difference, if there is one. */
export interface Fuzzed {
  readonly compared: number
  readonly withResults: number
  readonly errors: number
  readonly passedOver: ReadonlyMap<string, number>
  readonly difference: string | undefined
}

/** `expressions`: so many instead of as many as `minutes` are enough for. */
export async function fuzzPromql(options: Partial<typeof DEFAULTS>): Promise<Fuzzed> {
  const { minutes, expressions: most, seed } = { ...DEFAULTS, ...options }
  const peer = await StackProgram.prometheus()
  try {
    await peer.start()
    const series = randomSeries(START_MS, new Random(seed))
    await write(peer, series)
    const run = new Run(peer, memoryOf(series))
    const until =
      most > 0 ? { numRuns: most } : { numRuns: Number.MAX_SAFE_INTEGER, interruptAfterTimeLimit: minutes * 60_000 }
    const property = fc.asyncProperty(expressions, fc.integer({ min: 600, max: 4_000 }), (text, s) =>
      run.compare(text, s),
    )
    const { failed, errorInstance } = await fc.check(property, { seed, ...until, markInterruptAsFailure: false })
    const difference = failed ? String((errorInstance as Error | null)?.message) : undefined
    return { ...run.counts, passedOver: run.passedOver, difference }
  } finally {
    await peer.remove()
  }
}

export async function write(peer: StackProgram, series: readonly OutgoingSeries[]): Promise<void> {
  const body = Uint8Array.from(finish(encodeWriteRequest(series)))
  const { status } = await fetch(peer.url + WRITE, { method: 'POST', headers: WRITE_HEADERS, body })
  if (status >= 300) throw new Error(`prometheus did not take the series: HTTP ${status}`)
}

class Run {
  readonly #peer: StackProgram
  readonly #source: MemorySource
  readonly counts = { compared: 0, withResults: 0, errors: 0 }
  readonly passedOver = new Map<string, number>()

  constructor(peer: StackProgram, source: MemorySource) {
    this.#peer = peer
    this.#source = source
  }

  /** At a time, and over a range from it on. Rejects with an Error that has the difference. */
  async compare(text: string, seconds: number): Promise<void> {
    const reason = knownDifference(text)
    if (reason !== undefined) {
      this.#passOver(reason)
      return
    }
    // Off the grid of every subquery, and off the times of samples: 2.42 closes ranges on the left.
    const timeMs = START_MS + seconds * 1_000 + 500
    for (const endMs of [undefined, timeMs + 8 * STEP_MS]) {
      const ours = evaluatedHere(text, this.#source, timeMs, endMs)
      const theirs = await evaluatedThere(this.#peer, text, timeMs, endMs)
      const late = ours.error === undefined ? knownError(theirs.error) : undefined
      if (late !== undefined) {
        this.#passOver(late)
        continue
      }
      this.counts.compared++
      if (ours.error !== undefined) this.counts.errors++
      else if (ours.series.size > 0) this.counts.withResults++
      const difference = differenceOf(ours, theirs)
      if (difference !== undefined)
        throw new Error(`${text}\nat ${seconds} s${endMs ? ', in a range' : ''}: ${difference}`)
    }
  }

  #passOver(reason: string): void {
    this.passedOver.set(reason, (this.passedOver.get(reason) ?? 0) + 1)
  }
}

/** At a time, or over a range from it on if there is an end. */
export function evaluatedHere(text: string, source: MemorySource, timeMs: number, endMs: number | undefined): Shown {
  try {
    const query = new PreparedQuery(text)
    const steps = endMs === undefined ? query.instant(source, timeMs) : query.range(source, timeMs, endMs, STEP_MS)
    return shownOf(finished(steps).data)
  } catch (error) {
    if (error instanceof PromqlError) return { series: new Map(), error: error.message }
    throw error
  }
}

export async function evaluatedThere(
  peer: StackProgram,
  query: string,
  timeMs: number,
  endMs: number | undefined,
): Promise<Shown> {
  const at: Record<string, string> =
    endMs === undefined
      ? { time: String(timeMs / 1_000) }
      : { start: String(timeMs / 1_000), end: String(endMs / 1_000), step: String(STEP_MS / 1_000) }
  const path = endMs === undefined ? 'query' : 'query_range'
  const answer = await fetch(`${peer.url}/api/v1/${path}`, {
    method: 'POST',
    body: new URLSearchParams({ query, ...at }),
  })
  return theirsOf(await answer.json())
}
