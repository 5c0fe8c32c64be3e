/** What consumers were sent, held against the model: order, ids, contents, statuses; and at rest, that nothing is missing. */

import { EPOCH } from '../../support/producer.ts'
import type { Received } from '../../support/raw-peer.ts'
import { decoded } from '../../support/records.ts'
import type { ChannelModel, ConnectionModel, Model } from './model.ts'
import { ANY, type Entry, idOf, inFlight, settle, unsent } from './queue-model.ts'
import type { Stage } from './stage.ts'
import type { Counts } from './walk.ts'

type Message<K extends Received['kind']> = Extract<Received, { kind: K }>

const UINT32 = 2
const VOID = 11

export function fail(what: string): never {
  throw new Error(what)
}

export function observe(model: Model, stage: Stage, counts: Counts): void {
  for (const [index, peer] of stage.peers.entries()) {
    const connection = model.connections[index] as ConnectionModel
    const wasAlive = connection.alive
    for (const message of peer.pending()) {
      if (!connection.alive && connection.ending === 0 && message.kind !== 'notice') continue
      take(model, stage, counts, index, message)
    }
    if (connection.ending > 0) {
      if (!peer.closed) fail(`connection ${index} was to be ended with NOTICE ${connection.ending} and is open`)
      if (peer.log.at(-1)?.kind !== 'notice') fail(`connection ${index} ended without a NOTICE`)
    } else if (wasAlive && peer.closed) {
      fail(`connection ${index} was closed: ${JSON.stringify(peer.log.at(-1))}`)
    }
  }
  model.expected = model.expected.filter((one) => {
    const { alive } = model.connections[one.connection] as ConnectionModel
    if (alive && (one.latest <= stage.durable || !stage.busy)) {
      fail(`connection ${one.connection}: no response to ${one.seq}`)
    }
    return alive || one.after !== undefined || one.run !== undefined
  })
}

function take(model: Model, stage: Stage, counts: Counts, index: number, message: Received): void {
  const connection = model.connections[index] as ConnectionModel
  if (message.kind === 'response') {
    takeResponse(model, stage, index, message)
  } else if (message.kind === 'notice') {
    const { code } = message
    if (code === 1 || code === 3 || code === connection.ending) return
    fail(`connection ${index}: NOTICE ${code} was not to come: ${message.detail}`)
  } else if (message.kind === 'value' || message.kind === 'gap') {
    const channel = model.state.channels.get(connection.channel)
    const where = `connection ${index}`
    if (message.kind === 'value' && message.transaction === 0 && takeAnswer(connection, channel, message)) return
    if (channel === undefined || connection.moving > 0 || channel.connection !== index) {
      fail(`${where}: ${show(message)} and no channel that could send it`)
    }
    if ((message.transaction === 0) === channel.queue.durable)
      fail(`${where}: ${show(message)}: a wrong kind of channel`)
    counts.delivered++
    takeEntry(model, counts, channel, message)
  }
}

function takeResponse(model: Model, stage: Stage, index: number, response: Message<'response'>): void {
  const at = model.expected.findIndex(({ connection, seq }) => connection === index && seq === response.seq)
  const expected = model.expected[at]
  const where = `connection ${index}, seq ${response.seq}`
  if (expected === undefined) fail(`${where}: a response to nothing`)
  if (response.status !== expected.status) {
    fail(`${where}: status ${response.status} (${response.detail}), not ${expected.status}`)
  }
  if (stage.durable < expected.earliest) fail(`${where}: answered before what it promises is stored`)
  if (expected.after === undefined && expected.run === undefined) model.expected.splice(at, 1)
  else fail(`${where}: answered before what it waits for`)
  if (expected.status === 0) expected.learn(response.result)
  for (const channel of model.state.channels.values()) channel.holds.delete(`${index} ${response.seq}`)
}

/** An answer is no queue entry. What could be both is taken as what is next in the queue. */
function takeAnswer(
  connection: ConnectionModel,
  channel: ChannelModel | undefined,
  message: Message<'value'>,
): boolean {
  const payload = payloadOf(message)
  const next = channel?.queue.durable === false ? unsent(channel.queue)[0] : undefined
  if (next !== undefined && isIt(next, message)) return false
  const at = connection.answers.findIndex((answer) => answer.metric === message.metric && answer.payload === payload)
  if (at >= 0) connection.answers.splice(at, 1)
  return at >= 0
}

function takeEntry(model: Model, counts: Counts, channel: ChannelModel, message: Message<'value' | 'gap'>): void {
  const { queue } = channel
  const one = find(channel, message)
  if (one.kind === 'result') {
    one.metric = message.metric
    model.resultIds.set(one.token, message.metric)
  }
  for (const from of channel.holds.values()) {
    if (one.no >= from) fail(`${show(message)} came before the response of the command that caused it`)
  }
  if (one.kind === 'gap' && !one.reported && one.reason <= 2) queue.reported += one.count
  if (one.reported && one.kind !== 'gap') counts.duplicates++
  one.sent = one.reported = true
  if (!queue.durable) {
    settle(queue, one, 'committed')
    model.endSettled()
    return
  }
  const { length } = inFlight(queue)
  if (length > queue.window) fail(`${show(message)}: ${length} are in flight, and the window is ${queue.window}`)
  const id = message.transaction
  const expected = idOf(queue, one)
  if (expected > 0 && id !== expected) fail(`${show(message)}: the id was to be ${expected}`)
  if (id <= queue.lastSent) fail(`${show(message)} came after ${queue.lastSent}`)
  queue.lastSent = id
  // What a limit drops may have been sent before: its GAP has the id of the last of it. And what came back in a crash may
  // have been committed or dropped before it was sent, while what stood after it was.
  const fresh = one.id === 0 && one.no >= 0
  if (fresh && id <= queue.highest) fail(`${show(message)} is new, and ${queue.highest} was given before`)
  if (one.no >= 0 && !one.vague && !queue.loose && queue.base === 0) queue.base = id - one.no
  one.id = id
  queue.lowest = queue.lowest === 0 ? id : Math.min(queue.lowest, id)
  queue.highest = Math.max(queue.highest, id)
  model.seen.get(channel.key)?.set(one.uid, id)
  const given = model.given.get(channel.key)
  const before = given?.get(id)
  if (before !== undefined && before !== one.uid && one.kind !== 'gap')
    fail(`${show(message)}: the id was another value's`)
  if (one.kind !== 'gap') given?.set(id, one.uid)
}

/** The entry that a message is. It has to be the next one, but among those that one event made. */
function find({ queue }: ChannelModel, message: Message<'value' | 'gap'>): Entry {
  const rest = unsent(queue)
  const first = rest[0]
  if (message.kind === 'gap' && queue.loose) {
    const next = rest.find(({ kind }) => kind !== 'value')
    return next !== undefined && isIt(next, message) ? skipTo(queue, rest, next) : lossOf(queue, message)
  }
  if (first === undefined) fail(`${show(message)}: nothing was to come`)
  if (isIt(first, message)) return first
  const peer = rest.find((one) => one.group > 0 && one.group === first.group && isIt(one, message))
  if (peer !== undefined) return swap(queue, first, peer)
  if (queue.loose) {
    const later = rest.find((one) => one.kind !== 'value' || isIt(one, message))
    if (later !== undefined && isIt(later, message)) return skipTo(queue, rest, later)
  }
  fail(`${show(message)}, not ${showEntry(first)}`)
}

/** A GAP that a limit made. */
function lossOf(queue: ChannelModel['queue'], { transaction, metric, count, reason }: Message<'gap'>): Entry {
  for (const one of unsent(queue)) if (one.id > 0 && one.id <= transaction) settle(queue, one, 'overflow')
  const before = unsent(queue)[0]
  const gap: Entry = {
    uid: ++queue.uids,
    kind: 'gap',
    metric,
    payload: '',
    series: '',
    group: 0,
    at: 0,
    token: 0,
    reason,
    count,
    no: -1,
    vague: false,
    id: 0,
    sent: false,
    reported: false,
    stopped: false,
    acknowledged: false,
  }
  queue.sending.splice(before === undefined ? queue.sending.length : queue.sending.indexOf(before), 0, gap)
  return gap
}

/** Those before it were dropped by a limit: the ledger has to have counted them. */
function skipTo(queue: ChannelModel['queue'], rest: readonly Entry[], to: Entry): Entry {
  for (const one of rest.slice(0, rest.indexOf(to))) {
    // What the same event made may still come.
    if (one.group === 0 || one.group !== to.group) settle(queue, one, 'overflow')
  }
  const next = unsent(queue)[0] as Entry
  return next === to ? to : swap(queue, next, to)
}

function swap({ sending }: ChannelModel['queue'], first: Entry, one: Entry): Entry {
  const at = sending.indexOf(first)
  sending.splice(sending.indexOf(one), 1)
  sending.splice(at, 0, one)
  const places = sending.filter(({ group, no }) => group === one.group && no >= 0)
  const numbers = places.map(({ no }) => no).sort((a, b) => a - b)
  for (const [index, entry] of places.entries()) entry.no = numbers[index] as number
  return one
}

function isIt(one: Entry, message: Message<'value' | 'gap'>): boolean {
  if (message.kind === 'gap') {
    const { metric, count, reason, transaction } = message
    if (one.id > 0 && one.id !== transaction) return false
    // What is lost of a block of several metrics is reported as a loss of several, if it is of one by chance.
    const fits = one.metric === metric || one.metric === ANY || metric === 0
    return one.kind === 'gap' && one.reason === reason && (one.count === count || one.count === ANY) && fits
  }
  if (one.kind === 'gap') return false
  if (one.metric !== message.metric && !(one.kind === 'result' && one.metric === 0)) return false
  const payload = payloadOf(message)
  return payload === one.payload || (one.payload === 'ok *' && payload.startsWith('ok '))
}

/** A value as text: what it is, with its time. */
export function payloadOf(message: Message<'value'>): string {
  const time = message.time - EPOCH
  if (message.type === UINT32) return `${message.value.readUInt32BE(0)}@${time}`
  if (message.type === VOID) return 'void'
  const json = decoded(message)
  if (Array.isArray(json)) return `[${json.map(({ name, value }) => `${name}=${value}`).sort()}]`
  if (json.outcome !== undefined) return json.outcome === 'ok' ? `ok ${json.value ?? 'void'}` : json.outcome
  return `${json.name}=${json.value}@${time}`
}

function show(message: Message<'value' | 'gap'>): string {
  const { kind, metric, transaction } = message
  if (kind === 'gap') return `GAP ${transaction} (metric ${metric}, count ${message.count}, reason ${message.reason})`
  return `value ${transaction} (metric ${metric}, ${payloadOf(message)})`
}

function showEntry({ kind, metric, payload, reason, count, id, no }: Entry): string {
  const what = kind === 'gap' ? `count ${count}, reason ${reason}` : payload
  return `${kind} (metric ${metric}, ${what}, id ${id}, place ${no})`
}

/** Everything is stored and nothing is under way: what could be sent has been. */
export function checkIdle(model: Model): void {
  for (const channel of model.state.channels.values()) {
    const { queue, connection: index, holds } = channel
    const connection = model.connections[index]
    if (connection === undefined || connection.closing) continue
    if (holds.size > 0) fail(`a response is out and something waits for it: ${[...holds.keys()]}`)
    if (connection.moving > 0) fail(`connection ${index}: SET_CHANNEL was not answered`)
    connection.answers = connection.answers.filter(({ isCertain }) => isCertain)
    if (connection.answers.length > 0) fail(`connection ${index}: no answer ${JSON.stringify(connection.answers)}`)
    const next = unsent(queue)[0]
    if (next === undefined) continue
    const room = queue.durable ? queue.window - inFlight(queue).length : 1
    if (queue.loose ? inFlight(queue).length === 0 && unsent(queue).length > queue.missing : room > 0) {
      fail(`channel ${model.idOf(channel)}: ${showEntry(next)} was not sent, and the window has room`)
    }
  }
}
