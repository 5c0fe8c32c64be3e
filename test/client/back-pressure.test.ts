import { expect, test } from 'vitest'
import { loggedIn } from './fake-producer.ts'
import { response, value } from './wire.ts'

test('reading rests above the limit and goes on at half of it', async () => {
  const { producer, consumer } = await loggedIn({ maxWaiting: 4 })
  const entries = consumer.entries()
  for (let i = 1; i <= 4; i++) producer.say(value(7, i, 0))
  expect(producer.isPaused).toBe(false)
  producer.say(value(7, 5, 0))
  expect(producer.isPaused).toBe(true)
  const taken: unknown[] = []
  while (producer.isPaused) taken.push((await entries.next()).value?.transaction)
  expect(taken).toEqual([1, 2, 3])
  producer.say(value(7, 6, 0))
  for (let i = 0; i < 3; i++) taken.push((await entries.next()).value?.transaction)
  expect(taken).toEqual([1, 2, 3, 4, 5, 6])
})

test('reading does not rest while a response is owed, for whoever reads may be waiting for it', async () => {
  const { producer, consumer } = await loggedIn({ maxWaiting: 2 })
  const entries = consumer.entries()
  producer.say(value(7, 1, 0), value(7, 2, 0), value(7, 3, 0))
  expect(producer.isPaused).toBe(true)
  const commit = consumer.commit(1)
  expect(producer.isPaused).toBe(false)
  const { seq } = await producer.next()
  producer.say(value(7, 4, 0), response(seq, 0, 0))
  await commit
  expect(producer.isPaused).toBe(true)
  await entries.return()
  expect(producer.isPaused).toBe(false)
})

test('a reader that waits is handed each value without storing it', async () => {
  const { producer, consumer } = await loggedIn({ maxWaiting: 0 })
  const entries = consumer.entries()
  const waiting = [entries.next(), entries.next()]
  producer.say(value(7, 1, 0), value(7, 2, 0))
  expect(producer.isPaused).toBe(false)
  expect((await Promise.all(waiting)).map(({ value }) => value?.transaction)).toEqual([1, 2])
  producer.say(value(7, 3, 0))
  expect(producer.isPaused).toBe(true)
})

test('ten thousand values that wait come out in their order', async () => {
  const { producer, consumer } = await loggedIn()
  const entries = consumer.entries()
  const all = Array.from({ length: 10_000 }, (_, i) => i + 1)
  producer.say(...all.map((transaction) => value(7, transaction, 0)))
  const taken: number[] = []
  for await (const { transaction } of entries) {
    taken.push(transaction)
    if (taken.length === all.length) break
  }
  expect(taken).toEqual(all)
})
