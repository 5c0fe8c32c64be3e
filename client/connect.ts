/** From a URL to a consumer: dials and logs in, both within one deadline. */
import { type Clock, systemClock } from './clock.ts'
import { Consumer, type ConsumerOptions } from './consumer.ts'
import { dial as dialUrl } from './dial/dial.ts'
import { ConnectionError } from './errors.ts'
import type { Credentials } from './login.ts'
import type { Transport } from './transport.ts'

const DEADLINE_MS = 10_000

export interface ConnectOptions extends Omit<ConsumerOptions, 'name' | 'signal'> {
  readonly dial?: ((url: string, signal: AbortSignal) => Promise<Transport>) | undefined
}

/**
 * Connects to `tcp://host:port`, `ws://host:port/monitor` or `wss://`. Throws ConnectionError.
 *
 *     const consumer = await connect('tcp://127.0.0.1:7650', { identity: 'alice', password })
 *     const load = await consumer.query('host.load.one')
 */
export async function connect(
  url: string,
  credentials: Credentials,
  { dial = dialUrl, ...options }: ConnectOptions = {},
): Promise<Consumer> {
  const clock: Clock = options.clock ?? systemClock()
  const abort = new AbortController()
  const late = () => {
    const peer = `${url} as ${credentials.identity}`
    abort.abort(new ConnectionError('TIMEOUT', `${peer}: not connected and logged in after ${DEADLINE_MS / 1000} s`))
  }
  const timer = clock.setTimeout(late, DEADLINE_MS)
  try {
    const transport = await dial(url, abort.signal)
    return await Consumer.open(transport, credentials, { ...options, clock, name: url, signal: abort.signal })
  } catch (error) {
    throw abort.signal.aborted ? abort.signal.reason : error
  } finally {
    timer.cancel()
  }
}
