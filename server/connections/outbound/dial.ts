/** One channel whose connections the producer makes, and how it stands with it. */
import type { Channel } from '../../channels/channel.ts'
import type { ChannelConnection } from '../../channels/outbox.ts'
import type { Timer } from '../../core/clock.ts'
import type { AuthProvider } from '../../sessions/incoming-connection.ts'
import type { Destination } from './destination.ts'

const FIRST_MS = 1_000
const LONGEST_MS = 60_000

export class Dial {
  readonly channel: Channel
  readonly destination: Destination
  /** undefined: nobody is asked who it is, since nobody answers. */
  readonly door: AuthProvider | undefined
  timer: Timer | undefined
  /** An attempt under way: from the question for its addresses until the peer has proven who it is. */
  attempt: AbortController | undefined
  /** It waits for its turn. */
  queued = false
  /** The connection that the producer made takes the channel next. */
  isAboutToHave = false
  /** It is the one that has the channel. */
  isOurs = false
  /** One without a session: it has to be ended from here. */
  oneWay: ChannelConnection | undefined
  /** In a row. */
  failures = 0
  /** Counts attempts: of several addresses each has its turn. */
  attempts = 0

  constructor(channel: Channel, destination: Destination, door: AuthProvider | undefined) {
    this.channel = channel
    this.destination = destination
    this.door = door
  }

  get isIdle(): boolean {
    return this.timer === undefined && this.attempt === undefined && !this.queued
  }

  /** Until the next attempt: 1 s doubling to 60 s, of which up to a half is left out at random (0..1). */
  backoffMs(random: number): number {
    return Math.min(FIRST_MS * 2 ** Math.min(this.failures, 16), LONGEST_MS) * (1 - random / 2)
  }
}
