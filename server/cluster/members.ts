/**
 * The nodes of the cluster as far as they were heard: who leads, since when nobody does, who is there. All times are those of
 * `AwakeTime`, so that a node that was frozen does not take the others for dead.
 */
import type { LogPlace } from '../../storage/replicated/place.ts'
import { formatAddress } from '../kernel/core/address.ts'
import type { Alive } from './alive.ts'
import type { NodeAddress } from './config.ts'
import type { Leader } from './leadership.ts'
import type { NodeState } from './state.ts'

/** Nodes that are not configured here, and are shown: a configuration may be older than that of the others. */
const MAX_OTHERS = 16
/** Leases in which a node that has just taken over may be silent: to recover a large database takes long. */
const STARTING_LEASES = 5
/** Leases in which a node is there that is silent. */
const HEARD_LEASES = 2

/** The node that leads, as it was last heard. */
export interface HeardLeader extends Pick<Alive, 'node' | 'run' | 'epoch' | 'since' | 'role' | 'place' | 'answers'> {
  readonly heardAt: number
}

interface Heard {
  readonly alive: Alive
  readonly at: number
  /** Since when it has said that it is about to take over; undefined if it is not. */
  readonly startingSince: number | undefined
}

/**
 * Time in which this process ran, in ms: however long it was frozen or suspended counts as one step. Else a node that goes on
 * after a minute would find that all others have been silent for a minute, before it reads what they have said.
 */
export class AwakeTime {
  readonly #monotonicMs: () => number
  readonly #stepMs: number
  #seen: number
  #awake = 0

  constructor(monotonicMs: () => number, stepMs: number) {
    this.#monotonicMs = monotonicMs
    this.#stepMs = stepMs
    this.#seen = monotonicMs()
  }

  now(): number {
    const now = this.#monotonicMs()
    this.#awake += Math.min(now - this.#seen, this.#stepMs)
    this.#seen = now
    return this.#awake
  }
}

export interface MembersOptions {
  /** The name of this node. */
  readonly node: string
  /** The configured nodes. */
  readonly nodes: readonly NodeAddress[]
  readonly leaseMs: number
  readonly now: () => number
}

/** What a node knows of itself. */
export type OwnMember = Omit<NodeState, 'name' | 'address' | 'sequence'> & { readonly place: LogPlace }

export class Members {
  readonly #options: MembersOptions
  readonly #heard = new Map<string, Heard>()
  #leader: HeardLeader | undefined
  /** Since when nobody is heard to lead, and how long that has to last until somebody takes over. */
  #quietSince: number
  #patienceMs: number
  /** Messages of more nodes than are kept. */
  ignored = 0

  constructor(options: MembersOptions) {
    this.#options = options
    this.#quietSince = options.now()
    this.#patienceMs = options.leaseMs
  }

  /** The node that leads, also while it is silent; undefined if none was heard, or it has said that it leads no more. */
  get leader(): HeardLeader | undefined {
    return this.#leader
  }

  /** The node that leads, with its address; undefined while it is silent, or not configured. */
  get reachable(): Leader | undefined {
    const { node = '', answers } = this.#leader ?? {}
    const address = this.addressOf(node)
    if (address === undefined || this.isLeaderless()) return undefined
    return { name: node, address, isSilent: !answers }
  }

  /** Takes a message of another node. Returns whether another one leads now. */
  take(alive: Alive): boolean {
    const { now } = this.#options
    if (!this.#heard.has(alive.node) && !this.#isConfigured(alive.node)) {
      const others = [...this.#heard.keys()].filter((name) => !this.#isConfigured(name))
      if (others.length >= MAX_OTHERS) {
        this.ignored++
        return false
      }
    }
    const at = now()
    this.#heard.set(alive.node, { alive, at, startingSince: this.#startingSince(alive, at) })
    if (alive.role !== 'follower' && alive.epoch > 0) return this.#takeLeader(alive, at)
    if (alive.node !== this.#leader?.node) return false
    // It leads no more, and says so: nobody needs to wait.
    this.#leader = undefined
    this.#quietSince = at
    this.#patienceMs = 0
    return true
  }

  #startingSince({ node, role, epoch }: Alive, at: number): number | undefined {
    if (role !== 'starting' || epoch > 0) return undefined
    const before = this.#heard.get(node)
    // One that was silent may have given up meanwhile, or be another process: this is another attempt.
    const goesOn = before !== undefined && at - before.at < HEARD_LEASES * this.#options.leaseMs
    return (goesOn ? before.startingSince : undefined) ?? at
  }

  #takeLeader(alive: Alive, at: number): boolean {
    const { leaseMs } = this.#options
    const known = this.#leader
    if (known !== undefined && !this.isLeaderless() && isLower(alive, known)) return false
    const { node, run, epoch, since, role, place, answers } = alive
    this.#leader = { node, run, epoch, since, role, place, answers, heardAt: at }
    this.#quietSince = at
    this.#patienceMs = role === 'starting' ? STARTING_LEASES * leaseMs : leaseMs
    return known?.node !== node || known.epoch !== epoch
  }

  /** From now on a leader is waited for; one that is silent is forgotten. */
  expectLeader(patienceMs: number): void {
    if (this.isLeaderless()) this.#leader = undefined
    this.#quietSince = this.#options.now()
    this.#patienceMs = patienceMs
  }

  /** Whether nobody was heard to lead, or to take over, for so long that another node may. */
  isLeaderless(moreMs = 0): boolean {
    const { leaseMs, now } = this.#options
    const at = now()
    for (const { at: heardAt, startingSince } of this.#heard.values()) {
      // One that does not succeed must not keep all others waiting, whoever else is about to take over.
      const isWaitedFor = startingSince !== undefined && at - startingSince < STARTING_LEASES * leaseMs
      if (isWaitedFor && at - heardAt < leaseMs) return false
    }
    return at - this.#quietSince >= this.#patienceMs + moreMs
  }

  /** What the nodes said that were heard within the last leases, and have not left. */
  present(leases = HEARD_LEASES): Alive[] {
    const { leaseMs, now } = this.#options
    const since = now() - leases * leaseMs
    return [...this.#heard.values()].filter(({ alive, at }) => at >= since && !alive.leaves).map(({ alive }) => alive)
  }

  /** The places of the databases of all configured nodes that were ever heard, also of those that are silent now. */
  places(): LogPlace[] {
    return [...this.#heard.values()].flatMap(({ alive }) => (this.#isConfigured(alive.node) ? alive.place : []))
  }

  /** Where a node is reached; undefined if it is not configured, whatever it says of itself. */
  addressOf(node: string): NodeAddress | undefined {
    return this.#options.nodes.find(({ name }) => name === node)
  }

  #isConfigured(node: string): boolean {
    return this.addressOf(node) !== undefined
  }

  /**
   * How many other nodes are as fit to lead and go first: those in a newer log, then those with a smaller name. How far they are in
   * the log does not count, since it was said up to a beat ago: after the last records of a leader that hands over, each of the others
   * would take itself for the one that has most. Whoever leads reads the log to its end first.
   */
  rank(own: { readonly node: string; readonly place: LogPlace }): number {
    const { leaseMs } = this.#options
    return this.present().filter(({ node, role, obstacle, lagMs, place }) => {
      if (role !== 'follower' || obstacle !== undefined || lagMs > leaseMs) return false
      return place.log > own.place.log || (place.log === own.place.log && node < own.node)
    }).length
  }

  /** All configured nodes, `own` among them, in the order of the configuration, then others that were heard. */
  states({ place: ownPlace, ...own }: OwnMember): NodeState[] {
    const { node, nodes, leaseMs, now } = this.#options
    const newest = Math.max(ownPlace.log, this.#leader?.place.log ?? 0)
    // A node that has not noticed yet that the log was founded anew may need a copy of a database.
    const hindered = ({ log }: LogPlace, obstacle: string | undefined): string | undefined =>
      obstacle ?? (log < newest ? `it is in log ${log}, and the cluster in ${newest}` : undefined)
    const silentSince = now() - HEARD_LEASES * leaseMs
    const names = new Set([...nodes.map(({ name }) => name), ...this.#heard.keys()])
    return [...names].map((name) => {
      const heard = this.#heard.get(name)
      const configured = this.addressOf(name)
      const address = configured === undefined ? '' : formatAddress(configured)
      if (name === node) {
        return { ...own, name, address, sequence: ownPlace.sequence, obstacle: hindered(ownPlace, own.obstacle) }
      }
      if (heard === undefined) {
        return { name, role: 'not heard', address, sequence: 0, lagMs: 0, obstacle: undefined, version: '' }
      }
      const { alive, at } = heard
      const { place, lagMs, obstacle, version } = alive
      const isLeader = alive.role !== 'follower' && alive.node === this.#leader?.node
      // What it said of itself holds no more.
      if (at < silentSince)
        return { name, role: 'not heard', address, sequence: place.sequence, lagMs, obstacle: undefined, version }
      return {
        name,
        role: isLeader ? 'leader' : 'follower',
        address,
        sequence: place.sequence,
        lagMs,
        obstacle: hindered(place, obstacle),
        version,
      }
    })
  }
}

/** Whether what says to lead was deposed by what is known. */
function isLower(alive: Alive, known: HeardLeader): boolean {
  return (alive.place.log - known.place.log || alive.epoch - known.epoch) < 0
}
