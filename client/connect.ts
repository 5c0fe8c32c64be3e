/** From a URL to a consumer. */
import { type ClientClock, realClock } from './clock.ts'
import { Consumer } from './consumer.ts'
import type { Credentials } from './credentials.ts'
import { type Dial, DialledSessions } from './dialled.ts'
import type { ChannelOptions } from './options.ts'
import type { Security } from './security.ts'
import type { PutOn } from './session.ts'

/** So long a response may take; far longer than a disk does. */
export const DEADLINE_MS = 30_000

export interface ConnectOptions extends ChannelOptions, Security {
  /** So long a response may take, and a command wait for a connection; 30,000 unless given. */
  readonly deadlineMs?: number | undefined
  /** Gives up connecting for the first time. */
  readonly signal?: AbortSignal | undefined
  readonly clock?: ClientClock | undefined
  readonly dial?: Dial | undefined
}

export type Connect = (url: string, credentials: Credentials, options?: ConnectOptions) => Promise<Consumer>

/** Makes the `connect` of a door, which knows how to dial there. */
export function connector(dialUrl: Dial, putOn: PutOn): Connect {
  return (
    url,
    credentials,
    { clock = realClock(), dial = dialUrl, deadlineMs = DEADLINE_MS, signal, tls, wrap, ...rest } = {},
  ) => {
    const sessions = new DialledSessions({ url, credentials, clock, dial, putOn, deadlineMs, tls, wrap })
    return Consumer.open({ ...rest, clock, deadlineMs, sessions }, signal)
  }
}
