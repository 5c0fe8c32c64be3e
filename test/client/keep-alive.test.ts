import { expect, test } from 'vitest'
import { loggedIn } from './fake-producer.ts'
import { response, value, values } from './wire.ts'

async function start() {
  const setting = await loggedIn({ reconnect: false, deadlineMs: 60_000 })
  const closed: unknown[] = []
  setting.consumer.on('closed', (error) => closed.push(error))
  return { ...setting, closed }
}

test('after 15 s of silence a NOP is sent; its answer is enough', async () => {
  const { clock, closed, producer } = await start()
  clock.advance(14_999)
  expect(await producer.rest()).toEqual([])
  clock.advance(1)
  const { seq } = await producer.expect('NOP')
  clock.advance(14_999)
  producer.say(response(seq, 0, 0))
  clock.advance(15_000)
  expect(await producer.rest()).toEqual(['NOP'])
  expect(closed).toEqual([])
})

test('a producer that lets 15 s more go by is left', async () => {
  const { clock, closed, producer, consumer } = await start()
  const waiting = consumer.query('a').catch((error: unknown) => error)
  clock.advance(29_999)
  expect(producer.isClosed).toBe(false)
  clock.advance(1)
  expect(closed).toEqual([expect.objectContaining({ code: 'SILENT' })])
  expect(await waiting).toMatchObject({ code: 'SILENT' })
  expect(producer.isClosed).toBe(true)
  expect(clock.timers).toBe(0)
})

test('whatever is heard puts the NOP off', async () => {
  const { clock, producer } = await start()
  for (let i = 0; i < 10; i++) {
    clock.advance(10_000)
    producer.say(value(7, 0, i))
  }
  clock.advance(14_999)
  expect(await producer.rest()).toEqual([])
  clock.advance(1)
  expect(await producer.rest()).toEqual(['NOP'])
})

test('while we do not read, the silence is ours', async () => {
  const { clock, closed, producer, consumer } = await start()
  producer.say(values(7, ...Array.from({ length: 1025 }, (_, i) => i + 1)))
  expect(producer.isPaused).toBe(true)
  // Each 10 s a sip begins, in which nothing comes: that is not 15 s of silence.
  clock.advance(600_000)
  expect(closed).toEqual([])
  expect(await producer.rest()).toEqual([])
  let taken = 0
  for await (const _ of consumer) if (++taken === 513) break
  expect(producer.isPaused).toBe(false)
  await producer.rest()
  clock.advance(15_000)
  expect(await producer.rest()).toEqual(['NOP'])
})

test('no timer is left behind a closed connection', async () => {
  const { clock, consumer } = await start()
  await consumer.close()
  expect(clock.timers).toBe(0)
})
