/** The connection of a channel of a wing's own: made again whenever somebody else has had the channel, until the channel is gone. */
import type { OwnChannel } from './delivery.ts'
import type { ChannelConnection } from './push.ts'
import type { Clock, Timer } from './running.ts'

/** A connection that ended, because somebody took its channel, is made again after this time. */
const AGAIN_MS = 10_000

/** What takes the values of the channel. */
export interface StartedConnection extends ChannelConnection {
  /** It has the channel now. */
  start(): void
}

export interface OwnConnectionOptions<Connection extends StartedConnection> {
  readonly channel: OwnChannel
  readonly clock: Pick<Clock, 'setTimeout' | 'clear'>
  readonly make: () => Connection
  /** Called when the channel was deleted, with its user or by an admin: nothing comes any more. */
  readonly deleted: () => void
}

export class OwnConnection<Connection extends StartedConnection> {
  readonly #options: OwnConnectionOptions<Connection>
  #made: Connection | undefined
  #timer: Timer | undefined
  #isOver = false

  constructor(options: OwnConnectionOptions<Connection>) {
    this.#options = options
  }

  /** The last one that was made. */
  get made(): Connection | undefined {
    return this.#made
  }

  begin(): void {
    this.#options.channel.onChange(() => this.#changed())
    // It may have been deleted since it was found.
    if (this.#options.channel.state === 'deleted') this.#changed()
    else this.#connect()
  }

  end(): void {
    this.#isOver = true
    this.#options.clock.clear(this.#timer)
    this.#made?.end()
  }

  #connect(): void {
    const { channel, make } = this.#options
    if (this.#isOver || channel.state !== 'free') return
    this.#made = make()
    channel.attach(this.#made)
    this.#made.start()
  }

  #changed(): void {
    const { channel, clock, deleted } = this.#options
    if (this.#isOver) return
    if (channel.state === 'deleted') {
      this.end()
      deleted()
    } else if (channel.state === 'free') {
      clock.clear(this.#timer)
      this.#timer = clock.setTimeout(() => this.#connect(), AGAIN_MS)
    }
  }
}
