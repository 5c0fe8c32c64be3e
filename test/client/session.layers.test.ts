/** WRAP as the consumer does it [MON 12], against producers that a test plays over sockets; some of them are malicious. */
import type { Socket } from 'node:net'
import { duplexPair } from 'node:stream'
import { TLSSocket } from 'node:tls'
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { deflatable } from '../../client/dial/deflate.ts'
import { streamTransport } from '../../client/dial/stream.ts'
import { type ConnectOptions, connect } from '../../client/index.ts'
import { Authority, type Issued } from '../support/certificates.ts'
import { deflated } from '../support/layers.ts'
import { FakeProducer } from './fake-producer.ts'
import { producerPort, StreamProducer } from './stream-producer.ts'
import { caps, offers, outcome, response, textOf } from './wire.ts'

const CHANGED = 0xfffffffe
const alice = { identity: 'alice', password: 's3' }
let authority: Authority
let issued: Issued
let door: Awaited<ReturnType<typeof producerPort>>

beforeAll(async () => {
  authority = await Authority.make()
  issued = await authority.server()
})
beforeEach(async () => {
  door = await producerPort()
})
afterEach(() => door.close())

async function dialled(options: ConnectOptions) {
  const opening = connect(door.url, alice, { tls: { ca: authority.cert }, ...options })
  opening.catch(() => {})
  return { opening, producer: await door.next() }
}

/** Continues under TLS, as its server. */
function underTls(producer: StreamProducer): void {
  producer.goOn(new TLSSocket(producer.release() as Socket, { isServer: true, ...issued }))
}

describe('the layer tls', () => {
  test('is added before anything secret is sent; what was offered before it is forgotten', async () => {
    const { opening, producer } = await dialled({ wrap: ['tls'] })
    producer.say(offers({ auth: ['nonsense'], layer: ['tls'] }))
    await producer.grant('WRAP tls', CHANGED)
    underTls(producer)
    producer.say(caps('password'))
    await producer.grant('AUTH password', 9, caps('password'))
    const consumer = await opening
    expect([consumer.channel, consumer.isConfidential, consumer.capabilities?.auth]).toEqual([9, true, ['password']])
    await consumer.close()
  })

  test('is required even if the producer, or somebody in between, does not offer it', async () => {
    const { opening, producer } = await dialled({ wrap: ['tls'] })
    producer.say(offers({ auth: ['password', 'scram-sha-256'], layer: ['deflate'] }))
    await expect(opening).rejects.toMatchObject({
      code: 'NO_LAYER',
      message: expect.stringContaining('offers deflate'),
    })
    expect(producer.sent).toEqual([])
  })

  test('is required even if it is refused', async () => {
    const { opening, producer } = await dialled({ wrap: ['tls'] })
    producer.say(offers({ auth: ['password'], layer: ['tls'] }))
    await producer.refuse('WRAP tls', 12, 'not today')
    await expect(opening).rejects.toMatchObject({ status: 'UNSUPPORTED' })
    expect(producer.sent).toHaveLength(1)
  })

  test('fails if something follows the response in the clear: somebody may have injected it', async () => {
    const { opening, producer } = await dialled({ wrap: ['tls'] })
    producer.say(offers({ auth: ['password'], layer: ['tls'] }))
    await producer.grant('WRAP tls', CHANGED, caps('password'))
    await expect(opening).rejects.toMatchObject({ code: 'PROTOCOL', message: expect.stringContaining('in the clear') })
    expect(producer.sent).toHaveLength(1)
  })

  test('fails if capabilities in the clear come instead of a handshake', async () => {
    const { opening, producer } = await dialled({ wrap: ['tls'] })
    producer.say(offers({ auth: ['password'], layer: ['tls'] }))
    const { seq } = await producer.expect('WRAP tls')
    const stream = producer.release()
    producer.say(response(seq, 0, CHANGED))
    // Only now, after the ClientHello, so that it does not follow the response directly.
    await new Promise((resolve) => stream.once('data', resolve))
    producer.say(caps('password'))
    await expect(opening).rejects.toMatchObject({ code: 'UNREACHABLE' })
    expect(producer.sent).toHaveLength(1)
  })

  test('fails if the certificate is not trusted, and no password was sent', async () => {
    const { opening, producer } = await dialled({ wrap: ['tls'], tls: {} })
    producer.say(offers({ auth: ['password'], layer: ['tls'] }))
    await producer.grant('WRAP tls', CHANGED)
    underTls(producer)
    await expect(opening).rejects.toMatchObject({ code: 'UNTRUSTED', message: expect.stringContaining('`tls.ca`') })
    expect(producer.sent).toHaveLength(1)
  })

  test('binds the login to itself if that is offered', async () => {
    const { opening, producer } = await dialled({ wrap: ['tls'] })
    producer.say(offers({ auth: ['scram-sha-256'], layer: ['tls'] }))
    await producer.grant('WRAP tls', CHANGED)
    underTls(producer)
    producer.say(caps('scram-sha-256', 'scram-sha-256-plus'))
    const first = await producer.expect('AUTH scram-sha-256-plus')
    expect(first.rest.toString()).toContain('p=tls-exporter,,n=alice,r=')
    producer.hangUp()
    await expect(opening).rejects.toMatchObject({ name: 'ConnectionError' })
  })

  test('is added again after a lost connection', async () => {
    const { opening, producer } = await dialled({ wrap: ['tls'], channel: undefined })
    const admit = async (each: StreamProducer) => {
      each.say(offers({ auth: [], layer: ['tls'] }))
      await each.grant('WRAP tls', CHANGED)
      underTls(each)
      each.say(caps('password'))
      await each.grant('AUTH password', 9, caps('password'))
    }
    await admit(producer)
    const consumer = await opening
    producer.hangUp()
    const again = await door.next()
    await admit(again)
    await again.takeUp(9, {})
    expect(consumer.isConfidential).toBe(true)
    again.hangUp()
    await consumer.close()
  })
})

describe('the layer deflate', () => {
  /** A producer at the other end of a pair of streams. */
  async function paired(wrap: ConnectOptions['wrap']) {
    const [near, far] = duplexPair()
    const transport = deflatable(streamTransport(near, { loopback: true, encrypted: false }))
    const opening = connect('tcp://far:1', alice, { wrap, reconnect: false, dial: async () => transport })
    opening.catch(() => {})
    const producer = new StreamProducer(far)
    producer.say(offers({ auth: ['password'], layer: ['tls'] }))
    return { opening, producer }
  }

  test('is added after the login, by what is offered then', async () => {
    const { opening, producer } = await paired(['deflate'])
    await producer.grant('AUTH password', 9)
    producer.say(offers({ layer: ['deflate'] }))
    const { seq } = await producer.expect('WRAP deflate')
    producer.say(response(seq, 0, 0))
    producer.goOn(deflated(producer.release()))
    const consumer = await opening
    const executing = consumer.execute('user.passwd', {})
    const nop = consumer.nop()
    await producer.grant('EXECUTE user.passwd', 7, outcome(7, 1, 'ok'))
    await producer.grant('NOP')
    await Promise.all([executing, nop])
  })

  test('includes the bytes directly after the response', async () => {
    const { opening, producer } = await paired(['deflate'])
    await producer.grant('AUTH password', 9)
    producer.say(offers({ layer: ['deflate'] }))
    const { seq } = await producer.expect('WRAP deflate')
    // `offers` in deflate, as one block that is stored as it is (RFC 1951 3.2.4).
    const inner = offers({ layer: ['seen'] })
    const length = Buffer.from([inner.length & 255, inner.length >> 8, ~inner.length & 255, (~inner.length >> 8) & 255])
    producer.say(response(seq, 0, CHANGED), Buffer.concat([Buffer.from([0]), length, inner]))
    const consumer = await opening
    while (consumer.capabilities?.layer[0] !== 'seen') await new Promise(setImmediate)
    producer.hangUp()
  })

  test('is required', async () => {
    const { opening, producer } = await paired(['deflate'])
    await producer.grant('AUTH password', 9)
    producer.say(offers({ layer: [] }))
    await expect(opening).rejects.toMatchObject({ code: 'NO_LAYER', message: expect.stringContaining('offers none') })
  })

  test('sends a control by itself, between commands that hold no secret', async () => {
    const sends: string[][] = []
    const producer = new (class extends FakeProducer {
      override send(bytes: Uint8Array): void {
        const before = this.sent.length
        super.send(bytes)
        sends.push(this.sent.slice(before).map((sent) => textOf(sent)))
      }
      wrap(): Promise<void> {
        return Promise.resolve()
      }
    })()
    const opening = connect('tcp://far:1', alice, { wrap: ['deflate'], dial: async () => producer })
    await producer.opened
    producer.say(caps('password'))
    await producer.grant('AUTH password', 9)
    producer.say(offers({ layer: ['deflate'] }))
    await producer.grant('WRAP deflate')
    const consumer = await opening
    sends.length = 0
    void consumer.nop().catch(() => {})
    void consumer.execute('a.control').catch(() => {})
    void consumer.nop().catch(() => {})
    void consumer.nop().catch(() => {})
    await undefined
    expect(sends).toEqual([['NOP'], ['EXECUTE a.control'], ['NOP', 'NOP']])
    producer.hangUp()
  })
})

test('layers cannot be added to a transport that has none', async () => {
  const producer = new FakeProducer()
  const opening = connect('tcp://far:1', alice, { wrap: ['tls'], dial: async () => producer })
  opening.catch(() => {})
  await producer.opened
  producer.say(offers({ layer: ['tls'] }))
  await expect(opening).rejects.toMatchObject({ code: 'NO_LAYER' })
  expect([producer.isClosed, producer.sent]).toEqual([true, []])
})
