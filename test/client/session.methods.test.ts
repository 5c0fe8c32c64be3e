/** Which method is chosen to log in, and what the error says if there is none [MON 11]. */
import { describe, expect, test } from 'vitest'
import { type Credentials, connect } from '../../client/index.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { FakeProducer } from './fake-producer.ts'
import { authOf, caps, response } from './wire.ts'

const pencil: Credentials = { identity: 'user', password: 'pencil' }
const exporter = new Uint8Array(32).fill(7)

interface Wire {
  readonly encrypted?: boolean
  readonly loopback?: boolean
  readonly exporter?: Uint8Array
}

async function open(credentials: Credentials, wire: Wire, ...offered: readonly string[]) {
  const producer = new FakeProducer(wire)
  const opening = connect('tcp://far:1', credentials, { clock: new FakeClock(), dial: async () => producer })
  opening.catch(() => {})
  await producer.opened
  producer.say(caps(...offered))
  return { producer, opening }
}

const far = { loopback: false }
const tls13 = { loopback: false, encrypted: true, exporter }

describe('with a password, on TLS 1.3', () => {
  test('scram is bound to the connection where that is offered', async () => {
    const { producer } = await open(pencil, tls13, 'password', 'scram-sha-256', 'scram-sha-256-plus')
    const { method, data } = authOf(await producer.next())
    expect([method, data.split('r=')[0]]).toEqual(['scram-sha-256-plus', 'p=tls-exporter,,n=user,'])
  })

  test('if binding is not offered it says that it could, so that a producer that did offer it notices', async () => {
    const { producer } = await open(pencil, tls13, 'scram-sha-256')
    const { method, data } = authOf(await producer.next())
    expect([method, data.split('r=')[0]]).toEqual(['scram-sha-256', 'y,,n=user,'])
  })

  test.each([
    [pencil, far, 'no exporter'],
    [{ ...pencil, methods: ['scram-sha-256', 'password'] } satisfies Credentials, tls13, 'not wanted'],
  ])('it does not say so if it could not: %#', async (credentials, wire) => {
    const { producer } = await open(credentials, wire, 'scram-sha-256', 'scram-sha-256-plus')
    const { method, data } = authOf(await producer.next())
    expect([method, data.split('r=')[0]]).toEqual(['scram-sha-256', 'n,,n=user,'])
  })

  test('credentials for the bound login only are used for no other', async () => {
    const credentials: Credentials = { ...pencil, methods: ['scram-sha-256-plus'] }
    const { producer, opening } = await open(credentials, tls13, 'scram-sha-256', 'password')
    await expect(opening).rejects.toMatchObject({ code: 'NO_METHOD' })
    expect(producer.sent).toEqual([])
  })
})

describe('with a token', () => {
  test.each([[{ loopback: true }], [{ loopback: false, encrypted: true }]])(
    'its bytes are the data: %o',
    async (wire) => {
      const { producer, opening } = await open({ token: 'cnb_abc' }, wire, 'scram-sha-256', 'token')
      const sent = await producer.next()
      expect(authOf(sent)).toEqual({ method: 'token', data: 'cnb_abc' })
      producer.say(response(sent.seq, 0, 9), caps('token'))
      expect((await opening).channel).toBe(9)
    },
  )

  test.each(['token', 'scram-sha-256'])('it goes to no other machine in the clear: %s', async (offered) => {
    const { producer, opening } = await open({ token: 'cnb_abc' }, far, offered)
    const error = await opening.catch((reason: Error) => reason)
    expect(error).toMatchObject({ code: 'NO_METHOD', message: expect.stringMatching(/token could be read.*tls:\/\//) })
    expect(String(error)).not.toContain('cnb_abc')
    expect(producer.sent).toEqual([])
  })
})

test('with a certificate there are no data: TLS has shown it', async () => {
  const { producer } = await open({ certificate: true }, tls13, 'certificate')
  expect(authOf(await producer.next())).toEqual({ method: 'certificate', data: '' })
})

test.each<[Credentials, Wire, string[], RegExp]>([
  [pencil, far, ['password'], /password could be read on the way.*tls:\/\/ or wss:\/\//],
  [pencil, tls13, ['token'], /offers token; these credentials allow scram-sha-256-plus, scram-sha-256, password/],
  [pencil, tls13, [], /offers no method/],
  [{ ...pencil, methods: ['scram-sha-256-plus'] }, far, ['scram-sha-256-plus'], /needs TLS 1\.3/],
  [{ token: 't' }, tls13, ['scram-sha-256'], /offers scram-sha-256, and accepts no tokens here/],
  [{ certificate: true }, far, ['token'], /certificate needs TLS, `tls\.cert` and `tls\.key`/],
])('the error says why no method can be used: %#', async (credentials, wire, offered, message) => {
  const { opening } = await open(credentials, wire, ...offered)
  await expect(opening).rejects.toMatchObject({ code: 'NO_METHOD', message: expect.stringMatching(message) })
})
