/** A client with everything that it wrote and was told, and the frames of it that nobody has looked at yet. */
import { AmqpClient, type AmqpClientOptions } from '../../../protocol/amqp/client.ts'
import type { AmqpDelivery } from '../../../protocol/amqp/session.ts'
import { join, toHex } from '../../support/bytes.ts'
import { attached, HEADER, offering, openOk, tune } from './vectors.ts'

export interface End {
  readonly client: AmqpClient
  readonly opened: { serverProperties: unknown; heartbeatSeconds: number }[]
  readonly deliveries: AmqpDelivery[]
  readonly closed: string[]
  /** What was written since it was asked last, frame by frame, in hexadecimal digits; the protocol header is one of them. */
  written(): string[]
  pushes(...parts: readonly Uint8Array[]): string[]
}

export function connect(options: Partial<AmqpClientOptions> = {}): End {
  const bytes: Uint8Array[] = []
  const opened: End['opened'] = []
  const deliveries: AmqpDelivery[] = []
  const closed: string[] = []
  const client = new AmqpClient({
    virtualHost: '',
    session: 's-1',
    maxBodyBytes: 100_000,
    write: (written) => bytes.push(written),
    events: {
      opened: (info) => opened.push(info),
      delivered: (message) => deliveries.push(message),
      closed: (reason) => closed.push(reason),
    },
    ...options,
  })
  const written = () => frames(join(...bytes.splice(0)))
  const pushes = (...parts: readonly Uint8Array[]) => {
    client.push(join(...parts))
    return written()
  }
  client.start()
  return { client, opened, deliveries, closed, written, pushes }
}

/** One that may send commands; what it wrote until then is not reported. */
export function open(options: Partial<AmqpClientOptions> = {}, tuning = tune): End {
  const end = connect(options)
  end.pushes(HEADER, offering('ANONYMOUS', 'PLAIN'), tuning, openOk, attached)
  return end
}

function frames(bytes: Uint8Array): string[] {
  const found: string[] = []
  for (let at = 0; at < bytes.length; ) {
    const size = bytes[at] === 0x41 ? 8 : (bytes[at + 2]! << 8) | bytes[at + 3]!
    found.push(toHex(bytes.subarray(at, at + size)))
    at += size
  }
  return found
}
