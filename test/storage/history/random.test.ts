/**
 * A history beside its model, after random operations: appends with late samples and times that come again, merges in slices,
 * drops, days that pass, queries that go on meanwhile. At random moments its files are copied, as a kill would leave them, and
 * the copy has to be what was committed, no more and no less; or an operation finds no room, and nothing of it is done.
 */
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { History } from '../../../storage/history/history.ts'
import {
  type HistoryMatcher,
  type HistorySamples,
  type HistorySeries,
  type HistoryWindows,
  ROLLUP_MS,
} from '../../../storage/history/store.ts'
import { StorageError } from '../../../storage/store.ts'
import { seeds, times } from '../../support/long.ts'
import { Random } from '../../support/random.ts'
import {
  all,
  append,
  DAY_MS,
  HistoryModel,
  HOUR_MS,
  linesOf,
  query,
  type Sample,
  STALE,
  START_MS,
  series,
  UNLIMITED,
} from './history-model.ts'
import { watchedDisk } from './watched-disk.ts'

const TENANTS = ['acme', 'beta']
const FLEET: HistorySeries[] = TENANTS.flatMap((tenant) =>
  ['load', 'requests', 'temperature'].flatMap((name) =>
    ['a', 'b', 'c', 'd'].map((host) => series(name, { host, ...(host === 'd' && { zone: 'z' }) }, tenant)),
  ),
)
const MATCHERS: [HistoryMatcher[], (of: HistorySeries) => boolean][] = [
  [[], () => true],
  [[{ label: '__name__', operator: '=', text: 'load' }], ({ name }) => name === 'load'],
  [
    [{ label: 'host', operator: '=~', text: 'a|c' }],
    ({ labels }) => labels.some(([, text]) => text === 'a' || text === 'c'),
  ],
  [[{ label: 'zone', operator: '=', text: '' }], ({ labels }) => labels.length === 1],
]

interface OpenQuery {
  readonly steps: Generator<HistorySamples | undefined, void, void>
  readonly found: HistorySamples[]
  readonly expected: string[]
}

class Run {
  readonly random: Random
  readonly directory = mkdtempSync(join(tmpdir(), 'history-random-'))
  now = START_MS + 10 * HOUR_MS
  history: History
  /** What is committed, and what is appended besides. */
  committed = new HistoryModel()
  appended = new HistoryModel()
  transaction = 0
  kills = 0
  failures = 0
  queries: OpenQuery[] = []
  /** How many operations of the disk from now on a kill strikes, or a failure. */
  #untilKill = Number.POSITIVE_INFINITY
  #untilFailure = Number.POSITIVE_INFINITY
  readonly #disk = watchedDisk((what) => this.#operation(what))

  constructor(seed: number) {
    this.random = new Random(seed)
    this.history = this.open()
  }

  open(): History {
    return History.open(
      { directory: this.directory, clock: () => this.now, limits: UNLIMITED, headSamples: 300 },
      this.#disk,
    )
  }

  #operation(what: string): void {
    if (--this.#untilKill === 0) this.#kill()
    if (what === 'remove' || --this.#untilFailure !== 0) return
    this.failures++
    throw Object.assign(new Error(`no room for ${what}`), { code: 'SQLITE_FULL' })
  }

  /** Opens a copy of the files as they are now. */
  #kill(): void {
    this.kills++
    const copy = mkdtempSync(join(tmpdir(), 'history-killed-'))
    try {
      cpSync(this.directory, copy, { recursive: true, filter: (path) => !path.endsWith('-shm') })
      const killed = History.open({ directory: copy, clock: () => this.now, limits: UNLIMITED })
      const isAppended = killed.positionOf('acme')?.transaction === this.appended.positions.get('acme')?.transaction
      this.compare(killed, isAppended ? this.appended : this.committed)
      if (this.random.below(2) === 0) {
        while (killed.work(0));
        this.compare(killed, isAppended ? this.appended : this.committed)
      }
      expect(killed.figures().damagedPages).toBe(0)
      killed.close()
    } finally {
      rmSync(copy, { recursive: true })
    }
  }

  compare(history: History, model: HistoryModel): void {
    this.compareSamples(history, model)
    for (const tenant of TENANTS) expect(history.positionOf(tenant)).toEqual(model.positions.get(tenant))
  }

  compareSamples(history: History, model: HistoryModel): void {
    for (const tenant of TENANTS) model.expectSame(history, query(tenant))
  }

  append(): void {
    const { random } = this
    const tenant = random.pick(TENANTS)
    const own = FLEET.filter((of) => of.tenant === tenant)
    const samples: Sample[] = []
    const isLate = random.below(6) === 0
    for (let count = random.below(60); count >= 0; count--) {
      const time = isLate
        ? this.now - random.below(3 * DAY_MS)
        : this.now - random.below(20) * 1000 - (random.below(4) === 0 ? random.below(1000) : 0)
      const odd = [STALE, -0, Number.NaN, Number.POSITIVE_INFINITY, random.next(), 1e300]
      const value = random.below(12) === 0 ? random.pick(odd) : random.below(5000) / 100
      samples.push([random.pick(own), time, value])
    }
    const position = { generation: 'g', channel: 1, transaction: ++this.transaction, committed: 5, takenMs: 1 }
    // Both tenants have a position with each commit, so that a copy shows which one it has.
    for (const name of TENANTS) {
      append(this.history, name === tenant ? samples : [], { tenant: name, position })
      this.appended.positions.set(name, position)
    }
    this.appended.add(samples)
  }

  /** Runs something that writes; it may find no room, and then it is tried again. */
  write(work: () => void): void {
    if (this.random.below(5) === 0) this.#untilKill = 1 + this.random.below(40)
    if (this.random.below(4) === 0) this.#untilFailure = 1 + this.random.below(40)
    try {
      work()
    } catch (error) {
      expect(error).toBeInstanceOf(StorageError)
      expect(error).toMatchObject({ code: 'FULL' })
      this.#untilFailure = Number.POSITIVE_INFINITY
      this.compareSamples(this.history, this.committed)
      work()
    } finally {
      this.#untilKill = Number.POSITIVE_INFINITY
      this.#untilFailure = Number.POSITIVE_INFINITY
    }
  }

  commit(): void {
    this.write(() => this.history.commit())
    this.committed = this.appended.copy()
  }

  work(): void {
    this.write(() => {
      for (let count = this.random.below(30); count > 0; count--) this.history.work(0)
    })
  }

  drop(): void {
    this.commit()
    const tenant = this.random.pick(TENANTS)
    const [matchers, matches] = this.random.pick(MATCHERS)
    for (const _ of this.history.drop({ tenant, matchers }));
    for (const model of [this.committed, this.appended]) model.drop(tenant, matches)
  }

  reopen(): void {
    for (const { steps } of this.queries.splice(0)) steps.return()
    this.history.close()
    this.committed = this.appended.copy()
    this.history = this.open()
  }

  select(): void {
    const [matchers, matches] = this.random.pick(MATCHERS)
    const fromMs = this.now - this.random.below(3 * DAY_MS)
    const toMs = this.random.below(2) === 0 ? this.now : fromMs + this.random.below(DAY_MS)
    const tenant = this.random.pick(TENANTS)
    if (this.random.below(2) === 0) {
      this.committed.expectSame(this.history, { tenant, matchers, fromMs, toMs }, matches)
      return
    }
    const steps = this.history.select({ tenant, matchers, fromMs, toMs })
    const found: HistorySamples[] = []
    const { value } = steps.next()
    if (value !== undefined && value !== null) found.push(value)
    this.queries.push({ steps, found, expected: this.committed.lines(tenant, fromMs, toMs, matches) })
  }

  /** Goes on with a query that was begun. */
  proceed(): void {
    const open = this.queries[0]
    if (open === undefined) return
    for (let count = this.random.below(20); count > 0; count--) {
      const { value, done } = open.steps.next()
      if (value !== undefined && value !== null) open.found.push(value)
      if (done !== true) continue
      this.queries.shift()
      expect(linesOf(open.found).toSorted()).toEqual(open.expected.toSorted())
      return
    }
  }

  step(): void {
    const chance = this.random.below(100)
    if (chance < 35) this.append()
    else if (chance < 55) this.commit()
    else if (chance < 75) this.work()
    else if (chance < 85) this.now += this.random.pick([1000, 10_000, 400_000, HOUR_MS])
    else if (chance < 87) this.now += this.random.pick([6 * HOUR_MS, DAY_MS])
    else if (chance < 92) this.select()
    else if (chance < 97) this.proceed()
    else if (chance < 98) this.drop()
    else this.reopen()
  }

  end(): void {
    for (const { steps } of this.queries) steps.return()
    this.history.close()
    rmSync(this.directory, { recursive: true })
  }
}

describe('a history', () => {
  let kills = 0
  let failures = 0

  it.each(seeds({ short: 3, long: 20 }))('is what was committed, at any moment (seed %i)', (seed) => {
    const run = new Run(seed)
    try {
      for (let count = times({ short: 200, long: 400 }); count > 0; count--) run.step()
      run.commit()
      run.compare(run.history, run.committed)
      expectWindows(run)
      // What came while pages were made waits for the next ones, and what was late for a day.
      for (let count = 0; count < 3; count++) {
        run.now += 2 * DAY_MS
        while (run.history.work(0));
      }
      run.compare(run.history, run.committed)
      expectRollups(run)
      expectWindows(run)
      run.reopen()
      run.compare(run.history, run.committed)
      expect(run.history.figures()).toMatchObject({ damagedPages: 0, refusedSamples: 0, tooOld: 0 })
    } finally {
      kills += run.kills
      failures += run.failures
      run.end()
    }
  })

  it('was killed, and found no room', () => {
    expect(kills).toBeGreaterThan(0)
    expect(failures).toBeGreaterThan(0)
  })
})

/** Compares the rollups of all days that are over with those made of the samples. */
function expectRollups({ history, now }: Run): void {
  const toMs = Math.floor((now - 1 - DAY_MS) / DAY_MS) * DAY_MS
  for (const tenant of TENANTS) {
    const rollups = all(history.selectRollups(query(tenant, { toMs })))
    const expected = all(history.select(query(tenant, { toMs }))).map((one) => rolledUp(one))
    const lines = rollups.map((one) => ({ name: nameOf(one), rows: rowsOf(one) }))
    expect(lines).toEqual(expected.filter(({ rows }) => rows.length > 0))
  }
}

/** Compares windows of several lengths, of all times and of a part of them, with those made of the samples. */
function expectWindows({ history, now, random }: Run): void {
  for (const tenant of TENANTS) {
    for (const stepMs of [ROLLUP_MS, HOUR_MS, 3 * DAY_MS]) {
      const fromMs = random.pick([0, now - random.below(3 * DAY_MS)])
      const toMs = random.pick([Number.MAX_SAFE_INTEGER, now - random.below(DAY_MS)])
      const whole = { fromMs: Math.floor((fromMs - 1) / stepMs) * stepMs + 1, toMs: Math.ceil(toMs / stepMs) * stepMs }
      const expected = all(history.select(query(tenant, whole))).map((one) => rolledUp(one, stepMs))
      // The step may be a little longer.
      const found = all(history.select(query(tenant, { fromMs, toMs, stepMs: stepMs + random.below(ROLLUP_MS) })))
      const lines = found.map((one) => ({
        name: nameOf(one),
        rows: one.windows === undefined ? [] : rowsOf(one.windows),
      }))
      expect(lines).toEqual(expected.filter(({ rows }) => rows.length > 0))
      expect(found.every(({ times }) => times.length === 0)).toBe(true)
    }
  }
}

function nameOf({ series: of }: { readonly series: HistorySeries }): string {
  return of.name + JSON.stringify(of.labels)
}

function rowsOf(columns: HistoryWindows): (number | undefined)[][] {
  return Array.from(columns.ends, (end, row) => [
    end,
    ...[columns.min, columns.max, columns.count, columns.first, columns.firstTimes].map((column) => column[row]),
    ...[columns.last, columns.lastTimes].map((column) => column[row]),
    ...[columns.resets, columns.sum].map((column) => Math.fround(column[row]!)),
  ])
}

function rolledUp(found: HistorySamples, stepMs = ROLLUP_MS): { name: string; rows: number[][] } {
  const { times: at, values } = found
  const bits = new BigUint64Array(values.buffer, values.byteOffset, values.length)
  const windows = new Map<number, [number, number][]>()
  for (const [index, time] of at.entries()) {
    if (bits[index] === STALE) continue
    const end = Math.ceil(time / stepMs) * stepMs
    windows.set(end, [...(windows.get(end) ?? []), [time, values[index]!]])
  }
  const rows = [...windows].map(([end, rows]) => {
    const numbers = rows.map(([, value]) => value)
    const known = numbers.filter((value) => !Number.isNaN(value))
    // Of two zeros the first one counts, as in `min_over_time` of Prometheus; for Math.min -0 is less.
    const extreme = (isBeyond: (value: number, one: number) => boolean): number =>
      known.reduce((one, value) => (isBeyond(value, one) ? value : one), known[0] ?? Number.NaN)
    const resets = numbers.reduce((sum, value, row) => sum + (value < numbers[row - 1]! ? numbers[row - 1]! : 0), 0)
    return [
      end,
      extreme((value, least) => value < least),
      extreme((value, most) => value > most),
      rows.length,
      numbers[0]!,
      rows[0]![0],
      numbers.at(-1)!,
      rows.at(-1)![0],
      Math.fround(resets),
      Math.fround(numbers.reduce((sum, value) => sum + value, 0)),
    ]
  })
  return { name: nameOf(found), rows }
}
