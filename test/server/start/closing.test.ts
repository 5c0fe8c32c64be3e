/** The end of a server: what comes to channels while it ends is stored, and the next start reports no loss that there was not. */
import { afterEach, beforeEach, expect, it } from 'vitest'
import { args, command, type, u32 } from '../../support/bytes.ts'
import { TestProducer } from '../../support/producer.ts'

/** The reasons of GAPs. */
const EXPIRED = 2
const MINUTE_MS = 60_000

let producer: TestProducer
beforeEach(async () => {
  producer = await TestProducer.start()
})
afterEach(() => producer.stop())

it('a GAP that comes while the last batch is stored is stored after it, and is the only one', async () => {
  const seat = await producer.seat()
  const channel = await seat.defChannel(['max_age_ms', type.uint32, u32(MINUTE_MS)])
  await seat.follow('test.a', channel)
  for (const value of [1, 2, 3]) producer.emit(value)
  await producer.settle()
  const { server, store } = producer
  store.manual = true
  const stopping = server.stop()
  await producer.settle()
  // The values become too old while the batch that closes the channel is on its way.
  producer.clock.advance(2 * MINUTE_MS)
  await producer.settle()
  Object.assign(server, { stop: () => stopping })
  producer = await producer.restart()
  const again = await producer.seat()
  await again.setChannel(channel)
  expect(await again.gap()).toMatchObject({ reason: EXPIRED, count: 3 })
  expect(await again.ledger(channel)).toMatchObject({ queued: 0, dropped: { expired: 3 } })
  // A value that comes now is the next: no GAP is between.
  producer.emit(4)
  await again.values(1)
})

it('the result of an EXECUTE that was being stored when the server was stopped is stored with it, or unknown, and no loss is reported', async () => {
  const seat = await producer.seat()
  const channel = await seat.defChannel()
  await seat.setChannel(channel)
  await seat.follow('test.a')
  producer.emit(1)
  await seat.values(1)
  const { server, store } = producer
  store.manual = true
  const list = args(['channel', type.uint32, u32(channel)], ['window', type.uint32, u32(60_000)])
  const answer = seat.ask((seq) => command.execute(seq, 'channel.configure', list))
  answer.catch(() => {})
  await producer.settle()
  // It has not been answered, and nobody will be there for its result.
  const stopping = server.stop()
  await producer.settle()
  Object.assign(server, { stop: () => stopping })
  producer = await producer.restart()
  const again = await producer.seat()
  await again.setChannel(channel)
  await again.values(2)
  producer.emit(2)
  await again.values(1)
  expect(again.peer.log.filter(({ kind }) => kind === 'gap')).toEqual([])
})

it('values that a SUBSCRIBE copies while the server is stopped are stored, or copied by the next SUBSCRIBE, and no loss is reported', async () => {
  const seat = await producer.seat()
  const channel = await seat.defChannel()
  await seat.setChannel(channel)
  const id = await seat.follow('test.a')
  for (let value = 0; value < 2_000; value++) producer.emit(value)
  const copy = await seat.defChannel()
  const { server, store } = producer
  store.manual = true
  const answer = seat.ask((seq) => command.subscribe(seq, id, copy))
  answer.catch(() => {})
  await producer.settle()
  const stopping = server.stop()
  await producer.settle()
  Object.assign(server, { stop: () => stopping })
  producer = await producer.restart()
  const again = await producer.seat()
  await again.setChannel(copy)
  producer.emit(-1)
  await again.values(1)
  expect(again.peer.log.filter(({ kind }) => kind === 'gap')).toEqual([])
})
