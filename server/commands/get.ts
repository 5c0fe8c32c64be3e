/**
 * GET: what waits for the id enters the sending order; a continuous metric is measured now, and the answer goes to that
 * channel alone [MON 6.8, 8 Answers]. Without a connection by then the answer is queued as any value.
 */

import { XdrWriter } from '../../protocol/bytes/writer.ts'
import { ALL_CHANNELS } from '../../protocol/monitor/constants.ts'
import { writeValueMessage } from '../../protocol/monitor/message.ts'
import { writeTyped } from '../../protocol/monitor/value.ts'
import type { Channel } from '../channels/channel.ts'
import { StatusError } from '../core/errors.ts'
import type { MetricInstance } from '../metrics/instance.ts'
import type { Measurement } from '../metrics/metric.ts'
import { frameHead } from '../metrics/template.ts'
import type { CommandHandler } from '../sessions/handler.ts'
import { channelsOf, instanceOf } from './lookup.ts'

export const get: CommandHandler<'GET'> = (session, args) => {
  const instance = instanceOf(session, args.metric, 'GET')
  const channels = channelsOf(session, args.channel, args.metric).filter((channel) => {
    return args.channel !== ALL_CHANNELS || channel.bindings.has(args.metric)
  })
  if (channels.some((channel) => channel !== session.channel && channel.connection?.behind)) {
    throw new StatusError('BUSY', 'the connection of that channel does not take the answers it was sent')
  }
  const { measurements } = session.producer
  const reading =
    instance.selection.kind === 'continuous' && channels.length > 0 ? measurements.begin(instance.selection) : undefined
  const after: (() => void)[] = []
  for (const channel of channels) {
    if (channel.bindings.get(instance.id)?.mode === 'buffer' && channel.queue.isWaiting(instance.id)) {
      const hold = channel.queue.hold()
      channel.queue.release(instance.id)
      after.push(() => channel.queue.letGo(hold))
    }
    if (reading !== undefined) {
      const wanted = expect(channel, instance.id)
      after.push(() => reading((measured) => answer(channel, instance, measured, wanted)))
    }
  }
  const released = channels.length > 0 && after.length > (reading === undefined ? 0 : channels.length)
  const all = (): void => {
    for (const act of after) act()
  }
  return { result: 0, stored: released, onSent: all, heavy: instance.selection.isList || channels.length > 1 }
}

/** Notes that an answer is to come, so that STOP can cancel it. */
function expect(channel: Channel, metric: number): object {
  const token = {}
  const expected = channel.gets.get(metric)
  if (expected) expected.add(token)
  else channel.gets.set(metric, new Set([token]))
  return token
}

function answer(channel: Channel, instance: MetricInstance, { value, time }: Measurement, wanted: object): void {
  const expected = channel.gets.get(instance.id)
  if (!expected?.delete(wanted)) return
  if (expected.size === 0) channel.gets.delete(instance.id)
  if (channel.deleted) return
  const message = { metric: instance.id, transaction: 0, time, value }
  const queue = (): void => {
    if (channel.deleted) return
    const writer = new XdrWriter()
    writeTyped(writer, value)
    channel.queue.append(0, frameHead(instance.id, {}, new Set()), writer.bytes(), time)
  }
  if (!channel.outbox.answer((writer) => writeValueMessage(writer, message), instance.id, queue)) queue()
}
