/** What is done to a cluster: how it is struck, and how what was struck comes back. */
import type { Random } from '../../support/random.ts'
import type { ChaosNode, Nodes } from './nodes.ts'

/** Brings back what was struck. */
export type Mend = () => Promise<void> | void

export interface Fault {
  /** As the totals call it. */
  readonly name: string
  /** How often it is picked, compared with the others. */
  readonly weight: number
  /**
   * `lead`: the leader leads no more, and another one has to take over; `nothing`: whoever leads goes on; `all`: nobody is left, so
   * that it is mended at once.
   */
  readonly ends: 'lead' | 'nothing' | 'all'
  strike(nodes: Nodes, leader: ChaosNode, random: Random): Promise<Mend>
}

const others = ({ all }: Nodes, leader: ChaosNode): ChaosNode[] => all.filter((node) => node !== leader)

async function killAll(nodes: readonly ChaosNode[]): Promise<Mend> {
  await Promise.all(nodes.map(({ server }) => server.kill()))
  return () => {
    for (const { server } of nodes) server.launch()
  }
}

export const FAULTS: readonly Fault[] = [
  {
    name: 'leader killed',
    weight: 6,
    ends: 'lead',
    strike: (_nodes, leader) => killAll([leader]),
  },
  {
    name: 'leader frozen',
    weight: 4,
    ends: 'lead',
    async strike(nodes, leader) {
      nodes.freeze(leader)
      return () => nodes.thaw(leader)
    },
  },
  {
    name: 'leader and stream killed',
    weight: 2,
    ends: 'lead',
    async strike(nodes, leader) {
      const index = await nodes.streamLeader()
      const [mend] = await Promise.all([killAll([leader]), nodes.nats.kill(index)])
      return async () => {
        await nodes.nats.restart(index)
        await mend()
      }
    },
  },
  {
    name: 'stream killed',
    weight: 1,
    ends: 'nothing',
    async strike(nodes) {
      const index = await nodes.streamLeader()
      await nodes.nats.kill(index)
      return () => nodes.nats.restart(index)
    },
  },
  {
    name: 'follower killed',
    weight: 3,
    ends: 'nothing',
    strike: (nodes, leader, random) => killAll([random.pick(others(nodes, leader))]),
  },
  {
    name: 'handed over',
    weight: 3,
    ends: 'lead',
    async strike(_nodes, { server }) {
      await server.stop()
      return () => {
        server.launch()
      }
    },
  },
  {
    name: 'all nodes killed',
    weight: 1,
    ends: 'all',
    strike: ({ all }) => killAll(all),
  },
  {
    name: 'everything killed',
    weight: 1,
    ends: 'all',
    async strike({ all, nats }) {
      const servers = nats.urls.map((_, index) => index)
      const [mend] = await Promise.all([killAll(all), ...servers.map((index) => nats.kill(index))])
      return async () => {
        await Promise.all(servers.map((index) => nats.restart(index)))
        await mend()
      }
    },
  },
]

/** One of the faults, by their weights. */
export function pickFault(random: Random): Fault {
  let left = random.below(FAULTS.reduce((sum, { weight }) => sum + weight, 0))
  for (const fault of FAULTS) {
    left -= fault.weight
    if (left < 0) return fault
  }
  throw new Error('the weights do not add up')
}
