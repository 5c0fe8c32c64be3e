import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { connect } from '../../client/index.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { connecting, FakeProducer, Setting, settle, tc } from './fake-producer.ts'
import { caps, response } from './wire.ts'

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
