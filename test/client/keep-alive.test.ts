import { expect, test } from 'vitest'
import { FakeClock } from '../support/fake-clock.ts'
import { loggedIn } from './fake-producer.ts'
import { response, value } from './wire.ts'

const NOP = 0

async function start() {
  const clock = new FakeClock()
  const closed: unknown[] = []
  const { producer, consumer } = await loggedIn({ clock, maxWaiting: 2, onClose: (error) => closed.push(error) })
  const nops = async () => {
    // Commands go out at the end of the turn.
    await Promise.resolve()
    return producer.sent.filter(({ command }) => command === NOP)
  }
  return { clock, closed, producer, consumer, nops }
}

test('after 15 s of silence a NOP is sent; its answer is enough', async () => {
  const { clock, closed, producer, nops } = await start()
  clock.advance(14_999)
  expect(await nops()).toHaveLength(0)
  clock.advance(1)
  const [nop] = await nops()
  clock.advance(14_999)
  producer.say(response(nop!.seq, 0, 0))
  clock.advance(15_000)
  expect(await nops()).toHaveLength(2)
  expect(closed).toEqual([])
})

test('a producer that lets 15 s more go by is left', async () => {
  const { clock, closed, producer, consumer } = await start()
  const waiting = consumer.query('a')
  waiting.catch(() => {})
  clock.advance(30_000)
  expect(closed).toEqual([expect.objectContaining({ code: 'SILENT' })])
  await expect(waiting).rejects.toMatchObject({ code: 'SILENT' })
  expect(producer.isClosed).toBe(true)
  expect(clock.timers).toBe(0)
})

test('whatever is heard puts the NOP off', async () => {
  const { clock, producer, nops } = await start()
  for (let i = 0; i < 10; i++) {
    clock.advance(10_000)
    producer.say(value(7, 0, i))
  }
  clock.advance(14_999)
  expect(await nops()).toHaveLength(0)
  clock.advance(1)
  expect(await nops()).toHaveLength(1)
})

test('while we do not read, the silence is ours', async () => {
  const { clock, closed, producer, consumer, nops } = await start()
  const entries = consumer.entries()
  producer.say(value(7, 1, 0), value(7, 2, 0), value(7, 3, 0))
  expect(producer.isPaused).toBe(true)
  clock.advance(600_000)
  expect(closed).toEqual([])
  expect(await nops()).toHaveLength(0)
  await entries.next()
  await entries.next()
  expect(producer.isPaused).toBe(false)
  clock.advance(15_000)
  expect(await nops()).toHaveLength(1)
})

test('no timer is left behind a closed connection', async () => {
  const { clock, consumer } = await start()
  consumer.close()
  expect(clock.timers).toBe(0)
})
