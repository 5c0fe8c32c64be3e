/**
 * Rig: how long nobody can append to the log of a cluster after the nats-server that leads it has ended, and how much of that is
 * Cinnabar's. After each fault two things are waited for side by side: that the nats-servers that are left have a leader of the log
 * again, and that a consumer gets its OK. The difference is taken fault by fault, since NATS elects after four to nine seconds, by
 * chance. In turn with the cluster, three nats-servers without any Cinnabar are struck in the same way.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { NatsConnection } from '@nats-io/transport-node'
import { Log } from '../../storage/replicated/log.ts'
import { connectNats } from '../../storage/replicated/nats.ts'
import type { LogOptions } from '../../storage/replicated/options.ts'
import { streamName } from '../../storage/replicated/stream.ts'
import { percentile } from '../rig/figures.ts'
import { type Rig, type RigOptions, runCourse, type Totals } from '../rig/rig.ts'
import { Link, type User } from '../rig/world/link.ts'
import { command } from '../support/bytes.ts'
import { CLUSTER_NAME } from '../support/cluster-table.ts'
import { NatsServers, natsMissing } from '../support/nats.ts'
import { Random } from '../support/random.ts'
import { PASSWORD } from '../support/server-process.ts'
import { type ChaosNode, Nodes } from './cluster/nodes.ts'
import { leaderOfAll } from './cluster/probe.ts'
import { nextLeader, watchingAt } from './cluster/watching.ts'

/** How long anything may take: elections of the nats-servers take ten seconds and more. */
const PATIENCE_MS = 60_000
/** Between two questions, which are under way side by side, and how long each may take. */
const [ASK_MS, ANSWER_MS] = [50, 400]
/** Between two attempts of a consumer at one node. */
const PAUSE_MS = 20
const LOOK_MS = 100
/** A replica that the leader has heard of in this time is there. */
const HEARD_NS = 3e9
const MOST_MOVES = 20
const USER: User = { name: 'admin', secret: PASSWORD, keys: undefined }

/**
 * What is struck: the nats-server that leads the log, alone or with the node that leads; that node; or the machine of that node, with
 * the nats-server that leads the log, or without it.
 */
const FAULTS = [
  'stream killed',
  'leader and stream killed',
  'leader hangs',
  'machine of both cut off',
  'machine of the leader cut off',
] as const
type Fault = (typeof FAULTS)[number]

interface Times {
  /** Until the nats-servers have a leader of the log, and one of JetStream, which alone says what logs there are. */
  readonly logMs: number
  readonly metaMs: number
  /** Until a consumer has an OK. */
  readonly okMs: number
  /** Until a consumer of the client library goes on that was connected to the node that leads; undefined if that node goes on. */
  readonly clientMs: number | undefined
}

export const elections: Rig = async (options) => {
  if (natsMissing !== undefined) throw new Error(natsMissing)
  const nodes = await Nodes.start(new Random(options.seed + 1), { lease: '2s' })
  return runCourse('elections', options, new Run(nodes, options))
}

class Run {
  readonly #nodes: Nodes
  readonly #options: RigOptions
  readonly #faults: readonly Fault[]
  readonly #times = new Map<Fault, Times[]>()
  readonly #alone: number[] = []
  /** The channels whose definition was acknowledged. */
  readonly #channels: number[] = []
  #bare: NatsServers | undefined
  moment = 'the beginning'

  constructor(nodes: Nodes, options: RigOptions) {
    this.#nodes = nodes
    this.#options = options
    const { missing } = nodes.machines
    if (missing !== undefined) options.say(`nothing is cut off: ${missing}`)
    this.#faults = FAULTS.filter((fault) => missing === undefined || !isCutOff(fault))
  }

  async all(): Promise<Totals> {
    this.#bare = await NatsServers.start(3)
    const bare = await Log.connect(this.#bareOptions(this.#bare))
    await bare.create(1)
    await bare.close()
    for (let count = 0; count < this.#options.count; count++) {
      await this.#strikeBare(this.#bare)
      for (const fault of this.#faults) await this.#strike(fault, count)
    }
    this.moment = 'the end'
    const lost = await this.#lost()
    await this.#nodes.stop()
    const reused = this.#channels.length - new Set(this.#channels).size
    return { lost, unexpected: 0, reused, acknowledged: this.#channels.length, ...this.#figures() }
  }

  async remove(): Promise<void> {
    await this.#bare?.stop()
    await this.#nodes.remove()
  }

  #bareOptions({ urls }: NatsServers): LogOptions {
    return { cluster: CLUSTER_NAME, node: 'rig', servers: urls, replicas: 3, maxBytes: 2 ** 26 }
  }

  async #strikeBare(bare: NatsServers): Promise<void> {
    this.moment = 'nats-servers alone'
    const stream = streamName(CLUSTER_NAME, 1)
    await bare.inStep(stream)
    const index = await bare.streamLeader(stream)
    const probe = await probeOf(this.#bareOptions(bare), index)
    try {
      const at = performance.now()
      await bare.kill(index)
      const ms = await ledAfter(probe, stream, index, at)
      this.#alone.push(ms)
      this.#options.say(`${this.moment}: ${ms} ms`)
    } finally {
      await probe.close()
    }
    await bare.restart(index)
    await bare.ready()
  }

  async #strike(fault: Fault, count: number): Promise<void> {
    this.moment = `${fault} (${count + 1})`
    const leader = await this.#arranged(fault)
    const stream = streamName(CLUSTER_NAME, await this.#nodes.newestLog())
    const index = await this.#nodes.streamLeader()
    // One that is cut off still answers whoever reaches it.
    const probe = await probeOf(this.#nodes.logOptions('rig'), isCutOff(fault) ? leader.index : index)
    const others = this.#nodes.all.filter((node) => node !== leader)
    const consumer = fault === 'stream killed' ? undefined : await watchingAt([leader, ...others])
    try {
      const at = performance.now()
      const mend = await this.#hurt(fault, leader, index)
      const isGone = fault !== 'leader hangs' && fault !== 'machine of the leader cut off'
      const goesOn = consumer && nextLeader(consumer, leader.name).then(() => Math.round(performance.now() - at))
      const [logMs, metaMs, okMs, clientMs] = await Promise.all([
        ledAfter(probe, stream, isGone ? index : undefined, at),
        answeredAfter(probe, stream, at),
        this.#okAfter(at),
        goesOn,
      ])
      this.#times.set(fault, [...(this.#times.get(fault) ?? []), { logMs, metaMs, okMs, clientMs }])
      const nats = `the log is led after ${logMs} ms, JetStream after ${metaMs} ms`
      const client = clientMs === undefined ? '' : `, the library goes on after ${clientMs} ms`
      this.#options.say(`${this.moment}: ${nats}, OK after ${okMs} ms${client}`)
      await mend()
    } finally {
      await consumer?.close()
      await probe.close()
    }
  }

  async #hurt(fault: Fault, leader: ChaosNode, index: number): Promise<() => Promise<void> | void> {
    if (isCutOff(fault)) return this.#nodes.cutOff(leader, ['nodes', 'nats', 'access'])
    if (fault !== 'leader hangs') return this.#kill(fault, leader, index)
    this.#nodes.freeze(leader)
    return () => this.#nodes.thaw(leader)
  }

  async #kill(fault: Fault, leader: ChaosNode, index: number): Promise<() => Promise<void>> {
    const isBoth = fault === 'leader and stream killed'
    await Promise.all([this.#nodes.nats.kill(index), isBoth && leader.server.kill()])
    return async () => {
      await this.#nodes.nats.restart(index)
      if (isBoth) leader.server.launch()
    }
  }

  /** The node that leads, when everything is as the fault needs it. */
  async #arranged(fault: Fault): Promise<ChaosNode> {
    for (;;) {
      const { leader } = await leaderOfAll(this.#nodes, USER)
      if (!isCutOff(fault)) return leader
      await this.#arrange(leader, fault === 'machine of both cut off')
      // That may have cost it the lead.
      if ((await leaderOfAll(this.#nodes, USER)).leader === leader) return leader
    }
  }

  /** Has the nats-servers choose until the log is led on the machine of a node, or is not. */
  async #arrange(leader: ChaosNode, isThere: boolean): Promise<void> {
    const log = await Log.connect(this.#nodes.logOptions('rig'))
    try {
      for (let move = 0; move < MOST_MOVES; move++) {
        if (((await this.#nodes.streamLeader()) === leader.index) === isThere) return
        await log.move(await this.#nodes.newestLog())
        await delay(LOOK_MS * 5)
      }
    } finally {
      await log.close()
    }
    throw new Error(`the log cannot be led ${isThere ? 'on' : 'beside'} the machine of ${leader.name}`)
  }

  /** Asks each node that can be reached for a channel until one is acknowledged; gives how long after `at` that was, in ms. */
  async #okAfter(at: number): Promise<number> {
    const links = new Set<Link>()
    const asking = new AbortController()
    const late = delay(PATIENCE_MS, undefined, { signal: asking.signal })
    // As soon as one has an answer, nobody waits for this any more.
    late.catch(() => {})
    const acknowledged = async ({ server: { listener } }: ChaosNode): Promise<number> => {
      for (;;) {
        // A node that just ends may refuse.
        const link = await Link.open(listener, USER).catch(() => undefined)
        if (link !== undefined) links.add(link)
        const response = asking.signal.aborted ? undefined : await link?.ask((seq) => command.defChannel(seq))
        if (response?.status === 0) return response.result
        link?.close()
        if (asking.signal.aborted) return 0
        await delay(PAUSE_MS)
      }
    }
    const there = this.#nodes.all.filter(({ server, isAway }) => server.running && !isAway)
    const channel = await Promise.race([...there.map(acknowledged), late])
    const ms = Math.round(performance.now() - at)
    asking.abort()
    for (const link of links) link.close()
    if (channel === undefined) throw new Error(`no OK: ${await this.#nodes.look()}`)
    this.#channels.push(channel)
    return ms
  }

  /** How many of the channels that were acknowledged are not there. */
  async #lost(): Promise<number> {
    await leaderOfAll(this.#nodes, USER)
    const link = await Link.open(this.#nodes.listener, USER)
    if (link === undefined) throw new Error('nobody serves')
    let lost = 0
    for (const channel of this.#channels) {
      const response = await link.ask((seq) => command.setChannel(seq, channel))
      if (response?.status !== 0) lost++
    }
    link.close()
    return lost
  }

  #figures(): Totals {
    const rows = this.#faults.flatMap((fault): [string, readonly number[]][] => {
      const times = this.#times.get(fault) ?? []
      const natsMs = ({ logMs, metaMs }: Times): number => needs(fault, logMs, metaMs)
      return [
        [`${fault}: ms of NATS`, times.map(natsMs)],
        [`${fault}: ms until OK`, times.map(({ okMs }) => okMs)],
        [`${fault}: ms more than NATS`, times.map((one) => one.okMs - natsMs(one))],
        [
          `${fault}: ms more of the library`,
          times.flatMap(({ okMs, clientMs }) => (clientMs === undefined ? [] : clientMs - okMs)),
        ],
      ]
    })
    const all: [string, readonly number[]][] = [['nats-servers alone: ms', this.#alone], ...rows]
    const shown = all.filter(([, ms]) => ms.length > 0)
    return Object.fromEntries(
      shown.flatMap(([name, ms]) => [
        [`${name}, p50`, percentile(ms, 0.5)],
        [`${name}, most`, Math.max(...ms)],
      ]),
    )
  }
}

const isCutOff = (fault: Fault): boolean => fault.endsWith('cut off')

/** A connection to the nats-servers, but for one of them. */
function probeOf(options: LogOptions, but: number): Promise<NatsConnection> {
  return connectNats({ ...options, servers: options.servers.filter((_, index) => index !== but) }, 'rig')
}

/** A node that takes over has to know which log is the newest, which the leader of JetStream says; one that goes on does not. */
function needs(fault: Fault, logMs: number, metaMs: number): number {
  return fault === 'stream killed' ? logMs : Math.max(logMs, metaMs)
}

/** Resolves when a nats-server other than `gone` leads a stream and hears another one; gives how long after `at`, in ms. */
function ledAfter(probe: NatsConnection, stream: string, gone: number | undefined, at: number): Promise<number> {
  return answerAfter(at, `no nats-server leads ${stream}`, async () => {
    const { cluster } = await ask<StreamAnswer>(probe, `STREAM.INFO.${stream}`)
    const isHeard = cluster?.replicas?.some(({ active, offline }) => offline !== true && active < HEARD_NS)
    return cluster?.leader !== undefined && cluster.leader !== `n${(gone ?? -1) + 1}` && isHeard === true
  })
}

/** The same for the nats-server that leads JetStream itself. */
function answeredAfter(probe: NatsConnection, stream: string, at: number): Promise<number> {
  return answerAfter(at, 'no nats-server leads JetStream', async () => {
    const { streams } = await ask<NamesAnswer>(probe, 'STREAM.NAMES')
    return streams?.includes(stream) === true
  })
}

/** Asks again and again, side by side, until something is so. */
async function answerAfter(at: number, late: string, isSo: () => Promise<boolean>): Promise<number> {
  let soAt: number | undefined
  const look = async (): Promise<void> => {
    if (await isSo()) soAt ??= performance.now()
  }
  while (soAt === undefined) {
    if (performance.now() - at > PATIENCE_MS) throw new Error(late)
    void look().catch(() => {})
    await delay(ASK_MS)
  }
  return Math.round(soAt - at)
}

async function ask<T>(probe: NatsConnection, what: string): Promise<T> {
  const answer = await probe.request(`$JS.API.${what}`, undefined, { timeout: ANSWER_MS })
  return answer.json<T>()
}

interface NamesAnswer {
  readonly streams?: readonly string[]
}

interface StreamAnswer {
  readonly cluster?: {
    readonly leader?: string
    readonly replicas?: readonly { readonly active: number; readonly offline?: boolean }[]
  }
}
