/** `producer.channels` held against the model after every step: it balances, and counts what the model counts. */
import { balance, type Json } from '../../support/records.ts'
import type { ChannelModel, Model } from './model.ts'
import { fail } from './observe.ts'
import { addGap, append, type Cause, causes, inFlight, type QueueModel, RESTART, settle } from './queue-model.ts'
import { users } from './stage.ts'

/** Of answers to GET that may have been queued, those that were accepted. To be called before the queues are looked at. */
export function learnAnswers(model: Model, list: readonly Json[]): void {
  for (const listed of list) {
    for (const channel of model.of(users.indexOf(listed.identity))) {
      if (model.idOf(channel) !== listed.channel) continue
      const possible = channel.queue.possible.splice(0)
      if (possible.length === 0) continue
      const queued = listed.accepted - channel.queue.accepted
      if (queued !== 0 && queued !== possible.length) {
        fail(`channel ${listed.channel}: ${queued} of ${possible.length} answers were queued`)
      }
      if (queued > 0) for (const answer of possible) append(channel.queue, 0, answer)
    }
  }
}

/** `idle`: everything is stored. */
export function checkLedger(model: Model, list: readonly Json[], idle: boolean): void {
  const unseen = new Set(model.state.channels.values())
  for (const listed of list) {
    if (balance(listed) !== 0) fail(`the ledger does not balance: ${JSON.stringify(listed)}`)
    const channel = find(model, listed)
    unseen.delete(channel)
    channel.maybeGone = false
    checkChannel(model, channel, listed)
    if (idle && listed.durable && listed.unstored > 0) fail(`nothing is under way, and ${listed.unstored} are unstored`)
  }
  for (const channel of unseen) {
    if (!channel.maybeGone) fail(`channel ${model.idOf(channel)} is gone`)
    model.delete(channel)
  }
}

function find(model: Model, listed: Json): ChannelModel {
  const user = users.indexOf(listed.identity)
  for (const channel of model.of(user)) if (model.idOf(channel) === listed.channel) return channel
  // A channel whose DEF_CHANNEL is not answered yet.
  for (const [key, channel] of model.state.channels) {
    if (channel.user !== user || model.channelIds.get(key) !== 0) continue
    model.channelIds.set(key, listed.channel)
    return channel
  }
  fail(`channel ${listed.channel} of ${listed.identity} should not be there`)
}

function checkChannel(model: Model, channel: ChannelModel, listed: Json): void {
  const { queue } = channel
  const same = (what: string, is: unknown, expected: unknown): void => {
    if (is !== expected) fail(`channel ${listed.channel}: ${what} is ${is}, not ${expected}\n${JSON.stringify(listed)}`)
  }
  same('durable', listed.durable, queue.durable)
  const bindings = [...channel.bindings].map(([metric, mode]) => `${metric} ${mode}`)
  const bound = listed.bindings.map(({ metric, mode }: Json) => `${metric} ${mode}`)
  same('bindings', bound.sort().join(), bindings.sort().join())
  checkState(model, channel, listed, same)
  same('accepted', listed.accepted, queue.accepted)
  if (queue.loose) {
    checkLoose(listed, queue)
    return
  }
  passOver(queue, listed)
  same('committed', listed.committed, queue.committed)
  same('in_flight', listed.in_flight, inFlight(queue).filter(({ kind }) => kind !== 'gap').length)
  for (const cause of causes) same(`dropped.${cause}`, listed.dropped[cause], queue.dropped[cause])
  same('queued', listed.queued, values(queue) - listed.in_flight)
  same('gaps', listed.gaps, queue.gaps)
}

function checkState(model: Model, { connection, queue }: ChannelModel, { state }: Json, same: Same): void {
  if (connection < 0) same('state', state, 'waiting')
  if (connection < 0 || state === 'connected') return
  same('state', state, 'window-full')
  // What waits for it may be settled by now: it is passed over when its turn comes.
  if (!queue.loose && inFlight(queue).length < queue.window)
    fail('the window has room, and the state says that it has none')
  if ((model.connections[connection]?.moving ?? 0) > 0) fail('the window is full before SET_CHANNEL is answered')
}

type Same = (what: string, is: unknown, expected: unknown) => void

/** Values that are not settled. */
function values({ sending, waiting }: QueueModel): number {
  return [sending, ...waiting.values()].flat().filter(({ kind }) => kind !== 'gap').length
}

/** Stopped values count as queued until they are passed over, which happens in their order. */
function passOver(queue: QueueModel, listed: Json): void {
  const acknowledged = queue.sending.filter((one) => one.acknowledged)
  for (const one of acknowledged.slice(0, Math.max(0, listed.committed - queue.committed)))
    settle(queue, one, 'committed')
  // Of stopped values keep-latest knows no series after a new start: it may keep one of several.
  const merged = queue.keepLatest ? Math.max(0, listed.dropped.superseded - queue.dropped.superseded) : 0
  const doomed = queue.sending.filter((one) => one.stopped)
  for (const one of doomed.slice(0, merged)) settle(queue, one, 'superseded')
  const passed = listed.dropped.stopped - queue.dropped.stopped
  const stopped = queue.sending.filter((one) => one.stopped)
  if (passed < 0 || passed > stopped.length) fail(`${listed.dropped.stopped} stopped, not ${queue.dropped.stopped}`)
  for (const one of stopped.slice(0, passed)) settle(queue, one, 'stopped')
}

/** Where limits drop something, only how much is known. What was not delivered in its turn has to be among it. */
function checkLoose(listed: Json, queue: QueueModel): void {
  const dropped = listed.dropped.overflow + listed.dropped.expired
  if (queue.dropped.overflow > dropped) {
    fail(`channel ${listed.channel}: ${queue.dropped.overflow} values are missing, ${dropped} were dropped`)
  }
  if (listed.committed !== queue.committed) fail(`committed is ${listed.committed}, not ${queue.committed}`)
  queue.missing = values(queue) - listed.queued - listed.in_flight
  if (queue.missing < 0) fail(`channel ${listed.channel} holds ${-queue.missing} values that nobody sent it`)
}

/**
 * After a new start: a GAP of it stands at the end of the queue where something was sent and is not stored; it may stand
 * where something was accepted. What never survives counts as the producer says.
 */
export function learnGaps(model: Model, list: readonly Json[], clean: boolean): void {
  for (const listed of list) {
    const channel = find(model, listed)
    const { queue } = channel
    if (!queue.durable) {
      takeOver(queue, listed)
      continue
    }
    if (queue.loose) {
      queue.untold = true
      continue
    }
    const more = listed.gaps - queue.gaps
    if (more > 1 || more < (queue.lostSeen ? 1 : 0) || (clean && more > 0)) {
      fail(`channel ${listed.channel}: ${more} GAPs of the restart; something that was sent is lost: ${queue.lostSeen}`)
    }
    if (more === 1) addGap(queue, 0, RESTART, 0, 0)
  }
}

function takeOver(queue: QueueModel, listed: Json): void {
  queue.accepted = listed.accepted
  queue.committed = listed.committed
  queue.gaps = listed.gaps
  for (const cause of causes) queue.dropped[cause as Cause] = listed.dropped[cause]
}
