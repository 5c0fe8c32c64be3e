/**
 * The history of a node of a cluster that follows: a thread applies what the node that leads has recorded, so that everything is here
 * when this one leads. A fault of it costs nothing else; the thread is made again.
 */
import { statfsSync } from 'node:fs'
import { join } from 'node:path'
import { Backoff, TO_PEER } from '../../../protocol/kept/backoff.ts'
import { HISTORY_DIRECTORY, type HistoryLimits, type HistoryLogOptions } from '../../../storage/history/store.ts'
import type { Kit } from '../../kit/kit.ts'
import type { Timer } from '../../kit/running.ts'
import { type HistorySection, mostBytes } from './config.ts'
import type { FromThread } from './messages.ts'
import { HistoryThread } from './thread.ts'

/** How often there is time for work in the background. */
const TICK_MS = 1_000
/** The node that leads judges what tenants may have. */
const NO_QUOTAS: HistoryLimits['quotas'] = new Map()

export interface FollowerOptions extends Pick<Kit, 'clock' | 'log'> {
  /** In force. */
  readonly section: () => HistorySection
  readonly dataDir: string
  readonly historyLog: HistoryLogOptions
}

export class HistoryFollower {
  readonly #options: FollowerOptions
  readonly #backoff = new Backoff(TO_PEER, Math.random)
  #isFollowing = false
  #thread: HistoryThread | undefined
  #timer: Timer | undefined
  #ticking: Timer | undefined
  #closing: Promise<void> = Promise.resolve()
  #problem = ''

  constructor(options: FollowerOptions) {
    this.#options = options
  }

  /** Follows from now on, unless it does. */
  start(): void {
    if (this.#isFollowing) return
    this.#isFollowing = true
    this.#ticking = this.#options.clock.setInterval(() => this.#tick(), TICK_MS)
    void this.#open()
  }

  /** Follows no more; `released` says when the files are free. */
  stop(): void {
    const { clock } = this.#options
    this.#isFollowing = false
    clock.clear(this.#timer)
    this.#timer = undefined
    clock.clear(this.#ticking)
    this.#close()
  }

  /** Settled when nothing of this has the files open. */
  released(): Promise<void> {
    return this.#closing
  }

  #tick(): void {
    const isOn = this.#options.section().keepMs > 0
    if (isOn && this.#thread !== undefined) {
      this.#thread.send({ kind: 'limit', limits: this.#limits })
      this.#thread.send({ kind: 'tick' })
    } else if (isOn && this.#timer === undefined) void this.#open()
    else if (!isOn) this.#close()
  }

  #close(): void {
    const thread = this.#thread
    this.#thread = undefined
    if (thread !== undefined) this.#closing = thread.close()
  }

  async #open(): Promise<void> {
    await this.#closing
    const { dataDir, historyLog: log, section } = this.#options
    if (!this.#isFollowing || this.#thread !== undefined || section().keepMs === 0) return
    let thread: HistoryThread | undefined
    const failed = (error: Error): void => this.#failed(thread, error)
    try {
      thread = new HistoryThread(
        { directory: join(dataDir, HISTORY_DIRECTORY), limits: this.#limits, shared: { log, lead: undefined } },
        { message: (message) => this.#take(message), failed },
      )
      this.#thread = thread
    } catch (error) {
      // The system has no thread to give, for example.
      failed(error as Error)
    }
  }

  get #limits(): HistoryLimits {
    const { section, dataDir } = this.#options
    const { keepMs, keepRollupsMs } = section()
    const { bsize, blocks } = statfsSync(dataDir)
    return { keepMs, keepRollupsMs, maxBytes: mostBytes(section(), bsize * blocks), quotas: NO_QUOTAS }
  }

  #failed(thread: HistoryThread | undefined, error: Error): void {
    if (this.#thread !== thread) return
    const { log, clock } = this.#options
    this.#thread = undefined
    const delayMs = this.#backoff.next()
    log.warn({ err: error, delayMs }, 'the history of this node does not follow, and is opened again')
    this.#timer = clock.setTimeout(() => {
      this.#timer = undefined
      void this.#open()
    }, delayMs)
  }

  #take(message: FromThread): void {
    if (message.kind === 'state') this.#changed(message.problem)
    // What ended the thread before may be in the log: it works when that is applied.
    else if (message.kind === 'reached') this.#backoff.reset()
  }

  #changed(problem: string): void {
    const { log } = this.#options
    if (problem !== '')
      log.warn({ detail: problem }, 'the history of this node cannot follow now; it goes on when it can')
    else if (this.#problem !== '') log.info('the history of this node follows again')
    this.#problem = problem
  }
}
