/**
 * Requests for objects by class (G): at every interval if a class is wanted and its agent does not broadcast, and
 * rarely for everything else, to know what could be wanted. Classes are named as `classText` gives them: a request names
 * a package and a class, and is for all versions of it.
 */
import type { AmqpRefusal } from '../../../protocol/amqp/session.ts'
import type { ObjectHeader, TableSchema } from '../../../protocol/qmf/types.ts'
import { addressOfBanks, agentOf, BROKER_PACKAGE } from './addresses.ts'
import type { ConsoleLimits, ObjectSample, QmfCounters } from './console-events.ts'
import { classText } from './discovery.ts'
import { itemValue, type KnownObjects } from './objects.ts'
import type { QmfRequests } from './requests.ts'
import type { AgentRun } from './wire.ts'

/** These classes come first: they tell the console's own objects from others, and reveal other agents. */
const FIRST = ofBroker('session', 'queue', 'agent', 'connection')
/** Often most objects are of these classes. They come last, so that only they are left out if there are too many. */
const LAST = ofBroker('binding', 'subscription')
/**
 * How long broadcasts are trusted to be complete. Each change is broadcast once: we miss it if the queue overflowed,
 * and everybody does if somebody requested the object before (as qpid-stat does), since qpidd counts that as its
 * report.
 */
const TRUSTED_MS = 60_000
/** A class that nobody wants is requested no more often than this, however often it is read. */
const REFRESHED_MS = 1_000
/** How long a reader waits for an answer. */
const MAX_REFRESH_MS = 3_000
/** What qpidd says if its access control list forbids the query (code 403). It ends the session, and forgets the rest. */
const REFUSED_QUERY = /ACL denied QMF query of object class (\S+)/
const UNAUTHORIZED = 403
/** After this many missing heartbeats there are no broadcasts any more. */
const MISSING_HEARTBEATS = 3
/** Limits of the time without a heartbeat. The first heartbeat does not tell when the next one comes (qpidd: 10 s). */
const FIRST_SILENCE_MS = 30_000
const MIN_SILENCE_MS = 10_000
const MAX_SILENCE_MS = 600_000
/** The limit for remembered classes that a broker refuses. */
const MAX_REFUSED = 1_000

/**
 * An agent of the broker, or the broker itself. If heartbeats come, changes are broadcast too and nothing has to be
 * requested; qpidd broadcasts by v1 only if configured to.
 */
class RemoteAgent {
  /** See `QmfWire`. */
  readonly address: string
  readonly isBroker: boolean
  /** Of an agent that speaks v2 only; undefined for others. */
  readonly run: AgentRun | undefined
  /** The classes that it has: those of the broker, or those that it was asked for itself. */
  readonly classes: ReadonlySet<string>
  readonly offered = new Set<string>()
  /** By class. */
  readonly polled = new Map<string, PolledClass>()
  /** True after a request without an answer. */
  isSilent = false
  /** False if it is known not to broadcast; qpidd sends heartbeats in that case too, and agents of v2 always do. */
  publishes: boolean
  /** The time of the last heartbeat, in nanoseconds since 1970. Everything that had changed was broadcast before it. */
  broadcastUntil = 0n
  #lastMs = Number.NEGATIVE_INFINITY
  #periodMs: number

  constructor(address: string, { classes, isBroker = false, run }: AgentFacts) {
    this.address = address
    this.isBroker = isBroker
    this.run = run
    this.classes = classes ?? this.offered
    this.publishes = run === undefined
    this.#periodMs = run?.intervalMs ?? FIRST_SILENCE_MS / MISSING_HEARTBEATS
  }

  heartbeat(time: bigint, nowMs: number): void {
    this.broadcastUntil = time
    // Agents of v2 say how often they send one.
    if (this.run === undefined && this.#lastMs !== Number.NEGATIVE_INFINITY) this.#periodMs = nowMs - this.#lastMs
    this.#lastMs = nowMs
  }

  isBroadcasting(nowMs: number): boolean {
    return this.publishes && this.isHeard(nowMs)
  }

  isHeard(nowMs: number): boolean {
    const silenceMs = Math.min(Math.max(this.#periodMs * MISSING_HEARTBEATS, MIN_SILENCE_MS), MAX_SILENCE_MS)
    return nowMs - this.#lastMs <= silenceMs
  }
}

interface AgentFacts {
  readonly classes?: ReadonlySet<string>
  readonly isBroker?: boolean
  readonly run?: AgentRun
}

/** A class of an agent that was requested at least once. */
interface PolledClass {
  isRequested: boolean
  /** Monotonic. */
  requestedMs: number
  /** Whether everything was answered once since the class became wanted: all later changes should be broadcast. */
  isFollowed: boolean
  /** Whether changes were not broadcast. */
  isContested: boolean
  /** Who waits for the answer. */
  readers: (() => void)[]
}

export interface PollingOptions {
  readonly requests: QmfRequests
  readonly objects: KnownObjects
  readonly intervalMs: number
  readonly limits: Pick<ConsoleLimits, 'agents'>
  readonly counters: QmfCounters
  /** The classes of the broker that have objects. */
  readonly classes: ReadonlySet<string>
  /** The names of classes that the broker refuses to send, whatever their package: they are not requested. */
  readonly refused: Set<string>
  readonly nowMs: () => number
  /** The address of the broker. */
  readonly broker: string
}

export class Polling {
  readonly #options: PollingOptions
  readonly #broker: RemoteAgent
  /** By address. */
  readonly #agents = new Map<string, RemoteAgent>()
  /** The addresses of agents by the ids of the objects that represent them. */
  readonly #agentObjects = new Map<string, string>()
  readonly #wanted = new Set<string>()
  /** When the first round began; undefined before. */
  #startedMs: number | undefined
  #open = 0
  #done: (() => void) | undefined

  constructor(options: PollingOptions) {
    this.#options = options
    this.#broker = new RemoteAgent(options.broker, { classes: options.classes, isBroker: true })
    this.#agents.set(options.broker, this.#broker)
  }

  /** A wanted class is requested now (but not before the first round) and at every interval. */
  want(className: string, isWanted: boolean): void {
    if (!isWanted) {
      this.#wanted.delete(className)
      for (const agent of this.#agents.values()) {
        const polled = agent.polled.get(className)
        if (polled !== undefined) Object.assign(polled, { isFollowed: false, isContested: false })
      }
    } else if (!this.#wanted.has(className)) {
      this.#wanted.add(className)
      this.requestClass(className)
    }
  }

  heartbeat(address: string, time: bigint, nowMs: number): void {
    this.#agents.get(address)?.heartbeat(time, nowMs)
  }

  /** An agent that speaks v2 only gave a sign of life. Returns whether it is new, or runs anew: its classes are unknown. */
  heard(address: string, run: AgentRun, nowMs: number): boolean {
    const known = this.#agents.get(address)
    if (known !== undefined && known.run?.epoch === run.epoch) return false
    if (known !== undefined && known.run === undefined) return false
    this.#removeAgent(address)
    const agent = this.#addAgent(address, { run })
    agent?.heartbeat(0n, nowMs)
    return agent !== undefined
  }

  /** The agent has a class, which is requested from now on. */
  offered(address: string, className: string): void {
    const agent = this.#agents.get(address)
    if (agent?.run === undefined || agent.offered.has(className)) return
    agent.offered.add(className)
    this.#request(agent, className, this.#done !== undefined)
  }

  /** Removes the agents that speak v2 only and are silent, and returns their addresses. */
  removeSilent(nowMs: number): readonly string[] {
    const silent = [...this.#agents.values()].filter((agent) => agent.run !== undefined && !agent.isHeard(nowMs))
    for (const { address } of silent) this.#removeAgent(address)
    return silent.map(({ address }) => address)
  }

  /** False if the broker has sent no heartbeat for so long that it does not broadcast, and sends no events either. */
  mayBroadcast(nowMs: number): boolean {
    if (!this.#broker.publishes) return false
    const isYoung = this.#startedMs === undefined || nowMs - this.#startedMs <= FIRST_SILENCE_MS
    return isYoung || this.#broker.isBroadcasting(nowMs)
  }

  /**
   * Compares an answer with the latest sample of the object before. A change that was not broadcast, although a
   * heartbeat came after it, was taken away by another console that requested the object first: the class is polled
   * from now on.
   */
  compare({ id, key, sampled }: ObjectHeader, latest: bigint | undefined): void {
    const agent = this.#agents.get(agentOf(id))
    const polled = agent?.polled.get(classText(key))
    if (agent === undefined || latest === undefined || polled?.isFollowed !== true) return
    if (sampled > latest && sampled < agent.broadcastUntil) polled.isContested = true
  }

  /**
   * The broker has ended the session because of a refusal. If it was for a class, the class is requested no more.
   * Returns its name if that is new.
   */
  refuse({ code, text }: AmqpRefusal): string | undefined {
    const { refused } = this.#options
    const className = code === UNAUTHORIZED ? REFUSED_QUERY.exec(text)?.[1] : undefined
    if (className === undefined || refused.has(className) || refused.size >= MAX_REFUSED) return undefined
    const isPending = [...this.#agents.values()].some(({ polled }) => {
      return [...polled].some(([name, { isRequested }]) => isRequested && name.endsWith(`\0${className}`))
    })
    if (!isPending) return undefined
    refused.add(className)
    return className
  }

  /**
   * Requests a class that nobody wants, so that its values are no older than a second; one that is wanted is followed
   * after its first answer. The promises resolve when the values have come, or after MAX_REFRESH_MS; there are none if
   * there is nothing to wait for.
   */
  refresh(className: string): Promise<void>[] {
    const { nowMs, objects } = this.#options
    const isWanted = this.#wanted.has(className)
    return [...this.#agents.values()].flatMap((agent) => {
      if (!agent.isBroker && (agent.isSilent || !objects.has(agent.address, className))) return []
      if (!isWanted && this.#isDue(agent, className, nowMs(), REFRESHED_MS)) this.#request(agent, className)
      const polled = agent.polled.get(className)
      return polled?.isRequested && !polled.isFollowed
        ? new Promise<void>((resolve) => polled.readers.push(resolve))
        : []
    })
  }

  /** Looks for agents, and whether they broadcast, in an object of the broker. */
  inspect({ header, properties }: ObjectSample, { key, properties: items }: TableSchema): void {
    if (properties === undefined || key.packageName !== BROKER_PACKAGE) return
    if (key.className === 'broker') {
      const publishes = itemValue(items, properties, 'mgmtPublish')
      const agent = this.#agents.get(agentOf(header.id))
      if (agent !== undefined && typeof publishes === 'boolean') agent.publishes = publishes
    } else if (key.className === 'agent') {
      const [brokerBank, agentBank] = ['brokerBank', 'agentBank'].map((bank) => itemValue(items, properties, bank))
      if (typeof brokerBank !== 'number' || typeof agentBank !== 'number') return
      const address = addressOfBanks(`${brokerBank}.${agentBank}`)
      this.#agentObjects.set(header.id, address)
      this.#addAgent(address, { classes: this.#options.classes })
    }
  }

  /** The object of this id is gone, and if it represented an agent the agent is gone too. */
  objectGone(id: string): void {
    const address = this.#agentObjects.get(id)
    this.#agentObjects.delete(id)
    if (address !== undefined) this.#removeAgent(address)
  }

  requestClass(className: string): void {
    for (const agent of this.#agents.values()) this.#request(agent, className)
  }

  /** Requests a class of an agent that has an unknown object of it, as often as if the class were polled. */
  requestUnknown(address: string, className: string): void {
    const { nowMs, intervalMs } = this.#options
    const agent = this.#agents.get(address)
    if (agent?.classes.has(className) === true && this.#isDue(agent, className, nowMs(), intervalMs)) {
      this.#request(agent, className)
    }
  }

  /**
   * Requests everything that is not reported otherwise. Calls `done` when all was answered or given up, but not if a
   * round is under way already.
   */
  startRound(done: () => void): void {
    if (this.#done !== undefined) return
    this.#done = done
    this.#startedMs ??= this.#options.nowMs()
    const rank = (name: string): number => {
      if (FIRST.includes(name)) return FIRST.indexOf(name)
      return LAST.includes(name) ? FIRST.length + 1 : FIRST.length
    }
    this.#open++
    for (const agent of [...this.#agents.values()]) {
      const classes = [...agent.classes].sort((a, b) => rank(a) - rank(b))
      const missing = classes.filter((name) => !agent.polled.has(name) || !this.#isPolled(agent, name))
      const requested = agent.isSilent && !agent.isBroker ? missing.slice(0, 1) : missing
      for (const name of requested) this.#request(agent, name, true)
    }
    this.#close()
  }

  /** Call it about every second. */
  tick(nowMs: number): void {
    const { intervalMs } = this.#options
    for (const agent of this.#agents.values()) {
      for (const polled of agent.polled.values()) {
        if (nowMs >= polled.requestedMs + MAX_REFRESH_MS) answerReaders(polled)
      }
      const isBroadcasting = agent.isBroadcasting(nowMs)
      for (const className of this.#wanted) {
        const isContested = agent.polled.get(className)?.isContested === true
        const everyMs = isBroadcasting && !isContested ? TRUSTED_MS : intervalMs
        if (this.#isPolled(agent, className) && this.#isDue(agent, className, nowMs, everyMs)) {
          this.#request(agent, className)
        }
      }
    }
  }

  /** Returns undefined if the agent is known, or there is no room for it. */
  #addAgent(address: string, facts: AgentFacts): RemoteAgent | undefined {
    const { counters, limits } = this.#options
    if (this.#agents.has(address)) return undefined
    if (this.#agents.size >= limits.agents) {
      counters.agentsFull++
      return undefined
    }
    const agent = new RemoteAgent(address, facts)
    this.#agents.set(address, agent)
    for (const className of agent.classes) this.#request(agent, className, this.#done !== undefined)
    return agent
  }

  #removeAgent(address: string): void {
    const agent = this.#agents.get(address)
    if (agent === undefined || agent.isBroker) return
    this.#agents.delete(address)
    this.#options.requests.drop(address)
    for (const polled of agent.polled.values()) answerReaders(polled)
    this.#options.objects.removeAgent(address)
  }

  /** Whether the class is requested again and again because somebody wants it. */
  #isPolled(agent: RemoteAgent, className: string): boolean {
    return this.#wanted.has(className) && (agent.isBroker || this.#options.objects.has(agent.address, className))
  }

  #isDue(agent: RemoteAgent, className: string, nowMs: number, everyMs: number): boolean {
    const polled = agent.polled.get(className)
    return polled === undefined || nowMs >= polled.requestedMs + everyMs
  }

  #request(agent: RemoteAgent, className: string, isOfRound = false): void {
    const { requests, objects, refused, nowMs } = this.#options
    const [packageName = '', name = ''] = className.split('\0')
    // The first round comes before everything else: it tells the console's own objects from others.
    if (this.#startedMs === undefined || refused.has(name) || !agent.classes.has(className)) return
    const polled = agent.polled.get(className) ?? newPolled()
    agent.polled.set(className, polled)
    if (polled.isRequested) return
    polled.requestedMs = nowMs()
    const { mark } = objects
    const isWanted = this.#wanted.has(className)
    polled.isRequested = true
    if (isOfRound) this.#open++
    const refusal = requests.ask({
      to: agent.address,
      message: (sequence) => {
        const query = new Map([
          ['_class', name],
          ['_package', packageName],
        ])
        return { op: 'G', sequence, query }
      },
      ended: (outcome) => {
        polled.isRequested = false
        if (outcome === 'done') {
          objects.removeMissing(agent.address, className, mark)
          polled.isFollowed = isWanted && this.#wanted.has(className)
        }
        answerReaders(polled)
        if (outcome === 'closed') return
        agent.isSilent = outcome === 'timeout'
        if (isOfRound) this.#close()
      },
    })
    if (refusal === undefined) return
    polled.isRequested = false
    if (isOfRound) this.#close()
  }

  #close(): void {
    if (--this.#open > 0) return
    const done = this.#done
    this.#done = undefined
    done?.()
  }
}

function newPolled(): PolledClass {
  return { isRequested: false, requestedMs: 0, isFollowed: false, isContested: false, readers: [] }
}

function answerReaders({ readers }: PolledClass): void {
  for (const answer of readers.splice(0)) answer()
}

/** Classes of qpidd. */
function ofBroker(...classNames: readonly string[]): readonly string[] {
  return classNames.map((className) => classText({ packageName: BROKER_PACKAGE, className }))
}
