/**
 * What each command does to the model, and how it is answered. Checks stand in the order of section 7: the metric id, then
 * the channel. `changed`: something is stored for it, and OK may not come before.
 */
import { ALL, status } from '../../support/bytes.ts'
import type { ChannelModel, ConnectionModel, InstanceModel, Mode, Model } from './model.ts'
import { append, commit, copiesOf, type Given, isEmpty, purge, type QueueModel, release, stop } from './queue-model.ts'

export interface Outcome {
  readonly status: number
  readonly changed?: boolean | 'maybe'
  readonly learn?: (result: number) => void
  readonly after?: () => void
  readonly run?: () => void
  /** Nothing else of the connection is handled before the response is out. */
  readonly alone?: boolean
  /** Channel whose queue sends nothing new before the response. */
  readonly hold?: readonly ChannelModel[]
}

const refused = (name: keyof typeof status): Outcome => ({ status: status[name] })
const OK = status.OK

/** What of a user an id names. */
function find(model: Model, by: ConnectionModel, id: number): ChannelModel | undefined {
  if (id === 0) return model.channel(by.channel)
  return model.of(by.user).find((channel) => model.idOf(channel) === id)
}

function instanceOf(model: Model, by: ConnectionModel, id: number): InstanceModel | undefined {
  const instance = model.state.instances.get(id)
  return instance?.user === by.user ? instance : undefined
}

function resultOf(model: Model, by: ConnectionModel, id: number) {
  for (const result of model.state.results.values()) {
    if (model.resultIds.get(result.token) === id && model.state.channels.get(result.channel)?.user === by.user)
      return result
  }
  return undefined
}

function survives(channel: ChannelModel): boolean {
  return channel.defined || channel.queue.durable
}

export function collect(model: Model, connection: number, name: string): Outcome {
  const { user } = model.connections[connection] as ConnectionModel
  const learn = (id: number): void => {
    model.state.instances.set(id, { id, user, name, made: connection, bound: new Set() })
  }
  return { status: OK, learn }
}

export function isEvent(name: string): boolean {
  return name.startsWith('events.')
}

export function isPattern(name: string): boolean {
  return name.includes('*')
}

export function bind(model: Model, connection: number, mode: Mode, id: number, to: number): Outcome {
  const by = model.connections[connection] as ConnectionModel
  const instance = instanceOf(model, by, id)
  if (instance === undefined) return refused(resultOf(model, by, id) ? 'UNSUPPORTED' : 'NO_SUCH_ID')
  const hold: ChannelModel[] = []
  let changed: boolean | 'maybe' = 'maybe'
  for (const channel of to === ALL ? model.of(by.user) : [find(model, by, to)]) {
    if (channel === undefined) return refused('NO_SUCH_CHANNEL')
    const bound = channel.bindings.get(id)
    if (bound === mode) continue
    if (bound === undefined) channel.since.set(id, ++model.order)
    if (mode === 'subscribe') {
      hold.push(channel)
      const current = model.channel(by.channel)
      if (channel !== current) copy(model, current.queue, channel, id)
      if (bound === 'buffer') release(channel.queue, id)
    }
    channel.bindings.set(id, mode)
    instance.bound.add(channel.key)
    instance.made = -1
    if (survives(channel)) changed = true
  }
  return { status: OK, changed, hold }
}

function copy(model: Model, from: QueueModel, { queue, since }: ChannelModel, metric: number): void {
  for (const { kind, payload, series } of copiesOf(from, metric, since.get(metric) ?? 0)) {
    append(queue, 0, { kind, metric, payload, series, at: ++model.order })
  }
}

export function stopped(model: Model, connection: number, id: number, on: number): Outcome {
  const by = model.connections[connection] as ConnectionModel
  const instance = instanceOf(model, by, id)
  const result = resultOf(model, by, id)
  if (instance === undefined && result === undefined) return refused('NO_SUCH_ID')
  const channels = on === ALL ? model.of(by.user) : [find(model, by, on)]
  let changed: boolean | 'maybe' = 'maybe'
  for (const channel of channels) {
    if (channel === undefined) return refused('NO_SUCH_CHANNEL')
    const { key } = channel
    if (result !== undefined && result.channel !== key) continue
    if (on === ALL && instance !== undefined && !instance.bound.has(key)) continue
    if (instance !== undefined && channel.bindings.has(id) && survives(channel)) changed = true
    stop(channel.queue, id)
    model.stops.push(`${key} ${id}`)
    channel.bindings.delete(id)
    instance?.bound.delete(key)
    dropAnswers(model, channel, id)
    if (result !== undefined) model.endResult(result.token)
  }
  if (instance !== undefined && instance.bound.size === 0) model.forget(instance)
  return { status: OK, changed }
}

function dropAnswers(model: Model, { connection }: ChannelModel, metric: number): void {
  const holder = model.connections[connection]
  if (holder !== undefined) holder.answers = holder.answers.filter((answer) => answer.metric !== metric)
}

export function get(model: Model, connection: number, id: number, on: number): Outcome {
  const by = model.connections[connection] as ConnectionModel
  const instance = instanceOf(model, by, id)
  if (instance === undefined) return refused(resultOf(model, by, id) ? 'UNSUPPORTED' : 'NO_SUCH_ID')
  const all = model.of(by.user).filter((channel) => channel.bindings.has(id))
  const channels = on === ALL ? all : [find(model, by, on)]
  // One value is measured now, though it is reported after the response; a list is made when it is reported.
  const last = lastOf(model, instance.name)
  const payload = () => (isPattern(instance.name) ? allOf(model) : last)
  const hold: ChannelModel[] = []
  const answers: (() => unknown)[] = []
  let changed: boolean | 'maybe' = false
  for (const channel of channels) {
    if (channel === undefined) return refused('NO_SUCH_CHANNEL')
    const { key } = channel
    const waits = channel.bindings.get(id) === 'buffer'
    // What is pushed was released; a GAP that nobody knows of may have been.
    const isReleased = waits && release(channel.queue, id)
    const isCertain = !(waits && channel.queue.loose)
    if (isReleased) {
      hold.push(channel)
      changed = channel.queue.durable || changed || 'maybe'
    } else if (waits && channel.queue.loose) {
      // A GAP that nobody knows of may wait.
      changed ||= 'maybe'
    }
    const stops = model.stopsOf(key, id)
    const isWanted = (): boolean => model.stopsOf(key, id) === stops
    if (!isEvent(instance.name) && !isReleased) {
      answers.push(() => isWanted() && answer(model, key, instance, payload(), isCertain))
    }
  }
  return {
    status: OK,
    changed,
    hold,
    alone: answers.length > 0 && isPattern(instance.name) && channels.some((one) => one?.key !== by.channel),
    after: () => {
      for (const act of answers) act()
    },
  }
}

/** The answer to GET of a continuous metric goes to its channel alone, or is queued there. */
function answer(model: Model, key: number, instance: InstanceModel, payload: string, isCertain: boolean): void {
  const channel = model.state.channels.get(key)
  if (channel === undefined || !model.state.instances.has(instance.id)) return
  const series = `${instance.id}${isPattern(instance.name) ? '[]' : ''}`
  const holder = model.connections[channel.connection]
  if (holder !== undefined) holder.answers.push({ metric: instance.id, payload, series, isCertain })
  else {
    const { group } = model
    const queued: Given = { kind: 'value', metric: instance.id, payload, series, group, at: ++model.order }
    model.queueAnswer(channel.queue, queued, isCertain)
  }
}

function lastOf(model: Model, name: string): string {
  const last = model.last.get(name)
  return last === undefined ? 'void' : `${last}@${last}`
}

function allOf(model: Model): string {
  return `[${[...model.last].map(([name, value]) => `${name}=${value}`).sort()}]`
}

/** COMMIT on the current channel. */
export function committed(model: Model, connection: number, id: number, through: boolean): Outcome {
  const { channel: key } = model.connections[connection] as ConnectionModel
  const { queue } = model.channel(key)
  if (id === 0) return { status: OK, changed: 'maybe' }
  if (!queue.durable) return refused('NO_SUCH_TRANSACTION')
  const given = id <= queue.highest || (queue.base > 0 && id < queue.base + queue.next)
  // Below the first that was seen no id of this channel is ever asked for.
  if (!given || queue.lowest === 0 || id < queue.lowest) return refused('NO_SUCH_TRANSACTION')
  const changed = commit(queue, id, through)
  model.endSettled()
  return { status: OK, changed: changed || 'maybe' }
}

export function setChannel(model: Model, connection: number, id: number): Outcome {
  const by = model.connections[connection] as ConnectionModel
  if (id === ALL) return refused('INVALID_ARGUMENT')
  const channel = find(model, by, id)
  if (channel === undefined) return refused('NO_SUCH_CHANNEL')
  const left = model.channel(by.channel)
  if (channel === left) return { status: OK }
  const loser = channel.connection
  if (loser >= 0) model.leave(channel, true)
  channel.connection = connection
  if (loser >= 0) model.disconnect(loser, 2)
  if (left.connection === connection) model.leave(left)
  by.channel = channel.key
  by.moving++
  return { status: OK, changed: 'maybe', learn: () => by.moving-- }
}

export function delChannel(model: Model, connection: number, id: number): Outcome {
  const by = model.connections[connection] as ConnectionModel
  const current = model.channel(by.channel)
  const doomed = id === ALL ? model.of(by.user) : [find(model, by, id)]
  let changed: boolean | 'maybe' = 'maybe'
  for (const channel of doomed) {
    if (channel === undefined) return refused('NO_SUCH_CHANNEL')
    if (channel.defined) changed = true
    if (channel === current) by.closing = true
    const holder = channel.connection
    model.delete(channel)
    if (holder >= 0 && holder !== connection) model.disconnect(holder, 5)
  }
  const ends = doomed.includes(current)
  return { status: OK, changed, learn: () => ends && model.disconnect(connection, 5) }
}

export interface Settings {
  readonly durable?: boolean
  readonly window?: number
  readonly maxBytes?: number
  readonly maxAgeMs?: number
  readonly overflow?: string
  /** Above max_bytes, or above what the operator allows: refused. */
  readonly windowBytes?: number
}

const MOST_WINDOW = 65_536

/** Undefined if each setting is within its bounds. They are judged before it is looked whether there is the channel. */
function judgeEach({ overflow, window }: Settings): Outcome | undefined {
  if (window !== undefined && window > MOST_WINDOW) return refused('QUOTA_EXCEEDED')
  return overflow === 'sometimes' ? refused('INVALID_ARGUMENT') : undefined
}

/** Undefined if the settings are sound. */
function judge(settings: Settings): Outcome | undefined {
  const { windowBytes, maxBytes } = settings
  const isAbove = windowBytes !== undefined && maxBytes !== undefined && windowBytes > maxBytes
  return judgeEach(settings) ?? (isAbove ? refused('INVALID_ARGUMENT') : undefined)
}

export function defChannel(model: Model, connection: number, settings: Settings): Outcome {
  const { user } = model.connections[connection] as ConnectionModel
  const refusal = judge(settings)
  if (refusal !== undefined) return refusal
  const { durable = true, window = MOST_WINDOW, overflow } = settings
  const loose = settings.maxBytes !== undefined || settings.maxAgeMs !== undefined
  const key = model.create(user, true, {
    durable,
    window: window || MOST_WINDOW,
    keepLatest: overflow === 'keep-latest',
    loose,
  })
  const learn = (id: number): void => {
    const listed = model.channelIds.get(key)
    if (listed !== 0 && listed !== id) throw new Error(`DEF_CHANNEL gave ${id}, the list says ${listed}`)
    model.channelIds.set(key, id)
  }
  return { status: OK, changed: true, learn }
}

/** EXECUTE `channel.configure`. */
export function configure(model: Model, connection: number, id: number, settings: Settings): Outcome {
  const by = model.connections[connection] as ConnectionModel
  const unbound = judgeEach(settings)
  if (unbound !== undefined) return unbound
  const channel = find(model, by, id)
  if (channel === undefined) return refused('NO_SUCH_CHANNEL')
  const refusal = judge(settings)
  if (refusal !== undefined) return refusal
  const { queue } = channel
  const { durable = queue.durable, window, maxBytes, maxAgeMs } = settings
  if (durable !== queue.durable && !isEmpty(queue)) return refused('BUSY')
  queue.durable = durable
  if (window !== undefined) queue.window = window || MOST_WINDOW
  if (maxBytes !== undefined || maxAgeMs !== undefined) queue.loose = true
  channel.configured = true
  return execute(model, connection, 'ok void', survives(channel) ? true : 'maybe')
}

/** EXECUTE `channel.purge`. */
export function purged(model: Model, connection: number, id: number, metric?: number, through?: number): Outcome {
  const by = model.connections[connection] as ConnectionModel
  const channel = find(model, by, id)
  if (channel === undefined) return refused('NO_SUCH_CHANNEL')
  const gone = purge(channel.queue, metric, through)
  model.endSettled()
  return execute(model, connection, channel.queue.loose ? 'ok *' : `ok ${gone.length}`, 'maybe')
}

function execute(model: Model, connection: number, payload: string, changed: boolean | 'maybe'): Outcome {
  const { channel: key } = model.connections[connection] as ConnectionModel
  const channel = model.channel(key)
  const token = model.newKey()
  model.state.results.set(token, { token, channel: key, payload, arrived: false })
  channel.results.add(token)
  const learn = (id: number): void => {
    model.resultIds.set(token, id)
    for (const one of channel.queue.sending) if (one.token === token) one.metric = id
  }
  return {
    status: OK,
    changed: channel.queue.durable ? true : changed,
    hold: [channel],
    learn,
    run: () => model.arrive(token),
  }
}
