import { expect, test } from 'vitest'
import { StorageError } from '../../../storage/store.ts'
import { batch, EventLog, frames } from '../../contracts/store-batch.ts'
import { MemoryStore } from './store.ts'

const oneBlock = (number: number): ReturnType<typeof batch> =>
  batch(number, { blocks: [{ id: number, frames: frames(number) }] })

test('in manual mode a batch is durable when the test says so', async () => {
  const store = new MemoryStore({ manual: true })
  const events = new EventLog()
  await store.open(events)
  store.write(oneBlock(1))
  await new Promise(setImmediate)
  expect(events.numbers).toEqual([])
  store.complete()
  expect(events.numbers).toEqual([1])
})

test('a crash keeps what was durable and nothing of the batch in flight', async () => {
  const store = new MemoryStore({ manual: true })
  const events = new EventLog()
  await store.open(events)
  store.write(oneBlock(1))
  store.complete()
  store.write(oneBlock(2))
  const survivor = store.crash()
  store.complete()
  expect(events.numbers).toEqual([1])
  expect((await survivor.open(new EventLog())).nextBlockId).toBe(2)
  expect(await survivor.read([1, 2])).toEqual([
    { id: 1, bytes: frames(1) },
    { id: 2, bytes: undefined },
  ])
})

test('while it is full a batch waits; then it is durable and there is room', async () => {
  const store = new MemoryStore()
  const events = new EventLog()
  await store.open(events)
  store.full = true
  store.write(oneBlock(1))
  await new Promise(setImmediate)
  expect([events.numbers, events.fullCount]).toEqual([[], 1])
  store.full = false
  expect([events.numbers, events.roomCount]).toEqual([[1], 1])
})

test('after a failure nothing is durable any more', async () => {
  const store = new MemoryStore()
  const events = new EventLog()
  await store.open(events)
  const error = new StorageError('IO', 'the disk of the test has failed')
  store.write(oneBlock(1))
  store.fail(error)
  await new Promise(setImmediate)
  expect([events.numbers, events.failures]).toEqual([[], [error]])
})

test('a damaged block is read as such and is no longer in the directory', async () => {
  const store = new MemoryStore()
  const events = new EventLog()
  await store.open(events)
  store.write(batch(1, { blocks: [1, 2].map((id) => ({ id, frames: frames(id) })) }))
  await events.durable(1)
  store.damage(1)
  expect(await store.read([1, 2])).toEqual([
    { id: 1, bytes: undefined },
    { id: 2, bytes: frames(2) },
  ])
  expect((await store.crash().open(new EventLog())).blocks[0]).toBe(2)
})

test('a second batch in flight is a mistake of the caller', async () => {
  const store = new MemoryStore({ manual: true })
  await store.open(new EventLog())
  store.write(oneBlock(1))
  expect(() => store.write(oneBlock(2))).toThrow('in flight')
})
