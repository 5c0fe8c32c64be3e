/**
 * Agents by the address of their requests, which is a routing key: `agent.<brokerBank>.<agentBank>` in QMF v1; in v2
 * `broker`, or the name of another agent. The id of an object names its agent too.
 */
import type { ObjectId } from '../../../protocol/qmf/types.ts'

/** The package of qpidd; classes of the same name in other packages are something else. */
export const BROKER_PACKAGE = 'org.apache.qpid.broker'

/** `banks`: `1.10` */
export function addressOfBanks(banks: string): string {
  return `agent.${banks}`
}

/** The name of an agent of v2 and the epoch stand in front of the name of the object; NUL is in no name. */
export function agentObjectId(agent: string, epoch: bigint | undefined, name: string): ObjectId {
  return `${agent}\0${epoch ?? ''}\0${name}`
}

/** The address of the agent that an object belongs to. */
export function agentOf(id: ObjectId): string {
  const end = id.indexOf('\0')
  if (end >= 0) return id.slice(0, end)
  const banks = /^\d+-\d+-(\d+)-(\d+)-\d+$/.exec(id)
  return banks === null ? 'broker' : addressOfBanks(`${banks[1]}.${banks[2]}`)
}

/** An object id for people: of an agent of v2 `<agent>:<name>`, which stays the same when the agent starts again. */
export function shownId(id: ObjectId): string {
  return id.replace(/\0[^\0]*\0/, ':')
}
