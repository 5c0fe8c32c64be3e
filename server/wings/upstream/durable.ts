/**
 * The connection for durable channels: it empties one durable channel of the upstream, the oldest value first. A value is committed
 * there when all its copies here are on the disk, together with how far the channel was taken.
 */
import { StatusError } from '../../../client/errors.ts'
import type { BoundMetric } from '../../../client/subscriptions.ts'
import { toArgumentList } from '../../../client/values.ts'
import type { Capabilities } from '../../../protocol/monitor/capabilities.ts'
import { GapReason } from '../../../protocol/monitor/constants.ts'
import { FRAME_TRANSACTION, type Gap } from '../../../protocol/monitor/message.ts'
import type { Joining } from '../../kit/producers.ts'
import { PRODUCER } from '../../kit/producers.ts'
import type { LinkUser } from './link.ts'
import type { Position } from './position.ts'
import type { UpstreamSession } from './session.ts'
import type { StoredBindings } from './stored-bindings.ts'
import { boundedUint53, keyOfSelection, nameOfSelection, selectionOf, type Tap } from './tap.ts'
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
  readonly stored: StoredBindings
  readonly intake: Joining['intake']
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
    const { taps, position, stored, channelName, replaced, learned } = this.#options
    const generation = session.capabilities?.generation ?? ''
    const args = toArgumentList({ name: channelName })
    const channel = await session.request('DEF_CHANNEL', { url: '', args })
    const bound = await session.bindings(channel)
    // Also of producers that the upstream has not found again yet.
    await learned(session.capabilities, [...stored.paths(), ...pathsIn(bound)])
    const before = position.row
    // A database of format 13 does not know any.
    const knowsNone = stored.size === 0 && before?.generation === generation && before.channel === channel
    if (before?.generation !== generation || before.channel !== channel) {
      if (before !== undefined && before.generation !== generation) replaced()
      position.begin(generation, channel)
    }
    const unwanted = this.#adopt(bound, knowsNone)
    for (const metric of unwanted) await stop(session, metric, channel)
    // Values may follow the response at once.
    await session.request('SET_CHANNEL', { channel }, () => {
      this.#session = session
    })
    await taps.begin(session, bound !== undefined)
  }

  /**
   * Compares what the channel binds with what is stored here: it is taken over if it is known and wanted, and otherwise its id is
   * returned. What was bound and is not any more has lost values. `takesAll`: what is not stored is taken over by what it selects.
   */
  #adopt(bound: ReadonlyMap<number, BoundMetric> | undefined, takesAll: boolean): number[] {
    const { taps, stored, position } = this.#options
    const unwanted: number[] = []
    taps.forgetIds()
    const fresh = [...(bound?.values() ?? [])].filter(({ id }) => stored.get(id) === undefined)
    for (const { selection, metric, generation, channel } of stored.all()) {
      const { row } = position
      const isOfChannel = generation === row?.generation && channel === row.channel
      const there = bound?.get(metric)
      const isThere = isOfChannel && (bound === undefined || there?.metric === nameOfSelection(selection))
      if (isThere && taps.adopt(selection, metric)) continue
      if (!isThere) this.#lose(selection, generation === row?.generation)
      if (isThere || there !== undefined) unwanted.push(metric)
      stored.delete(selection)
    }
    for (const { id, metric, args } of fresh) {
      const selection = keyOfSelection(metric, Object.entries(args))
      if (!takesAll || !taps.adopt(selection, id)) unwanted.push(id)
      else {
        void stored.put(selection, id)
        stored.made(id)
      }
    }
    return unwanted
  }

  /** A binding is not there any more: somebody has ended it there, or deleted its channel, or its right was withdrawn. */
  gone({ request }: Tap): void {
    this.#lose(selectionOf(request), true)
  }

  /** `isNews`: otherwise all is known to be lost. */
  #lose(selection: string, isNews: boolean): void {
    const { taps, stored, position, lost } = this.#options
    const tap = taps.of(selection)
    const wasMade = stored.delete(selection)
    if (!wasMade || !isNews || tap === undefined) return
    const loss = { count: 0, from: 0, to: 0, reason: GapReason.purged } as const
    this.#hold(tap)
    lost({ ...loss, kind: 'gap', metric: 0, transaction: 0 }, tap)
    tap.lost(loss)
    position.reach(position.reached)
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

/** The paths at the upstream of the producers that a channel binds something of. */
function pathsIn(bound: ReadonlyMap<number, BoundMetric> | undefined): string[] {
  return [...(bound?.values() ?? [])].flatMap(({ args }) => (typeof args[PRODUCER] === 'string' ? args[PRODUCER] : []))
}

async function stop(session: UpstreamSession, metric: number, channel: number): Promise<void> {
  try {
    await session.request('STOP', { metric, channel })
  } catch (error) {
    // It was not bound there any more.
    if (!(error instanceof StatusError)) throw error
  }
}
