/** A history in a directory of its own, with a clock that a test moves. */
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { HistoryDisk } from '../../../storage/history/database.ts'
import { History } from '../../../storage/history/history.ts'
import type { HistoryLimits, HistorySeries } from '../../../storage/history/store.ts'
import { all, append, HOUR_MS, linesOf, query, type Sample, START_MS, UNLIMITED } from './history-model.ts'

export class TestHistory {
  readonly directory = mkdtempSync(join(tmpdir(), 'history-'))
  now = START_MS + 12 * HOUR_MS
  /** How far the clock of the day was set forward. */
  setMs = 0
  history: History
  /** What is free on its disk of 1 TiB. */
  freeBytes = 2 ** 40
  readonly #disk: HistoryDisk | undefined

  readonly #logBytes: number | undefined

  constructor(disk?: HistoryDisk, logBytes?: number) {
    this.#disk = disk
    this.#logBytes = logBytes
    this.history = this.open()
  }

  open(limits: HistoryLimits = UNLIMITED, headSamples = 1 << 20): History {
    const [clock, monotonicMs] = [() => this.now + this.setMs, () => this.now - START_MS]
    const space = () => ({ sizeBytes: 2 ** 40, freeBytes: this.freeBytes })
    const log = this.#logBytes === undefined ? {} : { logBytes: this.#logBytes }
    return History.open(
      { directory: this.directory, clock, monotonicMs, limits, headSamples, space, ...log },
      this.#disk,
    )
  }

  reopen(limits?: HistoryLimits, headSamples?: number): void {
    this.history.close()
    this.history = this.open(limits, headSamples)
  }

  store(samples: readonly Sample[]): void {
    append(this.history, samples)
    this.history.commit()
  }

  /** Lets time pass, and all work be done. */
  pass(ms: number): void {
    this.now += ms
    while (this.history.work(1000));
  }

  /** Stores samples of now, every second back from now. */
  storeMany(of: HistorySeries, count: number, value: (index: number) => number = (index) => index): void {
    this.store(
      Array.from({ length: count }, (_, index): Sample => [of, this.now - 1000 * (count - index), value(index)]),
    )
  }

  lines(tenant = 'acme'): string[] {
    return linesOf(all(this.history.select(query(tenant))))
  }

  /** The bytes of the files of days and months. */
  get fileBytes(): number {
    const names = readdirSync(this.directory).filter((name) => !name.startsWith('fresh.db'))
    return names.reduce((sum, name) => sum + statSync(join(this.directory, name)).size, 0)
  }

  /** The days and months that have files. */
  get periods(): string[] {
    const names = readdirSync(this.directory).filter((name) => name.endsWith('.db') && name !== 'fresh.db')
    return names.map((name) => name.replace(/[.]\d+[.]db$/, '')).toSorted()
  }

  end(): void {
    this.history.close()
    rmSync(this.directory, { recursive: true, force: true })
  }
}
