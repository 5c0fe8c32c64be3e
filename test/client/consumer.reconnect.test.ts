import { describe, expect, test } from 'vitest'
import { ConnectionError, type ConnectionErrorCode, type RetryEvent } from '../../client/index.ts'
import { FakeProducer, following, loggedIn, settle } from './fake-producer.ts'
import { caps, notice, response, values } from './wire.ts'

describe('a consumer whose connection is lost', () => {
  test('connects again, even if a listener fails', async () => {
    const { setting, producer, consumer } = await loggedIn()
    consumer.on('disconnected', () => {
      throw new Error('mine')
    })
    expect(() => producer.hangUp()).toThrow('mine')
    const second = await setting.reconnected(producer)
    await second.takeUp(9, {})
    await settle()
    expect(consumer.capabilities).toBeDefined()
  })

  test('reports that, connects again, takes up its channel, and reports that too', async () => {
    const { setting, producer, consumer } = await loggedIn()
    const reported: string[] = []
    consumer.on('disconnected', ({ code }) => reported.push(`disconnected: ${code}`))
    consumer.on('retrying', ({ attempt, error }) => reported.push(`attempt ${attempt}: ${error.message.slice(-10)}`))
    consumer.on('connected', ({ channel }) => reported.push(`connected: ${channel}`))
    const second = await setting.reconnected(producer)
    expect(reported).toEqual(['disconnected: CLOSED', 'attempt 1: connection'])
    expect(consumer.capabilities).toBeUndefined()
    await second.takeUp(9, {})
    await settle()
    expect(reported).toEqual(['disconnected: CLOSED', 'attempt 1: connection', 'connected: 9'])
    expect(consumer.capabilities?.auth).toEqual(['password'])
    const nop = consumer.nop()
    await second.grant('NOP')
    await nop
  })

  test('announces each attempt with its number, its time, and the reason that there is no connection', async () => {
    const { clock, network, producer, consumer } = await loggedIn()
    const retries: RetryEvent[] = []
    consumer.on('retrying', (event) => retries.push(event))
    producer.hangUp()
    await settle()
    for (const longestMs of [100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000]) {
      const { delayMs } = retries.at(-1)!
      expect(delayMs).toBeGreaterThanOrEqual(longestMs / 2)
      expect(delayMs).toBeLessThanOrEqual(longestMs)
      clock.advance(delayMs - 1)
      await settle()
      expect(network.calls).toBe(retries.length)
      clock.advance(1)
      await settle()
      expect(network.calls).toBe(retries.length)
    }
    const [first, second] = retries
    expect([first?.attempt, second?.attempt, retries.at(-1)?.attempt]).toEqual([1, 2, 10])
    expect([first?.error.message, second?.error.message]).toEqual([
      expect.stringContaining('connection'),
      expect.stringContaining('nobody answers'),
    ])
  })

  test.each([
    ['go on growing after a connection of less than 5 s', 4_999, 200],
    ['begin anew after one of 5 s', 5_000, 100],
  ])('makes attempts whose intervals %s', async (_, lastedMs, longestMs) => {
    const { setting, clock, producer, consumer } = await loggedIn()
    const second = await setting.reconnected(producer)
    await second.takeUp(9, {})
    await settle()
    const retries: RetryEvent[] = []
    consumer.on('retrying', (event) => retries.push(event))
    clock.advance(lastedMs)
    second.hangUp()
    await settle()
    expect(retries).toHaveLength(1)
    expect(retries[0]?.attempt).toBe(1)
    expect(retries[0]?.delayMs).toBeGreaterThanOrEqual(longestMs / 2)
    expect(retries[0]?.delayMs).toBeLessThanOrEqual(longestMs)
  })

  test.each(['retrying', 'connected'] as const)('ends with what a listener of `%s` throws', async (event) => {
    const { setting, clock, network, producer, consumer } = await loggedIn()
    const closed: unknown[] = []
    consumer.on('closed', (error) => closed.push(error))
    consumer.on(event, () => {
      throw new Error('mine')
    })
    if (event === 'retrying') producer.hangUp()
    else await (await setting.reconnected(producer)).takeUp(9, {})
    await settle()
    expect(closed).toEqual([new Error('mine')])
    clock.advance(60_000)
    await settle()
    expect([network.calls, clock.timers]).toEqual([event === 'retrying' ? 1 : 2, 0])
  })

  test('keeps trying if nobody answers, if the login takes too long, and if the producer is busy', async () => {
    const { setting, clock, network, producer, consumer } = await loggedIn()
    const [silent, busy, good] = [new FakeProducer(), new FakeProducer(), new FakeProducer()]
    network.add(new ConnectionError('UNREACHABLE', 'no'), silent, busy, good)
    producer.hangUp()
    await settle()
    clock.advance(10_000)
    await settle()
    clock.advance(10_000)
    await silent.opened
    await settle()
    clock.advance(10_000)
    await settle()
    expect(silent.isClosed).toBe(true)
    clock.advance(10_000)
    await busy.opened
    busy.say(caps('password'))
    await busy.refuse('AUTH password', 13, 'later')
    await settle()
    clock.advance(10_000)
    await good.admit()
    await good.takeUp(9, {})
    await settle()
    expect(network.calls).toBe(5)
    expect(consumer.capabilities).toBeDefined()
    await consumer.close()
    expect(setting.clock.timers).toBe(0)
  })

  test('connects again even if a listener of that event fails', async () => {
    const { clock, network, producer, consumer } = await loggedIn()
    consumer.on('disconnected', () => {
      throw new Error('cannot')
    })
    expect(() => producer.hangUp()).toThrow('cannot')
    await settle()
    clock.advance(100)
    await settle()
    expect(network.calls).toBe(2)
  })

  test('keeps reading paused if too many values wait', async () => {
    const { setting, producer, consumer } = await loggedIn()
    producer.say(values(7, ...Array.from({ length: 1_025 }, (_, i) => i + 1)))
    expect(producer.isPaused).toBe(true)
    const second = await setting.reconnected(producer)
    await second.takeUp(9, {})
    await settle()
    expect(second.isPaused).toBe(true)
    let taken = 0
    for await (const _ of consumer) if (++taken === 513) break
    expect(second.isPaused).toBe(false)
  })

  test('tries again after a silence of 30 s', async () => {
    const { setting, clock, producer, network } = await loggedIn()
    clock.advance(30_000)
    expect(producer.isClosed).toBe(true)
    const second = await setting.reconnected(producer)
    await second.takeUp(9, {})
    expect(network.calls).toBe(2)
  })

  test('tries again after NOTICE 3: the producer is shutting down', async () => {
    const { setting, producer, consumer } = await loggedIn()
    const reported: unknown[] = []
    consumer.on('notice', ({ code, detail }) => reported.push(`${code} ${detail}`))
    producer.say(notice(3, 'shutting down'))
    const second = await setting.reconnected(producer)
    await second.takeUp(9, {})
    expect(reported).toEqual(['SHUTTING_DOWN shutting down'])
  })

  test.each<[number, ConnectionErrorCode]>([
    [2, 'SUPERSEDED'],
    [4, 'WITHDRAWN'],
    [5, 'CHANNEL_GONE'],
    [6, 'PROTOCOL'],
  ])('never tries again after NOTICE %s', async (code, reason) => {
    const { clock, network, producer, consumer } = await loggedIn()
    const closed: unknown[] = []
    consumer.on('closed', (error) => closed.push(error))
    consumer.on('disconnected', () => closed.push('disconnected'))
    const running = consumer.run().catch((error: unknown) => error)
    producer.say(notice(code, 'because'))
    producer.hangUp()
    expect(await running).toMatchObject({ code: reason, message: expect.stringContaining('because') })
    expect(closed).toEqual([await running])
    clock.advance(60_000)
    await settle()
    expect(network.calls).toBe(1)
    expect(clock.timers).toBe(0)
    await expect(consumer.nop()).rejects.toBe(closed[0])
  })

  test('never tries again if the login is refused', async () => {
    const { setting, clock, network, producer, consumer } = await loggedIn()
    const running = consumer.run().catch((error: unknown) => error)
    const second = new FakeProducer()
    network.add(second)
    producer.hangUp()
    await settle()
    clock.advance(100)
    await second.opened
    second.say(caps('password'))
    await second.refuse('AUTH password', 2)
    expect(await running).toMatchObject({ code: 'LOGIN_FAILED' })
    expect(second.isClosed).toBe(true)
    setting.clock.advance(60_000)
    await settle()
    expect([network.calls, clock.timers]).toEqual([2, 0])
  })

  test('ends if `reconnect` is false', async () => {
    const { clock, network, producer, consumer } = await loggedIn({ reconnect: false })
    const running = consumer.run().catch((error: unknown) => error)
    producer.hangUp(new Error('ECONNRESET'))
    expect(await running).toMatchObject({ code: 'CLOSED', message: expect.stringContaining('ECONNRESET') })
    clock.advance(60_000)
    expect([network.calls, clock.timers]).toEqual([1, 0])
  })

  test('can be closed while it waits, while it logs in, and while it takes its channel up', async () => {
    for (const step of ['waits', 'logs in', 'takes up']) {
      const { clock, network, producer, consumer } = await loggedIn()
      const second = new FakeProducer()
      network.add(second)
      producer.hangUp()
      await settle()
      const waiting = consumer.nop().catch((error: unknown) => error)
      if (step !== 'waits') clock.advance(100)
      if (step === 'logs in') await second.opened
      if (step === 'takes up') {
        await second.admit()
        await second.expect('QUERY producer.bindings channel=9')
      }
      await consumer.close()
      await settle()
      expect(await waiting, step).toMatchObject({ code: 'CLOSED', message: expect.stringContaining('was closed') })
      expect(second.isClosed, step).toBe(step !== 'waits')
      expect(clock.timers, step).toBe(0)
    }
  })

  test('takes up the channel once, also if the next connection is lost on the way', async () => {
    const setting = await loggedIn()
    await following(setting, 'a', 7)
    const second = await setting.setting.reconnected(setting.producer)
    const { seq } = await second.expect('QUERY producer.bindings channel=9')
    second.say(response(seq, 0, 900))
    const third = await setting.setting.reconnected(second)
    await third.takeUp(9, { 7: 'a' })
    expect(await third.rest()).toEqual([])
  })
})
