/**
 * Runs the steps of a query as work of its tenant, so that whoever asks for much waits for it and nobody else does. It ends when its
 * time is over, or when nobody waits for its answer any more.
 */
import type { Clock } from '../../kernel/core/clock.ts'
import type { FairWork, Steps } from '../../kernel/core/fair-work.ts'
import type { MemoryPlace } from '../memory-room.ts'
import type { AskedHistory } from './asked-history.ts'
import type { HistorySource } from './history-source.ts'
import { CrowdedQuery, QueryProblem } from './problems.ts'

/** Columns that a query holds at one time, its result included. */
export const MAX_BYTES = 64 * 2 ** 20

export interface RunOptions {
  readonly tenant: string
  readonly work: Pick<FairWork, 'run'>
  readonly clock: Pick<Clock, 'monotonicMs' | 'setTimeout' | 'clear'>
  readonly timeoutMs: number
  /** Aborted when the connection has ended. */
  readonly ended: AbortSignal
  /** Where it counts what it holds; undefined if it takes no turn, as those of rules. */
  readonly memory?: Pick<MemoryPlace, 'refused' | 'took'> | undefined
  /** Is told how long each slice of its work took, in milliseconds. */
  readonly worked?: (ms: number) => void
}

/** `ended`: undefined if somebody always waits. */
export interface EndlessRunOptions extends Omit<RunOptions, 'ended'> {
  readonly ended?: AbortSignal | undefined
}

/** What may be asked, and what may be used for the answer. */
export interface QueryRequest {
  readonly history: AskedHistory
  readonly nowMs: number
  readonly maxSamples: number
  /** `timeoutMs`: the most that there is. */
  readonly run: RunOptions
}

/** One time, or those of a range, both ends included. */
export type AskedTimes =
  | { readonly timeMs: number }
  | { readonly startMs: number; readonly endMs: number; readonly stepMs: number }

/** Rejects with what a step throws, and with QueryProblem. */
export async function runQuery<T>(
  steps: Generator<unknown, T, void>,
  source: HistorySource,
  { tenant, work, clock, timeoutMs, ended, memory, worked }: EndlessRunOptions,
): Promise<T> {
  const lastMs = clock.monotonicMs() + timeoutMs
  const party = worked === undefined ? { tenant } : { tenant, worked }
  const check = (): void => {
    if (ended?.aborted === true) throw new QueryProblem('canceled', 'query was canceled')
    if (memory?.refused.aborted) throw new CrowdedQuery()
    if (clock.monotonicMs() >= lastMs) throw new QueryProblem('timeout', 'query timed out in expression evaluation')
  }
  try {
    for (;;) {
      const finished = await work.run(party, untilWaiting(steps, source, check))
      if (finished !== undefined) return finished.result
      await settledOrOver(source.waiting, { clock, lastMs, ended })
    }
  } finally {
    steps.return(undefined as never)
  }
}

/** Settles with a promise, or when the time is over, or nobody waits any more. */
export async function settledOrOver(
  waiting: Promise<void> | undefined,
  { clock, lastMs, ended }: Pick<EndlessRunOptions, 'clock' | 'ended'> & { readonly lastMs: number },
): Promise<void> {
  if (ended?.aborted === true) return
  let end = (): void => {}
  const over = new Promise<void>((resolve) => {
    end = resolve
  })
  const timer = clock.setTimeout(end, Math.max(0, lastMs - clock.monotonicMs()))
  ended?.addEventListener('abort', end)
  try {
    await Promise.race([waiting, over])
  } finally {
    clock.clear(timer)
    ended?.removeEventListener('abort', end)
  }
}

/** Undefined if the source waits. */
function* untilWaiting<T>(
  steps: Generator<unknown, T, void>,
  source: HistorySource,
  check: () => void,
): Steps<{ readonly result: T } | undefined> {
  for (;;) {
    check()
    const { done, value } = steps.next()
    if (done === true) return { result: value }
    if (source.waiting !== undefined) return undefined
    yield
  }
}
