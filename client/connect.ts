/** From a URL to a consumer. */
import { type Clock, systemClock } from './clock.ts'
import { Consumer } from './consumer.ts'
import type { Credentials } from './login.ts'
import type { ChannelOptions } from './options.ts'
import type { Dial } from './session.ts'

/** So long a response may take; far longer than a disk does. */
const DEADLINE_MS = 30_000

export interface ConnectOptions extends ChannelOptions {
  /** So long a response may take, and a command wait for a connection; 30,000 unless given. */
  readonly deadlineMs?: number | undefined
  /** Gives up connecting for the first time. */
  readonly signal?: AbortSignal | undefined
  readonly clock?: Clock | undefined
  readonly dial?: Dial | undefined
}

export type Connect = (url: string, credentials: Credentials, options?: ConnectOptions) => Promise<Consumer>

/** Makes the `connect` of a door, which knows how to dial there. */
export function connector(dialUrl: Dial): Connect {
  return (
    url,
    credentials,
    { clock = systemClock(), dial = dialUrl, deadlineMs = DEADLINE_MS, signal, ...rest } = {},
  ) => Consumer.open({ ...rest, url, credentials, clock, dial, deadlineMs }, signal)
}
