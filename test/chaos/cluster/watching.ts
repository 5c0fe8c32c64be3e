/** A consumer of the client library that is connected to one of the nodes first, and sees by each value which node leads. */
import { type Consumer, connect, type PlainRecord } from '../../../client/index.ts'
import { PASSWORD } from '../../support/server-process.ts'
import type { ChaosNode } from './nodes.ts'

const LOGIN = { identity: 'admin', password: PASSWORD }
/** Of each step: nodes and nats-servers start in it, or another node takes over. */
const PATIENCE_MS = 60_000

export const urlOf = ({ server: { listener } }: ChaosNode): string => `tcp://${listener.host}:${listener.port}`
const leaderIn = (plain: unknown): string => String((plain as PlainRecord)['leader'])

/**
 * Knows the addresses of all nodes, and has a channel that outlives the node which leads. The channel is a new one: another may still
 * have values that say who led before.
 */
export async function watchingAt(nodes: readonly ChaosNode[]): Promise<Consumer> {
  const options = { waitForServerMs: PATIENCE_MS, deadlineMs: PATIENCE_MS }
  const consumer = await connect(nodes.map(urlOf), LOGIN, options)
  await consumer.follow('producer.cluster', { interval_ms: 100 })
  return consumer
}

/** Which node leads by the next value, which is left where it is. */
export async function leaderSeen(consumer: Consumer): Promise<string> {
  for await (const { plain } of consumer.samples({ signal: AbortSignal.timeout(PATIENCE_MS) })) return leaderIn(plain)
  throw new Error('the consumer was closed')
}

/** Takes values, in order, until one says that another node leads, and gives its name. */
export async function nextLeader(consumer: Consumer, before: string): Promise<string> {
  let last = 0
  for await (const { plain, transaction } of consumer.samples({ signal: AbortSignal.timeout(PATIENCE_MS) })) {
    if (transaction <= last) throw new Error(`transaction ${transaction} came after ${last}`)
    last = transaction
    const name = leaderIn(plain)
    if (name !== '' && name !== before) return name
  }
  throw new Error('the consumer was closed')
}
