import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { connect } from '../../client/index.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { FakeProducer } from './fake-producer.ts'
import { caps } from './wire.ts'

const credentials = { identity: 'alice', password: 'pencil' }

test('dialling and logging in have ten seconds together', async () => {
  const clock = new FakeClock()
  const producer = new FakeProducer()
  const connecting = connect('tcp://far:1', credentials, { clock, dial: async () => producer })
  connecting.catch(() => {})
  await Promise.resolve()
  producer.say(caps('password'))
  await producer.next()
  clock.advance(10_000)
  await expect(connecting).rejects.toMatchObject({
    code: 'TIMEOUT',
    message: expect.stringContaining('tcp://far:1 as alice'),
  })
  expect(producer.isClosed).toBe(true)
  expect(clock.timers).toBe(0)
})

test('a dialler that hangs is told to give up', async () => {
  const clock = new FakeClock()
  const dial = (_: string, signal: AbortSignal) =>
    new Promise<never>((_, reject) => signal.addEventListener('abort', () => reject(new Error('given up'))))
  const connecting = connect('tcp://far:1', credentials, { clock, dial })
  connecting.catch(() => {})
  clock.advance(10_000)
  await expect(connecting).rejects.toMatchObject({ code: 'TIMEOUT' })
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
  walk(new URL('../../client/index.ts', import.meta.url))
  walk(new URL('../../client/dial/websocket.ts', import.meta.url))
  expect(seen.size).toBeGreaterThan(20)
})
