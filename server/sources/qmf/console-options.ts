/** What a console is made with. */
import type { AmqpClient, AmqpEvents } from '../../../protocol/amqp/client.ts'
import type { Clock } from '../../core/clock.ts'
import type { QmfCounters } from './counters.ts'
import type { SchemaCache } from './schemas.ts'
import type { ConsoleEvents } from './told.ts'

/** What a console needs of an AmqpClient. */
export type AmqpLink = Pick<
  AmqpClient,
  'start' | 'push' | 'tick' | 'declareQueue' | 'bind' | 'unbind' | 'subscribe' | 'transfer' | 'close'
>

export interface ConsoleLimits {
  readonly objects: number
  readonly schemas: number
  readonly packages: number
  readonly agents: number
  /** Under way. */
  readonly calls: number
}
export const consoleLimits: ConsoleLimits = { objects: 20_000, schemas: 1_000, packages: 200, agents: 64, calls: 64 }

export interface ConsoleOptions {
  /** The name of the AMQP session, unique in the broker; the queues are named after it. */
  readonly session: string
  /** How often wanted classes are asked for where the broker does not broadcast. */
  readonly intervalMs: number
  /** Of this broker alone. */
  readonly cache: SchemaCache
  readonly limits?: ConsoleLimits
  readonly counters: QmfCounters
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly events: ConsoleEvents
  readonly connect: (events: AmqpEvents) => AmqpLink
}
