/** What is done to a cluster: how it is struck, and how what was struck comes back. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Random } from '../../support/random.ts'
import type { ChaosNode, Nodes } from './nodes.ts'

/** How long something lasts during which the cluster goes on, at most. */
const MOST_MS = 4_000
/** Between two machines that get power again, at most. */
const MOST_APART_MS = 2_000
/** Longer than the values of a channel may wait. */
const HOUR_MS = 3_600_000

/** Brings back what was struck. */
export type Mend = () => Promise<void> | void

export interface Struck {
  readonly mend: Mend
  /** What a node has to say of itself before it is mended. */
  readonly says?: { readonly node: ChaosNode; readonly obstacle: string }
}

export interface Fault {
  /** As the totals call it. */
  readonly name: string
  /** How often it is done in each round. */
  readonly times: number
  /** Needs machines that can be unplugged, or disks of their own: root on Linux. */
  readonly needsRoot?: true
  /**
   * `lead`: the leader leads no more, and another one has to take over; `nothing`: whoever leads goes on; `all`: nobody is left, so
   * that it is mended at once.
   */
  readonly ends: 'lead' | 'nothing' | 'all'
  /**
   * The leader goes on where nobody can see it: `frozen`, and finds that another one leads as soon as it goes on; `cut off`, and has
   * to end its consumers' connections by itself, while it is still cut off.
   */
  readonly leaves?: 'frozen' | 'cut off'
  strike(nodes: Nodes, leader: ChaosNode, random: Random): Promise<Struck>
}

const others = ({ all }: Nodes, leader: ChaosNode): ChaosNode[] => all.filter((node) => node !== leader)

async function killAll(nodes: readonly ChaosNode[]): Promise<Mend> {
  await Promise.all(nodes.map(({ server }) => server.kill()))
  return () => {
    for (const { server } of nodes) server.launch()
  }
}

/** All nodes and all nats-servers; `before` is done to each of these before it starts again. */
async function killEverything(
  { all, nats }: Nodes,
  random: Random,
  before: (index: number) => Promise<void>,
): Promise<Mend> {
  const servers = nats.urls.map((_, index) => index)
  await Promise.all([...all.map(({ server }) => server.kill()), ...servers.map((index) => nats.kill(index))])
  const waits = all.map(() => random.below(MOST_APART_MS))
  return async () => {
    await Promise.all(servers.map(before))
    await Promise.all(servers.map((index) => nats.restart(index)))
    const launch = async ({ server, index }: ChaosNode): Promise<void> => {
      await delay(waits[index])
      server.launch()
    }
    await Promise.all(all.map(launch))
  }
}

export const FAULTS: readonly Fault[] = [
  {
    name: 'leader killed',
    times: 3,
    ends: 'lead',
    strike: async (_nodes, leader) => ({ mend: await killAll([leader]) }),
  },
  {
    name: 'leader frozen',
    times: 1,
    ends: 'lead',
    leaves: 'frozen',
    async strike(nodes, leader) {
      nodes.freeze(leader)
      return { mend: () => nodes.thaw(leader) }
    },
  },
  {
    name: 'leader cut from NATS',
    times: 1,
    needsRoot: true,
    ends: 'lead',
    leaves: 'cut off',
    async strike(nodes, leader) {
      const { index } = leader
      leader.isAway = true
      nodes.machines.unplug(index, 'nats')
      nodes.nats.freeze(index)
      return {
        mend() {
          nodes.machines.plug(index, 'nats')
          nodes.nats.thaw(index)
          leader.isAway = false
        },
      }
    },
  },
  {
    name: "leader's machine cut off",
    times: 1,
    needsRoot: true,
    ends: 'lead',
    leaves: 'cut off',
    strike: async (nodes, leader) => ({ mend: nodes.cutOff(leader) }),
  },
  {
    name: 'leader cut from nodes',
    times: 1,
    needsRoot: true,
    ends: 'nothing',
    async strike(nodes, { index }, random) {
      nodes.machines.unplug(index, 'nodes')
      await delay(random.below(MOST_MS))
      return { mend: () => nodes.machines.plug(index, 'nodes') }
    },
  },
  {
    name: "follower's machine cut off",
    times: 1,
    needsRoot: true,
    ends: 'nothing',
    async strike(nodes, leader, random) {
      const mend = nodes.cutOff(random.pick(others(nodes, leader)))
      await delay(random.below(MOST_MS))
      return { mend }
    },
  },
  {
    name: 'leader and stream killed',
    times: 1,
    ends: 'lead',
    async strike(nodes, leader) {
      const index = await nodes.streamLeader()
      const [mend] = await Promise.all([killAll([leader]), nodes.nats.kill(index)])
      return {
        async mend() {
          await nodes.nats.restart(index)
          await mend()
        },
      }
    },
  },
  {
    name: 'stream killed',
    times: 1,
    ends: 'nothing',
    async strike(nodes) {
      const index = await nodes.streamLeader()
      await nodes.nats.kill(index)
      return { mend: () => nodes.nats.restart(index) }
    },
  },
  {
    name: 'nats-server put back',
    times: 1,
    ends: 'nothing',
    async strike({ nats, copies }, _leader, random) {
      await copies.ready()
      const index = random.below(nats.urls.length)
      await nats.kill(index)
      await copies.putBack(index)
      return { mend: () => nats.restart(index) }
    },
  },
  {
    name: 'follower killed',
    times: 1,
    ends: 'nothing',
    strike: async (nodes, leader, random) => ({ mend: await killAll([random.pick(others(nodes, leader))]) }),
  },
  {
    name: "follower's disk full",
    times: 1,
    needsRoot: true,
    ends: 'nothing',
    async strike(nodes, leader, random) {
      const node = random.pick(others(nodes, leader))
      node.server.expected = 'the disk is full'
      node.disk?.keepFull()
      return { says: { node, obstacle: 'is full' }, mend: () => node.disk?.free() }
    },
  },
  {
    name: 'clock an hour off',
    times: 1,
    ends: 'nothing',
    async strike(nodes, leader, random) {
      const node = random.pick(others(nodes, leader))
      const mend = await killAll([node])
      node.server.clockMs = random.pick([-HOUR_MS, HOUR_MS].filter((ms) => ms !== node.server.clockMs))
      return { mend }
    },
  },
  {
    name: 'handed over',
    times: 2,
    ends: 'lead',
    async strike(_nodes, leader) {
      const { server } = leader
      leader.isAway = true
      const stopped = server.stop()
      return {
        async mend() {
          await stopped
          server.launch()
          leader.isAway = false
        },
      }
    },
  },
  {
    name: 'all nodes killed',
    times: 1,
    ends: 'all',
    strike: async ({ all }) => ({ mend: await killAll(all) }),
  },
  {
    name: 'everything killed',
    times: 1,
    ends: 'all',
    strike: async (nodes, _leader, random) => ({ mend: await killEverything(nodes, random, async () => {}) }),
  },
  {
    name: 'power cut',
    times: 2,
    ends: 'all',
    async strike(nodes, _leader, random) {
      const { copies } = nodes
      await copies.ready()
      return { mend: await killEverything(nodes, random, (index) => copies.putBack(index)) }
    },
  },
]

/** Faults without end, in rounds in which each has its turn as often as it says. */
export function* faultsInRounds(random: Random, faults: readonly Fault[]): Generator<Fault, never> {
  for (;;) {
    const left = faults.flatMap((fault) => Array.from({ length: fault.times }, () => fault))
    while (left.length > 0) yield left.splice(random.below(left.length), 1)[0] as Fault
  }
}
