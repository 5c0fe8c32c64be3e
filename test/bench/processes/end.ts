/**
 * What the two ends of a `durable` run are, whoever the server between them is. Each lives in a process of its own
 * (`program.ts`), is ready before the clock starts, and speaks its protocol by hand over a raw socket.
 */

import type { Taking } from '../client-consumer.ts'

/** What an end has to do; goes to its process as JSON. */
export interface Job {
  /** The server below the one that is consumed, and what it is called there. */
  readonly below?: { readonly port: number; readonly producer: string }
  readonly end: EndName
  /** Where the end connects, on 127.0.0.1. */
  readonly port: number
  readonly values: number
  /** How the consumer of Cinnabar commits. */
  readonly commits?: Commits
  /** How the client library's consumer takes values. */
  readonly taking?: Taking
}

export interface Commits {
  /** One COMMIT `through` per read instead of one per value. */
  readonly through: boolean
  /** COMMITs leave shuffled within so many; 0 = in order. */
  readonly shuffle: number
  /** A value is committed when the server has said that it is stored, not before. */
  readonly writeAll: boolean
  /** A function gets an object for each value, as the handlers of a library do. */
  readonly handed?: boolean
}

export const endNames = [
  'smon-publisher',
  'cinnabar-consumer',
  'client-consumer',
  'redis-publisher',
  'redis-consumer',
  'nats-publisher',
  'nats-consumer',
  'mqtt-publisher',
  'mqtt-consumer',
] as const
export type EndName = (typeof endNames)[number]

export interface Outcome {
  /** Values that the server said it dropped. */
  readonly dropped: number
  /** Of a consumer that tells: the bytes of all frames with values. */
  readonly valueBytes?: number
}

/** An end that is connected and ready. */
export interface End {
  /** A publisher: everything is sent and, where the protocol has that, confirmed. A consumer: everything is acknowledged. */
  run(): Promise<Outcome>
  close(): void
}

export type OpenEnd = (job: Job) => Promise<End>

export interface Done extends Outcome {
  readonly kind: 'done'
  /** Seconds of the machine's monotonic clock, which is the same for all processes. */
  readonly began: number
  readonly ended: number
  /** Of this end's process, for the run. */
  readonly cpuSeconds: number
}

/** What an end's process tells the benchmark. */
export type Told = { readonly kind: 'ready' } | Done

/** Every value of the peers is so long. */
export const VALUE_BYTES = 24
