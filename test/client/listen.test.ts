/** Consumers to which producers connect [MON 14]; a test plays the producers over sockets. */
import { once } from 'node:events'
import { connect as connectTcp } from 'node:net'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { afterEach, beforeAll, describe, expect, test } from 'vitest'
import { type Calls, type Consumer, type ListenOptions, listen, type Sample } from '../../client/index.ts'
import { Authority, type Issued } from '../support/certificates.ts'
import { StreamProducer } from './stream-producer.ts'
import { auth, authOf, bindingsAnswer, caps, offers, response, scramServer, textOf, values } from './wire.ts'

const CHANNEL = 77
const secret = 'pencil-pencil-pencil'
const identity = 'user'
const closing: (() => unknown)[] = []
let authority: Authority
let issued: Issued

beforeAll(async () => {
  authority = await Authority.make()
  issued = await authority.server()
})
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

async function listening(options: Partial<ListenOptions> = {}): Promise<Calls> {
  const calls = await listen({ url: 'tcp://127.0.0.1:0', identity, secret, ...options })
  closing.push(() => calls.close())
  return calls
}

async function call({ address }: Calls): Promise<StreamProducer> {
  const socket = connectTcp(address.port, '127.0.0.1')
  await once(socket, 'connect')
  closing.push(() => socket.destroy())
  return new StreamProducer(socket)
}

/** Lets the consumer in, having proven the secret; `frames` stand right after the response. */
async function admit(producer: StreamProducer, channel = CHANNEL, ...frames: Uint8Array[]): Promise<void> {
  producer.say(caps('scram-sha-256', 'password', 'token'))
  const first = await producer.next()
  expect(authOf(first).method).toBe('scram-sha-256')
  const scram = scramServer(authOf(first).data, secret)
  producer.say(response(first.seq, 1, 0), auth(scram.serverFirst))
  const final = await producer.next()
  const { isProven, serverFinal } = scram.final(authOf(final).data)
  expect(isProven).toBe(true)
  producer.say(response(final.seq, 1, 0), auth(serverFinal))
  const { seq } = await producer.next()
  producer.say(response(seq, 0, channel), offers({}), ...frames)
}

/** Says what the channel binds, and that is all that is asked. */
async function tellNames(producer: StreamProducer, channel = CHANNEL): Promise<void> {
  await producer.grant(
    `QUERY producer.bindings channel=${channel}`,
    900,
    bindingsAnswer(900, channel, { 5: 'gmetric.counter' }),
  )
}

async function first(calls: Calls): Promise<Consumer> {
  const { value } = await calls[Symbol.asyncIterator]().next()
  return value as Consumer
}

async function take(consumer: Consumer, count: number): Promise<Sample[]> {
  const taken: Sample[] = []
  for await (const sample of consumer) {
    taken.push(sample)
    if (taken.length < count) continue
    await consumer.commit(sample.transaction)
    return taken
  }
  return taken
}

/** Grants COMMITs, up to the one of everything through this. */
async function storeThrough(producer: StreamProducer, last: number): Promise<void> {
  for (;;) {
    const sent = await producer.next()
    producer.say(response(sent.seq, 0, 0))
    if (textOf(sent) === `COMMIT ${last} through`) return
  }
}

const ids = (samples: readonly Sample[]) => samples.map(({ transaction }) => transaction)

describe('a connection of a producer', () => {
  test('is a consumer on the channel that it is for, with the names of what comes at once', async () => {
    const calls = await listening()
    const producer = await call(calls)
    await admit(producer, CHANNEL, values(5, 10, 11))
    await tellNames(producer)
    const consumer = await first(calls)
    expect([consumer.channel, consumer.isConfidential]).toEqual([CHANNEL, true])
    const taking = take(consumer, 2)
    await storeThrough(producer, 11)
    const taken = await taking
    expect(taken.map(({ name, transaction }) => [name, transaction])).toEqual([
      ['gmetric.counter', 10],
      ['gmetric.counter', 11],
    ])
  })

  test('continues where the last one for its channel ended: nothing is lost, nothing comes twice', async () => {
    const calls = await listening()
    const producer = await call(calls)
    await admit(producer, CHANNEL, values(5, 10, 11))
    await tellNames(producer)
    const consumer = await first(calls)
    const taking = take(consumer, 4)
    producer.hangUp()
    const again = await call(calls)
    await admit(again, CHANNEL, values(5, 10, 11, 12, 13))
    await tellNames(again)
    await storeThrough(again, 13)
    expect(ids(await taking)).toEqual([10, 11, 12, 13])
  })

  test('closes the last one if that is still open', async () => {
    const calls = await listening()
    const producer = await call(calls)
    await admit(producer)
    await tellNames(producer)
    const consumer = await first(calls)
    const again = await call(calls)
    const closed = once(producer.release(), 'close')
    await admit(again, CHANNEL, values(5, 20))
    await closed
    await tellNames(again)
    const taking = take(consumer, 1)
    await again.grant('COMMIT 20 through')
    expect(ids(await taking)).toEqual([20])
  })

  test('for another channel is another consumer', async () => {
    const calls = await listening()
    const found: number[] = []
    for (const channel of [77, 78]) {
      const producer = await call(calls)
      await admit(producer, channel)
      await tellNames(producer, channel)
      found.push((await first(calls)).channel)
    }
    expect(found).toEqual([77, 78])
  })

  test('does not hand out again what an earlier run has handled', async () => {
    const calls = await listening({
      after: (channel) => (channel === CHANNEL ? { generation: '', transaction: 11 } : undefined),
    })
    const producer = await call(calls)
    await admit(producer, CHANNEL, values(5, 10, 11, 12))
    await tellNames(producer)
    const taking = take(await first(calls), 1)
    await storeThrough(producer, 12)
    expect(ids(await taking)).toEqual([12])
  })

  test('is awaited after another connection has taken over its channel', async () => {
    const calls = await listening()
    const producer = await call(calls)
    await admit(producer)
    await tellNames(producer)
    const consumer = await first(calls)
    const lost = new Promise((resolve) => consumer.on('disconnected', resolve))
    producer.say(Buffer.from('00000010fffffffb000000020000004d00000000', 'hex'))
    producer.release().end()
    expect(await lost).toMatchObject({ code: 'SUPERSEDED' })
    const back = new Promise((resolve) => consumer.on('connected', resolve))
    const again = await call(calls)
    await admit(again)
    await tellNames(again)
    expect(await back).toEqual({ channel: CHANNEL })
  })
})

describe('a peer', () => {
  async function refusal(offered: readonly string[], play?: (producer: StreamProducer) => Promise<void>) {
    let report: (error: Error) => void = () => {}
    const refused = new Promise<Error>((resolve) => {
      report = resolve
    })
    const calls = await listening({ refused: (error) => report(error) })
    const producer = await call(calls)
    producer.say(caps(...offered))
    await play?.(producer)
    return { error: await refused, producer }
  }

  test('that offers no scram is sent nothing', async () => {
    const { error, producer } = await refusal(['password', 'token'])
    expect(error).toMatchObject({ code: 'NO_METHOD', message: expect.stringContaining('connection from 127.0.0.1:') })
    expect(producer.sent).toEqual([])
  })

  test('that admits us without knowing the secret is refused', async () => {
    const { error, producer } = await refusal(['scram-sha-256'], async (producer) => {
      const { seq } = await producer.next()
      producer.say(response(seq, 0, CHANNEL), values(5, 10))
    })
    expect(error).toMatchObject({ code: 'SERVER_NOT_PROVEN' })
    expect(producer.sent).toHaveLength(1)
  })

  test('that knows another secret is refused', async () => {
    const { error } = await refusal(['scram-sha-256'], async (producer) => {
      const first = await producer.next()
      const scram = scramServer(authOf(first).data, 'another-secret-of-theirs')
      producer.say(response(first.seq, 1, 0), auth(scram.serverFirst))
      const final = await producer.next()
      producer.say(response(final.seq, 1, 0), auth(scram.final(authOf(final).data).serverFinal))
    })
    expect(error).toMatchObject({ code: 'SERVER_NOT_PROVEN' })
  })
})

test.each([
  ['no secret over TCP', { identity: undefined, secret: undefined }],
  ['an identity alone', { secret: undefined }],
  ['a secret alone', { identity: undefined }],
])('%s is refused at once', async (_, options) => {
  await expect(listening(options)).rejects.toThrow(RangeError)
})

describe('over TLS', () => {
  test('the login is bound to the connection if the producer offers that', async () => {
    const calls = await listening({ url: 'tls://127.0.0.1:0', tls: issued })
    const socket: TLSSocket = connectTls({ port: calls.address.port, host: 'localhost', ca: authority.cert })
    await once(socket, 'secureConnect')
    closing.push(() => socket.destroy())
    const producer = new StreamProducer(socket)
    producer.say(caps('scram-sha-256', 'scram-sha-256-plus'))
    const first = await producer.expect('AUTH scram-sha-256-plus')
    const scram = scramServer(authOf(first).data, secret)
    producer.say(response(first.seq, 1, 0), auth(scram.serverFirst))
    const [bound = ''] = /c=[^,]*/.exec(authOf(await producer.next()).data) ?? []
    const exporter = socket.exportKeyingMaterial(32, 'EXPORTER-Channel-Binding', Buffer.alloc(0))
    expect(Buffer.from(bound.slice(2), 'base64')).toEqual(Buffer.concat([Buffer.from('p=tls-exporter,,'), exporter]))
  })

  test('producers need a certificate of the given authority', async () => {
    const refused: Error[] = []
    const tls = { ...issued, ca: authority.cert }
    const calls = await listening({ url: 'tls://127.0.0.1:0', tls, refused: (error) => refused.push(error) })
    const stranger = connectTls({ port: calls.address.port, host: 'localhost', ca: authority.cert })
    stranger.on('error', () => {})
    await new Promise((resolve) => stranger.resume().on('close', resolve))
    expect(refused).toEqual([expect.objectContaining({ code: 'UNREACHABLE', message: expect.stringContaining('TLS') })])
  })
})

test.each<[Partial<ListenOptions>, object]>([
  [{ secret: 'fifteen letters' }, { name: 'RangeError', message: expect.stringContaining('16') }],
  [{ secret: 'sixteen letters, é' }, { name: 'RangeError' }],
  [{ url: 'ws://127.0.0.1:0' }, { code: 'BAD_URL' }],
  [{ url: 'tcp://127.0.0.1' }, { code: 'BAD_URL' }],
  [{ url: 'tls://127.0.0.1:0' }, { code: 'BAD_TLS', message: expect.stringContaining('tls.cert') }],
  [{ url: 'tcp://192.0.2.1:0' }, { code: 'UNREACHABLE', message: expect.stringContaining('cannot listen') }],
])('invalid options are refused at once: %o', async (options, error) => {
  await expect(listen({ url: 'tcp://127.0.0.1:0', identity, secret, ...options })).rejects.toMatchObject(error)
})

test('`close` ends the loop, the consumers, and the listening socket', async () => {
  const calls = await listening()
  const producer = await call(calls)
  await admit(producer)
  await tellNames(producer)
  const consumer = await first(calls)
  const ended = new Promise((resolve) => consumer.on('closed', resolve))
  const next = calls[Symbol.asyncIterator]().next()
  await calls.close()
  expect([await ended, await next]).toEqual([undefined, { done: true, value: undefined }])
  await once(producer.release().resume(), 'close')
  const late = connectTcp(calls.address.port, '127.0.0.1')
  await expect(once(late, 'connect')).rejects.toMatchObject({ code: 'ECONNREFUSED' })
})

test('`await using` closes at the end of the block', async () => {
  const opened = await listening()
  const block = async () => {
    await using calls = opened
    expect(calls.address.port).toBeGreaterThan(0)
  }
  await block()
  expect(await opened[Symbol.asyncIterator]().next()).toEqual({ done: true, value: undefined })
})
