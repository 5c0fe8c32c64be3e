/** Whether a node works, as load balancers ask: /healthz and /readyz of the node itself, whether it leads or follows. */
import type { Health } from '../edge/http/app.ts'
import type { ClusterState, NodeState } from './state.ts'

/** A follower that is further behind the leader is not healthy. */
const MAX_LAG_MS = 10_000

/** Why the node does not do its part, as a sentence; undefined if it leads, or follows closely. */
export function healthProblem(state: ClusterState): string | undefined {
  const self = ownState(state)
  if (self === undefined || self.role === 'not heard') return `${state.node} neither leads nor follows`
  if (self.role === 'leader') return undefined
  if (self.obstacle !== undefined) return self.obstacle
  if (self.lagMs < MAX_LAG_MS) return undefined
  return `${state.node} is ${Math.floor(self.lagMs / 1000)} s behind the leader`
}

/**
 * Why connections to the node are not served, as a sentence; undefined if they are: by itself if it leads, through the leader if
 * it follows. `own`: whether its listeners are open, and its server stores values while it leads.
 */
export function readinessProblem(state: ClusterState, own: Health): string | undefined {
  if (ownState(state)?.role === 'leader') return own.unready()
  const { leader, nodes } = state
  if (leader === undefined) return 'no node leads'
  const address = nodes.find(({ name }) => name === leader)?.address ?? ''
  return address === '' ? `${leader} leads, and \`cluster.nodes\` of ${state.node} does not name it` : own.unready()
}

export function ownState({ node, nodes }: ClusterState): NodeState | undefined {
  return nodes.find(({ name }) => name === node)
}
