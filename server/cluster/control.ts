/** What is asked of the node from outside, and `cluster.hand_over`, the control by which an admin lets another node lead. */

import { type Control, ok } from '../kernel/controls/control.ts'
import type { Clock } from '../kernel/core/clock.ts'
import { StatusError } from '../kernel/core/errors.ts'
import type { Logger } from '../kernel/core/log.ts'
import type { CopyState } from './copying.ts'
import type { ClusterState, NodeState } from './state.ts'

export interface ClusterControl {
  state(): ClusterState
  /**
   * Lets another node lead: this one stops its server and follows. Resolves when this is done; rejects with an Error, whose
   * message is for people, if it went on leading.
   */
  handOver(): Promise<void>
  /**
   * Founds the log anew with the database of this node. Resolves when the log is there; rejects with an Error, whose message is
   * for people, if there is a leader, or if another node was faster.
   */
  found(): Promise<void>
  /**
   * Begins to replace the database of this node by a copy of the leader's; `copyState` says what comes of it. Rejects with an
   * Error, whose message is for people, if it cannot begin.
   */
  copy(): Promise<void>
  readonly copyState: CopyState
}

/** The time for the result of the control to be stored and sent before the connection ends, like all others. */
const LEAVE_MS = 500

export function handOverControl(
  cluster: Pick<ClusterControl, 'state' | 'handOver'>,
  clock: Pick<Clock, 'setTimeout' | 'clear'>,
  log: Pick<Logger, 'error'>,
): Control {
  return {
    name: 'cluster.hand_over',
    description: 'Lets another node of the cluster lead. All connections end, and consumers connect to the new leader.',
    parameters: [],
    adminOnly: true,
    // Another node may have room on its disk.
    usesReserve: true,
    prepare() {
      const { node, nodes } = cluster.state()
      const others = nodes.filter(({ name }) => name !== node)
      if (!others.some(couldLead)) {
        const reasons = others.map(({ name, role, obstacle }) => `${name}: ${obstacle ?? role}`)
        const why = reasons.length === 0 ? 'there is none' : reasons.join('; ')
        throw new StatusError('BUSY', `no other node could lead now (${why})`)
      }
      return (signal) => {
        const timer = clock.setTimeout(() => {
          cluster.handOver().catch((error: unknown) => log.error({ err: error }, 'the lead was not handed over'))
        }, LEAVE_MS)
        signal.addEventListener('abort', () => clock.clear(timer), { once: true })
        return ok(`${node} stops leading: another node takes over`)
      }
    },
  }
}

function couldLead({ role, obstacle }: NodeState): boolean {
  return role === 'follower' && obstacle === undefined
}
