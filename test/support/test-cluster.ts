/** A cluster of three nodes as a node would report it, which the test changes; what is asked of the node is noted. */
import type { ClusterControl } from '../../server/cluster/control.ts'
import type { CopyState } from '../../server/cluster/copying.ts'
import type { NodeTraffic } from '../../server/cluster/own-figures.ts'
import type { ClusterState, NodeState } from '../../server/cluster/state.ts'

/** That of a node which nobody has connected to. */
export const NO_TRAFFIC: NodeTraffic = {
  waiting: 0,
  passing: 0,
  front: { passed: 0, expired: 0, refused: 0, failed: 0 },
  listener: { taken: 0, untaken: 0, refused: 0, late: 0, evicted: 0 },
  ignoredMessages: 0,
}

/** When n1 began to lead, in ms since 1970. */
export const LED_SINCE = 1_700_000_000_000

export class TestCluster implements ClusterControl {
  /** By the name of the node. */
  readonly nodes: Record<string, NodeState> = {
    n1: node('n1', { role: 'leader' }),
    n2: node('n2', { lagMs: 20 }),
    n3: node('n3', { role: 'not heard', sequence: 0, version: '' }),
  }
  /** The node that is asked. */
  node = 'n1'
  leader: string | undefined = 'n1'
  epoch = 7
  readonly asked: string[] = []
  copyState: CopyState = { phase: 'none', leader: '', receivedBytes: 0, totalBytes: 0, aside: '', problem: '' }
  /** Why the node refuses; undefined if it does what it is asked for. */
  refusal: Error | undefined

  state(): ClusterState {
    const { node, leader, epoch, nodes } = this
    const since = leader === undefined ? 0 : LED_SINCE
    return { name: 'main', node, leader, epoch, since, nodes: Object.values(nodes) }
  }

  async handOver(): Promise<void> {
    this.#take('handOver')
    this.lead('n2')
  }

  async found(): Promise<void> {
    this.#take('found')
    this.lead(this.node)
  }

  async copy(): Promise<void> {
    this.#take('copy')
    this.copyState = { ...this.copyState, phase: 'asked', leader: this.leader ?? '' }
  }

  /** Another one leads from now on, or none. */
  lead(leader: string | undefined): void {
    if (this.leader !== undefined) this.change(this.leader, { role: 'follower' })
    if (leader !== undefined) this.change(leader, { role: 'leader', lagMs: 0 })
    this.leader = leader
    this.epoch++
  }

  change(name: string, change: Partial<NodeState>): void {
    this.nodes[name] = { ...(this.nodes[name] as NodeState), ...change }
  }

  #take(what: string): void {
    this.asked.push(what)
    if (this.refusal !== undefined) throw this.refusal
  }
}

function node(name: string, given: Partial<NodeState> = {}): NodeState {
  const last = name.slice(1)
  return {
    name,
    role: 'follower',
    address: `10.0.0.${last}:7654`,
    sequence: 1_284_402,
    lagMs: 0,
    obstacle: undefined,
    version: 'cinnabar/0.1.0',
    ...given,
  }
}
