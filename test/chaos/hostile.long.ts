/** Fewer half-open connections than the 10,000 of `npm run chaos -- --hostile 10000`. */
import { expect, it } from 'vitest'
import { command, join, str } from '../support/bytes.ts'
import { TestProducer } from '../support/producer.ts'
import { COMMANDS_EACH, hostile, QUOTA } from './hostile.ts'

const HALF_OPEN = 150
const COMMANDS = HALF_OPEN * COMMANDS_EACH

it('hostile peers are bounded, and a good consumer beside them is served', { timeout: 300_000 }, async () => {
  const totals = await hostile({ seed: 5, count: HALF_OPEN, say: () => {} })
  expect(totals).toMatchObject({ lost: 0, unexpected: 0, reused: 0, halfOpen: HALF_OPEN, closedAfter10s: HALF_OPEN })
  expect(totals).toMatchObject({ collectsRefused: COMMANDS - QUOTA, queries: COMMANDS, guesses: 30 })
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
