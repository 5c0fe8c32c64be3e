/** Which channel a consumer takes up, and how. */
import type { Place } from './values.ts'

export interface ChannelOptions {
  /**
   * The name of the channel to take up. If the user has no channel with this name, it is created: a program that is started again
   * continues where it was.
   */
  readonly name?: string | undefined
  /** The id of the channel to take up. With `name`, the channel that `after` is about: that of the name may be another by now. */
  readonly channel?: number | undefined
  /** How far an earlier run has come. */
  readonly after?: Place | undefined
  /** With false the channel keeps nothing while there is no connection, and ends with it. */
  readonly durable?: boolean | undefined
  /** With `explicit` only the `commit` method commits. */
  readonly commit?: 'automatic' | 'explicit' | undefined
  /** With false the end of the connection is the end of the consumer. */
  readonly reconnect?: boolean | undefined
}

/** Throws RangeError. */
export function checkOptions({ name, channel, after, durable }: ChannelOptions): void {
  if (name === undefined) return
  if (durable === false) throw new RangeError('a channel with a name is durable: leave out `durable`, or `name`')
  if (after === undefined || channel !== undefined) return
  throw new RangeError(
    'with `name`, `after` needs the `channel` that it is about: the name may have another one by now',
  )
}
