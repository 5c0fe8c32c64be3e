/** What a consumer can be told when it is made. */
import type { ClientClock } from './clock.ts'
import type { Sessions } from './session.ts'

export interface ChannelOptions {
  /** The channel to take up; one of its own unless given. */
  readonly channel?: number | undefined
  /** The highest transaction id that an earlier run has handled: nothing up to it is handed out again. */
  readonly after?: number | undefined
  /** False: the channel keeps nothing while there is no connection, and ends with it. */
  readonly durable?: boolean | undefined
  /** `explicit`: nothing is committed but by `commit`. */
  readonly commit?: 'automatic' | 'explicit' | undefined
  /** False: the end of the connection is the end of the consumer. */
  readonly reconnect?: boolean | undefined
}

export interface ConsumerOptions extends ChannelOptions {
  readonly sessions: Sessions
  readonly clock: ClientClock
  /** So long a response may take. */
  readonly deadlineMs: number
}
