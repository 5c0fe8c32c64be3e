/**
 * The window of a channel [MON 8 Window]: what is in flight on its connection, and what keeps more from being sent. Only the
 * window counts what is in flight: in blocks and GAPs, and as the sums over them.
 */
import type { Block } from './block.ts'
import type { GapEntry } from './gap.ts'
import type { Lane } from './lane.ts'
import type { QueueSettings } from './queue-host.ts'

/** Keeps what enters the sending order from now on from being sent: the response to a GET, SUBSCRIBE ... has to go first. */
export interface SendBarrier {
  /** Nothing is sent from this id on. */
  readonly from: number
  release(): void
}

export class Window {
  readonly #ready: () => void
  #maxValues = 0
  #maxBytes = 0
  #values = 0
  #gaps = 0
  #bytes = 0
  /** The window keeps back what could be sent. */
  #standsStill = false
  readonly #barriers = new Set<SendBarrier>()

  /** `ready` is called when more may be sent. */
  constructor(ready: () => void) {
    this.#ready = ready
  }

  /** A channel that is not durable has no window: nothing is ever in flight. */
  configure({ durable, window, windowBytes }: QueueSettings): void {
    this.#maxValues = durable ? window : Number.POSITIVE_INFINITY
    this.#maxBytes = durable ? windowBytes : Number.POSITIVE_INFINITY
  }

  get values(): number {
    return this.#values
  }

  get bytes(): number {
    return this.#bytes
  }

  get isEmpty(): boolean {
    return this.#values + this.#gaps === 0
  }

  get isFull(): boolean {
    const count = this.#values + this.#gaps
    return count > 0 && (count >= this.#maxValues || this.#bytes >= this.#maxBytes)
  }

  /** How many values more may be sent; one may always be in flight. */
  get roomForValues(): number {
    return Math.max(1, this.#maxValues - this.#values - this.#gaps)
  }

  get roomForBytes(): number {
    return this.#maxBytes - this.#bytes
  }

  /** Values of a block are sent. */
  add(block: Block, count: number, bytes: number): void {
    block.inFlight += count
    block.inFlightBytes += bytes
    this.#values += count
    this.#bytes += bytes
  }

  /** Values of a block that were in flight are settled. Bytes go by the average: exact again with the last value. */
  remove(block: Block, count: number): void {
    const { inFlight, inFlightBytes } = block
    const bytes = count === inFlight ? inFlightBytes : Math.floor((inFlightBytes * count) / inFlight)
    block.inFlight = inFlight - count
    block.inFlightBytes = inFlightBytes - bytes
    this.#values -= count
    this.#bytes -= bytes
  }

  addGap(gap: GapEntry): void {
    gap.inFlight = true
    this.#gaps++
  }

  removeGap(gap: GapEntry): void {
    if (!gap.inFlight) return
    gap.inFlight = false
    this.#gaps--
  }

  /** The connection is gone: what was sent of a lane is to be sent again. */
  clear(lane: Lane): void {
    for (let index = 0; index <= lane.cursor; index++) {
      const entry = lane.at(index)
      if (entry === undefined) break
      if (entry.kind === 'gap') entry.inFlight = false
      else entry.rewind()
    }
    this.#values = 0
    this.#gaps = 0
    this.#bytes = 0
    this.#standsStill = false
  }

  /** Nothing more is sent until a COMMIT. */
  standStill(): void {
    this.#standsStill = true
  }

  /** A COMMIT came. */
  reopen(): void {
    if (!this.#standsStill) return
    this.#standsStill = false
    this.#ready()
  }

  holdBack(from: number): SendBarrier {
    const barrier: SendBarrier = {
      from,
      release: () => {
        this.#barriers.delete(barrier)
        this.#ready()
      },
    }
    this.#barriers.add(barrier)
    return barrier
  }

  get hasBarriers(): boolean {
    return this.#barriers.size > 0
  }

  /** `limit`, or the first id that a barrier keeps back, if that is lower. */
  limitBy(limit: number): number {
    for (const { from } of this.#barriers) limit = Math.min(limit, from)
    return limit
  }
}
