/**
 * The connection for durable channels: it empties one durable channel of the upstream, the oldest value first. A value is committed
 * there when all its copies here are on the disk, together with how far the channel was taken.
 */
import { toArgumentList } from '../../../client/values.ts'
import type { Capabilities } from '../../../protocol/monitor/capabilities.ts'
import { GapReason } from '../../../protocol/monitor/constants.ts'
import { FRAME_TRANSACTION, type Gap } from '../../../protocol/monitor/message.ts'
import type { Intake } from '../../channels/intake.ts'
import type { LinkUser } from './link.ts'
import type { Position } from './position.ts'
import type { UpstreamSession } from './session.ts'
import { boundedUint53, type Tap } from './tap.ts'
import type { Taps } from './taps.ts'

const PAYLOAD_TRANSACTION = FRAME_TRANSACTION - 4

export interface DurableCounters {
  /** Values that were taken, those that came again and were not, and GAPs. */
  readonly values: number
  readonly repeated: number
  readonly gaps: number
  /** The last transaction id that was committed. */
  readonly committed: number
}

export interface DurableOptions {
  readonly taps: Taps
  readonly position: Position
  readonly intake: Pick<Intake, 'refusal' | 'isClosed'>
  /** The name of the channel at the upstream. */
  readonly channelName: string
  readonly counted: () => void
  /** The upstream reports a loss; of one selection, if there is a tap. */
  readonly lost: (gap: Gap, tap: Tap | undefined) => void
  readonly changed: (problem: string) => void
  /** Ends the connection. */
  readonly drop: (reason: Error) => void
  /** The upstream has these producers below it. Rejects if it must not be used; settles when they are followed. */
  readonly learned: (caps: Capabilities | undefined, paths: readonly string[]) => Promise<void>
  /** The upstream has another history than the one before. */
  readonly replaced: () => void
}

export class Durable implements LinkUser {
  readonly #options: DurableOptions
  #session: UpstreamSession | undefined
  /** The last value that came again in this turn; 0 if none did. */
  #again = 0
  readonly #counters = { values: 0, repeated: 0, gaps: 0, committed: 0 }

  constructor(options: DurableOptions) {
    this.#options = options
  }

  get counters(): DurableCounters {
    return this.#counters
  }

  /** Values wait at the upstream as long as they cannot be stored here. Nobody needs the connection if nothing is bound durably. */
  get hindrance(): string {
    const { taps, position, intake } = this.#options
    if (intake.isClosed) return intake.refusal?.detail ?? ''
    return taps.size === 0 && position.row === undefined ? 'nothing is bound durably' : ''
  }

  async begin(session: UpstreamSession): Promise<void> {
    const { taps, position, channelName, replaced, learned } = this.#options
    const generation = session.capabilities?.generation ?? ''
    const args = toArgumentList({ name: channelName })
    const channel = await session.request('DEF_CHANNEL', { url: '', args })
    const bound = await session.bindings(channel)
    // Also of producers that the upstream has not found again yet.
    const paths = [...bound.values()].flatMap(({ args }) =>
      typeof args['producer'] === 'string' ? args['producer'] : [],
    )
    await learned(session.capabilities, paths)
    const before = position.row
    if (before?.generation !== generation || before.channel !== channel) {
      if (before !== undefined && before.generation !== generation) replaced()
      position.begin(generation, channel)
    }
    const unknown = taps.adopt(bound.values())
    for (const metric of unknown) await session.request('STOP', { metric, channel })
    // Values may follow the response at once.
    await session.request('SET_CHANNEL', { channel }, () => {
      this.#session = session
    })
    await taps.begin(session)
  }

  value(metric: number, bytes: Uint8Array, start: number, end: number, view: DataView): boolean {
    // The answers that `begin` waits for.
    if (this.#session === undefined) return false
    const transaction = boundedUint53(view, start + PAYLOAD_TRANSACTION)
    if (!this.#isNew(transaction)) return true
    const tap = this.#options.taps.byId(metric)
    if (tap !== undefined) {
      this.#hold(tap)
      tap.take(bytes, start, end, view)
    }
    this.#options.counted()
    this.#counters.values++
    this.#options.position.reach(transaction)
    return true
  }

  gap(gap: Gap): void {
    if (this.#session === undefined || !this.#isNew(gap.transaction)) return
    const { taps, position, lost } = this.#options
    this.#counters.gaps++
    lost(gap, taps.byId(gap.metric))
    taps.lost(gap, (tap) => this.#hold(tap))
    position.reach(gap.transaction)
  }

  /** All values until now are lost for sure, or may be: it is another channel than the one that was emptied. */
  lostHistory(): void {
    for (const tap of this.#options.taps.all()) {
      this.#hold(tap)
      tap.lost({ count: 0, from: 0, to: 0, reason: GapReason.replaced })
    }
  }

  /** To be called before anything is appended for a tap. */
  #hold(tap: Tap): void {
    const { position } = this.#options
    if (tap.heldIn === position.round) return
    tap.heldIn = position.round
    for (const queue of tap.queues()) position.hold(queue)
  }

  /** Everything up to this id is on the disk. */
  stored(reached: number): void {
    if (this.#session === undefined || reached === 0) return
    this.#counters.committed = reached
    this.#commit(reached)
  }

  /** The other connection gets them too. */
  capabilities(): void {}

  changed(problem: string): void {
    this.#options.changed(problem)
  }

  over(): void {
    this.#session = undefined
    this.#options.taps.over()
  }

  /** The COMMIT of a value was lost. One for all that come in a turn is enough. */
  #commitAgain(transaction: number): void {
    const isFirst = this.#again === 0
    this.#again = transaction
    if (!isFirst) return
    queueMicrotask(() => {
      this.#commit(this.#again)
      this.#again = 0
    })
  }

  #commit(transaction: number): void {
    // If it is lost, the values come again, and are committed again.
    this.#session?.request('COMMIT', { transaction, through: true }).catch(() => {})
  }

  /** Whether a value is one that was not taken yet, and can be taken now. */
  #isNew(transaction: number): boolean {
    const { position, intake, drop } = this.#options
    if (transaction <= position.reached) {
      this.#counters.repeated++
      if (transaction <= position.stored) this.#commitAgain(transaction)
      return false
    }
    if (!intake.isClosed) return true
    // What was not committed comes again over the next connection.
    drop(new Error(intake.refusal?.detail))
    return false
  }
}
