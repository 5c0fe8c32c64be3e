/**
 * A node of a cluster: follows the log while another node leads, takes over when nobody does, and leads until it is deposed or
 * hands over. That at most one node leads is not decided here but by the log, which takes records of one epoch at a time: this
 * file may be wrong about the others, and then two nodes try, and one of them is refused.
 */
import type { LogPlace } from '../../storage/replicated/place.ts'
import { NOWHERE } from '../../storage/sqlite/log-places.ts'
import type { StorageError } from '../../storage/store.ts'
import type { Alive } from './alive.ts'
import { Copying, type CopyState } from './copying.ts'
import { FollowingTime } from './following-time.ts'
import { comparePlaces, type Founder, FoundOrder, founderOf, mayLackRecords, needsFounding } from './founding.ts'
import { type Leader, LeaderListeners } from './leadership.ts'
import { LogEndQuestions } from './log-end.ts'
import { LogLead } from './log-lead.ts'
import { AwakeTime, Members } from './members.ts'
import type { ClusterNodeOptions } from './node-options.ts'
import { type OwnState, Presence } from './presence.ts'
import type { LogEnd } from './replica.ts'
import { Reports } from './reports.ts'
import type { ClusterState } from './state.ts'
import { CUT_OFF_LEASES, Support } from './support.ts'
import { isOneOf, Tenure } from './tenure.ts'

const BEATS_PER_LEASE = 5
const TICKS_PER_BEAT = 4
/** Of a lease: how long the next node waits for the one before it, and how much of it is chance. */
const RANK_SHARE = 0.5
const JITTER_SHARE = 0.25
/** Leases in which a node that handed over does not lead again, unless nobody else does. */
const REST_LEASES = 5
/** After so many failures in a row it is the disk. */
const MAX_FAILURES = 3

export class ClusterNode {
  readonly #options: ClusterNodeOptions
  readonly #awake: AwakeTime
  readonly #members: Members
  readonly #reports: Reports
  readonly #presence: Presence
  readonly #support: Support
  readonly #copying: Copying
  readonly #leaseMs: number
  readonly #beatMs: number
  readonly #stopping = new AbortController()
  /** The place of the database; undefined before it was read, and until then this node says nothing of itself. */
  #place: LogPlace | undefined
  /** When the last record was stored here; undefined if this node has not followed. */
  #placedAt: number | undefined
  #following: FollowingTime | undefined
  #tenure: Tenure | undefined
  #handedOver: (() => void)[] = []
  readonly #order = new FoundOrder()
  /** What keeps this node from leading, but for what the store reports. */
  #obstacle: string | undefined
  /** Times in a row that the store has failed without having followed or led. */
  #failures = 0
  /** Its database is damaged. */
  #isUnfit = false
  /** Its database is the one that the log was founded with. */
  #isFounder = false
  #restsUntil = Number.NEGATIVE_INFINITY
  #jitter: number
  #ticksToBeat = 0
  #isExamining = false
  #examinesAt = Number.NEGATIVE_INFINITY
  #wakeUp: () => void = () => {}
  readonly #listeners = new LeaderListeners()
  readonly #logLead: LogLead
  readonly #logEnd: LogEndQuestions

  constructor(options: ClusterNodeOptions) {
    const { clock, config, random, log } = options
    this.#options = options
    this.#leaseMs = config.leaseMs
    this.#beatMs = config.leaseMs / BEATS_PER_LEASE
    this.#awake = new AwakeTime(() => clock.monotonicMs(), this.#beatMs)
    this.#members = new Members({ ...config, now: () => this.#awake.now() })
    this.#reports = new Reports(log, config.node)
    this.#copying = new Copying({ ...options, reports: this.#reports })
    this.#jitter = random()
    this.#presence = new Presence({
      ...options,
      awake: this.#awake,
      members: this.#members,
      reports: this.#reports,
      own: () => this.#ownState(),
      onHeard: (alive, isChanged) => this.#heard(alive, isChanged),
    })
    this.#logEnd = new LogEndQuestions({ ...options, signal: this.#stopping.signal })
    this.#logLead = new LogLead({ ...options, now: () => this.#awake.now() })
    this.#support = new Support({
      ...options,
      now: () => this.#awake.now(),
      cutOffMs: () => this.#presence.cutOffMs,
      isAnyoneHeard: () => this.#members.present().length > 0,
    })
  }

  /** Messages of others that were ignored: those that are none, and those of more nodes than are kept. */
  get ignoredMessages(): number {
    return this.#presence.ignoredMessages
  }

  /** Runs until `stop`. Rejects with the StorageError, or whatever else, that ends this node; everything is closed then. */
  async run(): Promise<void> {
    const { clock, bus, front, replica } = this.#options
    this.#presence.open()
    const ticking = clock.setInterval(() => this.#tick(), this.#beatMs / TICKS_PER_BEAT)
    try {
      while (!this.#isStopping) await this.#round()
    } finally {
      clock.clear(ticking)
      this.#order.take()?.reject(new Error('this node ends'))
      this.#restsUntil = Number.POSITIVE_INFINITY
      this.#publish()
      await front?.stop()
      await replica.close()
      await replica.disconnect()
      await bus.close()
    }
  }

  /** Ends `run`; a leader hands over. */
  stop(): void {
    this.#stopping.abort()
    this.#tenure?.end({ why: 'hand-over' })
    this.#interrupt()
  }

  /** Resolves when another node may lead: everything is durable then, unless storing failed. Rejects if this node does not lead. */
  handOver(): Promise<void> {
    const tenure = this.#tenure
    if (tenure === undefined) return Promise.reject(new Error('this node does not lead'))
    return new Promise((resolve) => {
      this.#handedOver.push(resolve)
      tenure.end({ why: 'hand-over' })
    })
  }

  /** An operator decides that the database of this node is the one to go on with. Rejects if a node leads, or it fails. */
  found(): Promise<void> {
    const { leader } = this.#members
    if (this.#tenure !== undefined) return Promise.reject(new Error('this node leads already'))
    if (leader !== undefined && !this.#members.isLeaderless(CUT_OFF_LEASES * this.#leaseMs)) {
      return Promise.reject(new Error(`node ${leader.node} leads, or did so a moment ago`))
    }
    const founded = this.#order.give()
    this.#interrupt()
    return founded
  }

  /** Has the node look at what it is to do now. */
  #interrupt(): void {
    this.#following?.decide('again')
    this.#wakeUp()
  }

  /** An operator wants a copy of the leader's database here. Rejects if it cannot begin; `copyState` says what comes of it. */
  async copy(): Promise<void> {
    const { leader } = this
    if (this.#tenure !== undefined) throw new Error('this node leads: the others copy its database')
    if (leader === undefined) throw new Error('no node leads, so there is no database to copy')
    this.#copying.ask(leader.name)
    this.#interrupt()
  }

  get copyState(): CopyState {
    return this.#copying.state
  }

  /** The node that leads, and where other nodes reach it; undefined while none is known, or it is this one. */
  get leader(): Leader | undefined {
    return this.#tenure === undefined ? this.#members.reachable : undefined
  }

  /** Calls `listener` after `leader` has changed; returns a function that ends this. */
  onChange(listener: () => void): () => void {
    return this.#listeners.add(listener)
  }

  state(): ClusterState {
    const { config, version } = this.#options
    const { name, node } = config
    const nodes = this.#members.states({
      role: this.#epoch > 0 ? 'leader' : 'follower',
      place: this.#place ?? NOWHERE,
      lagMs: this.#following?.lagMs ?? 0,
      obstacle: this.#ownObstacle,
      version,
    })
    const heard = this.#members.isLeaderless() ? undefined : this.#members.leader
    const led =
      this.#tenure !== undefined && this.#epoch > 0
        ? { leader: node, epoch: this.#epoch, since: this.#tenure.since }
        : { leader: heard?.node, epoch: heard?.epoch ?? 0, since: heard?.since ?? 0 }
    return { name, node, ...led, nodes }
  }

  get #isStopping(): boolean {
    return this.#stopping.signal.aborted
  }

  /** The epoch in which this node leads; 0 if it does not. */
  get #epoch(): number {
    return this.#tenure === undefined ? 0 : this.#options.replica.epoch
  }

  get #ownObstacle(): string | undefined {
    if (this.#tenure !== undefined) return undefined
    if (this.#copying.obstacle !== undefined) return this.#copying.obstacle
    if (this.#following === undefined) return this.#obstacle ?? 'it does not follow the log'
    return this.#obstacle ?? this.#following.obstacle
  }

  /** Founds a log if that is needed, follows it, and leads it if it comes to that. */
  async #round(): Promise<void> {
    const { front, replica } = this.#options
    if (this.#copying.isAsked) return this.#getCopy()
    try {
      this.#place = await replica.place()
    } catch (error) {
      return this.#cannotFollow(error)
    }
    const log = await this.#logToFollow(this.#place)
    if (log === undefined) return
    await front?.start()
    const isElected = await this.#follow(log)
    if (isElected && !this.#isStopping && !this.#copying.isAsked) await this.#lead()
  }

  /** The number of the newest log, after it was founded if that is needed; undefined if the node ends. */
  async #logToFollow(place: LogPlace): Promise<number | undefined> {
    while (!this.#isStopping && !this.#copying.isAsked) {
      const end = await this.#end()
      const isOrdered = this.#order.isGiven
      if (end !== undefined && !isOrdered && !needsFounding(end, this.#places(place))) return end.log
      const isToFound = isOrdered || (end !== undefined && this.#isToFound(place))
      if (!isToFound && end !== undefined) await this.#logLead.consider(end, this.#census(place)[0])
      if (!isToFound || !(await this.#found(place, end))) await this.#pause(this.#beatMs)
    }
    return undefined
  }

  /** The places of all known databases. */
  #places(own: LogPlace): LogPlace[] {
    return [own, ...this.#members.places()]
  }

  /** The nodes that are there, this one among them but not a leader that has just ended, and the names of those that should be. */
  #census(place: LogPlace): readonly [readonly Founder[], readonly string[]] {
    const { node, nodes } = this.#options.config
    return [[{ node, place }, ...this.#members.present(1)], nodes.map(({ name }) => name)]
  }

  /** Whether it is for this node to found the log; else the obstacle says what it waits for. */
  #isToFound(place: LogPlace): boolean {
    const { by, wait } = founderOf(...this.#census(place))
    this.#obstacle = wait ?? `node ${by} is about to found the log`
    return by === this.#options.config.node && this.#presence.isReachable
  }

  /** Returns whether there is a new log. */
  async #found(place: LogPlace, end: LogEnd = { log: place.log, last: place.sequence }): Promise<boolean> {
    const { replica, log, config } = this.#options
    const order = this.#order.take()
    try {
      const mayLack = mayLackRecords(place, end, ...this.#census(place))
      await replica.found(mayLack, end.log)
      this.#isFounder = true
      this.#reports.founded(config.name, mayLack)
      order?.resolve()
      return true
    } catch (error) {
      order?.reject(error instanceof Error ? error : new Error(String(error)))
      if (!isOneOf(error, 'DEPOSED', 'IO', 'UNREACHABLE')) throw error
      log.warn({ reason: error.message }, 'no log was founded')
      return false
    }
  }

  /** Asks the nats-servers for the end of the log; undefined if they do not answer, and then the obstacle says so, or this node ends. */
  async #end(): Promise<LogEnd | undefined> {
    const end = await this.#logEnd.ask()
    const isAnswered = !(end instanceof Error)
    this.#obstacle = isAnswered ? undefined : `no majority of the nats-servers answers: ${end.message}`
    return isAnswered ? end : undefined
  }

  /** Returns true if this node is to lead, and no other began to while following ended, which takes a moment. */
  async #follow(log: number): Promise<boolean> {
    const { replica } = this.#options
    const onPlace = (place: LogPlace): void => {
      this.#place = place
      this.#placedAt = this.#options.clock.monotonicMs()
      this.#failures = 0
    }
    const following = new FollowingTime({ replica, log, now: () => this.#awake.now(), everyMs: this.#beatMs, onPlace })
    this.#following = following
    // Those who have waited for this log begin to wait for its leader; whoever founded it is the first.
    if (this.#isFounder || this.#members.isLeaderless()) this.#members.expectLeader(this.#isFounder ? 0 : this.#leaseMs)
    this.#isFounder = false
    if (this.#isStopping || this.#order.isGiven || this.#copying.isAsked) following.decide('again')
    try {
      return (await following.run()) === 'lead' && this.#members.isLeaderless()
    } catch (error) {
      this.#following = undefined
      await this.#cannotFollow(error)
      return false
    } finally {
      this.#following = undefined
    }
  }

  /** Does what can be done about a database that cannot follow; throws the error if that is nothing. */
  async #cannotFollow(error: unknown): Promise<void> {
    if (isOneOf(error, 'IO', 'UNREACHABLE')) return this.#tryAgain(error)
    if (isOneOf(error, 'DAMAGED')) return this.#waitForOrder(error)
    if (!isOneOf(error, 'FOREIGN', 'BEHIND')) throw error
    const place = this.#place ?? NOWHERE
    // A log that has lost its end does not know this database either, which then is worth more than the log.
    const end = await this.#end()
    if (end === undefined || needsFounding(end, this.#places(place))) return this.#pause(this.#beatMs)
    const isForeign = error.code === 'FOREIGN' && comparePlaces(place, NOWHERE) > 0
    this.#obstacle = this.#copying.neededBy(isForeign)
    if (this.leader === undefined) {
      this.#reports.warnOnce('copy', `${this.#obstacle} (${error.message})`)
      // Its own may be the best that is left, so it stays where it is until another node leads.
      if (isForeign) await this.#logLead.doubt(end, place)
    }
    await this.#getCopy(isForeign ? 'was not part of the log' : 'was too far behind the log')
  }

  /** Fetches a copy of the leader's database; `why` is what was wrong with the own one, as a part of a sentence. */
  async #getCopy(why = 'was to be replaced'): Promise<void> {
    const isDone = await this.#copying.run(this.leader?.name, why, this.#stopping.signal)
    if (!isDone) await this.#pause(this.#leaseMs)
  }

  /**
   * A damaged database may have what no other has, so an operator decides. Until then this node passes connections on, and says what
   * it waits for, but does not count as heard where a log has to be founded.
   */
  async #waitForOrder({ message }: StorageError): Promise<void> {
    this.#obstacle = `${message}. If another node leads, \`cinnabar cluster copy\` on this one replaces it with a copy`
    this.#reports.warnOnce('damaged', this.#obstacle)
    await this.#options.front?.start()
    this.#isUnfit = true
    while (!this.#isStopping && !this.#copying.isAsked) await this.#pause(this.#leaseMs)
    this.#isUnfit = false
  }

  /** The nats-servers, or the disk: the error is thrown if it comes again and again while the former answer. */
  async #tryAgain(error: StorageError): Promise<void> {
    // They may answer one question and not the next.
    if (error.code === 'UNREACHABLE' || (await this.#end()) === undefined) return this.#pause(this.#beatMs)
    if (++this.#failures >= MAX_FAILURES) throw error
    this.#options.log.warn({ reason: error.message }, 'the store has failed: it is opened again')
    await this.#pause(this.#leaseMs)
  }

  async #lead(): Promise<void> {
    const { lead, front, log, clock, config, replica } = this.#options
    const tenure = new Tenure(clock)
    this.#support.begin()
    const before = this.#presence.silence()
    this.#tenure = tenure
    let failure: unknown
    let isFailed = false
    try {
      this.#publish()
      await front?.stop()
      const downMs = this.#placedAt === undefined ? undefined : clock.monotonicMs() - this.#placedAt
      const leading = await lead({ store: replica, downMs, onFailed: (error) => tenure.fail(error) })
      tenure.role = 'leader'
      this.#restsUntil = Number.NEGATIVE_INFINITY
      this.#publish()
      this.#reports.report('info', `node ${config.node} leads ${config.name} since epoch ${replica.epoch}${before}`)
      this.#reports.deliverTo(leading)
      const ending = await tenure.ending
      this.#reports.deliverTo(undefined)
      if (ending.why === 'deposed') {
        this.#reports.report('warning', `node ${config.node} no longer leads ${config.name}: ${ending.detail}`)
      }
      await tenure.close(leading, ending)
      if (ending.why === 'failed') {
        isFailed = true
        throw ending.error
      }
      if (ending.why === 'hand-over') {
        this.#restsUntil = this.#awake.now() + REST_LEASES * this.#leaseMs
        this.#reports.report('info', `node ${config.node} has handed over ${config.name}`)
      }
    } catch (error) {
      failure = error
    } finally {
      this.#tenure = undefined
      this.#members.expectLeader(this.#leaseMs)
      this.#publish()
      for (const done of this.#handedOver.splice(0)) done()
      await replica.close()
    }
    if (failure === undefined) return
    // A majority of the nats-servers may be gone, or about to elect a leader of the log: that is not the disk.
    if (isOneOf(failure, 'IO', 'UNREACHABLE') && !isFailed) return this.#tryAgain(failure)
    if (!isOneOf(failure, 'DEPOSED', 'FOREIGN', 'BEHIND', 'DAMAGED')) throw failure
    const outcome = tenure.role === 'leader' ? 'no longer leads' : 'could not lead'
    log.warn({ reason: failure.message }, `node ${config.node} ${outcome} ${config.name}, and follows`)
  }

  #tick(): void {
    const detail = this.#tenure && this.#support.missing
    if (detail !== undefined) this.#tenure?.end({ why: 'deposed', detail })
    this.#copying.followLeader(this.leader?.name)
    this.#considerLeading()
    if (--this.#ticksToBeat <= 0) this.#publish()
    this.#listeners.tell(this.leader)
  }

  /** Examines the log if nobody leads it for too long, or the node that leads has a newer one. */
  #considerLeading(): void {
    const [now, following] = [this.#awake.now(), this.#following]
    if (following === undefined || this.#place === undefined) return
    if (this.#isExamining || now < this.#examinesAt || !this.#presence.isReachable) return
    // Whoever leads appends, so the nats-servers answer again.
    if (!this.#members.isLeaderless()) this.#obstacle = undefined
    const rank = this.#members.rank({ node: this.#options.config.node, place: this.#place })
    const leases = (now < this.#restsUntil ? REST_LEASES : 0) + rank * RANK_SHARE + this.#jitter * JITTER_SHARE
    const hasNewerLog = (this.#members.leader?.place.log ?? 0) > following.log
    if (!hasNewerLog && !this.#members.isLeaderless(leases * this.#leaseMs)) return
    this.#isExamining = true
    void this.#examine(following).finally(() => {
      this.#isExamining = false
      this.#examinesAt = this.#awake.now() + this.#beatMs
      this.#jitter = this.#options.random()
    })
  }

  async #examine(following: FollowingTime): Promise<void> {
    const end = await this.#end().catch((error: unknown): undefined => {
      this.#options.log.error({ err: error }, 'the end of the log cannot be found out')
    })
    if (end === undefined || this.#following !== following) return
    if (end.log !== following.log || needsFounding(end, this.#places(this.#place ?? NOWHERE))) {
      return following.decide('again')
    }
    const isBehind = this.#place?.log !== end.log || following.lagAt(end.last) > this.#leaseMs
    if (isBehind || this.#ownObstacle !== undefined || !this.#members.isLeaderless()) return
    following.decide('lead')
  }

  #heard(alive: Alive, isChanged: boolean): void {
    this.#giveWayTo(alive, isChanged)
    if (isChanged) this.#considerLeading()
    this.#listeners.tell(this.leader)
  }

  /** Ends the own lead if another node has a later epoch; gives an attempt to lead up if another node leads by now. */
  #giveWayTo({ node, role, epoch, place }: Alive, isChanged: boolean): void {
    if (role === 'follower') return
    if (this.#tenure !== undefined && this.#epoch === 0 && epoch > 0 && isChanged) this.#options.replica.giveUp()
    if (this.#epoch === 0) return
    const isLater = (place.log - (this.#place?.log ?? 0) || epoch - this.#epoch) > 0
    if (isLater) this.#tenure?.end({ why: 'deposed', detail: `node ${node} leads since epoch ${epoch}` })
  }

  #publish(): void {
    this.#ticksToBeat = TICKS_PER_BEAT
    this.#presence.publish()
  }

  #ownState(): OwnState | undefined {
    const tenure = this.#tenure
    if (tenure !== undefined) this.#place = this.#options.replica.stored ?? this.#place
    const place = this.#place ?? (this.#isUnfit ? NOWHERE : undefined)
    if (place === undefined) return undefined
    return {
      role: tenure?.role ?? 'follower',
      epoch: this.#epoch,
      since: tenure?.since ?? 0,
      place,
      lagMs: this.#following?.lagMs ?? 0,
      obstacle: this.#ownObstacle,
      leaves: this.#isUnfit || (tenure === undefined && this.#awake.now() < this.#restsUntil),
    }
  }

  /** Waits, until something has to be looked at earlier. */
  #pause(ms: number): Promise<void> {
    const { clock } = this.#options
    if (this.#isStopping) return Promise.resolve()
    return new Promise((resolve) => {
      const timer = clock.setTimeout(resolve, ms)
      this.#wakeUp = () => {
        clock.clear(timer)
        resolve()
      }
    })
  }
}
