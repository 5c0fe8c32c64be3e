import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { ConnectionError, type ConnectOptions, connect, type RetryEvent } from '../../client/index.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { connecting, FakeProducer, Setting, settle, tc } from './fake-producer.ts'
import { caps, noBindingsAnswer, response, value } from './wire.ts'

test('dialling and logging in have ten seconds together', async () => {
  const setting = new Setting()
  const { clock, network, producer } = setting
  network.add(producer)
  const opening = setting.connect()
  await producer.opened
  producer.say(caps('password'))
  await producer.expect('AUTH password')
  clock.advance(9_999)
  expect(producer.isClosed).toBe(false)
  clock.advance(1)
  await expect(opening).rejects.toMatchObject({
    code: 'TIMEOUT',
    message: 'tcp://127.0.0.1:7650 as tc: not connected and logged in after 10 s',
  })
  expect(producer.isClosed).toBe(true)
  expect(clock.timers).toBe(0)
})

test('taking up a channel is not part of these ten seconds', async () => {
  const { clock, producer, opening } = await connecting({ channel: 12 })
  const { rest } = await producer.expect('QUERY producer.bindings channel=12')
  expect(rest.length).toBeGreaterThan(0)
  clock.advance(10_000)
  await settle()
  expect(producer.isClosed).toBe(false)
  producer.hangUp()
  await expect(opening).rejects.toMatchObject({ code: 'CLOSED' })
})

test('an attempt to connect that hangs is aborted', async () => {
  const clock = new FakeClock()
  const dial = (_: string, signal: AbortSignal) =>
    new Promise<never>((_, reject) => signal.addEventListener('abort', () => reject(new Error('given up'))))
  const opening = connect('tcp://far:1', tc, { clock, dial })
  opening.catch(() => {})
  clock.advance(10_000)
  await expect(opening).rejects.toMatchObject({ code: 'TIMEOUT' })
  expect(clock.timers).toBe(0)
})

test('the first attempt is the only one: if it fails, `connect` rejects', async () => {
  const setting = new Setting()
  await expect(setting.connect()).rejects.toMatchObject({ code: 'UNREACHABLE' })
  setting.network.add(setting.producer)
  const opening = setting.connect()
  await setting.producer.opened
  setting.producer.say(caps('password'))
  setting.producer.hangUp()
  await expect(opening).rejects.toMatchObject({ code: 'CLOSED' })
  setting.clock.advance(60_000)
  await settle()
  expect([setting.network.calls, setting.clock.timers]).toEqual([2, 0])
})

test.each(['before the call', 'while it logs in', 'while it takes a channel up'])(
  'a signal aborts connecting, %s, with its own reason',
  async (when) => {
    const abort = new AbortController()
    const reason = new Error('enough')
    if (when === 'before the call') abort.abort(reason)
    const setting = new Setting()
    const producer = new FakeProducer()
    setting.network.add(producer)
    const opening = setting.connect({ signal: abort.signal, channel: 12 })
    await producer.opened
    if (when === 'while it takes a channel up') {
      await producer.admit()
      await producer.expect('QUERY producer.bindings channel=12')
    }
    abort.abort(reason)
    await expect(opening).rejects.toBe(reason)
    expect(producer.isClosed).toBe(true)
    expect(setting.clock.timers).toBe(0)
  },
)

test('a connection that ends directly after the login is a failed attempt', async () => {
  const setting = new Setting()
  const { network, producer } = setting
  network.add(producer)
  const opening = setting.connect()
  await producer.opened
  producer.say(caps('password'))
  const { seq } = await producer.expect('AUTH password')
  producer.say(response(seq, 0, 9))
  producer.hangUp()
  await expect(opening).rejects.toMatchObject({ code: 'CLOSED' })
})

test('a signal that is aborted later does nothing', async () => {
  const abort = new AbortController()
  const { producer, opening } = await connecting({ signal: abort.signal })
  await opening
  abort.abort()
  await settle()
  expect(producer.isClosed).toBe(false)
})

test('nothing that a browser loads needs Node', () => {
  const seen = new Set<string>()
  const walk = (file: URL): void => {
    if (seen.has(file.href)) return
    seen.add(file.href)
    for (const [, from] of readFileSync(file, 'utf8').matchAll(/(?:from|import) '([^']+)'/g)) {
      expect(from, file.pathname).not.toMatch(/^(node:|ws$)/)
      if (from!.startsWith('.')) walk(new URL(from!, file))
    }
  }
  walk(new URL('../../client/browser.ts', import.meta.url))
  expect(seen.size).toBeGreaterThan(20)
})

describe('a server that is not up yet', () => {
  test('is waited for at growing intervals, each attempt with its time and the reason of the last', async () => {
    const good = new FakeProducer()
    const retries: RetryEvent[] = []
    const setting = new Setting()
    const opening = setting.connect({ waitForServerMs: 60_000, retrying: (event) => retries.push(event) })
    await settle()
    for (let made = 1; made <= 3; made++) {
      expect([setting.network.calls, retries.length]).toEqual([made, made])
      if (made === 3) setting.network.add(good)
      setting.clock.advance(retries.at(-1)!.delayMs)
      await settle()
    }
    await good.admit()
    expect((await opening).channel).toBe(9)
    expect(retries.map(({ attempt, error }) => `${attempt}: ${error.message}`)).toEqual([
      '1: nobody answers',
      '2: nobody answers',
      '3: nobody answers',
    ])
    await (await opening).close()
    expect(setting.clock.timers).toBe(0)
  })

  test('is waited for no longer than was said, and the last reason is reported', async () => {
    const setting = new Setting()
    const opening = setting.connect({ waitForServerMs: 3_000 })
    await settle()
    setting.clock.advance(3_000)
    await expect(opening).rejects.toMatchObject({
      code: 'TIMEOUT',
      message: 'tcp://127.0.0.1:7650: not connected and logged in after 3 s: nobody answers',
      cause: { code: 'UNREACHABLE' },
    })
    expect(setting.clock.timers).toBe(0)
  })

  test('is waited for until a signal, in a pause too', async () => {
    const setting = new Setting()
    const abort = new AbortController()
    const opening = setting.connect({ waitForServerMs: Number.POSITIVE_INFINITY, signal: abort.signal })
    await settle()
    const reason = new Error('enough')
    abort.abort(reason)
    await expect(opening).rejects.toBe(reason)
    expect(setting.clock.timers).toBe(0)
  })

  test.each(['UNTRUSTED', 'BAD_TLS', 'BAD_URL', 'NO_TOKEN', 'LOGIN_FAILED'] as const)(
    'is not what %s means: that is reported at once',
    async (code) => {
      const setting = new Setting()
      setting.network.add(new ConnectionError(code, 'no'))
      await expect(setting.connect({ waitForServerMs: 60_000 })).rejects.toMatchObject({ code, message: 'no' })
      expect(setting.clock.timers).toBe(0)
    },
  )

  test('may be up and refuse for now', async () => {
    const setting = new Setting()
    const [busy, good] = [new FakeProducer(), new FakeProducer()]
    setting.network.add(busy, good)
    const opening = setting.connect({ waitForServerMs: 60_000 })
    await busy.opened
    busy.say(caps('password'))
    await busy.refuse('AUTH password', 13, 'later')
    await settle()
    setting.clock.advance(100)
    await good.admit()
    expect((await opening).channel).toBe(9)
  })
})

describe('several addresses', () => {
  /** Dials what stands under the address; nobody answers elsewhere. */
  function world(options: ConnectOptions = {}) {
    const clock = new FakeClock()
    const at = new Map<string, FakeProducer>()
    const dialled: string[] = []
    const dial = async (url: string) => {
      dialled.push(url)
      const producer = at.get(url)
      at.delete(url)
      if (producer === undefined) throw new ConnectionError('UNREACHABLE', `nobody at ${url}`)
      return producer
    }
    const open = (urls: readonly string[] = ['tcp://a', 'tcp://b']) => {
      const opening = connect(urls, tc, { clock, dial, ...options })
      opening.catch(() => {})
      return opening
    }
    const answering = (url: string, generation: string) => {
      const producer = new FakeProducer()
      producer.generation = [generation]
      at.set(url, producer)
      return producer
    }
    /** The connection is lost, and the next attempt is made. */
    const cut = async (producer: FakeProducer) => {
      producer.hangUp()
      await settle()
      clock.advance(100)
      await settle()
    }
    /** Logs in at `tcp://a`, the server `g1`, and takes the channel 12. */
    const connected = async () => {
      const a = answering('tcp://a', 'g1')
      const opening = open()
      await a.admit(12)
      if (options.name) {
        await a.grant(`DEF_CHANNEL  name=${options.name}`, 12)
        await a.takeUp(12, {})
      }
      return { a, consumer: await opening }
    }
    return { clock, dialled, open, answering, cut, connected }
  }

  test('are tried in their order, and after a lost connection beginning with the last one used', async () => {
    const { dialled, open, answering, cut } = world()
    const b = answering('tcp://b', 'g')
    const opening = open()
    await b.admit()
    await opening
    expect(dialled.splice(0)).toEqual(['tcp://a', 'tcp://b'])
    const a = answering('tcp://a', 'g')
    await cut(b)
    await a.admit()
    await a.takeUp(9, {})
    expect(dialled).toEqual(['tcp://b', 'tcp://a'])
  })

  test('may be silent for seconds, and the one that went silent is tried last', async () => {
    const { clock, dialled, open, answering } = world()
    const a = answering('tcp://a', 'g')
    const opening = open(['tcp://a', 'tcp://b', 'tcp://c'])
    await a.admit()
    const reasons: unknown[] = []
    ;(await opening).on('disconnected', ({ code, message }) => reasons.push(code, message))
    clock.advance(1_499)
    expect(await a.rest()).toEqual([])
    clock.advance(1)
    await a.grant('NOP')
    clock.advance(1_500)
    await a.expect('NOP')
    clock.advance(1_499)
    expect(a.isClosed).toBe(false)
    clock.advance(1)
    expect(a.isClosed).toBe(true)
    expect(reasons).toEqual(['SILENT', 'tcp://a as tc: the producer has not answered for 3 seconds'])
    const again = answering('tcp://a', 'g')
    dialled.length = 0
    await settle()
    clock.advance(100)
    await again.admit()
    expect(dialled).toEqual(['tcp://b', 'tcp://c', 'tcp://a'])
  })

  test('are given ten seconds for the login: a node that follows may hold a connection until another one leads', async () => {
    const { clock, dialled, open, answering } = world()
    const a = answering('tcp://a', 'g')
    const b = answering('tcp://b', 'g')
    const opening = open()
    await a.opened
    clock.advance(9_999)
    await settle()
    expect([await a.rest(), a.isClosed, dialled]).toEqual([[], false, ['tcp://a']])
    clock.advance(1)
    await b.admit()
    await opening
    expect(dialled).toEqual(['tcp://a', 'tcp://b'])
  })

  test('may be silent for as long as `silenceMs` says', async () => {
    const { clock, open, answering } = world({ silenceMs: 10_000 })
    const a = answering('tcp://a', 'g')
    const opening = open()
    await a.admit()
    await opening
    clock.advance(4_999)
    expect(await a.rest()).toEqual([])
    clock.advance(5_000)
    expect([await a.rest(), a.isClosed]).toEqual([['NOP'], false])
    clock.advance(1)
    expect(a.isClosed).toBe(true)
  })

  test.each([999, 86_400_001, Number.NaN])('may not be silent for %d ms', async (silenceMs) => {
    await expect(world({ silenceMs }).open()).rejects.toThrow(RangeError)
  })

  test('that all fail are all named', async () => {
    await expect(world().open()).rejects.toMatchObject({
      code: 'UNREACHABLE',
      message: 'nobody at tcp://a; nobody at tcp://b',
    })
    await expect(world().open([])).rejects.toThrow(RangeError)
  })

  test.each([0, 1])('are not waited for if one of them, %i, is a mistake', async (mistaken) => {
    const clock = new FakeClock()
    const urls = ['tcp://a', 'tcp://b']
    const dial = (url: string) =>
      Promise.reject(new ConnectionError(url === urls[mistaken] ? 'UNTRUSTED' : 'UNREACHABLE', url))
    await expect(connect(urls, tc, { clock, dial, waitForServerMs: 60_000 })).rejects.toMatchObject({
      code: 'UNTRUSTED',
      message: 'tcp://a; tcp://b',
    })
    expect(clock.timers).toBe(0)
  })

  test('are not tried further if one of them refuses the credentials', async () => {
    const { dialled, open, answering } = world()
    const a = answering('tcp://a', 'g')
    const opening = open()
    await a.opened
    a.say(caps('password'))
    await a.refuse('AUTH password', 2)
    await expect(opening).rejects.toMatchObject({ code: 'LOGIN_FAILED' })
    expect(dialled).toEqual(['tcp://a'])
  })

  test.each([{ name: 'billing' }, {}])(
    'of a server that was restored lead to its channel, with %o',
    async (options) => {
      const { connected, answering, cut } = world(options)
      const { a, consumer } = await connected()
      const seen: unknown[] = []
      consumer.on('restored', ({ before, generation }) => seen.push([before, generation]))
      const next = consumer[Symbol.asyncIterator]().next()
      const b = answering('tcp://b', 'g2')
      await cut(a)
      await b.admit(13)
      await b.takeUp(12, { 7: 'a' }, value(7, 1))
      expect([(await next).value?.transaction, seen, consumer.channel]).toEqual([1, [['g1', 'g2']], 12])
    },
  )

  test.each([{ name: 'billing' }, {}])(
    'of another server end the consumer, and make no channel there, with %o',
    async (options) => {
      const { clock, connected, answering, cut } = world(options)
      const { a, consumer } = await connected()
      const loop = consumer[Symbol.asyncIterator]().next()
      loop.catch(() => {})
      const b = answering('tcp://b', 'g2')
      await cut(a)
      await b.admit(13)
      await b.grant('QUERY producer.bindings channel=12', 900, noBindingsAnswer(900))
      await b.refuse('SET_CHANNEL 12', 9)
      await expect(loop).rejects.toMatchObject({
        code: 'OTHER_SERVER',
        message: expect.stringContaining('tcp://b as tc: this is another server'),
      })
      expect([await b.rest(), b.isClosed]).toEqual([[], true])
      clock.advance(60_000)
      expect(clock.timers).toBe(0)
    },
  )

  test('of another server than in an earlier run are refused too, if that run has left its place', async () => {
    const after = { generation: 'g1', transaction: 5 }
    const { open, answering } = world({ name: 'billing', channel: 12, after })
    const b = answering('tcp://b', 'g2')
    const opening = open()
    await b.admit(13)
    await b.grant('QUERY producer.bindings channel=12', 900, noBindingsAnswer(900))
    await b.refuse('SET_CHANNEL 12', 9)
    await expect(opening).rejects.toMatchObject({ code: 'OTHER_SERVER' })
  })
})
