import { expect, test } from 'vitest'
import { following, loggedIn, settle } from './fake-producer.ts'
import { noBindingsAnswer, response, value, values } from './wire.ts'

const caught = (promise: Promise<unknown>) => promise.catch((error: unknown) => error)

test('a SET_CHANNEL that is not answered ends the connection: which channel it has is not known', async () => {
  const { setting, clock, producer, consumer } = await loggedIn({ deadlineMs: 5_000 })
  const switching = caught(consumer.setChannel(12))
  await producer.grant('QUERY producer.bindings channel=12', 900, noBindingsAnswer(900))
  const { seq } = await producer.expect('SET_CHANNEL 12')
  clock.advance(5_000)
  expect(await switching).toMatchObject({ code: 'TIMEOUT' })
  expect(producer.isClosed).toBe(true)
  producer.say(response(seq, 0, 0))
  const second = await setting.reconnected(producer)
  await second.takeUp(9, {})
  expect(consumer.channel).toBe(9)
})

test('commit() of the value in the loop settles when it is stored, also over a lost connection', async () => {
  const { setting, producer, consumer } = await loggedIn()
  producer.say(value(7, 5, 1))
  const loop = consumer[Symbol.asyncIterator]()
  await loop.next()
  let isStored = false
  const committing = consumer.commit(5).then(() => {
    isStored = true
  })
  await producer.expect('COMMIT 5 through')
  const second = await setting.reconnected(producer)
  await second.takeUp(9, {})
  const { seq } = await second.expect('COMMIT 5 through')
  await settle()
  expect(isStored).toBe(false)
  second.say(response(seq, 0, 0))
  await committing
})

test('what is here of a metric that was stopped is dropped, and holds up no COMMIT', async () => {
  const setting = await loggedIn()
  const { producer, consumer } = setting
  const handled: number[] = []
  const followed = await following(setting, 'a', 7, ({ transaction }) => handled.push(transaction))
  await following(setting, 'b', 8, ({ transaction }) => handled.push(transaction))
  producer.say(values(7, 1, 2), values(8, 3))
  const stopping = followed.stop()
  await producer.grant('STOP 7 on 0')
  await stopping
  void consumer.run()
  expect(await producer.rest()).toEqual(['COMMIT 3 through'])
  expect(handled).toEqual([3])
})

test('the next value can be requested only after the previous one has come', async () => {
  const { producer, consumer } = await loggedIn()
  const loop = consumer[Symbol.asyncIterator]()
  const first = loop.next()
  await expect(loop.next()).rejects.toThrow(/before the previous request was answered/)
  producer.say(value(7, 1, 42))
  expect((await first).value?.plain).toBe(42)
})

test('commit() of the value in the loop does not settle early after a reconnect', async () => {
  const { setting, producer, consumer } = await loggedIn()
  producer.say(value(7, 5, 1))
  await consumer[Symbol.asyncIterator]().next()
  const second = await setting.reconnected(producer)
  await second.takeUp(9, {})
  let isStored = false
  const committing = consumer.commit(5).then(() => {
    isStored = true
  })
  const { seq } = await second.expect('COMMIT 5 through')
  await settle()
  expect(isStored).toBe(false)
  second.say(response(seq, 0, 0))
  await committing
})

test('a handler may return a promise of another library: the value is not committed before it is fulfilled', async () => {
  const setting = await loggedIn()
  const { producer, consumer } = setting
  let fulfil = () => {}
  const thenable = {
    // biome-ignore lint/suspicious/noThenProperty: what such a library gives is the point
    then(done: () => void) {
      fulfil = done
    },
  }
  await following(setting, 'a', 7, () => thenable)
  producer.say(values(7, 1))
  void consumer.run()
  expect(await producer.rest()).toEqual([])
  fulfil()
  expect(await producer.rest()).toEqual(['COMMIT 1 through'])
})
