/**
 * The history of the configuration: a thread that stores, and a recording for each tenant. A fault of it, such as a full disk, costs
 * nothing else: what is not stored waits in the channels, within their bounds, and the thread is made again.
 */
import { existsSync, statfsSync } from 'node:fs'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { Backoff, TO_PEER } from '../../../protocol/kept/backoff.ts'
import { copyHistory } from '../../../storage/history/backup.ts'
import { HISTORY_DIRECTORY, type HistoryLimits, type HistoryMatcher } from '../../../storage/history/store.ts'
import type { Kit } from '../../kit/kit.ts'
import type { StatusEntry } from '../../kit/metrics.ts'
import { compilePattern } from '../../kit/producers.ts'
import type { StorageError, Timer } from '../../kit/running.ts'
import { type HistorySection, mostBytes } from './config.ts'
import type { RecordedConnection } from './connection.ts'
import type { ShownHistory } from './figures.ts'
import {
  FIRST_TENANT,
  type Figures,
  type FromThread,
  type ImportCounts,
  type ImportedText,
  SERVER,
} from './messages.ts'
import { HistoryReading } from './reading.ts'
import { HISTORY_ROLE, HISTORY_USER, Marks, Recording } from './recording.ts'
import { ThreadRequests } from './requests.ts'
import { HistoryThread } from './thread.ts'
import { describedMetrics, patternsOfBelow, UNASKED, wantedOf } from './wanted.ts'

/** What may be wrong with the log of a cluster. */
const OF_LOGS: readonly StorageError['code'][] = ['UNREACHABLE', 'FOREIGN', 'BEHIND', 'DEPOSED']
const SWEEPS_PER_FIGURES = 10
const FRESH_MS = 200

export class Recordings implements ShownHistory {
  /** One of each tenant; it changes with them. */
  readonly statuses: StatusEntry[] = []
  readonly #kit: Kit
  /** What is stored, for those who ask. */
  readonly reading = new HistoryReading(
    (message) => {
      this.#thread?.send(message)
      return this.#thread !== undefined
    },
    () => this.#kit.clock.wallMs(),
  )
  readonly #requests = new ThreadRequests((message) => {
    this.#thread?.send(message)
    return this.#thread !== undefined
  })
  readonly #marks = new Marks()
  readonly #backoff = new Backoff(TO_PEER, Math.random)
  readonly #recordings = new Map<string, Recording>()
  /** By their numbers. */
  readonly #connections = new Map<number, RecordedConnection>()
  #lastNumber = 0
  #section: HistorySection | undefined
  #limits: HistoryLimits | undefined
  #thread: HistoryThread | undefined
  /** Settled when no earlier thread has the files open. */
  #closing: Promise<void>
  #figures: Figures | undefined
  #problem = ''
  #timer: Timer | undefined
  #sweeps = 0
  #freshMs = Number.NEGATIVE_INFINITY
  /** The servers below that are recorded, as text. */
  #below = ''
  #recorded: readonly ((name: string) => boolean)[] = []
  #isAnnounced = false
  #isHurrying = false
  #isOver = false

  constructor(kit: Kit) {
    this.#kit = kit
    this.#closing = kit.self.sharedHistory?.released() ?? Promise.resolve()
  }

  /** Of all tenants, as the thread has last said; undefined while nothing is recorded. */
  get figures(): Figures | undefined {
    return this.#figures
  }

  /** Why nothing that is stored can be read now; undefined if it can. */
  get unreadable(): string | undefined {
    if (this.#thread !== undefined) return undefined
    if (this.#section !== undefined && this.#problem === '') return 'the history is not open yet'
    if (this.#section !== undefined) return 'the history has failed and is opened again; the log says why'
    return 'the history is off: set `keep` of [history] in the configuration, such as keep = "30d", and it is recorded from then on'
  }

  waiting(tenant: string): number {
    return this.#recordings.get(tenant)?.waiting ?? 0
  }

  /** Whether the recent values of a metric are those of the history. A whole of `mono.*` records only what agents send by themselves. */
  isRecorded(name: string): boolean {
    return this.#recorded.some((matches) => matches(name))
  }

  /** What has come is read by what is asked from now on. It is stored so often at most, whoever asks. */
  freshen(): void {
    const nowMs = this.#kit.clock.monotonicMs()
    if (nowMs - this.#freshMs < FRESH_MS) return
    this.#freshMs = nowMs
    this.flush()
  }

  /** What has come is stored. */
  flush(): void {
    for (const recording of this.#recordings.values()) recording.flush()
    this.#thread?.send({ kind: 'commit' })
  }

  /** Records what the section says from now on. Settles when it is bound, and never rejects. */
  async follow(section: HistorySection): Promise<void> {
    const wasOn = this.#section !== undefined
    this.#section = section.keepMs > 0 ? section : undefined
    this.#followRecorded(this.#section?.metrics ?? [])
    if (this.#section === undefined) return this.#switchOff()
    if (!wasOn) this.#isAnnounced = false
    this.#limit(section)
    // In a cluster it may take until a thread that followed has ended, and nobody else is to wait for that.
    if (this.#thread === undefined) void this.#open()
    await this.#followTenants()
  }

  #followRecorded(metrics: readonly string[]): void {
    const recorded = metrics.filter((name) => name !== UNASKED)
    this.#recorded = recorded.map((name) => compilePattern(name))
    this.#kit.peer.view.recent.leaveOut((name) => this.isRecorded(name))
  }

  /** To be called every second. */
  sweep(): void {
    const section = this.#section
    if (section === undefined) return
    this.#announce(section)
    this.#limit(section)
    const tenants = this.#kit.peer.view.tenants()
    if (this.#hasChanged(tenants) || this.#belowOf(section, tenants) !== this.#below) void this.#followTenants()
    for (const recording of this.#recordings.values()) recording.flush()
    this.#thread?.send({ kind: 'tick' })
    this.#marks.look()
    if (this.#sweeps++ % SWEEPS_PER_FIGURES === 0) this.#askForFigures()
  }

  /** Not at once: a start that fails has something else to say. */
  #announce({ metrics, intervalMs }: HistorySection): void {
    if (this.#isAnnounced) return
    this.#isAnnounced = true
    const what = 'the history records these metrics: those that are measured or scraped are so all the time'
    this.#kit.log.info({ metrics, intervalMs }, what)
  }

  /** Settles when everything is stored that was accepted up to now of a tenant and of the server. Rejects when the history ends before. */
  caughtUp(tenant: string): Promise<void> {
    const concerned = [...this.#recordings.values()].filter((one) => [tenant, FIRST_TENANT].includes(one.tenant))
    for (const recording of concerned) recording.flush()
    this.#thread?.send({ kind: 'commit' })
    return this.#marks.reached(concerned)
  }

  /** What somebody waits for may come at the end of the turn, or later: it is stored then, and not at the next sweep. */
  #came(): void {
    if (this.#isHurrying || !this.#marks.isAwaited) return
    this.#isHurrying = true
    setImmediate(() => {
      this.#isHurrying = false
      this.flush()
    })
  }

  /** Drops what was taken up to now, and resolves to how many series match. Rejects with an error for people. */
  async drop(tenants: readonly string[], matchers: readonly HistoryMatcher[]): Promise<number> {
    for (const recording of this.#recordings.values()) recording.flush()
    const { count } = await this.#requests.ask({ kind: 'drop', tenants, matchers })
    this.#askForFigures()
    return count
  }

  /** Stores the samples of a text. Rejects with an error for people, and then none of them is stored. */
  async import(text: ImportedText): Promise<ImportCounts | undefined> {
    const { imported } = await this.#requests.ask({ kind: 'import', ...text })
    this.#askForFigures()
    return imported
  }

  /** Whoever has changed what is stored looks at it next. */
  #askForFigures(): void {
    this.#thread?.send({ kind: 'figures' })
  }

  /**
   * Copies what is stored to a directory that does not exist yet, and resolves to its bytes; undefined if nothing is stored. Rejects
   * with an error for people.
   */
  backUp(directory: string): Promise<number | undefined> {
    if (this.#thread !== undefined) return this.#requests.ask({ kind: 'backUp', directory }).then(({ count }) => count)
    const from = this.#directory
    const copying = this.#closing.then(() =>
      existsSync(from) ? copyHistory(from, directory, () => this.#isOver) : undefined,
    )
    // No thread opens the files meanwhile.
    this.#closing = copying.then(
      () => {},
      () => {},
    )
    return copying
  }

  get #directory(): string {
    return join(this.#kit.self.dataDir, HISTORY_DIRECTORY)
  }

  async stop(): Promise<void> {
    this.#isOver = true
    this.#section = undefined
    this.#stopRecording()
    await this.#closing
  }

  #switchOff(): void {
    this.#stopRecording()
    this.#kit.peer.delivery.haltOthers(HISTORY_USER, () => false)
  }

  #stopRecording(): void {
    this.#kit.clock.clear(this.#timer)
    // What was gathered is stored yet; it would only come again.
    for (const recording of this.#recordings.values()) recording.stop()
    this.#recordings.clear()
    this.statuses.length = 0
    const thread = this.#thread
    this.#thread = undefined
    this.reading.ended()
    this.#requests.ended()
    this.#marks.ended()
    this.#figures = undefined
    if (thread !== undefined) this.#closing = thread.close()
  }

  async #open(): Promise<void> {
    await this.#closing
    const limits = this.#limits
    if (this.#section === undefined || this.#thread !== undefined || limits === undefined) return
    const directory = this.#directory
    let thread: HistoryThread | undefined
    const listener = {
      message: (message: FromThread) => this.#take(message),
      failed: (error: Error) => this.#failed(thread, error),
    }
    const { sharedHistory } = this.#kit.self
    const shared = sharedHistory && { log: sharedHistory.log, lead: sharedHistory.lead() }
    try {
      thread = new HistoryThread({ directory, limits, shared }, listener)
    } catch (error) {
      // The system has no thread to give, for example.
      this.#failed(undefined, error as Error)
      return
    }
    this.#thread = thread
    this.#sendTenants(this.#kit.peer.view.tenants())
    for (const recording of this.#recordings.values()) recording.connect()
    // Who asks what is remembered does not wait for the next sweep.
    this.#askForFigures()
  }

  #failed(thread: HistoryThread | undefined, error: Error): void {
    if (this.#thread !== thread) return
    const { log, clock } = this.#kit
    this.#thread = undefined
    this.reading.ended()
    this.#requests.ended()
    this.#problem = error.message
    const delayMs = this.#backoff.next()
    // In a cluster it goes on when the nats-servers do, or another node leads by now.
    const isPassing = this.#kit.self.sharedHistory !== undefined && OF_LOGS.includes((error as StorageError).code)
    log[isPassing ? 'warn' : 'error'](
      { err: error, delayMs },
      'the history has failed, and is opened again; what comes waits in its channels',
    )
    for (const recording of this.#recordings.values()) recording.disconnect()
    this.#timer = clock.setTimeout(() => void this.#open(), delayMs)
  }

  #take(message: FromThread): void {
    if (message.kind === 'figures') {
      this.#figures = message.figures
      for (const [tenant, recording] of this.#recordings) recording.used(message.figures.tenants.get(tenant))
      // It works.
      this.#backoff.reset()
      return
    }
    if (message.kind === 'state') {
      this.#changed(message.problem)
      return
    }
    if (message.kind === 'answer') {
      this.#requests.take(message)
      return
    }
    if (message.kind === 'describe') {
      const { tenant, natives } = message
      const metrics = describedMetrics(tenant, natives, this.#kit.peer.view)
      if (metrics.length > 0) this.#thread?.send({ kind: 'described', tenant, metrics })
      return
    }
    if (message.kind === 'news') {
      this.reading.takeNews(message)
      return
    }
    if (message.kind === 'answers') {
      for (const answer of message.answers) this.reading.take(answer)
      return
    }
    if (
      message.kind === 'portion' ||
      message.kind === 'families' ||
      message.kind === 'lost' ||
      message.kind === 'refused'
    ) {
      this.reading.take(message)
      return
    }
    if (message.kind === 'taken') this.#connections.get(message.connection)?.taken(message.bytes, message.piece)
    else if (message.kind === 'stored') {
      this.#connections.get(message.connection)?.stored(message.transaction)
      this.#marks.look()
    }
  }

  #changed(problem: string): void {
    const { log } = this.#kit
    if (problem !== '')
      log.warn({ detail: problem }, 'the history cannot go on; what it cannot store waits in its channels')
    else if (this.#problem !== '') log.info('the history goes on')
    this.#problem = problem
  }

  /** The limits of the section and of the tenants, if they are others than before. */
  #limit(section: HistorySection): void {
    const { keepMs, keepRollupsMs } = section
    const { view } = this.#kit.peer
    const { bsize, blocks } = statfsSync(this.#kit.self.dataDir)
    const limits: HistoryLimits = {
      keepMs,
      keepRollupsMs,
      maxBytes: mostBytes(section, bsize * blocks),
      quotas: new Map(view.tenants().map((tenant) => [tenant, view.use(tenant).historyLimits])),
    }
    if (isDeepStrictEqual(this.#limits, limits)) return
    this.#limits = limits
    this.#thread?.send({ kind: 'limit', limits })
  }

  #hasChanged(tenants: readonly string[]): boolean {
    return (
      tenants.length !== this.#recordings.size ||
      tenants.some((tenant) => this.#recordings.get(tenant)?.isOver !== false)
    )
  }

  /** They come and go by a reload. */
  #belowOf({ below }: HistorySection, tenants: readonly string[]): string {
    return below ? JSON.stringify(tenants.map((tenant) => this.#patternsOf(tenant))) : ''
  }

  #patternsOf(tenant: string): string[] {
    const { self, peer } = this.#kit
    return patternsOfBelow(tenant, peer.view, self.name)
  }

  #sendTenants(tenants: readonly string[]): void {
    const { generation } = this.#kit.peer.view.stats({ tenant: SERVER, role: HISTORY_ROLE })
    this.#thread?.send({ kind: 'tenants', tenants, generation })
  }

  async #followTenants(): Promise<void> {
    const section = this.#section
    if (section === undefined) return
    const { view } = this.#kit.peer
    const tenants = view.tenants()
    for (const [tenant, recording] of this.#recordings) {
      if (tenants.includes(tenant) && !recording.isOver) continue
      recording.stop()
      this.#recordings.delete(tenant)
    }
    this.#sendTenants(tenants)
    for (const tenant of tenants) {
      if (this.#recordings.has(tenant)) continue
      const recording = new Recording({
        kit: this.#kit,
        tenant,
        thread: () => this.#thread,
        problem: () => this.#problem,
        figures: () => this.#figures?.tenants.get(tenant),
        nextNumber: () => ++this.#lastNumber,
        connected: (connection) => this.#connections.set(connection.number, connection),
        left: ({ number }) => this.#connections.delete(number),
        came: () => this.#came(),
      })
      this.#recordings.set(tenant, recording)
    }
    this.statuses.splice(0, Number.POSITIVE_INFINITY, ...this.#recordings.values())
    const { resolutionMs } = section
    this.#below = this.#belowOf(section, tenants)
    const following = [...this.#recordings].map(([tenant, recording]) => {
      const below = section.below ? this.#patternsOf(tenant) : []
      return recording.follow({ metrics: wantedOf(section, tenant, view, below), resolutionMs })
    })
    await Promise.all(following)
  }
}
