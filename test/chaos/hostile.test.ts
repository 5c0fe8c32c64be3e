/** The short form: 500 half-open connections instead of 10,000, all else as it is. */
import { expect, it } from 'vitest'
import { command, join, str } from '../support/bytes.ts'
import { TestProducer } from '../support/producer.ts'
import { hostile } from './hostile.ts'

it('hostile peers are bounded, and a good consumer beside them is served', { timeout: 180_000 }, async () => {
  const totals = await hostile({ seed: 5, count: 500, say: () => {} })
  expect(totals).toMatchObject({ lost: 0, unexpected: 0, reused: 0, halfOpen: 500, closedAfter10s: 500 })
  expect(totals).toMatchObject({ collectsRefused: 100_000 - 65_536, queries: 100_000, guesses: 30 })
})

it('a peer that sends one byte a second is closed after ten, and its bytes were not looked at', async () => {
  const producer = await TestProducer.start()
  try {
    const peer = producer.connect()
    await peer.until('caps')
    const bytes = command.auth(1, 'password', join(str('admin'), str('admin-password')))
    for (let second = 0; second < 9; second++) {
      peer.send(bytes.subarray(second, second + 1))
      producer.clock.advance(1_000)
      await producer.settle()
      expect(peer.closed).toBe(false)
    }
    producer.clock.advance(1_000)
    await producer.settle()
    expect(peer.pending()).toMatchObject([{ kind: 'notice', detail: 'no successful AUTH within 10 s' }])
    expect(peer.closed).toBe(true)
  } finally {
    await producer.stop()
  }
})
