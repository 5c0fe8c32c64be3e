import { describe, expect, test } from 'vitest'
import type { ClientConnection } from '../../client/connection.ts'
import { NextConnection } from '../../client/next-connection.ts'
import { FakeClock } from '../support/fake-clock.ts'

describe('the next connection', () => {
  const connection = {} as ClientConnection

  test('all that wait get the next connection, and no timer is left', async () => {
    const clock = new FakeClock()
    const next = new NextConnection(clock, 30_000, 'tcp://far:1')
    const waiting = Promise.all([next.wait(), next.wait()])
    next.settle(connection)
    expect(await waiting).toEqual([connection, connection])
    expect(clock.timers).toBe(0)
  })

  test('a wait that takes too long is rejected', async () => {
    const clock = new FakeClock()
    const next = new NextConnection(clock, 30_000, 'tcp://far:1')
    const waiting = next.wait()
    clock.advance(30_000)
    await expect(waiting).rejects.toMatchObject({ code: 'TIMEOUT', message: expect.stringContaining('30 seconds') })
  })

  test('a wait is rejected when there will be no connection', async () => {
    const clock = new FakeClock()
    const next = new NextConnection(clock, 30_000, 'tcp://far:1')
    const waiting = next.wait()
    next.settle(new Error('closed'))
    await expect(waiting).rejects.toThrow('closed')
    expect(clock.timers).toBe(0)
  })
})
