/** One upstream: its catalogue, and the two connections that bring its values (live.ts, durable.ts). */

import { dial } from '../../../client/dial/dial.ts'
import { streamTransport } from '../../../client/dial/stream.ts'
import type { Transport } from '../../../client/transport.ts'
import { toArgumentList } from '../../../client/values.ts'
import type { Capabilities, ProducerName } from '../../../protocol/monitor/capabilities.ts'
import { BasicType, GapReason } from '../../../protocol/monitor/constants.ts'
import type { Gap } from '../../../protocol/monitor/message.ts'
import type { Control, RemoteControl } from '../../kit/controls.ts'
import type { Pacer } from '../../kit/io/pacer.ts'
import type { Kit } from '../../kit/kit.ts'
import type { Measurement, Metric, Owner, SensorStatus } from '../../kit/metrics.ts'
import type { Meter } from '../../kit/poll.ts'
import type { Joining, RemoteFollower, RemoteReading, RemoteRequest, RemoteTap } from '../../kit/producers.ts'
import { compilePattern, readableRecords } from '../../kit/producers.ts'
import type { Timer } from '../../kit/running.ts'
import { consumedThere, isUnchanged } from './below.ts'
import { catalogueBytes, hasLabels, isSameMetric, ofProducer, readCatalogue } from './catalogue.ts'
import type { UpstreamTable } from './config.ts'
import { type ControlThere, controlsIn, isCutOff, remoteControl } from './controls.ts'
import { Durable } from './durable.ts'
import { UpstreamLink } from './link.ts'
import { Live } from './live.ts'
import { Lobby } from './lobby.ts'
import type { Position } from './position.ts'
import { Questions } from './questions.ts'
import { readingsOf } from './readings.ts'
import type { UpstreamReport } from './report.ts'
import { UpstreamSession } from './session.ts'
import type { StoredBindings } from './stored-bindings.ts'
import { argumentsThere, type NodeRules, type Tap } from './tap.ts'
import { Taps } from './taps.ts'

/** What an expression comes to shows nothing of the metrics that it was made of, which could be judged. */
const UNLESS_NAMED = ['producer.audit', 'producer.history.query', 'producer.history.labels']
/** The part of a deadline that the upstream has to answer; the rest is for the way. */
const OF_DEADLINE = 0.8
/** PRODUCER_CAPS are looked at no more often than they may come. */
const LEARN_MS = 1_000
/** Of a catalogue in memory, about. */
const MAX_CATALOGUE_BYTES = 64 << 20
/** How safe a stream is that tests give. */
const IN_MEMORY = { encrypted: false, loopback: true }
/** After a change of the catalogue. */
const SOON_MS = 100
/** From one reading of a catalogue to the next: a large one that changes all the time must not cost more than its values. */
const REST_MS = 5_000

export interface UpstreamOptions
  extends Pick<Kit, 'clock' | 'log' | 'feed' | 'poll'>,
    Pick<Joining, 'intake' | 'connect'> {
  readonly table: UpstreamTable
  /** Set if it is a node of this producer. */
  readonly peerNode?: UpstreamNode | undefined
  readonly pacer: Pacer
  readonly meter: Meter
  readonly report: UpstreamReport
  /** How far its channel was taken. */
  readonly position: Position
  /** What that channel binds. */
  readonly stored: StoredBindings
  /** Names this server at the upstream: an id that was made with the database. */
  readonly id: string
  /** Other producers are below it now. Settles when they are followed. */
  readonly producersChanged: () => Promise<void>
  /** Its metrics are other ones now than `before`. */
  readonly catalogued: (upstream: Upstream, before: ReadonlyMap<string, Metric>) => void
}

/** A node of this producer. */
export interface UpstreamNode extends NodeRules {
  /** Makes a connection to it. Rejects with Error. */
  connect(signal: AbortSignal): Promise<Transport>
}

export class Upstream {
  readonly table: UpstreamTable
  readonly owner: Owner
  readonly report: UpstreamReport
  /** Its metrics, by name. */
  metrics: ReadonlyMap<string, Metric> = new Map()
  readonly #options: UpstreamOptions
  readonly #live: Live
  readonly #durable: Durable
  /** Where its connections are, if it makes them itself. */
  readonly #lobby: Lobby | undefined
  readonly #abort = new AbortController()
  readonly #links: { readonly live: UpstreamLink; readonly durable: UpstreamLink }
  readonly #taps: { readonly live: Taps; readonly durable: Taps }
  readonly #questions: Questions
  readonly #patterns: readonly ((name: string) => boolean)[]
  readonly #counters = { values: 0, connections: 0 }
  #durableProblem = ''
  #catalogueProblem = ''
  #controlsProblem = ''
  /** Its id, as it says; empty if it does not. */
  #id = ''
  /** By path there and name. */
  #controls: ReadonlyMap<string, ControlThere> = new Map()
  /** The producers that it consumes: their ids, by their paths there. */
  #below: ReadonlyMap<string, string> = new Map()
  /** Settles when these are followed; undefined if that has failed. */
  #belowFollowed: Promise<void> | undefined = Promise.resolve()
  /** What it has said last, and whether that is going to be looked at. */
  #said: Capabilities | undefined
  #isLearning = false
  /** When it was looked at last, monotonic milliseconds. */
  #learntMs = Number.NEGATIVE_INFINITY
  #learning: Timer | undefined
  #reading: Timer | undefined
  #isReading = false
  /** When it was read last, monotonic milliseconds. */
  #readMs = Number.NEGATIVE_INFINITY

  constructor(options: UpstreamOptions) {
    const { table, peerNode, clock, feed, pacer, meter, position, stored, intake, id, report } = options
    this.#options = options
    this.table = table
    this.report = report
    this.owner = { tenant: table.tenant }
    this.#questions = new Questions(clock)
    this.#patterns = table.metrics.map((pattern) => compilePattern(pattern))
    const of = (isDurable: boolean): Taps =>
      new Taps({
        isDurable,
        hub: feed,
        maxSeries: table.maxSeries,
        mayAsk: (name) => this.mayAsk(name),
        node: peerNode,
        hasLabels: ({ name, args }) => hasLabels(name, args, this.metrics.get(name)),
        // Nothing is stopped there by a server that ends, or by a reload.
        staysBound: () => isDurable && (this.#abort.signal.aborted || intake.refusal?.reason === 'stopping'),
        ...(isDurable && { stored }),
        gone: (tap) => this.#durable.gone(tap),
      })
    this.#taps = { live: of(false), durable: of(true) }
    const lost = (gap: Gap, tap: Tap | undefined): void => report.lost(gap, tap?.request.producer ?? table.name)
    const counted = (): void => {
      this.#counters.values++
      meter.take()
    }
    this.#live = new Live({
      taps: this.#taps.live,
      clock,
      work: options.poll.work,
      party: { tenant: table.tenant },
      counted,
      lost,
      begun: (session) => this.#begun(session),
      capabilities: (caps) => this.#learnLater(caps),
      catalogueChanged: (session) => this.#readLater(session, Math.max(SOON_MS, this.#restMs)),
      changed: (problem) => report.changed(problem),
    })
    position.onStored = (reached) => this.#durable.stored(reached)
    this.#durable = new Durable({
      taps: this.#taps.durable,
      position,
      stored,
      intake,
      channelName: `upstream:${id}`,
      counted,
      lost,
      changed: (problem) => {
        this.#durableProblem = problem
      },
      drop: (reason) => this.#links.durable.drop(reason),
      learned: (caps, paths) => this.#learn(caps, paths),
      replaced: () => this.#replaced(),
    })
    const connect = async ({ url = '', ca, cert, key, serverName }: UpstreamTable, signal: AbortSignal) => {
      if (peerNode !== undefined) return peerNode.connect(signal)
      if (options.connect !== undefined) return streamTransport(options.connect(url), IN_MEMORY)
      return dial(url, signal, { tls: { ca, cert, key, servername: serverName } })
    }
    this.#lobby = table.listen === undefined ? undefined : new Lobby(clock)
    const open = (signal: AbortSignal): Promise<UpstreamSession> =>
      this.#lobby?.next(signal) ?? UpstreamSession.open({ table, clock, pacer, connect }, signal)
    const link = { clock, open }
    this.#links = { live: new UpstreamLink(link, this.#live), durable: new UpstreamLink(link, this.#durable) }
  }

  /**
   * Logs in over a connection that was made by somebody who announces itself as this upstream. Rejects with Error if that cannot be
   * proven; then the connection is closed.
   */
  async announced(transport: Transport): Promise<void> {
    const { table, clock, pacer } = this.#options
    const connect = () => Promise.resolve(transport)
    const session = await UpstreamSession.open({ table, clock, pacer, connect }, this.#abort.signal)
    if (this.#lobby === undefined || this.#abort.signal.aborted) session.close()
    else this.#lobby.add(session)
  }

  /** Nothing is connected before: values would find no channels. */
  start(): void {
    this.#links.live.start()
    this.#links.durable.start()
  }

  async stop(): Promise<void> {
    const { clock } = this.#options
    clock.clear(this.#reading)
    clock.clear(this.#learning)
    this.#abort.abort(new Error('the upstream is not consumed any more'))
    this.#lobby?.close()
    await Promise.all([this.#links.live.stop(), this.#links.durable.stop()])
  }

  /** Another one is in its place: who has followed something here follows it there. To be called after `stop`. */
  moveFollowers(): void {
    for (const taps of [this.#taps.live, this.#taps.durable]) for (const tap of taps.all()) tap.move()
  }

  /** It and the producers that it consumes, by their paths here. */
  *producers(): Generator<ProducerName> {
    const { name } = this.table
    yield { id: this.#id, name }
    for (const [path, id] of this.#below) yield { id, name: `${name}/${path}` }
  }

  get #isNode(): boolean {
    return this.#options.peerNode !== undefined
  }

  /** Whether values of a metric may be asked for. */
  mayAsk(name: string): boolean {
    const { metrics } = this.table
    if (UNLESS_NAMED.includes(name) && metrics.every((pattern) => pattern === '*')) return false
    return this.#patterns.some((matches) => matches(name))
  }

  follow(request: RemoteRequest, follower: RemoteFollower): RemoteTap {
    if (!follower.isDurable) return this.#taps.live.follow(request, follower)
    const tap = this.#taps.durable.follow(request, follower)
    // Until now nobody may have needed this connection, and what comes before it is there is in no queue.
    this.#links.durable.look()
    return tap
  }

  /**
   * What the upstream measures within `deadlineMs` for a user; nothing if it is not connected, or refuses, or if others of the same
   * user keep it from being asked. Never rejects.
   */
  async ask(request: RemoteRequest, deadlineMs: number, userId: number): Promise<readonly RemoteReading[]> {
    const { clock } = this.#options
    if (this.#live.session === undefined) return []
    const endMs = clock.monotonicMs() + deadlineMs
    try {
      const asked = await this.#questions.ask(userId, deadlineMs, () =>
        this.#query(request, endMs - clock.monotonicMs()),
      )
      if (asked === undefined) return []
      const isLabelled = hasLabels(request.name, request.args, this.metrics.get(request.name))
      const { peerNode } = this.#options
      const readings = readingsOf(request, isLabelled, asked, this.#isNode)
      return readings.flatMap(({ series, measured: all }) => {
        if (!this.mayAsk(series.name) || peerNode?.isFenced(series.name) === true) return []
        const value = readableRecords(series.name, all.value, (metric) => this.mayAsk(metric))
        return [{ series, measured: { ...all, value } }]
      })
    } catch {
      return []
    }
  }

  async #query(request: RemoteRequest, leftMs: number): Promise<Measurement | undefined> {
    // Whoever asks several producers gets what has come in time, and not nothing because of one of them.
    const thereMs = Math.max(1, Math.floor(leftMs * OF_DEADLINE))
    const deadline = { name: 'deadline_ms', type: BasicType.UINT32, value: thereMs } as const
    const args = [...argumentsThere(request), deadline]
    return this.#live.session?.query(request.name, args, Math.ceil((thereMs + leftMs) / 2))
  }

  status(): SensorStatus {
    const { name, where } = this.table
    const { live, durable } = this.#taps
    const { repeated, gaps, committed } = this.#durable.counters
    const isUp = this.#live.session !== undefined
    const problems = [
      this.report.problem ?? '',
      durable.size > 0 ? this.#durableProblem : '',
      live.problem,
      durable.problem,
    ]
    problems.push(this.#catalogueProblem, this.#controlsProblem)
    const told = [...new Set(problems)].filter((problem) => problem !== '')
    return {
      name: `${this.report.kind}/${name}`,
      state: isUp && told.length === 0 ? 'listening' : this.report.problem === undefined ? 'off' : 'failed',
      detail: [where, ...told].join('; '),
      counters: {
        ...this.#counters,
        repeated,
        gaps,
        committed,
        metrics: this.metrics.size,
        series: live.series + durable.series,
        late: this.#questions.late,
        bindings: live.size + durable.size,
        ...(this.#isNode && { lost: this.report.lostValues }),
      },
    }
  }

  /** The upstream says whom it consumes. Settles when these are followed here. Rejects if that is this server, or if the tree is too deep. */
  async #learn(caps: Capabilities | undefined, paths: readonly string[] = []): Promise<void> {
    const known = consumedThere(caps, paths, this.#options.id)
    this.#id = caps?.producer?.id ?? this.#id
    for (const path of this.#below.keys()) if (!known.has(path) && this.#isFollowed(path)) known.set(path, '')
    if (!isUnchanged(known, this.#below)) {
      this.#below = known
      this.#belowFollowed = undefined
    }
    // The other connection may have learned the same a moment ago: before they are followed, what is bound there would be unwanted.
    await (this.#belowFollowed ?? this.#followBelow())
  }

  /** Rejects if it fails; then whoever learns of them next tries again. */
  async #followBelow(): Promise<void> {
    const followed = this.#options.producersChanged()
    this.#belowFollowed = followed
    try {
      await followed
    } catch (error) {
      if (this.#belowFollowed === followed) this.#belowFollowed = undefined
      throw error
    }
  }

  /** The upstream may say something else at any time: of much that it says, the last is looked at, once in a while. */
  #learnLater(caps: Capabilities | undefined): void {
    const { clock } = this.#options
    this.#said = caps
    if (this.#isLearning || this.#abort.signal.aborted) return
    this.#isLearning = true
    this.#learning = clock.setTimeout(
      () => void this.#learnSaid(),
      Math.max(0, this.#learntMs + LEARN_MS - clock.monotonicMs()),
    )
  }

  /** Never rejects. */
  async #learnSaid(): Promise<void> {
    const said = this.#said
    await this.#learn(said).catch((error: Error) => this.#links.live.drop(error))
    this.#learntMs = this.#options.clock.monotonicMs()
    this.#isLearning = false
    if (this.#said !== said) this.#learnLater(this.#said)
  }

  /** Whether something of a producer is kept at the upstream, so that it must not be stopped there. */
  #isFollowed(path: string): boolean {
    return this.#taps.durable.all().some(({ request }) => request.producer === `${this.table.name}/${path}`)
  }

  /** Reads the catalogue, and again whenever it has changed, or after a while. Rejects if it cannot be read the first time. */
  async #begun(session: UpstreamSession): Promise<void> {
    this.#said = session.capabilities
    await this.#learn(session.capabilities)
    this.#counters.connections++
    await this.#live.followCatalogue(session)
    await this.#readAll(session)
    this.#readLater(session, this.table.intervalMs)
  }

  async #readAll(session: UpstreamSession): Promise<void> {
    this.#isReading = true
    try {
      await this.#readControls(session)
      await this.#readCatalogue(session)
    } finally {
      this.#isReading = false
      this.#readMs = this.#options.clock.monotonicMs()
    }
  }

  get #restMs(): number {
    return this.#readMs + REST_MS - this.#options.clock.monotonicMs()
  }

  #readLater(session: UpstreamSession, delayMs: number): void {
    const { clock } = this.#options
    clock.clear(this.#reading)
    this.#reading = clock.setTimeout(() => {
      if (this.#live.session !== session) return
      const again = (): void => this.#readLater(session, this.table.intervalMs)
      // What has changed while it was read may have been missed.
      if (this.#isReading) this.#readLater(session, REST_MS)
      else this.#readAll(session).then(again, again)
    }, delayMs)
  }

  /** Of the upstream itself, and of the producers that it consumes. */
  async #readControls(session: UpstreamSession): Promise<void> {
    if (this.table.controls.length === 0) return
    const controls = new Map<string, ControlThere>()
    let isCut = false
    // Only what may be run: a list is no longer than a frame.
    for (const match of this.table.controls) {
      for (const producer of [undefined, '*']) {
        const args = toArgumentList({ match, ...(producer !== undefined && { producer }) })
        const { value } = await session.query('producer.controls', args)
        isCut ||= isCutOff(value)
        for (const control of controlsIn(value)) {
          if (this.#mayRun(control.name)) controls.set(`${control.producer} ${control.name}`, control)
        }
      }
    }
    this.#controls = controls
    const listed = `only ${controls.size} of its controls are known`
    this.#controlsProblem = isCut
      ? `a list of its controls is too long: ${listed}; name them in more entries of \`controls\``
      : ''
  }

  #mayRun(name: string): boolean {
    return this.table.controls.some((pattern) => compilePattern(pattern)(name))
  }

  /** A control of it, or of a producer that it consumes. `path` is that here. */
  control(path: string, name: string): Control | undefined {
    const there = this.#controls.get(`${this.#rest(path)} ${name}`)
    // Rules name paths: one control must not be found by two of them, such as `east` and `east/`.
    const isThis = there !== undefined && there.name === name && this.#pathOf(there) === path
    return isThis ? this.#controlOf(there) : undefined
  }

  /** All that may be run from here. */
  *controls(): Generator<RemoteControl> {
    for (const there of this.#controls.values()) {
      yield { producer: this.#pathOf(there), control: this.#controlOf(there) }
    }
  }

  #controlOf(there: ControlThere): Control {
    const { id, clock } = this.#options
    const session = () => this.#live.session
    return remoteControl(there, { producer: this.#pathOf(there), id: `${id} ${this.#id}`, clock, session })
  }

  #pathOf({ producer }: ControlThere): string {
    const { name } = this.table
    return producer === '' ? name : `${name}/${producer}`
  }

  /** A path from the upstream on. */
  #rest(path: string): string {
    return path.slice(this.table.name.length + 1)
  }

  async #readCatalogue(session: UpstreamSession): Promise<void> {
    const metrics = new Map<string, Metric>()
    const before = this.metrics
    let [bytes, fresh] = [0, 0]
    const query: UpstreamSession['query'] = (metric, args) => session.query(metric, args)
    for await (const page of readCatalogue(query, this.#isNode ? [] : [ofProducer])) {
      for (const metric of page) {
        if (!this.mayAsk(metric.name)) continue
        const known = before.get(metric.name)
        const isKnown = known !== undefined && isSameMetric(known, metric)
        if (!isKnown) fresh++
        metrics.set(metric.name, isKnown ? known : metric)
      }
      bytes += page.reduce((sum, metric) => sum + catalogueBytes(metric), 0)
      // It may have no end. What is not listed can be asked for all the same.
      if (bytes >= MAX_CATALOGUE_BYTES) break
    }
    this.#catalogueProblem =
      bytes < MAX_CATALOGUE_BYTES ? '' : `its catalogue is too large: only ${metrics.size} of its metrics are listed`
    this.metrics = metrics
    if (fresh > 0 || metrics.size !== before.size) this.#options.catalogued(this, before)
    await Promise.all([this.#taps.live.retry(), this.#taps.durable.retry()])
  }

  #replaced(): void {
    const { log, table } = this.#options
    log.warn({ [this.report.kind]: table.name }, 'it is not the server from before, or was restored')
    this.report.lost({ count: 0, reason: GapReason.replaced, transaction: 0 }, table.name)
    this.#durable.lostHistory()
  }
}
