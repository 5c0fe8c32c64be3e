/** What is recorded of one tenant: a channel of a user of its own, as a drain has it, and its connection to the thread. */
import { isDeepStrictEqual } from 'node:util'
import type { OwnChannel, WantedBindings } from '../../kit/delivery.ts'
import type { Kit } from '../../kit/kit.ts'
import type { Owner, SensorStatus, StatusEntry } from '../../kit/metrics.ts'
import type { Timer } from '../../kit/running.ts'
import { RecordedConnection } from './connection.ts'
import type { TenantFigures } from './messages.ts'
import type { HistoryThread } from './thread.ts'
import { recordedMetric } from './wanted.ts'

/** The user of each tenant whose channel is recorded. Nobody can log in as that user. */
export const HISTORY_USER = 'history:'
/** Reads what everybody may read who has no rules of their own. */
export const HISTORY_ROLE = 'consumer'
/** A connection that ended, because somebody took its channel, is made again after this time. */
const AGAIN_MS = 10_000

export interface RecordingOptions {
  readonly kit: Kit
  readonly tenant: string
  /** Of the thread; undefined while there is none. */
  readonly thread: () => HistoryThread | undefined
  /** What is wrong with the history as a whole; empty if nothing is. */
  readonly problem: () => string
  readonly figures: () => TenantFigures | undefined
  /** A number for a connection. */
  readonly nextNumber: () => number
  readonly connected: (connection: RecordedConnection) => void
  readonly left: (connection: RecordedConnection) => void
  /** Called when values have come to a connection. */
  readonly came: () => void
}

/** What is recorded. */
export type Wanted = Required<Pick<WantedBindings, 'metrics' | 'resolutionMs'>>

export class Recording implements StatusEntry {
  readonly owner: Owner
  readonly tenant: string
  readonly #options: RecordingOptions
  #wanted: Wanted | undefined
  #channel: OwnChannel | undefined
  #connection: RecordedConnection | undefined
  #problem = ''
  #isMatching = false
  #timer: Timer | undefined
  #isOver = false
  /** Aborted when other metrics are wanted, and when it is stopped. */
  #binding = new AbortController()

  constructor(options: RecordingOptions) {
    this.#options = options
    this.tenant = options.tenant
    this.owner = { tenant: options.tenant }
  }

  /** Records these metrics from now on. Settles when they are bound, and never rejects. */
  async follow(wanted: Wanted): Promise<void> {
    if (isDeepStrictEqual(this.#wanted, wanted)) return
    this.#wanted = wanted
    try {
      await this.#begin(wanted)
    } catch (error) {
      this.#options.kit.log.error({ err: error, tenant: this.tenant }, 'the history of a tenant cannot begin')
    }
  }

  async #begin(wanted: Wanted): Promise<void> {
    const { peer, log } = this.#options.kit
    this.#binding.abort()
    this.#binding = new AbortController()
    const { signal } = this.#binding
    const { tenant } = this
    const channel = await peer.delivery.channelOf({ tenant, name: HISTORY_USER, role: HISTORY_ROLE })
    if (signal.aborted) return
    this.#channel = channel
    channel.onChange(() => this.#connectAgain())
    this.#problem = ''
    this.#isMatching = true
    this.connect()
    await channel.bind({
      ...wanted,
      signal,
      refused: (metric, detail) => {
        this.#problem = `${metric}: ${detail}`
        log.error({ tenant, metric, detail }, 'a metric cannot be recorded')
      },
    })
    if (!signal.aborted) this.#isMatching = false
  }

  /** To be called when the thread is there. */
  connect(): void {
    const { kit, thread: threadOf, nextNumber, connected, left, came } = this.#options
    const { tenant } = this
    const thread = threadOf()
    const channel = this.#channel
    if (this.#isOver || thread === undefined || channel?.state !== 'free') return
    const { generation } = kit.peer.view.stats({ tenant, role: HISTORY_ROLE })
    const connection = new RecordedConnection({
      number: nextNumber(),
      channel: channel.delivered,
      thread,
      tenant,
      generation,
      recordedMetric: (id, selection) => recordedMetric(id, selection, tenant, kit.peer.view),
      came,
      ended: (connection) => {
        left(connection)
        channel.detach(connection)
      },
    })
    this.#connection = connection
    connected(connection)
    channel.attach(connection)
  }

  /** The thread is gone: what it has not stored comes again from the channel. */
  disconnect(): void {
    const connection = this.#connection
    this.#connection = undefined
    connection?.end()
  }

  /** Its channel was deleted, with its user or by an admin: another recording has to take its place. */
  get isOver(): boolean {
    return this.#isOver
  }

  /** Values that are not stored yet. */
  get waiting(): number {
    const channel = this.#channel
    if (channel === undefined || channel.state === 'deleted') return 0
    const { queued, inFlight } = channel.delivered.queue.counts
    return queued + inFlight
  }

  /** Values that were taken in, and those of them that are stored or will never be. */
  get progress(): { readonly accepted: number; readonly settled: number } {
    const channel = this.#channel
    if (channel === undefined || channel.state === 'deleted') return { accepted: 0, settled: 0 }
    const { accepted, queued, inFlight } = channel.delivered.queue.counts
    return { accepted, settled: accepted - queued - inFlight }
  }

  /** What is stored of it counts for its tenant. */
  used({ bytes = 0, series = 0 }: Partial<TenantFigures> = {}): void {
    Object.assign(this.#options.kit.peer.view.use(this.tenant).history, { bytes, series })
  }

  flush(): void {
    this.#connection?.flush()
  }

  stop(): void {
    this.#isOver = true
    this.#binding.abort()
    this.#options.kit.clock.clear(this.#timer)
    this.disconnect()
  }

  #connectAgain(): void {
    const { clock } = this.#options.kit
    if (this.#channel?.state === 'deleted') this.stop()
    if (this.#isOver || this.#channel?.state !== 'free') return
    clock.clear(this.#timer)
    this.#timer = clock.setTimeout(() => this.connect(), AGAIN_MS)
  }

  status(): SensorStatus {
    const { problem, figures } = this.#options
    const { oldestMs: _, ...counters } = figures() ?? {}
    return {
      name: `history/${this.tenant}`,
      state: this.#state,
      detail: problem() || this.#problem,
      counters: counters as Record<string, number>,
    }
  }

  get #state(): string {
    if (this.#options.problem() !== '' || this.#problem !== '') return 'failed'
    if (this.#channel?.state !== 'taken') return 'off'
    return this.#isMatching ? 'matching' : 'recording'
  }
}

type Marked = Pick<Recording, 'progress' | 'isOver'>

interface Waiting {
  readonly marks: ReadonlyMap<Marked, number>
  readonly resolve: () => void
  readonly reject: (error: Error) => void
}

/** Who waits until everything is stored that was accepted before: a mark in the channel of each recording, which it passes in the end. */
export class Marks {
  readonly #waiting = new Set<Waiting>()

  /** Settles when the recordings have stored what they have accepted by now. Rejects when the history ends. */
  reached(recordings: readonly Marked[]): Promise<void> {
    return new Promise((resolve, reject) => {
      const marks = new Map(recordings.map((recording) => [recording, recording.progress.accepted]))
      this.#waiting.add({ marks, resolve, reject })
      this.look()
    })
  }

  get isAwaited(): boolean {
    return this.#waiting.size > 0
  }

  /** To be called when something was stored. */
  look(): void {
    for (const waiting of this.#waiting) {
      const isPassed = [...waiting.marks].every(([one, mark]) => one.isOver || one.progress.settled >= mark)
      if (!isPassed) continue
      this.#waiting.delete(waiting)
      waiting.resolve()
    }
  }

  ended(): void {
    for (const { reject } of this.#waiting) reject(new Error('the history ends'))
    this.#waiting.clear()
  }
}
