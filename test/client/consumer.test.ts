import { describe, expect, test } from 'vitest'
import { ConnectionError, type Entry, StatusError } from '../../client/index.ts'
import { loggedIn } from './fake-producer.ts'
import { caps, gap, notice, response, value } from './wire.ts'

describe('commands', () => {
  test('are sent as the specification writes them', async () => {
    const { producer, consumer } = await loggedIn()
    producer.hex = ''
    void consumer.collect('host.cpu.number', { host: 'n1' })
    void consumer.get(7)
    void consumer.commit(0x100000001)
    void consumer.commit(5, { through: true })
    await producer.next()
    // Their seqs are 2 to 5 here, where the specification has 1, 2, 3 and 3.
    expect(producer.hex).toBe(
      '0000003400000001000000020000000f686f73742e6370752e6e756d626572000000000100000004686f737400000007000000026e310000' +
        '0000001000000005000000030000000700000000' +
        '000000100000000a000000040000000100000001' +
        '000000140000000a00000005000000000000000500000001',
    )
  })

  test('may be answered in any order', async () => {
    const { producer, consumer } = await loggedIn()
    const ids = Promise.all([consumer.collect('a'), consumer.collect('b'), consumer.defChannel()])
    const [a, b, c] = [await producer.next(), await producer.next(), await producer.next()]
    producer.say(response(c.seq, 0, 30))
    producer.say(response(a.seq, 0, 10), response(b.seq, 0, 20))
    expect(await ids).toEqual([10, 20, 30])
  })

  test('of one turn go out together', async () => {
    const { producer, consumer } = await loggedIn()
    let sends = 0
    const send = producer.send.bind(producer)
    producer.send = (bytes) => {
      sends++
      send(bytes)
    }
    for (let i = 1; i <= 100; i++) void consumer.commit(i)
    await producer.next()
    expect(sends).toBe(1)
    expect(producer.sent).toHaveLength(101)
  })

  test('that are refused say so with status and detail, and the connection goes on', async () => {
    const { producer, consumer } = await loggedIn()
    const refused = consumer.subscribe(7).catch((error: unknown) => error)
    producer.say(response((await producer.next()).seq, 8, 0, 'no such id'))
    expect(await refused).toBeInstanceOf(StatusError)
    expect(await refused).toMatchObject({
      command: 'SUBSCRIBE',
      status: 'NO_SUCH_ID',
      detail: 'no such id',
      message: 'SUBSCRIBE was refused: no such id (NO_SUCH_ID)',
    })
    const nop = consumer.nop()
    producer.say(response((await producer.next()).seq, 0, 0))
    await nop
  })

  test('that are refused with a status of a later version keep its number', async () => {
    const { producer, consumer } = await loggedIn()
    const refused = consumer.stop(7)
    refused.catch(() => {})
    producer.say(response((await producer.next()).seq, 74565, 0, ''))
    await expect(refused).rejects.toMatchObject({ status: 74565 })
  })

  test('longer than the producer takes are not sent', async () => {
    const { producer, consumer } = await loggedIn()
    await expect(consumer.collect('a', { host: 'x'.repeat(65_536) })).rejects.toThrow(/at most 65536/)
    expect(producer.sent).toHaveLength(1)
    expect(producer.isClosed).toBe(false)
  })

  test('SET_CHANNEL changes the current channel when it is answered', async () => {
    const { producer, consumer } = await loggedIn()
    const set = consumer.setChannel(12)
    const { seq } = await producer.next()
    expect(consumer.channel).toBe(9)
    producer.say(response(seq, 0, 0))
    expect(consumer.channel).toBe(12)
    await set
  })
})

describe('answers', () => {
  test('to QUERY may stand right behind its response', async () => {
    const { producer, consumer } = await loggedIn()
    const answer = consumer.query('host.uptime')
    producer.say(response((await producer.next()).seq, 0, 7), value(7, 0, 42))
    expect(await answer).toMatchObject({ metric: 7, time: 1_700_000_000_000_000, value: { type: 2, value: 42 } })
  })

  test('to two QUERYs may come in the other order, cut anywhere', async () => {
    const { producer, consumer } = await loggedIn()
    const answers = Promise.all([consumer.query('a'), consumer.query('b')])
    const [a, b] = [await producer.next(), await producer.next()]
    for (const byte of Buffer.concat([response(b.seq, 0, 8), response(a.seq, 0, 7), value(8, 0, 2), value(7, 0, 1)])) {
      producer.say(Buffer.from([byte]))
    }
    expect((await answers).map(({ value }) => value.value)).toEqual([1, 2])
  })

  test('to EXECUTE come once, however long the control takes', async () => {
    const { producer, consumer } = await loggedIn()
    const entries = consumer.entries()
    const result = consumer.execute('exec.x')
    producer.say(response((await producer.next()).seq, 0, 3), value(5, 1, 0), value(3, 2, 1), value(3, 3, 9))
    expect(await result).toMatchObject({ metric: 3, transaction: 2 })
    const rest = [await entries.next(), await entries.next()]
    expect(rest.map((result) => result.value?.transaction)).toEqual([1, 3])
  })
})

describe('values', () => {
  test('go to the handler of their id, all others to the entries, GAPs in their place', async () => {
    const { producer, consumer } = await loggedIn()
    const handled: number[] = []
    const forget = consumer.onValue(7, ({ transaction }) => handled.push(transaction))
    const entries = consumer.entries()
    producer.say(value(8, 1, 0), value(7, 2, 0), gap(3, 8), value(8, 4, 0))
    forget()
    producer.say(value(7, 5, 0))
    expect(handled).toEqual([2])
    const seen: Entry[] = []
    for await (const entry of entries) {
      seen.push(entry)
      if (seen.length === 4) break
    }
    expect(seen.map(({ kind, transaction }) => `${kind} ${transaction}`)).toEqual([
      'value 1',
      'gap 3',
      'value 4',
      'value 5',
    ])
    expect(seen[1]).toMatchObject({ metric: 8, count: 5, reason: 1, from: 1_700_000_000_000_000 })
  })

  test('that nobody wants are passed over, also after a loop was left', async () => {
    const { producer, consumer } = await loggedIn()
    producer.say(value(7, 1, 0))
    const entries = consumer.entries()
    expect(() => consumer.entries()).toThrow(/already being read/)
    await entries.return()
    producer.say(value(7, 2, 0))
    const again = consumer.entries()
    producer.say(value(7, 3, 0))
    expect((await again.next()).value?.transaction).toBe(3)
  })

  test('GAPs without a reader and NOTICEs are told at once', async () => {
    const told: unknown[] = []
    const { producer } = await loggedIn({
      onGap: ({ count }) => told.push(`gap of ${count}`),
      onNotice: ({ code, channel, detail }) => told.push({ code, channel, detail }),
    })
    producer.say(gap(13, 7), notice(1, 'window full'))
    expect(told).toEqual(['gap of 5', { code: 1, channel: 9, detail: 'window full' }])
  })

  test('larger than 64 KiB are taken after the login', async () => {
    const { producer, consumer } = await loggedIn()
    const entries = consumer.entries()
    const size = 100_000
    const header = Buffer.from(value(7, 1, 0).subarray(4, 24))
    const lengths = Buffer.from([0, 0, 0, 8, 0, 1, 0x86, 0xa0])
    const frame = Buffer.concat([Buffer.from([0, 1, 0x86, 0xbc]), header, lengths, Buffer.alloc(size, 1)])
    producer.say(frame)
    const { value: entry } = await entries.next()
    expect(entry).toMatchObject({ kind: 'value', value: { type: 8, value: { length: size } } })
  })
})

describe('the end of a connection', () => {
  test('rejects what waits and ends the loop behind what was already here', async () => {
    const closed: unknown[] = []
    const { producer, consumer } = await loggedIn({ onClose: (error) => closed.push(error) })
    const entries = consumer.entries()
    const waiting = [consumer.nop(), consumer.query('a'), consumer.execute('b')]
    await producer.next()
    producer.say(response((await producer.next()).seq, 0, 7), value(8, 1, 0))
    producer.say(notice(2, 'another connection took this channel'))
    producer.hangUp()
    producer.hangUp()
    const reasons = await Promise.allSettled(waiting)
    for (const { status, reason } of reasons as PromiseRejectedResult[]) {
      expect(status).toBe('rejected')
      expect(reason).toBeInstanceOf(ConnectionError)
      expect(reason).toMatchObject({ code: 'CLOSED', message: expect.stringContaining('took this channel') })
      expect(reason.message).toContain('tcp://127.0.0.1:7650 as tc')
    }
    expect((await entries.next()).value?.transaction).toBe(1)
    await expect(entries.next()).rejects.toBe(closed[0])
    expect(closed).toHaveLength(1)
    await expect(consumer.nop()).rejects.toMatchObject({ code: 'CLOSED' })
  })

  test('by us is no error to the reader, and sends what was asked before it', async () => {
    const closed: unknown[] = []
    const { producer, consumer } = await loggedIn({ onClose: (error) => closed.push(error) })
    const entries = consumer.entries()
    const next = entries.next()
    const commit = consumer.commit(5)
    consumer.close()
    consumer.close()
    expect((await producer.next()).command).toBe(10)
    expect(producer.isClosed).toBe(true)
    await expect(commit).rejects.toMatchObject({ code: 'CLOSED' })
    expect(await next).toEqual({ done: true, value: undefined })
    expect(closed).toEqual([undefined])
  })

  test('follows a message that is none', async () => {
    const { producer, consumer } = await loggedIn()
    const nop = consumer.nop()
    nop.catch(() => {})
    producer.say(Buffer.from('0000000880000000ffffffff', 'hex'))
    await expect(nop).rejects.toMatchObject({ code: 'PROTOCOL' })
    expect(producer.isClosed).toBe(true)
  })
})

test('capabilities are those that were told last', async () => {
  const { producer, consumer } = await loggedIn()
  expect(consumer.capabilities).toMatchObject({ auth: ['password'], maxFrameBytes: 65536 })
  producer.say(caps('scram-sha-256'))
  expect(consumer.capabilities?.auth).toEqual(['scram-sha-256'])
})
