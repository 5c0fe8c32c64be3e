/** What a history has in memory, and what it is started with, made in this process without a server around it. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { History } from '../../../storage/history/history.ts'

const TENANT = 'default'
const EVER_MS = 1e14
const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const SLICE_MS = 50
/** Series that are new in one commit. */
const AT_ONCE = 10_000
/** Pages are made of samples that are five minutes old. */
const [STEP_MS, STEPS] = [15_000, 20]
const NO_LOSSES = { position: undefined, losses: [] } as const

/** Bytes that each active series takes until pages are made of its samples, which come every 15 s. */
export function bytesPerActiveSeries(count: number): number {
  return inHistory(Date.now(), (history) => {
    const before = bytesInUse()
    for (let step = 0; step < STEPS; step++) history.store(0, count)
    return (bytesInUse() - before) / count
  })
}

/** MiB by which the heap has grown when so many series have had a sample each and then no more. */
export function growthByDeadSeries(count: number): number {
  return inHistory(Date.now() - 3 * DAY_MS, (history) => {
    const before = bytesInUse()
    for (let from = 0; from < count; from += AT_ONCE) {
      history.store(from, Math.min(AT_ONCE, count - from))
      history.settle()
    }
    // What was in use in one hour is known in the next one yet.
    for (let hour = 0; hour < 48; hour++) {
      history.passOver(HOUR_MS)
      history.settle()
    }
    return (bytesInUse() - before) / 2 ** 20
  })
}

/** Fills a directory with samples of so many days before today, one an hour of each series, and merges them. */
export function makeHistory(directory: string, days: number, count: number): void {
  const today = Math.floor(Date.now() / DAY_MS) * DAY_MS
  const history = new FilledHistory(directory, today - days * DAY_MS)
  for (let hour = 0; hour < days * 24; hour++) {
    history.store(0, count)
    history.passOver(HOUR_MS)
    history.settle()
  }
  history.close()
}

function inHistory<Result>(nowMs: number, measure: (history: FilledHistory) => Result): Result {
  const directory = mkdtempSync(join(tmpdir(), 'cinnabar-history-'))
  const history = new FilledHistory(directory, nowMs)
  try {
    return measure(history)
  } finally {
    history.close()
    rmSync(directory, { recursive: true })
  }
}

/** A history whose clock is moved on. */
class FilledHistory {
  readonly #history: History
  #nowMs: number

  constructor(directory: string, nowMs: number) {
    this.#nowMs = nowMs
    const limits = { keepMs: EVER_MS, keepRollupsMs: EVER_MS, maxBytes: 2 ** 40, quotas: new Map<string, never>() }
    const now = (): number => this.#nowMs
    this.#history = History.open({ directory, limits, clock: now, monotonicMs: now })
  }

  /** A sample of each of so many series, as of now; 15 s pass. */
  store(from: number, count: number): void {
    const columns = {
      series: new Uint32Array(count),
      times: new Float64Array(count).fill(this.#nowMs),
      values: new Float64Array(count),
    }
    for (let at = 0; at < count; at++) {
      const labels = [['instance', `host${from + at}:9100`] as const]
      const series = { tenant: TENANT, name: 'bench', native: 'prometheus.bench', labels } as const
      columns.series[at] = this.#history.seriesOf(series) ?? 0
      columns.values[at] = at + this.#nowMs / STEP_MS
    }
    this.#history.append({ tenant: TENANT, ...columns, length: count, ...NO_LOSSES })
    while (!this.#history.commit());
    this.passOver(STEP_MS)
  }

  passOver(ms: number): void {
    this.#nowMs += ms
  }

  settle(): void {
    while (this.#history.work(SLICE_MS));
  }

  close(): void {
    this.#history.close()
  }
}

/** After collections of garbage: buffers that one has found are given back by the next. */
function bytesInUse(): number {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  collect()
  collect()
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}
