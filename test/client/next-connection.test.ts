import { expect, test } from 'vitest'
import type { Connection } from '../../client/connection.ts'
import { NextConnection } from '../../client/next-connection.ts'
import { FakeClock } from '../support/fake-clock.ts'

const connection = {} as Connection

test('all that wait get the next connection, and no timer is left', async () => {
  const clock = new FakeClock()
  const next = new NextConnection(clock, 30_000, 'tcp://far:1')
  const waiting = Promise.all([next.wait(), next.wait()])
  next.came(connection)
  expect(await waiting).toEqual([connection, connection])
  expect(clock.timers).toBe(0)
})

test('who has waited for too long is told so', async () => {
  const clock = new FakeClock()
  const next = new NextConnection(clock, 30_000, 'tcp://far:1')
  const waiting = next.wait()
  clock.advance(30_000)
  await expect(waiting).rejects.toMatchObject({ code: 'TIMEOUT', message: expect.stringContaining('30 seconds') })
})

test('where there will be none, that is told', async () => {
  const clock = new FakeClock()
  const next = new NextConnection(clock, 30_000, 'tcp://far:1')
  const waiting = next.wait()
  next.end(new Error('closed'))
  await expect(waiting).rejects.toThrow('closed')
  expect(clock.timers).toBe(0)
})
