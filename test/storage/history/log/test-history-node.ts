/** A node of a cluster that has nothing but its history, for tests of the log. */
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { History } from '../../../../storage/history/history.ts'
import { HistoryLog } from '../../../../storage/history/log/history-log.ts'
import { LoggedHistory } from '../../../../storage/history/log/logged-history.ts'
import type { HistoryBatch, HistoryLogOptions, HistoryLoss, HistorySeries } from '../../../../storage/history/store.ts'

export const NOW = 1_700_000_000_000
const DAY_MS = 86_400_000
const LIMITS = { keepMs: 1e12, keepRollupsMs: 1e12, maxBytes: 2 ** 40, quotas: new Map() }
const EVER = { fromMs: 0, toMs: 1e14 }

const seriesOf = (host: string): HistorySeries => {
  return { tenant: 'acme', name: 'load', labels: [['host', host]], native: 'test.load' }
}

/** A history with its log, in this process. */
export class TestHistoryNode {
  readonly directory = mkdtempSync(join(tmpdir(), 'cinnabar-history-log-'))
  history!: History
  logged!: LoggedHistory
  log!: HistoryLog
  failure: Error | undefined
  /** What it had when it had applied what was there. */
  reached: string[] | undefined
  #closing = new AbortController()
  #following: Promise<void> | undefined
  #transaction = 0
  #passedMs = 0

  readonly #servers: () => readonly string[]

  /** `servers`: the URLs of nats-servers. */
  constructor(servers: () => readonly string[]) {
    this.#servers = servers
    this.open()
  }

  open(): void {
    this.history = History.open({
      directory: this.directory,
      limits: LIMITS,
      clock: () => NOW + 10_000 + this.#passedMs,
      monotonicMs: () => this.#passedMs,
    })
    this.#closing = new AbortController()
    this.failure = undefined
  }

  options(cluster: string): HistoryLogOptions {
    return { cluster, node: 'a', servers: this.#servers(), replicas: 1, maxBytes: 2 ** 26 }
  }

  async #connect(cluster: string): Promise<void> {
    const { signal } = this.#closing
    const reached = (): void => {
      this.reached = this.lines()
    }
    const parts = { history: this.history, wallMs: () => NOW, signal, report: () => {}, reached, shorterTimes: 1 }
    this.log = await HistoryLog.connect(this.options(cluster), parts)
  }

  async follow(cluster: string): Promise<void> {
    await this.#connect(cluster)
    this.#following = this.log.follow()
  }

  async lead(cluster: string, epoch: number, log = 1): Promise<void> {
    await this.#connect(cluster)
    await this.log.lead({ log, epoch })
    const { history, log: opened } = this
    this.logged = new LoggedHistory({
      history,
      log: opened,
      wallMs: () => NOW,
      logged: () => {},
      failed: (error) => {
        this.failure = error
      },
    })
  }

  /** One sample of each host, at a time of its own. */
  take(hosts: readonly string[], atMs: number, losses: readonly HistoryLoss[] = []): void {
    const series = Uint32Array.from(hosts, (host) => this.logged.seriesOf(seriesOf(host)) as number)
    const times = Float64Array.from(hosts, () => NOW + atMs)
    const values = Float64Array.from(hosts, (_, at) => atMs + at)
    this.#transaction += hosts.length
    const position = {
      generation: 'g 1',
      channel: 1,
      transaction: this.#transaction,
      committed: this.#transaction,
      takenMs: NOW + atMs,
    }
    const batch: HistoryBatch = { tenant: 'acme', position, series, times, values, length: hosts.length, losses }
    this.logged.append(batch)
  }

  /** Until everything is stored, or that has failed. */
  async stored(): Promise<void> {
    while (!this.logged.commit() && this.failure === undefined) await turn()
  }

  /** Lets days pass in its files, so that they are merged. */
  passDays(days: number): void {
    for (let day = 0; day < days; day++) {
      this.#passedMs += DAY_MS
      while (this.history.work(1_000));
    }
  }

  lines(): string[] {
    const lines: string[] = []
    for (const one of this.history.select({ tenant: 'acme', matchers: [], ...EVER })) {
      const host = one?.series.labels[0]?.[1]
      for (const [at, time] of one?.times.entries() ?? []) lines.push(`${host} ${time - NOW} ${one?.values[at]}`)
    }
    return lines
  }

  get transaction(): number {
    return this.history.positionOf('acme')?.transaction ?? 0
  }

  losses(): readonly HistoryLoss[] {
    return this.history.losses({ tenant: 'acme', ...EVER })
  }

  async close(): Promise<void> {
    this.#closing.abort()
    await this.#following
    this.#following = undefined
    await this.log.close()
    this.history.close()
  }
}
