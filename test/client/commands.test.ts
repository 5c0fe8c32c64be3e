import { describe, expect, test, vi } from 'vitest'
import { AwaitedValues, type SendCommand } from '../../client/commands.ts'
import { StatusError, VOID } from '../../client/index.ts'
import type { ValueMessage } from '../../protocol/monitor/message.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { loggedIn, settle } from './fake-producer.ts'
import { response, value } from './wire.ts'

test('commands are sent as the specification writes them', async () => {
  const { producer, consumer } = await loggedIn()
  producer.hex = ''
  void consumer.collect('host.cpu.number', { host: 'n1' })
  void consumer.get(7)
  void consumer.commit(0x100000001)
  void consumer.commit(5, { through: true })
  void consumer.nop()
  await settle()
  // Their seqs are 2 to 6 here, where the specification has 1, 2, 3, 3 and 6.
  expect(producer.hex).toBe(
    '0000003400000001000000020000000f686f73742e6370752e6e756d626572000000000100000004686f737400000007000000026e310000' +
      '0000001000000005000000030000000700000000' +
      '000000100000000a000000040000000100000001' +
      '000000140000000a00000005000000000000000500000001' +
      '000000080000000000000006',
  )
})

test('there is a method for each command of a consumer, on the current channel unless another is named', async () => {
  const { producer, consumer } = await loggedIn()
  void consumer.subscribe(7)
  void consumer.subscribe(7, 12)
  void consumer.buffer(7)
  void consumer.buffer(7, 12)
  void consumer.get(7, 12)
  void consumer.stop(7)
  void consumer.stop(7, 12)
  void consumer.defChannel()
  void consumer.defChannel('gmetric://h:1')
  void consumer.delChannel(12)
  void consumer.execute('exec.x', { dry_run: true })
  void consumer.query('host.uptime', { deadline_ms: 5 })
  expect(await producer.rest()).toEqual([
    'SUBSCRIBE 7 on 0',
    'SUBSCRIBE 7 on 12',
    'BUFFER 7 on 0',
    'BUFFER 7 on 12',
    'GET 7 on 12',
    'STOP 7 on 0',
    'STOP 7 on 12',
    'DEF_CHANNEL ',
    'DEF_CHANNEL gmetric://h:1',
    'DEL_CHANNEL 12',
    'EXECUTE exec.x dry_run=true',
    'QUERY host.uptime deadline_ms=5',
  ])
})

test('they may be answered in any order', async () => {
  const { producer, consumer } = await loggedIn()
  const ids = Promise.all([consumer.collect('a'), consumer.collect('b'), consumer.defChannel()])
  const [a, b, c] = [await producer.next(), await producer.next(), await producer.next()]
  producer.say(response(c.seq, 0, 30))
  producer.say(response(a.seq, 0, 10), response(b.seq, 0, 20))
  expect(await ids).toEqual([10, 20, 30])
})

test('those of one turn are sent together', async () => {
  const { producer, consumer } = await loggedIn()
  const before = producer.sends
  for (let i = 1; i <= 100; i++) void consumer.commit(i)
  await settle()
  expect(producer.sends).toBe(before + 1)
  expect(await producer.rest()).toHaveLength(100)
})

test('one that is refused rejects with status and detail, and the connection continues', async () => {
  const { producer, consumer } = await loggedIn()
  const refused = consumer.subscribe(7).catch((error: unknown) => error)
  await producer.refuse('SUBSCRIBE 7 on 0', 8, 'no such id')
  expect(await refused).toBeInstanceOf(StatusError)
  expect(await refused).toMatchObject({ command: 'SUBSCRIBE', status: 'NO_SUCH_ID', detail: 'no such id' })
  const nop = consumer.nop()
  await producer.grant('NOP')
  await nop
})

test('one that is refused with a status of a later version keeps its number', async () => {
  const { producer, consumer } = await loggedIn()
  const refused = consumer.stop(7).catch((error: unknown) => error)
  await producer.refuse('STOP 7 on 0', 74565)
  expect(await refused).toMatchObject({ status: 74565 })
})

test('one that is longer than the producer accepts is not sent', async () => {
  const { producer, consumer } = await loggedIn()
  await expect(consumer.collect('a', { host: 'x'.repeat(65_536) })).rejects.toThrow(/at most 65536/)
  const nop = consumer.nop()
  expect(await producer.rest()).toEqual(['NOP'])
  producer.say(response(producer.sent.at(-1)!.seq, 0, 0))
  await nop
})

test('one that is not answered in time is rejected; its late response is not an error of the producer', async () => {
  const { producer, consumer, clock } = await loggedIn({ deadlineMs: 5_000 })
  const stopping = consumer.stop(7).catch((error: unknown) => error)
  const { seq } = await producer.expect('STOP 7 on 0')
  clock.advance(5_000)
  expect(await stopping).toMatchObject({ code: 'TIMEOUT', message: expect.stringContaining('5 seconds') })
  producer.say(response(seq, 0, 0))
  const nop = consumer.nop()
  await producer.grant('NOP')
  await nop
})

test('the answer to QUERY may follow its response directly', async () => {
  const { producer, consumer } = await loggedIn()
  const answer = consumer.query('host.uptime')
  await producer.grant('QUERY host.uptime', 7, value(7, 0, 42))
  expect(await answer).toMatchObject({
    metric: 'host.uptime',
    id: 7,
    time: 1_700_000_000_000_000,
    value: { type: 2, value: 42 },
  })
})

test('the answers to two QUERYs may come in the other order, cut anywhere', async () => {
  const { producer, consumer } = await loggedIn()
  const answers = Promise.all([consumer.query('a'), consumer.query('b')])
  const [a, b] = [await producer.next(), await producer.next()]
  for (const byte of Buffer.concat([response(b.seq, 0, 8), response(a.seq, 0, 7), value(8, 0, 2), value(7, 0, 1)])) {
    producer.say(Buffer.from([byte]))
  }
  expect((await answers).map(({ value }) => value.value)).toEqual([1, 2])
})

test('an answer has its own deadline if one is given', async () => {
  const { producer, consumer, clock } = await loggedIn()
  const answer = consumer.query('host.uptime', {}, { deadlineMs: 1_000 }).catch((error: unknown) => error)
  await producer.grant('QUERY host.uptime', 7)
  clock.advance(1_000)
  expect(await answer).toMatchObject({ code: 'TIMEOUT', message: expect.stringContaining('QUERY') })
})

test('the result of EXECUTE comes once, however long the control takes, and is committed separately', async () => {
  const { producer, consumer } = await loggedIn()
  const result = consumer.execute('exec.x')
  await producer.grant('EXECUTE exec.x', 3, value(5, 1), value(3, 2, 1), value(3, 3, 9))
  expect(await result).toMatchObject({ metric: 'exec.x', id: 3, transaction: 2 })
  const values = consumer[Symbol.asyncIterator]()
  expect((await values.next()).value?.transaction).toBe(1)
  await producer.grant('COMMIT 2')
  expect((await values.next()).value?.transaction).toBe(3)
  expect(await producer.rest()).toEqual(['COMMIT 1 through'])
})

const asked = { metric: 'host.uptime', args: [] }
const answerOf = (metric: number): ValueMessage => ({ kind: 'value', metric, transaction: 0, time: 0, value: VOID })
/** A connection that answers at once with this id. */
const given =
  (id: number): SendCommand =>
  (_name, _values, onOk) => {
    onOk?.(id)
    return Promise.resolve(id)
  }

const origin = { generation: 'a', commit: () => {} }
const originOf = () => origin

describe('an awaited value', () => {
  test('of the id in the response is the answer, once', async () => {
    const awaited = new AwaitedValues(new FakeClock())
    const asking = awaited.ask(given(7), 'QUERY', asked, { isKept: false })
    expect(awaited.take(answerOf(8), originOf)).toBeUndefined()
    expect(awaited.take(answerOf(7), originOf)).toBe('handed')
    expect(awaited.take(answerOf(7), originOf)).toBeUndefined()
    expect(await asking).toEqual(answerOf(7))
  })

  test('is not awaited if the command is refused', async () => {
    const awaited = new AwaitedValues(new FakeClock())
    const asking = awaited.ask(() => Promise.reject(new Error('refused')), 'QUERY', asked, { isKept: false })
    await expect(asking).rejects.toThrow('refused')
  })

  test('is lost with the connection, unless it is kept on the channel', async () => {
    const awaited = new AwaitedValues(new FakeClock())
    const query = awaited.ask(given(7), 'QUERY', asked, { isKept: false })
    const result = awaited.ask(given(8), 'EXECUTE', { control: 'x', args: [] }, { isKept: true })
    awaited.reject(new Error('lost'), true)
    await expect(query).rejects.toThrow('lost')
    expect(awaited.take(answerOf(8), originOf)).toBe('handed')
    expect(await result).toEqual(answerOf(8))
  })

  test('is not awaited after the end', async () => {
    const clock = new FakeClock()
    const awaited = new AwaitedValues(clock)
    const result = awaited.ask(given(8), 'EXECUTE', { control: 'x', args: [] }, { isKept: true, deadlineMs: 5_000 })
    awaited.reject(new Error('closed'), false)
    await expect(result).rejects.toThrow('closed')
    expect(clock.timers).toBe(0)
  })

  test('has a deadline that counts from the response, and leaves no timer if it comes in time', async () => {
    const clock = new FakeClock()
    const awaited = new AwaitedValues(clock)
    const late = awaited.ask(given(7), 'QUERY', asked, { isKept: false, deadlineMs: 5_000 })
    const inTime = awaited.ask(given(8), 'QUERY', asked, { isKept: false, deadlineMs: 5_000 })
    clock.advance(4_999)
    expect(awaited.take(answerOf(8), originOf)).toBe('handed')
    expect(clock.timers).toBe(1)
    clock.advance(1)
    await expect(late).rejects.toMatchObject({ code: 'TIMEOUT', message: expect.stringContaining('5000 ms') })
    expect(await inTime).toEqual(answerOf(8))
    // It comes too late, and is not for the loop either.
    expect(awaited.take(answerOf(7), originOf)).toBe('unwanted')
    expect(awaited.take(answerOf(7), originOf)).toBeUndefined()
    expect(clock.timers).toBe(0)
  })

  test('that is given up is taken all the same when it comes, and leaves no listener', async () => {
    const awaited = new AwaitedValues(new FakeClock())
    const abort = new AbortController()
    const { signal } = abort
    const added = vi.spyOn(signal, 'addEventListener')
    const removed = vi.spyOn(signal, 'removeEventListener')
    const given7 = awaited.ask(given(7), 'QUERY', asked, { isKept: false, signal })
    const given8 = awaited.ask(given(8), 'QUERY', asked, { isKept: false, signal })
    expect(awaited.take(answerOf(8), originOf)).toBe('handed')
    await given8
    abort.abort('enough')
    await expect(given7).rejects.toBe('enough')
    expect([awaited.take(answerOf(7), originOf), awaited.take(answerOf(7), originOf)]).toEqual(['unwanted', undefined])
    expect(removed.mock.calls).toHaveLength(added.mock.calls.length)
  })
})

describe('a signal', () => {
  const enough = new Error('enough')
  const aborted = AbortSignal.abort(enough)

  test('that was aborted before the call leaves nothing sent', async () => {
    const { producer, consumer } = await loggedIn()
    const options = { signal: aborted }
    const calls = [
      consumer.collect('a', {}, options),
      consumer.subscribe(7, 0, options),
      consumer.buffer(7, 0, options),
      consumer.get(7, 0, options),
      consumer.stop(7, 0, options),
      consumer.query('a', {}, options),
      consumer.execute('a', {}, options),
      consumer.commit(5, options),
      consumer.defChannel('', {}, options),
      consumer.delChannel(7, options),
      consumer.nop(options),
      consumer.follow('a', {}, undefined, options),
    ]
    for (const call of calls) await expect(call).rejects.toBe(enough)
    expect(await producer.rest()).toEqual([])
  })

  test('gives up a command that waits for the next connection: it is not sent there', async () => {
    const { setting, clock, producer, consumer } = await loggedIn()
    const abort = new AbortController()
    producer.hangUp()
    const collecting = consumer.collect('a', {}, { signal: abort.signal })
    abort.abort(enough)
    await expect(collecting).rejects.toBe(enough)
    const second = await setting.reconnected(producer)
    await second.takeUp(9, {})
    expect(await second.rest()).toEqual([])
    await consumer.close()
    expect(clock.timers).toBe(0)
  })

  test('gives up waiting for a response, which may come later', async () => {
    const { producer, consumer } = await loggedIn()
    const abort = new AbortController()
    const getting = consumer.get(7, 0, { signal: abort.signal })
    const { seq } = await producer.expect('GET 7 on 0')
    abort.abort(enough)
    await expect(getting).rejects.toBe(enough)
    producer.say(response(seq, 0, 0))
    const nop = consumer.nop()
    await producer.grant('NOP')
    await nop
  })

  test.each(['the response', 'the value'])(
    'gives up a control before %s; its result is committed when it comes',
    async (what) => {
      const { producer, consumer } = await loggedIn()
      const abort = new AbortController()
      const executing = consumer.execute('exec.x', {}, { signal: abort.signal })
      const { seq } = await producer.expect('EXECUTE exec.x')
      if (what === 'the value') producer.say(response(seq, 0, 3))
      abort.abort(enough)
      await expect(executing).rejects.toBe(enough)
      if (what === 'the response') producer.say(response(seq, 0, 3))
      producer.say(value(3, 1, 1), value(5, 2))
      await producer.grant('COMMIT 1')
      expect((await consumer[Symbol.asyncIterator]().next()).value?.transaction).toBe(2)
    },
  )

  test.each(['COLLECT', 'SUBSCRIBE'])(
    'gives up following while %s is answered, and nothing is left bound',
    async (which) => {
      const { setting, producer, consumer } = await loggedIn()
      const abort = new AbortController()
      const following = consumer.follow('a', {}, undefined, { signal: abort.signal })
      let { seq } = await producer.expect('COLLECT a')
      if (which === 'SUBSCRIBE') {
        producer.say(response(seq, 0, 7))
        seq = (await producer.expect('SUBSCRIBE 7 on 0')).seq
      }
      abort.abort(enough)
      await expect(following).rejects.toBe(enough)
      producer.say(response(seq, 0, which === 'COLLECT' ? 7 : 0))
      expect(await producer.rest()).toEqual(which === 'COLLECT' ? [] : ['STOP 7 on 0'])
      expect(consumer.nameOf(7)).toBe('')
      const second = await setting.reconnected(producer)
      await second.takeUp(9, {})
      expect(await second.rest()).toEqual([])
    },
  )
})
