/**
 * An agent behind a broker; the broker itself is the one with agent bank 0. Where heartbeats come, changes are broadcast
 * too and nothing has to be asked for; qpidd does so only when told to.
 */

import type { TableSchema } from '../../../protocol/qmf/types.ts'
import { BROKER_PACKAGE } from './own-objects.ts'
import type { ObjectSample } from './told.ts'

/** The broker's own banks. */
export const BROKER_AGENT = '1.0'

/** Missing that many heartbeats means that there are no more broadcasts. */
const MISSING = 3
/** Of the time without a heartbeat; the first says nothing of when the next will come (qpidd: 10 s). */
const FIRST_MS = 30_000
const LEAST_MS = 10_000
const MOST_MS = 600_000

export class Agent {
  /** `1.0` */
  readonly banks: string
  /** It did not answer what it was asked last. */
  isSilent = false
  /** qpidd sends heartbeats also where it is told to broadcast nothing else. */
  doesPublish = true
  #lastMs = Number.NEGATIVE_INFINITY
  #periodMs = FIRST_MS / MISSING

  constructor(banks: string) {
    this.banks = banks
  }

  get isBroker(): boolean {
    return this.banks.endsWith('.0')
  }

  get routingKey(): string {
    return `agent.${this.banks}`
  }

  heartbeat(nowMs: number): void {
    if (this.#lastMs !== Number.NEGATIVE_INFINITY) this.#periodMs = nowMs - this.#lastMs
    this.#lastMs = nowMs
  }

  isBroadcasting(nowMs: number): boolean {
    const patienceMs = Math.min(Math.max(this.#periodMs * MISSING, LEAST_MS), MOST_MS)
    return this.doesPublish && nowMs - this.#lastMs <= patienceMs
  }
}

/** Those of the agent that an object tells of; undefined: it tells of something else. */
export function banksOf({ properties }: ObjectSample, { key, properties: items }: TableSchema): string | undefined {
  if (properties === undefined || key.packageName !== BROKER_PACKAGE || key.className !== 'agent') return undefined
  const [brokerBank, agentBank] = ['brokerBank', 'agentBank'].map(
    (bank) => properties[items.findIndex(({ name }) => name === bank)],
  )
  if (typeof brokerBank !== 'number' || typeof agentBank !== 'number') return undefined
  return `${brokerBank}.${agentBank}`
}

/** Whether a broker broadcasts changes, if the object is what says so. */
export function publishesOf(
  { properties }: ObjectSample,
  { key, properties: items }: TableSchema,
): boolean | undefined {
  if (properties === undefined || key.packageName !== BROKER_PACKAGE || key.className !== 'broker') return undefined
  const publishes = properties[items.findIndex(({ name }) => name === 'mgmtPublish')]
  return typeof publishes === 'boolean' ? publishes : undefined
}

/** Of the agent whose heartbeat has that routing key. */
export function heartbeatOf(routingKey: string): string {
  return /^console\.heartbeat\.(\d+\.\d+)/.exec(routingKey)?.[1] ?? BROKER_AGENT
}
