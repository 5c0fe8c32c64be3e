/** A connection that ended while values were read for it: what the store says then. */
import { expect, test } from 'vitest'
import { StorageError } from '../../../../storage/store.ts'
import { command } from '../../../support/bytes.ts'
import { TestProducer } from '../../../support/producer.ts'

test.each([
  ['the store was closed', new StorageError('IO', 'the storage thread has ended'), false],
  ['the server has a fault', new TypeError('not a function'), true],
])('a read for a connection that has ended fails: %s', async (_, error, isReported) => {
  const first = await TestProducer.start()
  const before = await first.seat()
  const channel = await before.defChannel()
  const metric = await before.follow('test.a', channel)
  for (let value = 1; value <= 20; value++) first.emit(value)
  await first.settle()
  const producer = await first.restart()
  const failed: ((error: Error) => void)[] = []
  const seat = await producer.seat()
  await seat.setChannel(channel)
  producer.store.read = () => new Promise((_resolve, reject) => failed.push(reject))
  const other = await seat.defChannel()
  // What waits is copied to the other channel, and for that it is read.
  seat.send((seq) => command.subscribe(seq, metric, other))
  await producer.settle()
  expect(failed.length).toBeGreaterThan(0)
  seat.peer.destroy()
  await producer.settle()
  for (const fail of failed) fail(error)
  await producer.settle()
  expect(producer.logged.join('').includes('unexpected error')).toBe(isReported)
  await producer.stop()
})
