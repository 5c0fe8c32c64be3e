import { describe, expect, test } from 'vitest'
import { includes, nextSequence, ReceivedCommands } from '../../../protocol/amqp/session.ts'

function received(first: number, count: number): ReceivedCommands {
  const commands = new ReceivedCommands()
  commands.startAt(first)
  for (let i = 0; i < count; i++) commands.record()
  return commands
}

describe('numbers of commands', () => {
  test('wrap at 2^32', () => {
    expect([nextSequence(7), nextSequence(0xffff_ffff)]).toEqual([8, 0])
  })
  test('are in a range from its first to its last', () => {
    const ranges = [
      { first: 3, last: 5 },
      { first: 9, last: 9 },
    ]
    expect([2, 3, 5, 6, 9, 10].map((id) => includes(ranges, id))).toEqual([false, true, true, false, true, false])
  })
  test('are in a range that wraps', () => {
    const ranges = [{ first: 0xffff_fffe, last: 1 }]
    const ids = [0xffff_fffd, 0xffff_fffe, 0xffff_ffff, 0, 1, 2]
    expect(ids.map((id) => includes(ranges, id))).toEqual([false, true, true, true, true, false])
  })
})

describe('received commands', () => {
  test('are none at first', () => {
    expect(received(5, 0).completed).toEqual([])
  })
  test('are reported as one range, across the wrap too', () => {
    expect(received(5, 3).completed).toEqual([{ first: 5, last: 7 }])
    expect(received(0xffff_fffe, 4).completed).toEqual([{ first: 0xffff_fffe, last: 1 }])
  })
  test('are reported only as far as they are not confirmed', () => {
    const commands = received(0xffff_fffe, 4)
    commands.confirm([{ first: 0xffff_fffe, last: 0 }])
    expect(commands.completed).toEqual([{ first: 1, last: 1 }])
    commands.confirm([{ first: 1, last: 1 }])
    expect(commands.completed).toEqual([])
  })
  test('stay what they are where the peer knows of others than there were', () => {
    const commands = received(10, 3)
    commands.confirm([{ first: 0, last: 5 }])
    commands.confirm([{ first: 0, last: 500 }])
    commands.confirm([])
    expect(commands.completed).toEqual([{ first: 10, last: 12 }])
  })
  test('ask for a reply above a thousand', () => {
    expect([received(0, 1000).needsConfirmation, received(0, 1001).needsConfirmation]).toEqual([false, true])
  })
  test('are the latest 65,536 where the peer never says what it knows', () => {
    expect(received(0, 70_000).completed).toEqual([{ first: 70_000 - 65_536, last: 69_999 }])
  })
})
