/** The connection of a channel of a wing's own, which others may take, and which may be deleted. */
import { beforeEach, expect, it } from 'vitest'
import type { OwnChannel } from '../../../server/kit/delivery.ts'
import { OwnConnection } from '../../../server/kit/own-connection.ts'
import { FakeClock } from '../../support/fake-clock.ts'

const AGAIN_MS = 10_000

let clock: FakeClock
let state: OwnChannel['state']
let changed: () => void
let done: string[]
let connection: OwnConnection<never>

beforeEach(() => {
  clock = new FakeClock()
  state = 'free'
  done = []
  let made = 0
  const channel = {
    get state() {
      return state
    },
    onChange: (called: () => void) => {
      changed = called
    },
    attach: () => {
      state = 'taken'
      changed()
    },
  }
  connection = new OwnConnection({
    channel: channel as never,
    clock,
    make: () => {
      const number = ++made
      return { start: () => done.push(`start ${number}`), end: () => done.push(`end ${number}`) } as never
    },
    deleted: () => done.push('deleted'),
  })
})

it('is made again ten seconds after somebody else has had the channel', () => {
  connection.begin()
  expect(done).toEqual(['start 1'])
  state = 'taken'
  changed()
  clock.advance(AGAIN_MS)
  state = 'free'
  changed()
  clock.advance(AGAIN_MS - 1)
  expect(done).toEqual(['start 1'])
  clock.advance(1)
  expect(done).toEqual(['start 1', 'start 2'])
})

it('ends with its channel, which is said once', () => {
  connection.begin()
  state = 'deleted'
  for (let times = 0; times < 2; times++) changed()
  clock.advance(AGAIN_MS)
  expect(done).toEqual(['start 1', 'end 1', 'deleted'])
})

it('is not made where its channel was deleted before it began, which is said', () => {
  state = 'deleted'
  connection.begin()
  clock.advance(AGAIN_MS)
  expect(done).toEqual(['deleted'])
})

it('is not made again when it was ended, whatever becomes of the channel', () => {
  connection.begin()
  state = 'free'
  changed()
  connection.end()
  clock.advance(AGAIN_MS)
  state = 'deleted'
  changed()
  expect(done).toEqual(['start 1', 'end 1'])
})
