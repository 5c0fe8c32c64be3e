import { describe, expect, test } from 'vitest'
import type { ClientConnection } from '../../client/connection.ts'
import { ConnectionError, type ConnectionErrorCode } from '../../client/index.ts'
import { NextConnection, Reconnect, type RetryEvent } from '../../client/reconnect.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { FakeProducer, following, loggedIn, settle } from './fake-producer.ts'
import { caps, notice, response, values } from './wire.ts'

const cut = new ConnectionError('CLOSED', 'cut')

describe('attempts', () => {
  /** `outcomes` of the attempts in their order; each of them takes no time. */
  function reconnecting(...outcomes: readonly (Error | 'ok' | 'lost')[]) {
    const clock = new FakeClock()
    const attempts: number[] = []
    const ended: Error[] = []
    const retries: RetryEvent[] = []
    const reconnect: Reconnect = new Reconnect({
      clock,
      retrying: (event) => retries.push(event),
      connect: async () => {
        attempts.push(clock.monotonicMs())
        const outcome = outcomes[attempts.length - 1] ?? new ConnectionError('UNREACHABLE', 'nobody answers')
        if (outcome === 'lost') reconnect.lost(cut)
        else if (outcome !== 'ok') throw outcome
      },
      ended: (error) => ended.push(error),
    })
    /** How many attempts there are when `ms` have gone by. */
    const madeAfter = async (ms: number) => {
      clock.advance(ms)
      await settle()
      return attempts.length
    }
    return { clock, attempts, ended, retries, reconnect, madeAfter }
  }

  test('are made at intervals that double from 100 ms to 10 s, and are at least half of that', async () => {
    const { reconnect, madeAfter } = reconnecting()
    reconnect.lost(cut)
    await settle()
    let made = 0
    for (const ms of [100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000, 10_000]) {
      expect(await madeAfter(ms / 2 - 1)).toBe(made)
      expect(await madeAfter(ms / 2 + 1)).toBe(++made)
      await settle()
    }
  })

  test('are announced, each with its time and with the reason that there is no connection', async () => {
    const { clock, attempts, reconnect, madeAfter, retries } = reconnecting()
    reconnect.lost(cut)
    await settle()
    const due: number[] = []
    for (let made = 1; made <= 3; made++) {
      due.push(clock.monotonicMs() + retries.at(-1)!.delayMs)
      expect(await madeAfter(retries.at(-1)!.delayMs)).toBe(made)
    }
    expect(attempts).toEqual(due)
    expect(retries.map(({ attempt, error }) => `${attempt}: ${error.message}`)).toEqual([
      '1: cut',
      '2: nobody answers',
      '3: nobody answers',
      '4: nobody answers',
    ])
  })

  test('continue to grow if a connection is lost again within 5 s', async () => {
    const { reconnect, madeAfter } = reconnecting('ok', 'ok')
    reconnect.lost(cut)
    await settle()
    expect(await madeAfter(100)).toBe(1)
    await madeAfter(4_999)
    reconnect.lost(cut)
    await settle()
    expect(await madeAfter(99)).toBe(1)
    expect(await madeAfter(101)).toBe(2)
  })

  test('begin anew after a connection that lasted for 5 s', async () => {
    const { reconnect, madeAfter } = reconnecting('ok', 'ok')
    reconnect.lost(cut)
    await settle()
    expect(await madeAfter(100)).toBe(1)
    await madeAfter(5_000)
    reconnect.lost(cut)
    await settle()
    expect(await madeAfter(49)).toBe(1)
    expect(await madeAfter(51)).toBe(2)
  })

  test('end with an error that is final', async () => {
    const denied = new ConnectionError('LOGIN_FAILED', 'no')
    const { clock, reconnect, madeAfter, ended } = reconnecting(denied)
    reconnect.lost(cut)
    await settle()
    expect(await madeAfter(60_000)).toBe(1)
    expect(ended).toEqual([denied])
    expect(clock.timers).toBe(0)
  })

  test('end when they are stopped, and leave no timer', async () => {
    const { clock, reconnect, madeAfter, ended } = reconnecting()
    reconnect.lost(cut)
    await settle()
    reconnect.stop()
    expect(clock.timers).toBe(0)
    reconnect.lost(cut)
    expect(await madeAfter(60_000)).toBe(0)
    expect(ended).toEqual([])
  })

  test('go on if the new connection is lost before `connect` has settled', async () => {
    const { clock, attempts, reconnect, madeAfter } = reconnecting('lost', 'ok')
    reconnect.lost(cut)
    reconnect.lost(cut)
    await settle()
    expect(await madeAfter(100)).toBe(1)
    expect(await madeAfter(200)).toBe(2)
    expect(await madeAfter(60_000)).toBe(2)
    expect(attempts).toHaveLength(2)
    expect(clock.timers).toBe(0)
  })
})

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

describe('the next connection', () => {
  const connection = {} as ClientConnection

  test('all that wait get the next connection, and no timer is left', async () => {
    const clock = new FakeClock()
    const next = new NextConnection(clock, 30_000, 'tcp://far:1')
    const waiting = Promise.all([next.wait(), next.wait()])
    next.settle(connection)
    expect(await waiting).toEqual([connection, connection])
    expect(clock.timers).toBe(0)
  })

  test('a wait that takes too long is rejected', async () => {
    const clock = new FakeClock()
    const next = new NextConnection(clock, 30_000, 'tcp://far:1')
    const waiting = next.wait()
    clock.advance(30_000)
    await expect(waiting).rejects.toMatchObject({ code: 'TIMEOUT', message: expect.stringContaining('30 seconds') })
  })

  test('a wait is rejected when there will be no connection', async () => {
    const clock = new FakeClock()
    const next = new NextConnection(clock, 30_000, 'tcp://far:1')
    const waiting = next.wait()
    next.settle(new Error('closed'))
    await expect(waiting).rejects.toThrow('closed')
    expect(clock.timers).toBe(0)
  })
})
