/**
 * The connection of a channel whose values go to the thread of the history. It copies them into pieces, which the thread takes over;
 * they are committed when the thread says that they are on the disk.
 */
import type { ChannelConnection, DeliveredChannel } from '../../kit/push.ts'
import type { RecordedMetric } from './messages.ts'
import type { HistoryThread } from './thread.ts'

/** A message costs the thread as much as some hundred values. */
const PIECE_BYTES = 64 << 10
const FIRST_PIECE_BYTES = 1 << 10
/** Full pieces that have come back, and are filled again: more are never under way. */
const SPARE_PIECES = 4

export interface RecordedConnectionOptions {
  /** Another one for each connection. */
  readonly number: number
  readonly channel: DeliveredChannel
  readonly thread: Pick<HistoryThread, 'send' | 'sendValues'>
  readonly tenant: string
  /** Names the history of transaction ids. */
  readonly generation: string
  readonly recordedMetric: (id: number, selection: DeliveredSelection) => RecordedMetric
  /** Called when values have come. */
  readonly came: () => void
  /** Called when the channel must be left. */
  readonly ended: (connection: RecordedConnection) => void
}

type DeliveredSelection = NonNullable<ReturnType<DeliveredChannel['bindings']['get']>>['instance']['selection']

export class RecordedConnection implements ChannelConnection {
  readonly number: number
  readonly #options: RecordedConnectionOptions
  /** The metric ids that the thread knows. */
  readonly #known = new Set<number>()
  #piece = new Uint8Array(0)
  #used = 0
  readonly #spare: Uint8Array<ArrayBuffer>[] = []
  #isOver = false
  undrained = 0
  readonly behind = false

  constructor(options: RecordedConnectionOptions) {
    this.#options = options
    this.number = options.number
    const { number: connection, channel, thread, tenant, generation } = options
    const { window, windowBytes } = channel.queue.settings
    const { committed, inFlight, queued } = channel.queue.counts
    thread.send({
      kind: 'begin',
      connection,
      channel: channel.id,
      tenant,
      generation,
      owner: channel.owner.userId,
      window,
      windowBytes,
      committed,
      unsettled: inFlight + queued,
    })
  }

  writeValues(bytes: Uint8Array, written: () => void): void {
    const { length } = bytes
    this.undrained += length
    if (this.#used + length > this.#piece.length) this.#makeRoom(length)
    this.#piece.set(bytes, this.#used)
    this.#used += length
    written()
    if (this.#used >= PIECE_BYTES) this.flush()
    this.#options.came()
  }

  /** Nobody asks on this channel. */
  writeAnswers(): void {}

  notice(): void {}

  end(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#options.ended(this)
  }

  /** Gives the thread what was gathered. */
  flush(): void {
    if (this.#used === 0 || this.#isOver) return
    const { number, thread } = this.#options
    this.#bind()
    thread.sendValues(number, this.#piece.subarray(0, this.#used))
    this.#piece = new Uint8Array(0)
    this.#used = 0
  }

  /** The thread has taken so many bytes of a piece. */
  taken(bytes: number, piece: ArrayBuffer): void {
    this.undrained -= bytes
    // A tenant with few values has little memory.
    if (bytes < PIECE_BYTES) this.#spare.length = 0
    else if (this.#spare.length < SPARE_PIECES) this.#spare.push(new Uint8Array(piece))
    if (!this.#isOver) this.#options.channel.outbox.drained()
  }

  /** Everything up to this transaction is on the disk of the history. */
  stored(transaction: number): void {
    this.#options.channel.queue.commit(transaction, true)
  }

  /** The thread has to know what values are of before they come. */
  #bind(): void {
    const { number: connection, channel, thread, recordedMetric } = this.#options
    const metrics: RecordedMetric[] = []
    for (const [id, { instance }] of channel.bindings) {
      if (this.#known.has(id)) continue
      this.#known.add(id)
      metrics.push(recordedMetric(id, instance.selection))
    }
    if (metrics.length > 0) thread.send({ kind: 'bind', connection, metrics })
  }

  /** Pieces are small at first, and grow. */
  #makeRoom(length: number): void {
    const needed = this.#used + length
    const spare = this.#used === 0 ? this.#spare.pop() : undefined
    if (spare !== undefined && spare.length >= needed) {
      this.#piece = spare
      return
    }
    const grown = new Uint8Array(Math.max(needed, Math.min(2 * this.#piece.length, PIECE_BYTES), FIRST_PIECE_BYTES))
    grown.set(this.#piece.subarray(0, this.#used))
    this.#piece = grown
  }
}
