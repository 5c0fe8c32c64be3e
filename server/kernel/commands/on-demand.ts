/** GET, QUERY and EXECUTE: commands that are answered with a value after their response. */
import { XdrWriter } from '../../../protocol/bytes/writer.ts'
import { ALL_CHANNELS } from '../../../protocol/monitor/constants.ts'
import { writeValueMessage } from '../../../protocol/monitor/message.ts'
import { writeTyped } from '../../../protocol/monitor/value.ts'
import { readerOf } from '../accounts/rights.ts'
import type { Channel } from '../channels/channel.ts'
import type { SendBarrier } from '../channels/window.ts'
import { StatusError } from '../core/errors.ts'
import type { Steps } from '../core/fair-work.ts'
import type { MetricInstance } from '../metrics/instance.ts'
import { framePrefix } from '../metrics/instance.ts'
import type { Measurement } from '../metrics/metric.ts'
import type { CommandHandler, CommandSession, Outcome } from '../sessions/handler.ts'
import { type Lookup, withCurrentChannel } from './lookup.ts'
import type { CommandServices } from './services.ts'

/**
 * GET releases the values that wait for the id into the sending order. A continuous metric is measured now, and the answer
 * goes to that channel alone [MON 6.8, 8 Answers]; if the channel has no connection by then, it is queued like any value. The
 * answer of a pushed metric is its last value, so there is none where values were released: that value is the last of them.
 */
export function get({ measurements }: Pick<CommandServices, 'measurements'>, lookup: Lookup): CommandHandler<'GET'> {
  return function* (session, args): Steps<Outcome> {
    const { selection } = lookup.instance(session, args.metric, 'GET')
    const kind = selection.knownKind ?? (yield* selection.kind())
    // Meanwhile another connection of this identity may have stopped it.
    const instance = lookup.instance(session, args.metric, 'GET')
    const channels = lookup.channels(session, args.channel, args.metric).filter((channel) => {
      return args.channel !== ALL_CHANNELS || channel.bindings.has(args.metric)
    })
    const isElsewhere = channels.some((channel) => channel !== session.channel)
    if (channels.some((channel) => channel !== session.channel && channel.connection?.behind)) {
      throw new StatusError('BUSY', 'the connection of that channel does not take the answers that it was sent')
    }
    const isWaiting = ({ bindings, queue }: Channel): boolean =>
      bindings.get(instance.id)?.mode === 'buffer' && queue.isWaiting(instance.id)
    const waiting = new Set(channels.filter(isWaiting))
    const answered = selection.isPushed ? channels.filter((channel) => !waiting.has(channel)) : channels
    const isMeasured = kind === 'continuous' && answered.length > 0
    const measuring = isMeasured ? measurements.begin(selection) : undefined
    const holds: SendBarrier[] = []
    for (const { queue } of waiting) {
      holds.push(queue.holdBack())
      queue.release(instance.id)
    }
    const expected = isMeasured ? answered.map((channel) => [channel, expectAnswer(channel, instance.id)] as const) : []
    return {
      result: 0,
      stored: holds.length > 0,
      onSent: () => {
        for (const hold of holds) hold.release()
      },
      ...(measuring !== undefined && {
        answer: () =>
          measuring({
            take: (measured) => {
              for (const [channel, token] of expected) answer(session, channel, instance, measured, token)
            },
            isWanted: () => expected.some(([channel]) => !channel.deleted && channel.gets.has(instance.id)),
            later: (steps) => session.later(steps),
          }),
      }),
      alone: isMeasured && isElsewhere && selection.answersList(),
    }
  }
}

/** Notes that an answer is to come, so that STOP can cancel it. */
function expectAnswer(channel: Channel, metric: number): object {
  const token = {}
  const expected = channel.gets.get(metric)
  if (expected) expected.add(token)
  else channel.gets.set(metric, new Set([token]))
  return token
}

function answer(
  session: CommandSession,
  channel: Channel,
  instance: MetricInstance,
  { value, time }: Measurement,
  token: object,
): void {
  const expected = channel.gets.get(instance.id)
  if (!expected?.delete(token)) return
  if (expected.size === 0) channel.gets.delete(instance.id)
  if (channel.deleted) return
  const message = { metric: instance.id, transaction: 0, time, value }
  const queue = (): void => {
    if (channel.deleted) return
    const writer = new XdrWriter()
    writeTyped(writer, value)
    channel.queue.append(0, framePrefix(instance.id, {}, new Set()), writer.bytes(), time)
  }
  const { connection } = channel
  // Another connection that does not take what it was sent gets it from the queue, which has limits.
  const isTaken = connection !== undefined && (connection === session || !connection.behind)
  if (!isTaken || !channel.outbox.answer((writer) => writeValueMessage(writer, message), instance.id, queue)) queue()
}

/** QUERY is COLLECT, GET and STOP in one, for continuous metrics: at most one value, and its id dies with it [MON 6.11]. */
export function query(
  { instances, measurements, answers }: Pick<CommandServices, 'instances' | 'measurements' | 'answers'>,
  lookup: Lookup,
): CommandHandler<'QUERY'> {
  return function* (session, { metric, args }): Steps<Outcome> {
    if (!lookup.covers(session, metric)) yield* lookup.refuseUncovered(session, metric, args)
    const selection = yield* instances.select(readerOf(session), metric, withCurrentChannel(session, metric, args))
    if ((selection.knownKind ?? (yield* selection.kind())) === 'event') {
      throw new StatusError(
        'UNSUPPORTED',
        `${metric} has a value only when something happens: COLLECT and SUBSCRIBE it`,
      )
    }
    const measuring = measurements.begin(selection)
    const { channel } = session
    const id = answers.open(session.identity)
    return {
      result: id,
      answer: () =>
        measuring({
          // An answer that was stopped, or whose channel has no connection by then, is dropped.
          take: ({ value, time }) => {
            if (!answers.close(id)) return
            channel.outbox.answer((writer) => writeValueMessage(writer, { metric: id, transaction: 0, time, value }))
          },
          isWanted: () => {
            const { connection } = channel
            const isTaken = connection !== undefined && (connection === session || !connection.behind)
            if (!isTaken) answers.close(id)
            return isTaken && answers.has(session.identity, id)
          },
          later: (steps) => session.later(steps),
        }),
    }
  }
}

/** EXECUTE runs a control; its result is a value of the channel that is current now [MON 10]. */
export function execute({ executor }: Pick<CommandServices, 'executor'>, lookup: Lookup): CommandHandler<'EXECUTE'> {
  return async (session, { control, args }) => {
    const { identity, credential, address, channel, destination } = session
    lookup.requireRoom(session, [channel], executor.usesReserve(control, identity))
    // A GAP reports what `channel.purge` removes. Like every effect of a command, it comes after the response.
    const hold = channel.queue.holdBack()
    try {
      const { id, run } = await executor.execute(control, args, { identity, credential, address, channel, destination })
      const onSent = (): void => {
        hold.release()
        run()
      }
      return { result: id, stored: true, onSent }
    } catch (error) {
      hold.release()
      throw error
    }
  }
}
