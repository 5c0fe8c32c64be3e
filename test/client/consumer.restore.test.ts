import { describe, expect, test } from 'vitest'
import type { Sample } from '../../client/index.ts'
import { connecting, FakeProducer, following, loggedIn, Setting, settle } from './fake-producer.ts'
import { bindingsAnswer, gap, noBindingsAnswer, outcome, response, value, values } from './wire.ts'

const NO_SUCH_METRIC = 7
const NO_SUCH_CHANNEL = 9
const PERMISSION_DENIED = 11
const BUSY = 13

describe('a consumer with a name', () => {
  const named = { name: 'billing' }
  const define = 'DEF_CHANNEL  name=billing'

  test('takes up the channel of that name, and follows what it binds there', async () => {
    const { producer, opening } = await connecting(named)
    await producer.grant(define, 12)
    await producer.takeUp(12, { 7: 'a' }, value(7, 1))
    const consumer = await opening
    expect([consumer.channel, (await consumer.follow('a')).id]).toEqual([12, 7])
    expect((await consumer[Symbol.asyncIterator]().next()).value?.transaction).toBe(1)
  })

  test('asks for the name again on the next connection, and goes on with the same channel', async () => {
    const { setting, producer, opening } = await connecting(named)
    await producer.grant(define, 12)
    await producer.takeUp(12, { 7: 'a' }, value(7, 1))
    const consumer = await opening
    await consumer.follow('a')
    const loop = consumer[Symbol.asyncIterator]()
    await loop.next()
    const second = await setting.reconnected(producer)
    await second.grant(define, 12)
    await second.takeUp(12, { 7: 'a' }, values(7, 1, 2))
    expect((await loop.next()).value?.transaction).toBe(2)
  })

  test('continues on the successor of its channel, and binds there what it follows', async () => {
    const { setting, producer, opening } = await connecting(named)
    await producer.grant(define, 12)
    await producer.takeUp(12, { 7: 'a' })
    const consumer = await opening
    const gaps: number[] = []
    consumer.on('gap', ({ transaction }) => gaps.push(transaction))
    await consumer.follow('a')
    const loop = consumer[Symbol.asyncIterator]()
    const reading = loop.next()
    const second = await setting.reconnected(producer)
    await second.grant(define, 13)
    await second.takeUp(13, {}, gap(1, 0))
    await second.grant('COMMIT 1 through')
    await second.grant('COLLECT a', 8)
    await second.grant('SUBSCRIBE 8 on 0', 0, value(8, 2))
    expect((await reading).value).toMatchObject({ name: 'a', transaction: 2 })
    expect([gaps, consumer.channel]).toEqual([[1], 13])
  })

  test('binds everything anew on the successor if the producer does not report what that binds', async () => {
    const { setting, producer, opening } = await connecting(named)
    await producer.grant(define, 12)
    await producer.takeUp(12, { 7: 'a' })
    const consumer = await opening
    await consumer.follow('a')
    const second = await setting.reconnected(producer)
    await second.grant(define, 13)
    await second.refuse('QUERY producer.bindings channel=13', PERMISSION_DENIED)
    await second.grant('SET_CHANNEL 13')
    await second.grant('COLLECT a', 8)
    await second.grant('SUBSCRIBE 8 on 0')
    expect([await second.rest(), consumer.channel, consumer.nameOf(8)]).toEqual([[], 13, 'a'])
  })

  test('lets `after` cover nothing on another channel than the one that it is about', async () => {
    const after = { generation: '', transaction: 5 }
    const { producer, opening } = await connecting({ ...named, channel: 12, after })
    await producer.grant(define, 13)
    await producer.takeUp(13, { 7: 'a' }, value(7, 4))
    const consumer = await opening
    expect((await consumer[Symbol.asyncIterator]().next()).value?.transaction).toBe(4)
  })

  test('leaves the name by `setChannel`', async () => {
    const { setting, producer, opening } = await connecting(named)
    await producer.grant(define, 12)
    await producer.takeUp(12, {})
    const consumer = await opening
    const leaving = consumer.setChannel(14)
    await producer.takeUp(14, {})
    await leaving
    const second = await setting.reconnected(producer)
    await second.takeUp(14, {})
    await settle()
    expect(consumer.channel).toBe(14)
  })

  test('is not made of options that contradict each other', async () => {
    const refused = { ...named, after: { generation: '', transaction: 5 } }
    await expect(new Setting().connect({ ...named, durable: false })).rejects.toThrow(RangeError)
    await expect(new Setting().connect(refused)).rejects.toThrow(/`channel`/)
  })
})

describe('a consumer that names a channel', () => {
  test('takes it up, and knows the names of what it binds', async () => {
    const { producer, opening } = await connecting({ channel: 12 })
    await producer.takeUp(12, { 7: 'host.load.one', 8: 'gmetric.*' }, value(8, 1), value(7, 2))
    const consumer = await opening
    expect([consumer.channel, consumer.nameOf(7), consumer.nameOf(8)]).toEqual([12, 'host.load.one', 'gmetric.*'])
    const loop = consumer[Symbol.asyncIterator]()
    expect((await loop.next()).value?.name).toBe('gmetric.*')
    expect((await loop.next()).value?.name).toBe('host.load.one')
  })

  test('takes over what it binds, without a COLLECT of its own', async () => {
    const { producer, opening } = await connecting({ channel: 12 })
    await producer.takeUp(12, { 7: 'a' }, value(7, 1))
    const consumer = await opening
    const handled: number[] = []
    const followed = await consumer.follow('a', {}, ({ transaction }) => handled.push(transaction))
    expect(followed).toMatchObject({ metric: 'a', id: 7 })
    void consumer.run()
    expect(await producer.rest()).toEqual(['COMMIT 1 through'])
    expect(handled).toEqual([1])
  })

  test('binds a metric anew with other arguments, and says what it does not follow, until that is stopped', async () => {
    const { producer, opening } = await connecting({ channel: 12 })
    await producer.takeUp(12, { 7: { name: 'a', args: { interval_ms: 500 } }, 8: 'b' })
    const consumer = await opening
    const following = consumer.follow('a', { interval_ms: 1000 })
    await producer.grant('COLLECT a interval_ms=1000', 9)
    await producer.grant('SUBSCRIBE 9 on 0')
    expect(await following).toMatchObject({ metric: 'a', id: 9 })
    expect(consumer.unfollowed).toEqual([
      { id: 7, metric: 'a', args: { interval_ms: 500 }, mode: 'subscribe' },
      { id: 8, metric: 'b', args: {}, mode: 'subscribe' },
    ])
    expect(await consumer.follow('b')).toMatchObject({ id: 8 })
    const stopping = consumer.stop(7)
    await producer.grant('STOP 7 on 0')
    await stopping
    expect(consumer.unfollowed).toEqual([])
  })

  test('finds again what it could not take over', async () => {
    const { producer, opening } = await connecting({ channel: 12 })
    await producer.takeUp(12, { 7: { name: 'a', mode: 'buffer' } })
    const consumer = await opening
    const refused = expect(consumer.follow('a')).rejects.toMatchObject({ status: 'BUSY' })
    await producer.refuse('SUBSCRIBE 7 on 0', 13)
    await refused
    expect(consumer.unfollowed).toEqual([{ id: 7, metric: 'a', args: {}, mode: 'buffer' }])
    expect(consumer.nameOf(7)).toBe('a')
    const following = consumer.follow('a')
    await producer.grant('SUBSCRIBE 7 on 0')
    expect(await following).toMatchObject({ id: 7 })
    expect(consumer.unfollowed).toEqual([])
  })

  test('subscribes what it takes over and finds buffered', async () => {
    const { producer, opening } = await connecting({ channel: 12 })
    await producer.takeUp(12, { 7: { name: 'a', mode: 'buffer' } })
    const consumer = await opening
    const following = consumer.follow('a')
    await producer.grant('SUBSCRIBE 7 on 0')
    expect(await following).toMatchObject({ id: 7 })
  })

  test('does not receive again what an earlier run has handled, and commits that', async () => {
    const { producer, opening } = await connecting({ channel: 12, after: { generation: '', transaction: 5 } })
    await producer.takeUp(12, { 7: 'a' }, values(7, 4, 5, 6))
    const consumer = await opening
    expect((await consumer[Symbol.asyncIterator]().next()).value?.transaction).toBe(6)
    await producer.grant('COMMIT 4 through')
    expect(await producer.rest()).toEqual(['COMMIT 5 through'])
  })

  test('commits what an earlier run has handled even if nothing else comes', async () => {
    const { producer, opening } = await connecting({ channel: 12, after: { generation: '', transaction: 5 } })
    await producer.takeUp(12, { 7: 'a' }, values(7, 3, 4, 5))
    await opening
    await producer.grant('COMMIT 3 through')
    expect(await producer.rest()).toEqual(['COMMIT 5 through'])
  })

  test('receives everything again from a producer of another generation, and is informed before', async () => {
    const setting = new Setting()
    const { network, producer } = setting
    network.add(producer)
    producer.generation = ['b']
    const opening = setting.connect({ channel: 12, after: { generation: 'a', transaction: 5 } })
    await producer.admit()
    await producer.takeUp(12, { 7: 'a' }, values(7, 4, 5))
    const consumer = await opening
    const seen: unknown[] = []
    consumer.on('restored', ({ before, generation }) => seen.push([before, generation]))
    const loop = consumer[Symbol.asyncIterator]()
    for (let count = 0; count < 2; count++) seen.push((await loop.next()).value?.transaction)
    expect(seen).toEqual([['a', 'b'], 4, 5])
    expect(consumer.generation).toBe('b')
    expect(await producer.rest()).toEqual(['COMMIT 4 through'])
  })

  test('does not receive again what it handled in the same generation', async () => {
    const setting = new Setting()
    const { network, producer } = setting
    network.add(producer)
    producer.generation = ['a']
    const opening = setting.connect({ channel: 12, after: { generation: 'a', transaction: 5 } })
    await producer.admit()
    await producer.takeUp(12, { 7: 'a' }, values(7, 4, 5, 6))
    const consumer = await opening
    consumer.on('restored', () => expect.unreachable())
    expect((await consumer[Symbol.asyncIterator]().next()).value?.transaction).toBe(6)
  })

  test('is informed when the producer comes back from a backup, and receives its values again', async () => {
    const setting = new Setting()
    const { clock, network, producer } = setting
    const next = new FakeProducer()
    network.add(producer, next)
    producer.generation = ['a']
    next.generation = ['b']
    const opening = setting.connect()
    await producer.admit(12)
    const consumer = await opening
    await following({ producer, consumer }, 'm', 7)
    const seen: unknown[] = []
    consumer.on('restored', ({ before, generation }) => seen.push([before, generation]))
    const loop = consumer[Symbol.asyncIterator]()
    producer.say(values(7, 1, 2, 3))
    for (let count = 0; count < 2; count++) seen.push((await loop.next()).value?.transaction)
    producer.hangUp()
    await settle()
    clock.advance(10_000)
    await next.admit(13)
    await next.takeUp(12, { 7: 'm' }, values(7, 2, 3))
    for (let count = 0; count < 2; count++) seen.push((await loop.next()).value?.transaction)
    expect(seen).toEqual([1, 2, ['a', 'b'], 2, 3])
  })

  test('fails if the channel does not exist, and leaves nothing open', async () => {
    const { producer, opening, clock } = await connecting({ channel: 12 })
    await producer.grant('QUERY producer.bindings channel=12', 900, noBindingsAnswer(900))
    await producer.refuse('SET_CHANNEL 12', NO_SUCH_CHANNEL, 'no such channel')
    await expect(opening).rejects.toMatchObject({ command: 'SET_CHANNEL', status: 'NO_SUCH_CHANNEL' })
    expect(producer.isClosed).toBe(true)
    expect(clock.timers).toBe(0)
  })

  test('works without the names if the producer does not report them', async () => {
    const { producer, opening } = await connecting({ channel: 12 })
    await producer.refuse('QUERY producer.bindings channel=12', NO_SUCH_METRIC)
    await producer.grant('SET_CHANNEL 12')
    expect((await opening).channel).toBe(12)
  })
})

describe('after a lost connection', () => {
  test('the channel is taken up; what it binds is left alone, what is missing is collected and subscribed again', async () => {
    const setting = await loggedIn()
    const { producer, consumer } = setting
    const handled: string[] = []
    const handler = ({ name, id, transaction }: Sample) => handled.push(`${name} ${id} ${transaction}`)
    await following(setting, 'a', 7, handler)
    const b = await following(setting, 'b', 8, handler)
    void consumer.run()
    const second = await setting.setting.reconnected(producer)
    await second.takeUp(9, { 7: 'a' }, value(7, 1))
    await second.grant('COMMIT 1 through')
    await second.grant('COLLECT b', 18)
    await second.grant('SUBSCRIBE 18 on 0')
    second.say(value(18, 2))
    expect(await second.rest()).toEqual(['COMMIT 2 through'])
    expect(handled).toEqual(['a 7 1', 'b 18 2'])
    expect([consumer.channel, b.id]).toEqual([9, 18])
  })

  test('nothing is bound again if the producer does not report what is bound', async () => {
    const setting = await loggedIn()
    await following(setting, 'a', 7)
    const second = await setting.setting.reconnected(setting.producer)
    await second.refuse('QUERY producer.bindings channel=9', NO_SUCH_METRIC)
    await second.grant('SET_CHANNEL 9')
    expect(await second.rest()).toEqual([])
  })

  test('values directly after the response that took up the channel are handled once, and committed', async () => {
    const setting = await loggedIn()
    const { producer, consumer } = setting
    const handled: number[] = []
    await following(setting, 'a', 7, ({ transaction }) => handled.push(transaction))
    producer.say(values(7, 1, 2, 3))
    void consumer.run()
    // The COMMIT is lost with the connection.
    await producer.expect('COMMIT 3 through')
    const second = await setting.setting.reconnected(producer)
    await second.takeUp(9, { 7: 'a' }, values(7, 1, 2, 3, 4))
    const committed = await second.rest()
    expect(handled).toEqual([1, 2, 3, 4])
    const { seq } = second.sent.at(-1)!
    second.say(response(seq, 0, 0))
    expect([...committed, ...(await second.rest())].at(-1)).toBe('COMMIT 4 through')
  })

  test('repeats alone are committed, and those after a value that nobody wanted one by one', async () => {
    const setting = await loggedIn()
    const { producer, consumer } = setting
    await following(setting, 'a', 7, () => {})
    producer.say(value(7, 1), value(8, 2), value(7, 3))
    void consumer.run()
    await producer.expect('COMMIT 3')
    const second = await setting.setting.reconnected(producer)
    await second.takeUp(9, { 7: 'a' }, value(7, 1), value(8, 2), value(7, 3))
    await second.grant('COMMIT 1 through')
    expect(await second.rest()).toEqual(['COMMIT 3'])
  })

  test('a channel that is gone with followed metrics ends the consumer', async () => {
    const setting = await loggedIn()
    const { producer, consumer } = setting
    await following(setting, 'a', 7)
    const running = consumer.run().catch((error: unknown) => error)
    const second = await setting.setting.reconnected(producer)
    await second.grant('QUERY producer.bindings channel=9', 900, noBindingsAnswer(900))
    await second.refuse('SET_CHANNEL 9', NO_SUCH_CHANNEL)
    expect(await running).toMatchObject({ code: 'CHANNEL_GONE', message: expect.stringContaining('channel 9 is gone') })
    expect(second.isClosed).toBe(true)
    expect(setting.clock.timers).toBe(0)
    await expect(consumer.nop()).rejects.toMatchObject({ code: 'CHANNEL_GONE' })
  })

  test('a channel that is gone with nothing on it is replaced by the new one', async () => {
    const setting = await loggedIn()
    const { producer, consumer } = setting
    producer.say(value(7, 100))
    const loop = consumer[Symbol.asyncIterator]()
    await loop.next()
    const result = consumer.execute('x')
    await producer.grant('EXECUTE x', 5)
    const second = await setting.setting.reconnected(producer, 10)
    await second.grant('QUERY producer.bindings channel=9', 900, noBindingsAnswer(900))
    await second.refuse('SET_CHANNEL 9', NO_SUCH_CHANNEL)
    await expect(result).rejects.toMatchObject({ code: 'CHANNEL_GONE' })
    expect(consumer.channel).toBe(10)
    // Its ids begin anew: a lower one is no repeat.
    second.say(value(8, 50), value(8, 51))
    expect((await loop.next()).value?.transaction).toBe(50)
    expect(await second.rest()).toEqual([])
    await loop.next()
    expect(await second.rest()).toEqual(['COMMIT 50 through'])
  })

  test('a final refusal to bind a metric again ends the consumer; a transient one is tried again', async () => {
    const setting = await loggedIn()
    const { producer, consumer } = setting
    await following(setting, 'a', 7)
    const running = consumer.run().catch((error: unknown) => error)
    const second = await setting.setting.reconnected(producer)
    await second.takeUp(9, {})
    await second.refuse('COLLECT a', BUSY)
    await settle()
    expect(second.isClosed).toBe(true)
    const third = await setting.setting.reconnected(second)
    await third.takeUp(9, {})
    await third.refuse('COLLECT a', PERMISSION_DENIED)
    expect(await running).toMatchObject({ status: 'PERMISSION_DENIED' })
  })
})

describe('a channel that keeps nothing', () => {
  const CONFIGURE = (channel: number) => `EXECUTE channel.configure channel=${channel} durable=false`

  test('is configured that way before anything else', async () => {
    const { producer, opening } = await connecting({ durable: false })
    await producer.grant(CONFIGURE(9), 5, outcome(5, 0, 'ok'))
    expect((await opening).channel).toBe(9)
    expect(await producer.rest()).toEqual([])
  })

  test('is not available if the producer fails to make it', async () => {
    const { producer, opening } = await connecting({ durable: false })
    await producer.grant(CONFIGURE(9), 5, outcome(5, 0, 'failed', 'not today'))
    await expect(opening).rejects.toMatchObject({ code: 'CLOSED', message: expect.stringContaining('not today') })
    expect(producer.isClosed).toBe(true)
  })

  test('is replaced after a lost connection, and everything is followed again', async () => {
    const { producer, opening, setting } = await connecting({ durable: false })
    await producer.grant(CONFIGURE(9), 5, outcome(5, 0, 'ok'))
    const consumer = await opening
    const handled: string[] = []
    await following({ producer, consumer }, 'a', 7, ({ id, plain }) => handled.push(`${id}: ${plain}`))
    const result = consumer.execute('x').catch((error: unknown) => error)
    await producer.grant('EXECUTE x', 6)
    producer.say(value(7, 0, 1), value(7, 0, 2))
    const second = await setting.reconnected(producer, 10)
    expect(await result).toMatchObject({ code: 'CLOSED' })
    await second.grant(CONFIGURE(10), 5, outcome(5, 0, 'ok'))
    await second.grant('COLLECT a', 17)
    await second.grant('SUBSCRIBE 17 on 0', 0, value(17, 0, 3))
    void consumer.run()
    expect(await second.rest()).toEqual([])
    expect(consumer.channel).toBe(10)
    expect(handled).toEqual(['7: 1', '7: 2', '17: 3'])
  })

  test('does not bind again what was stopped without a connection, or while it was lost', async () => {
    const { producer, opening, setting } = await connecting({ durable: false })
    await producer.grant(CONFIGURE(9), 5, outcome(5, 0, 'ok'))
    const consumer = await opening
    const early = await following({ producer, consumer }, 'a', 7)
    const late = await following({ producer, consumer }, 'b', 8)
    const stopped = early.stop()
    await producer.expect('STOP 7 on 0')
    producer.hangUp()
    await stopped
    const stopping = late.stop()
    setting.clock.advance(60_000)
    await stopping
    await settle()
    const second = new FakeProducer()
    setting.network.add(second)
    setting.clock.advance(60_000)
    await second.admit(10)
    await second.grant(CONFIGURE(10), 5, outcome(5, 0, 'ok'))
    expect(await second.rest()).toEqual([])
  })
})

test('a metric stopped without a connection is stopped under the id that it has on the next one', async () => {
  const setting = await loggedIn()
  const { producer, consumer } = setting
  const followed = await following(setting, 'a', 7)
  producer.hangUp()
  const stopping = followed.stop()
  const second = await setting.setting.reconnected(producer)
  await second.takeUp(9, {})
  await second.grant('COLLECT a', 17)
  await second.grant('SUBSCRIBE 17 on 0')
  await second.grant('STOP 17 on 0')
  await stopping
  expect(consumer.nameOf(17)).toBe('')
})

test('the answer about a channel may be late: nothing is taken up before it', async () => {
  const { producer, opening } = await connecting({ channel: 12 })
  const { seq } = await producer.expect('QUERY producer.bindings channel=12')
  producer.say(response(seq, 0, 900))
  expect(await producer.rest()).toEqual([])
  producer.say(bindingsAnswer(900, 12, { 7: 'a' }))
  await producer.grant('SET_CHANNEL 12')
  expect((await opening).nameOf(7)).toBe('a')
})
