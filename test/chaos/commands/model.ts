/**
 * What the producer has, as the protocol tells it: channels with bindings and queues, metric ids, results of EXECUTEs, and
 * the connections of consumers. `state` is plain data: a copy of it is what a crash leaves behind. Numbers of users and
 * connections are the test's own; ids are the producer's.
 */
import { append, detach, type Given, isEmpty, newQueue, type QueueModel, restored } from './queue-model.ts'

export type Mode = 'subscribe' | 'buffer'

export interface ChannelModel {
  /** By a number of our own: its id may not be known yet. */
  readonly key: number
  readonly user: number
  readonly defined: boolean
  configured: boolean
  readonly queue: QueueModel
  readonly bindings: Map<number, Mode>
  /** By metric id, when it was bound here, as `order` counts. */
  readonly since: Map<number, number>
  /** EXECUTEs whose value is to come or not settled, by token. */
  readonly results: Set<number>
  /** The connection that has it; -1: none. */
  connection: number
  /** Places from which on nothing may be sent before a response, by its connection and seq. */
  readonly holds: Map<string, number>
  /** Whether it is still there cannot be known: the list says it. */
  maybeGone: boolean
}

export interface InstanceModel {
  readonly id: number
  readonly user: number
  readonly name: string
  /** The connection with which it dies while it was never bound; -1: none. */
  made: number
  /** Keys of channels. */
  readonly bound: Set<number>
}

export interface ResultModel {
  readonly token: number
  /** Key of the channel. */
  readonly channel: number
  readonly payload: string
  /** Its value is in the queue. */
  arrived: boolean
}

export interface State {
  readonly channels: Map<number, ChannelModel>
  readonly instances: Map<number, InstanceModel>
  readonly results: Map<number, ResultModel>
}

/** What a response has to be, and what happens with it. */
export interface Expected {
  readonly connection: number
  readonly seq: number
  readonly status: number
  /** The batch whose being durable lets it go: not before `earliest`, with `latest` for sure. */
  readonly earliest: number
  readonly latest: number
  readonly learn: (result: number) => void
  /** What it sets going, in the turn in which it is written; undefined once done. */
  after: (() => void) | undefined
  /** A control that begins then: its result comes after everything else of that turn. */
  run: (() => void) | undefined
}

export interface ConnectionModel {
  readonly user: number
  alive: boolean
  /** Its channel is deleted: the response is the last thing. */
  closing: boolean
  /** The code of the NOTICE with which the producer ends it; 0: none. */
  ending: number
  /** Key of the current channel. */
  channel: number
  /** Responses of SET_CHANNEL not read: nothing is sent meanwhile. */
  moving: number
  seq: number
  /** Answers to come: no queue entries. */
  answers: { readonly metric: number; readonly payload: string; readonly series: string; readonly isCertain: boolean }[]
}

export class Model {
  state: State = { channels: new Map(), instances: new Map(), results: new Map() }
  readonly connections: ConnectionModel[] = []
  expected: Expected[] = []
  /** The last value of each pushed metric, since the start of the process. */
  readonly last = new Map<string, number>()
  /** Channels and metric ids that were there once: nobody finds them. */
  readonly deadChannels: number[] = []
  readonly deadIds: number[] = []
  #keys = 0
  /** Queues of channels that were deleted: a crash may bring them back. */
  readonly #graves = new Map<number, QueueModel>()
  /** What the consumers know, crash or not: ids of channels and of results, by key and token; 0 or missing: not reported yet. */
  readonly channelIds = new Map<number, number>()
  readonly resultIds = new Map<number, number>()
  /** By key of the channel: ids of entries that were seen, by uid. */
  readonly seen = new Map<number, Map<number, number>>()
  /** Results that no batch holds yet. */
  arrivals: { readonly token: number; readonly channel: number }[] = []
  /** By key of the channel: which value an id was given to, for ever. */
  readonly given = new Map<number, Map<number, number>>()
  /** STOPs, by channel and metric id: they cancel GETs. */
  readonly stops: string[] = []
  /** Distinguishes events. */
  group = 0
  /** Counts what is accepted and bound, over all channels. */
  order = 0

  newKey(): number {
    return ++this.#keys
  }

  channel(key: number): ChannelModel {
    const channel = this.state.channels.get(key)
    if (channel === undefined) throw new Error(`the model has no channel ${key}`)
    return channel
  }

  /** 0 while nobody has been told it: DEF_CHANNEL's response is not out. */
  idOf(channel: ChannelModel): number {
    return this.channelIds.get(channel.key) ?? 0
  }

  stopsOf(key: number, metric: number): number {
    return this.stops.filter((stop) => stop === `${key} ${metric}`).length
  }

  of(user: number): ChannelModel[] {
    return [...this.state.channels.values()].filter((channel) => channel.user === user)
  }

  create(user: number, defined: boolean, settings: Parameters<typeof newQueue>[0], id = 0): number {
    const key = this.newKey()
    this.channelIds.set(key, id)
    this.seen.set(key, new Map())
    this.given.set(key, new Map())
    this.state.channels.set(key, {
      key,
      user,
      defined,
      configured: false,
      queue: newQueue(settings),
      bindings: new Map(),
      since: new Map(),
      results: new Set(),
      connection: -1,
      holds: new Map(),
      maybeGone: false,
    })
    return key
  }

  connect(user: number, id: number): number {
    const channel = this.create(user, false, { durable: true, window: 65_536, keepLatest: false, loose: false }, id)
    const index = this.connections.push({
      user,
      alive: true,
      closing: false,
      ending: 0,
      channel,
      moving: 0,
      seq: 0,
      answers: [],
    })
    this.channel(channel).connection = index - 1
    return index - 1
  }

  /** A connection ends, whoever ended it. `code`: the producer's NOTICE. */
  disconnect(index: number, code = 0): void {
    const connection = this.connections[index] as ConnectionModel
    if (!connection.alive) return
    connection.alive = false
    connection.ending = code
    const channel = this.state.channels.get(connection.channel)
    if (channel?.connection === index) this.leave(channel)
    for (const instance of [...this.state.instances.values()]) {
      if (instance.made === index && instance.bound.size === 0) this.forget(instance)
    }
  }

  /** Its connection is gone, or left by SET_CHANNEL. `taken`: another one has it now. */
  leave(channel: ChannelModel, taken = false): void {
    const connection = this.connections[channel.connection] as ConnectionModel
    channel.connection = -1
    detach(channel.queue)
    channel.holds.clear()
    // Answers that were not handed over are queued as any value.
    for (const { metric, payload, series, isCertain } of connection.answers.splice(0)) {
      this.queueAnswer(channel.queue, { kind: 'value', metric, payload, series, at: ++this.order }, isCertain)
    }
    const disposable = !taken && this.isDisposable(channel)
    if (disposable === 'maybe') channel.maybeGone = true
    else if (disposable) this.delete(channel)
  }

  /** Nobody reads the channel: the answer to GET waits there. */
  queueAnswer(queue: QueueModel, answer: Given, isCertain: boolean): void {
    if (isCertain) append(queue, 0, answer)
    else queue.possible.push(answer)
  }

  isDisposable(channel: ChannelModel): boolean | 'maybe' {
    const { defined, configured, bindings, results, queue } = channel
    if (defined) return false
    if (!queue.durable) return true
    if (configured || bindings.size > 0 || results.size > 0) return false
    if (isEmpty(queue)) return true
    return queue.sending.every((one) => one.stopped) ? 'maybe' : false
  }

  delete(channel: ChannelModel): void {
    const { key } = channel
    this.#graves.set(key, channel.queue)
    this.deadChannels.push(this.idOf(channel))
    this.state.channels.delete(key)
    for (const token of channel.results) this.endResult(token)
    for (const metric of channel.bindings.keys()) this.unbind(metric, key)
  }

  unbind(metric: number, key: number): void {
    const instance = this.state.instances.get(metric)
    if (instance === undefined) return
    instance.bound.delete(key)
    if (instance.bound.size === 0) this.forget(instance)
  }

  forget(instance: InstanceModel): void {
    if (this.state.instances.delete(instance.id)) this.deadIds.push(instance.id)
  }

  /** The value of a result is committed or dropped: its id dies. */
  endResult(token: number): void {
    const result = this.state.results.get(token)
    if (result === undefined) return
    this.state.results.delete(token)
    this.state.channels.get(result.channel)?.results.delete(token)
    this.deadIds.push(this.resultIds.get(token) ?? 0)
  }

  /** Forgets the results whose value is in no queue any more. */
  endSettled(): void {
    for (const result of [...this.state.results.values()]) {
      const channel = this.state.channels.get(result.channel)
      if (!result.arrived) continue
      if (!channel?.queue.sending.some((one) => one.token === result.token)) this.endResult(result.token)
    }
  }

  /** The control ran: its result enters the queue of its channel. */
  arrive(token: number): void {
    const result = this.state.results.get(token)
    if (result === undefined) return
    result.arrived = true
    if (this.channel(result.channel).queue.durable) this.arrivals.push({ token, channel: result.channel })
    const { payload } = result
    const metric = this.resultIds.get(token) ?? 0
    append(this.channel(result.channel).queue, 0, { kind: 'result', metric, payload, token, group: this.group })
  }

  /**
   * The process ended and began again with what was stored. Results that were to come have the outcome `unknown`; they are
   * added by `unknowns`, after the GAP of the restart.
   */
  restart(stored: State): void {
    for (const connection of this.connections) connection.alive = false
    this.expected = []
    this.arrivals = []
    this.last.clear()
    const gone = this.state
    this.state = structuredClone(stored)
    const { channels, instances, results } = this.state
    for (const [key, channel] of [...channels]) {
      channel.connection = -1
      channel.holds.clear()
      if (!channel.queue.durable && !channel.defined) this.delete(channel)
      else if (!channel.queue.durable) emptied(channel.queue)
      else restored(channel.queue)
      // Whatever made it stay is gone: from here on the producer may have forgotten it.
      if (channels.has(key) && this.isDisposable(channel) !== false) channel.maybeGone = true
    }
    for (const instance of [...instances.values()]) {
      instance.made = -1
      if (instance.bound.size === 0) this.forget(instance)
    }
    for (const { channel, token } of [...results.values()]) if (!channels.has(channel)) this.endResult(token)
    for (const result of [...results.values()]) {
      if (!(channels.get(result.channel) as ChannelModel).queue.durable) this.endResult(result.token)
    }
    for (const [key, { queue }] of gone.channels) this.#graves.set(key, queue)
    for (const [key, { queue }] of channels) this.#remember(key, queue, this.#graves.get(key) as QueueModel)
    for (const key of gone.channels.keys())
      if (!channels.has(key)) this.deadChannels.push(this.channelIds.get(key) ?? 0)
    for (const id of gone.instances.keys()) if (!instances.has(id)) this.deadIds.push(id)
  }

  /** What was seen of a queue before the crash holds after it: an id is never another value's. */
  #remember(key: number, queue: QueueModel, before: QueueModel): void {
    const seen = this.seen.get(key) as Map<number, number>
    queue.lostSeen = [...seen.keys()].some((uid) => uid > queue.uids)
    queue.lowest = before.lowest
    queue.highest = before.highest
    queue.uids = before.uids
    for (const one of queue.sending) {
      one.id = seen.get(one.uid) ?? 0
      if (one.kind === 'result') one.metric = this.resultIds.get(one.token) ?? 0
    }
    for (const lane of queue.waiting.values()) for (const { uid } of lane) seen.delete(uid)
  }

  unknowns(): void {
    this.group++
    for (const result of [...this.state.results.values()]) {
      if (result.arrived) continue
      this.state.results.set(result.token, { ...result, payload: 'unknown' })
      this.arrive(result.token)
    }
  }
}

/** Nothing in it survives; its counts are the producer's to say. */
function emptied(queue: QueueModel): void {
  queue.sending = []
  queue.waiting.clear()
  queue.latest.clear()
  queue.base = 0
  queue.reported = 0
}
