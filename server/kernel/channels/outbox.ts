/**
 * The way from a channel to its connection: answers go first (they are no queue entries and may overtake), then the queue.
 * Answers go out at the end of the turn, whatever values wait for.
 * At most 256 KiB are handed over that the link has not drained [MON 8 Window].
 */
import type { Scope } from '../../../auth/permissions.ts'
import { XdrWriter } from '../../../protocol/bytes/writer.ts'
import { FRAME_METRIC } from '../../../protocol/monitor/message.ts'
import type { Clock, Timer } from '../core/clock.ts'
import type { Block } from './block.ts'
import type { Queue } from './queue.ts'
import type { Task, TurnScheduler } from './turn-scheduler.ts'

/** What `producer.connections` reports of a connection. */
export interface ConnectionFacts {
  /** Empty if the producer made the connection: the consumer must not learn what the name of its URL resolves to [MON 14]. */
  readonly address: string
  readonly transport: string
  /** The layers that WRAP has added. */
  readonly layers: readonly string[]
  /** The method of the login, or `dialled`. */
  readonly method: string
  /** When it logged in, microseconds since 1970. */
  readonly since: number
}

/** The connection as a channel sees it. */
export interface ChannelConnection {
  /** Bytes of values handed over, by this channel or an earlier one, that have not left this process. */
  readonly undrained: number
  /** The peer has not taken what it asked for: it should not ask for more. */
  readonly behind: boolean
  /** Writes whole frames of values; `written` is called when they are out. The channel is woken then. */
  writeValues(bytes: Uint8Array, written: () => void): void
  /** The same for values that are no queue entries. */
  writeAnswers(bytes: Uint8Array): void
  notice(code: number, channel: number, detail: string): void
  /** The credential of the login. Its scope has to cover what is bound on the channel; without one everything is covered. */
  readonly credential?: { readonly scope?: Scope | undefined }
  /** undefined if nobody has logged in on it, as where values are only sent on. */
  readonly facts?: ConnectionFacts
  /** Ends the connection after what was written. It leaves the channel first. */
  end(): void
}

const UNDRAINED_BYTES = 256 << 10
const STANDSTILL_MS = 1000
/** With one more block of at most 256 KiB, a portion stays within what the store reads without letting a batch pass. */
const PORTION_BYTES = 512 << 10

export interface OutboxOptions {
  /** The tenant of the channel's owner. */
  readonly tenant: string
  readonly queue: Queue
  readonly turn: TurnScheduler
  readonly clock: Pick<Clock, 'setTimeout' | 'clear'>
  /** Reads the frames of blocks back, in the order of the blocks; undefined for those that are damaged. */
  readonly read: (blocks: readonly Block[]) => Promise<readonly (Uint8Array | undefined)[]>
  /** Nothing more comes until COMMIT: called once per standstill. */
  readonly standstill: (connection: ChannelConnection) => void
  /** Ends the connection, if there is one: the channel could not serve it. */
  readonly failed: (error: unknown, connection: ChannelConnection | undefined) => void
}

export class Outbox implements Task {
  readonly #options: OutboxOptions
  #connection: ChannelConnection | undefined
  #answers = new XdrWriter()
  /** What to do for answers that are not handed over when the connection ends. */
  #otherwise: { readonly metric: number; readonly act: () => void }[] = []
  /** The bytes that are still to be sent before it reads on. */
  #untilLoad = PORTION_BYTES
  #timer: Timer | undefined
  #full = false
  #paused = false
  /** It is scheduled for the end of this turn: asking the scheduler for each value costs a tenth of what a value costs. */
  #due = false
  readonly #answering: Task

  constructor(options: OutboxOptions) {
    this.#options = options
    this.#answering = {
      tenant: options.tenant,
      atTurnEnd: () => this.#sendAnswers(),
      failed: (error) => this.failed(error),
    }
  }

  get tenant(): string {
    return this.#options.tenant
  }

  get connection(): ChannelConnection | undefined {
    return this.#connection
  }

  /** Bytes of answers that are not handed to the connection. */
  get backlog(): number {
    return this.#answers.length
  }

  /** True while the window keeps values back. */
  get windowFull(): boolean {
    return this.#full
  }

  /** `paused`: nothing is sent before `resume`, since a response has to go first. */
  attach(connection: ChannelConnection, paused = false): void {
    this.#connection = connection
    this.#paused = paused
    this.#options.queue.attach()
    this.wake()
  }

  /** What was handed over and not drained belongs to the old connection; its values come again on the next one. */
  detach(): void {
    this.#connection = undefined
    this.#answers = new XdrWriter()
    this.#moved()
    this.#options.queue.detach()
    const otherwise = this.#otherwise
    this.#otherwise = []
    for (const { act } of otherwise) act()
  }

  resume(): void {
    this.#paused = false
    this.#wakeAnswers()
    this.wake()
  }

  wake(): void {
    if (this.#due || !this.#connection || this.#paused) return
    this.#due = true
    this.#options.turn.schedule('send', this)
  }

  #wakeAnswers(): void {
    if (this.#connection && !this.#paused) this.#options.turn.schedule('answer', this.#answering)
  }

  /**
   * The link has taken what it was handed: more follows at once. A turn brings in several times what is handed over at one
   * time; a consumer that got only that much per turn was slower than the feed, and its values came from the disk.
   */
  drained(): void {
    this.#send()
  }

  /**
   * Sends a frame that is no queue entry; false if there is no connection. `otherwise` is called for an answer of `metric` if
   * the connection ends before it is handed over.
   */
  answer(write: (writer: XdrWriter) => void, metric = 0, otherwise?: () => void): boolean {
    if (!this.#connection) return false
    const { length } = this.#answers
    this.#answers.whole(write)
    if (otherwise) this.#otherwise.push({ metric, act: otherwise })
    if (length === 0) this.#wakeAnswers()
    return true
  }

  /** STOP: answers of an id that are not handed over yet are dropped. */
  dropAnswers(metric: number): void {
    if (this.#answers.length === 0) return
    this.#otherwise = this.#otherwise.filter((answer) => answer.metric !== metric)
    const kept = new XdrWriter()
    const bytes = this.#answers.bytes()
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    for (let at = 0, end = 0; at < bytes.length; at = end) {
      end = at + 4 + view.getUint32(at)
      if (view.getUint32(at + FRAME_METRIC) !== metric) kept.raw(bytes.subarray(at, end))
    }
    this.#answers = kept
  }

  atTurnEnd(): void {
    this.#due = false
    this.#send()
  }

  /** Something of the channel has thrown. */
  failed(error: unknown): void {
    this.#options.failed(error, this.#connection)
  }

  #sendAnswers(): void {
    if (!this.#connection || this.#paused || this.#answers.length === 0) return
    const bytes = this.#answers.copy()
    this.#answers.clear()
    this.#otherwise = []
    this.#connection.writeAnswers(bytes)
  }

  #send(): void {
    this.#sendAnswers()
    const connection = this.#connection
    if (!connection || this.#paused) return
    this.#sendValues(connection)
    if (this.#connection === connection && this.#untilLoad <= 0) this.#load()
  }

  /** To write may end the connection, or make it leave the channel: then nothing more of the queue is for it. */
  #sendValues(connection: ChannelConnection): void {
    while (this.#connection === connection && connection.undrained < UNDRAINED_BYTES) {
      const { undrained } = connection
      const next = this.#options.queue.next(UNDRAINED_BYTES - undrained, undrained === 0)
      if (next.kind === 'window') {
        this.#standsStill(connection)
        return
      }
      if (next.kind === 'load') {
        this.#load()
        return
      }
      this.#moved()
      if (next.kind === 'nothing') return
      const { bytes, chunk } = next
      this.#untilLoad -= bytes.length
      connection.writeValues(bytes, () => chunk?.unhold())
    }
  }

  /** Reads back what is sent next: before it is waited for, so that the store reads while the consumer takes what is there. */
  #load(): void {
    const { queue, read } = this.#options
    this.#untilLoad = PORTION_BYTES
    for (const blocks of portions(queue.readAhead())) {
      // A read that fails is the end of the store, which reports that itself: nothing more is loaded.
      read(blocks)
        .then(
          (found) => {
            for (const [index, block] of blocks.entries()) this.#loaded(block, found[index])
            this.wake()
          },
          () => {},
        )
        .catch((error) => this.failed(error))
    }
  }

  /** What one block throws must not leave the others as if they were still being read. */
  #loaded(block: Block, bytes: Uint8Array | undefined): void {
    try {
      this.#options.queue.loaded(block, bytes)
    } catch (error) {
      this.failed(error)
    }
  }

  #standsStill(connection: ChannelConnection): void {
    if (this.#full) return
    this.#full = true
    this.#timer = this.#options.clock.setTimeout(() => this.#options.standstill(connection), STANDSTILL_MS)
  }

  #moved(): void {
    this.#full = false
    if (this.#timer) this.#options.clock.clear(this.#timer)
    this.#timer = undefined
  }
}

/** Divides blocks into portions for reading; each costs one message to the store. */
function portions(blocks: readonly Block[]): Block[][] {
  const portions: Block[][] = []
  let room = 0
  for (const block of blocks) {
    if (room <= 0) {
      portions.push([])
      room = PORTION_BYTES
    }
    portions.at(-1)!.push(block)
    room -= block.length
  }
  return portions
}
