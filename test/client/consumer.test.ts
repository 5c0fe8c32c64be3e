import { describe, expect, test } from 'vitest'
import { ConnectionError } from '../../client/index.ts'
import { connecting, following, loggedIn, settle } from './fake-producer.ts'
import { bindingsAnswer, noBindingsAnswer, notice, response, value, values } from './wire.ts'

const caught = (promise: Promise<unknown>) => promise.catch((error: unknown) => error)

describe('a command', () => {
  test('that is called while there is no connection waits for the next one', async () => {
    const { setting, producer, consumer } = await loggedIn()
    producer.hangUp()
    const collecting = consumer.collect('a')
    const second = await setting.reconnected(producer)
    await second.takeUp(9, {})
    await second.grant('COLLECT a', 7)
    expect(await collecting).toBe(7)
  })

  test('waits no longer than a response may take', async () => {
    const { clock, producer, consumer } = await loggedIn({ deadlineMs: 5_000 })
    producer.hangUp()
    const collecting = caught(consumer.collect('a'))
    clock.advance(5_000)
    expect(await collecting).toMatchObject({ code: 'TIMEOUT', message: expect.stringContaining('5 seconds') })
  })

  test('that was on its way when the connection ended is rejected, and not sent again', async () => {
    const { setting, producer, consumer } = await loggedIn()
    const waiting = [consumer.collect('a'), consumer.execute('x'), consumer.query('b')].map(caught)
    await producer.expect('COLLECT a')
    const second = await setting.reconnected(producer)
    for (const error of await Promise.all(waiting)) {
      expect(error).toBeInstanceOf(ConnectionError)
      expect(error).toMatchObject({ code: 'CLOSED', message: expect.stringContaining('tcp://127.0.0.1:7650 as tc') })
    }
    await second.takeUp(9, {})
    expect(await second.rest()).toEqual([])
  })

  test('of `commit` is sent again, on as many connections as it takes', async () => {
    const { setting, producer, consumer } = await loggedIn()
    const committing = consumer.commit(5)
    await producer.expect('COMMIT 5')
    const second = await setting.reconnected(producer)
    await second.takeUp(9, {})
    await second.expect('COMMIT 5')
    const third = await setting.reconnected(second)
    await third.takeUp(9, {})
    await third.grant('COMMIT 5')
    await committing
  })

  test('of `commit` is not sent again if it was refused, was late, or the consumer has ended', async () => {
    const { clock, producer, consumer } = await loggedIn({ deadlineMs: 5_000, reconnect: false })
    const refused = caught(consumer.commit(5))
    await producer.refuse('COMMIT 5', 14, 'never given')
    expect(await refused).toMatchObject({ status: 'NO_SUCH_TRANSACTION' })
    const late = caught(consumer.commit(6))
    await producer.expect('COMMIT 6')
    clock.advance(5_000)
    expect(await late).toMatchObject({ code: 'TIMEOUT' })
    const lost = caught(consumer.commit(7))
    await producer.expect('COMMIT 7')
    producer.hangUp()
    expect(await lost).toMatchObject({ code: 'CLOSED' })
  })
})

describe('the result of a control', () => {
  test('that comes on the next connection is still the answer, and committed', async () => {
    const { setting, producer, consumer } = await loggedIn()
    const result = consumer.execute('x')
    await producer.grant('EXECUTE x', 5)
    const second = await setting.reconnected(producer)
    await second.takeUp(9, {}, value(5, 3, 42))
    expect(await result).toMatchObject({ id: 5, transaction: 3, value: { value: 42 } })
    expect(await second.rest()).toEqual(['COMMIT 3'])
  })

  test('is still awaited after an attempt that failed while it bound the followed metrics again', async () => {
    const setting = await loggedIn()
    const { producer, consumer } = setting
    await following(setting, 'a', 7)
    const result = consumer.execute('x')
    await producer.grant('EXECUTE x', 5)
    const second = await setting.setting.reconnected(producer)
    await second.takeUp(9, {})
    await second.refuse('COLLECT a', 13)
    await settle()
    const third = await setting.setting.reconnected(second)
    await third.takeUp(9, { 7: 'a' }, value(5, 3, 42))
    expect((await result).transaction).toBe(3)
  })

  test('is not awaited beyond the end', async () => {
    const { producer, consumer } = await loggedIn()
    const result = caught(consumer.execute('x'))
    await producer.grant('EXECUTE x', 5)
    await consumer.close()
    expect(await result).toMatchObject({ code: 'CLOSED', message: expect.stringContaining('was closed') })
  })

  test('whose COMMIT was lost is committed again when it comes again, and is not handed out', async () => {
    const { setting, producer, consumer } = await loggedIn()
    const result = consumer.execute('x')
    await producer.grant('EXECUTE x', 5, value(5, 3))
    await result
    await producer.expect('COMMIT 3')
    const second = await setting.reconnected(producer)
    await second.takeUp(9, {}, value(5, 3), value(7, 4))
    expect((await consumer[Symbol.asyncIterator]().next()).value?.transaction).toBe(4)
    expect(await second.rest()).toEqual(['COMMIT 3'])
  })
})

describe('following', () => {
  test('is COLLECT and SUBSCRIBE, and stopping it is STOP', async () => {
    const { producer, consumer } = await loggedIn()
    const following = consumer.follow('gmetric.*', { host: '*' })
    await producer.grant('COLLECT gmetric.* host=*', 7)
    await producer.grant('SUBSCRIBE 7 on 0')
    const followed = await following
    expect(followed).toMatchObject({ metric: 'gmetric.*', args: { host: '*' }, id: 7 })
    expect(consumer.nameOf(7)).toBe('gmetric.*')
    const stopping = followed.stop()
    await producer.grant('STOP 7 on 0')
    await stopping
    expect(consumer.nameOf(7)).toBe('')
  })

  test('that is refused is no following', async () => {
    const setting = await loggedIn()
    const { producer, consumer } = setting
    const following = caught(consumer.follow('a'))
    await producer.grant('COLLECT a', 7)
    await producer.refuse('SUBSCRIBE 7 on 0', 16, 'too many')
    expect(await following).toMatchObject({ status: 'QUOTA_EXCEEDED' })
    expect(consumer.nameOf(7)).toBe('')
    const second = await setting.setting.reconnected(producer)
    await second.takeUp(9, {})
    expect(await second.rest()).toEqual([])
  })

  test('that was stopped is not taken up again', async () => {
    const setting = await loggedIn()
    const followed = await following(setting, 'a', 7)
    const stopping = followed.stop()
    await setting.producer.grant('STOP 7 on 0')
    await stopping
    const second = await setting.setting.reconnected(setting.producer)
    await second.takeUp(9, {})
    expect(await second.rest()).toEqual([])
  })
})

describe('SET_CHANNEL', () => {
  async function following7(...frames: readonly Uint8Array[]) {
    const setting = await loggedIn()
    const handled: number[] = []
    await following(setting, 'a', 7, ({ transaction }) => handled.push(transaction))
    setting.producer.say(...frames)
    return { ...setting, handled }
  }

  test('changes the current channel when it is answered, with everything that it binds', async () => {
    const { producer, consumer, handled } = await following7(values(7, 1, 2))
    const result = caught(consumer.execute('x'))
    await producer.grant('EXECUTE x', 5)
    const setting = consumer.setChannel(12)
    await producer.grant('QUERY producer.bindings channel=12', 900, bindingsAnswer(900, 12, { 8: 'b' }))
    const { seq } = await producer.expect('SET_CHANNEL 12')
    expect(consumer.channel).toBe(9)
    producer.say(values(7, 3), response(seq, 0, 0), value(8, 1))
    expect(consumer.channel).toBe(12)
    await setting
    expect(await result).toMatchObject({ code: 'CLOSED', message: expect.stringContaining('channel 9 was left') })
    expect([consumer.nameOf(7), consumer.nameOf(8)]).toEqual(['', 'b'])
    // What was not handled stays on the old channel, and the ids of the new one are others.
    const loop = consumer[Symbol.asyncIterator]()
    expect((await loop.next()).value).toMatchObject({ name: 'b', transaction: 1 })
    void loop.next()
    expect(await producer.rest()).toEqual(['COMMIT 1 through'])
    expect(handled).toEqual([])
  })

  test('to the current channel does nothing', async () => {
    const { producer, consumer } = await loggedIn()
    await consumer.setChannel(9)
    await consumer.setChannel(0)
    expect(await producer.rest()).toEqual([])
  })

  test('is sent when what was handled is committed, and no COMMIT follows before its response', async () => {
    const { producer, consumer, handled } = await following7(values(7, 100))
    void consumer.run()
    const { seq } = await producer.expect('COMMIT 100 through')
    producer.say(values(7, 101))
    await settle()
    const setting = consumer.setChannel(12)
    await producer.grant('QUERY producer.bindings channel=12', 900, noBindingsAnswer(900))
    expect(await producer.rest()).toEqual([])
    producer.say(response(seq, 0, 0))
    await producer.grant('COMMIT 101 through')
    const { seq: last } = await producer.expect('SET_CHANNEL 12')
    producer.say(values(7, 102))
    expect(await producer.rest()).toEqual([])
    expect(handled).toEqual([100, 101, 102])
    producer.say(response(last, 0, 0))
    await setting
    expect(await producer.rest()).toEqual([])
  })

  test('that is refused leaves everything as it was, and what was handled meanwhile is committed', async () => {
    const { producer, consumer } = await following7()
    void consumer.run()
    const setting = caught(consumer.setChannel(12))
    await producer.grant('QUERY producer.bindings channel=12', 900, noBindingsAnswer(900))
    const { seq } = await producer.expect('SET_CHANNEL 12')
    producer.say(values(7, 1, 2))
    expect(await producer.rest()).toEqual([])
    producer.say(response(seq, 9, 0, 'no such channel'))
    expect(await setting).toMatchObject({ status: 'NO_SUCH_CHANNEL' })
    expect([consumer.channel, consumer.nameOf(7)]).toEqual([9, 'a'])
    expect(await producer.rest()).toEqual(['COMMIT 2 through'])
  })

  /** A handler on channel 9 that switches to channel 12, where two values with lower ids wait. */
  async function switchedInHandler(end: () => void) {
    const setting = await loggedIn()
    const { producer, consumer } = setting
    await following(setting, 'a', 7, async () => {
      await consumer.setChannel(12)
      end()
    })
    producer.say(values(7, 100))
    const running = caught(consumer.run())
    await producer.grant('QUERY producer.bindings channel=12', 900, bindingsAnswer(900, 12, { 8: 'b' }))
    await producer.grant('SET_CHANNEL 12', 0, values(8, 1, 2))
    return { ...setting, running }
  }

  test('in a handler commits nothing of the new channel when that ends', async () => {
    const { producer } = await switchedInHandler(() => {})
    expect(await producer.rest()).toEqual([])
  })

  test('in a handler that then fails leaves nothing of the old channel to the next reader', async () => {
    const { producer, consumer, running } = await switchedInHandler(() => {
      throw new Error('cannot')
    })
    expect(await running).toMatchObject({ message: 'cannot' })
    expect((await consumer[Symbol.asyncIterator]().next()).value).toMatchObject({ id: 8, transaction: 1 })
    expect(await producer.rest()).toEqual([])
  })
})

describe('closing', () => {
  test('ends the loop without an error, and reports that once', async () => {
    const { producer, consumer, clock } = await loggedIn()
    const closed: unknown[] = []
    consumer.on('closed', (error) => closed.push(error))
    const next = consumer[Symbol.asyncIterator]().next()
    const both = [consumer.close(), consumer.close()]
    await Promise.all(both)
    await consumer.close()
    expect(await next).toEqual({ done: true, value: undefined })
    expect(closed).toEqual([undefined])
    expect(producer.isClosed).toBe(true)
    expect(clock.timers).toBe(0)
    await expect(consumer.nop()).rejects.toMatchObject({
      code: 'CLOSED',
      message: expect.stringContaining('was closed'),
    })
  })

  test('twice waits for the same handler', async () => {
    const setting = await loggedIn()
    const { producer, consumer, clock } = setting
    let finish = () => {}
    await following(setting, 'a', 7, () => new Promise<void>((resolve) => (finish = resolve)))
    producer.say(values(7, 1))
    void consumer.run()
    await settle()
    const closings = [consumer.close(), consumer.close()]
    await settle()
    finish()
    await producer.grant('COMMIT 1 through')
    await Promise.all(closings)
    expect(clock.timers).toBe(0)
  })

  test('makes no further connection while it waits for a handler', async () => {
    const setting = await loggedIn()
    const { producer, consumer, clock, network } = setting
    await following(setting, 'a', 7, () => new Promise(() => {}))
    producer.say(values(7, 1))
    void consumer.run()
    producer.hangUp()
    await settle()
    const closing = consumer.close()
    clock.advance(999)
    await settle()
    clock.advance(1)
    await closing
    expect([network.calls, clock.timers]).toEqual([1, 0])
  })

  test('ends the loop before what still waits', async () => {
    const { producer, consumer } = await loggedIn()
    producer.say(value(7, 0, 1), value(7, 0, 2))
    const loop = consumer[Symbol.asyncIterator]()
    expect((await loop.next()).value?.plain).toBe(1)
    const closing = consumer.close()
    expect((await loop.next()).done).toBe(true)
    await closing
  })

  test('after the end of the connection leaves its reason to the loop', async () => {
    const { producer, consumer } = await loggedIn()
    const loop = consumer[Symbol.asyncIterator]()
    producer.say(notice(2, 'another one'))
    producer.hangUp()
    const closing = consumer.close()
    await expect(loop.next()).rejects.toMatchObject({ code: 'SUPERSEDED' })
    await closing
  })

  test('by the producer ends the loop with the reason, after the values that are kept nowhere', async () => {
    const { producer, consumer } = await loggedIn({ reconnect: false })
    const loop = consumer[Symbol.asyncIterator]()
    producer.say(value(7, 0, 1), value(7, 5, 2), value(7, 0, 3))
    producer.hangUp()
    expect((await loop.next()).value?.plain).toBe(1)
    expect((await loop.next()).value?.plain).toBe(3)
    await expect(loop.next()).rejects.toMatchObject({ code: 'CLOSED' })
  })

  test('follows a refused COMMIT, which should never happen', async () => {
    const { producer, consumer } = await loggedIn()
    producer.say(values(7, 1))
    const loop = consumer[Symbol.asyncIterator]()
    await loop.next()
    const next = caught(loop.next())
    await producer.refuse('COMMIT 1 through', 14)
    expect(await next).toMatchObject({ status: 'NO_SUCH_TRANSACTION' })
    expect(producer.isClosed).toBe(true)
  })
})

test('each listener receives its own events until it is removed', async () => {
  const { setting, producer, consumer } = await loggedIn()
  const received: string[] = []
  const off = consumer.on('connected', ({ channel }) => received.push(`a ${channel}`))
  consumer.on('connected', ({ channel }) => received.push(`b ${channel}`))
  consumer.on('closed', (error) => received.push(`closed ${error?.message}`))
  const second = await setting.reconnected(producer)
  await second.takeUp(9, {})
  await settle()
  off()
  off()
  const third = await setting.reconnected(second)
  await third.takeUp(9, {})
  await settle()
  await consumer.close()
  expect(received).toEqual(['a 9', 'b 9', 'b 9', 'closed undefined'])
})

test('isConfidential says whether nobody can read along', async () => {
  const { opening } = await connecting()
  expect((await opening).isConfidential).toBe(true)
})
