import { expect, test } from 'vitest'
import { Pending } from '../../client/pending.ts'
import type { Response } from '../../protocol/monitor/message.ts'
import { FakeClock } from '../support/fake-clock.ts'

const late = new Error('late')
const ok = (seq: number): Response => ({ kind: 'response', seq, status: 0, result: 0, detail: '' })

function pending() {
  const clock = new FakeClock()
  const told: string[] = []
  const commands = new Pending({ clock, deadlineMs: 1_000, late: () => late })
  const add = () => {
    const seq = commands.nextSeq()
    commands.add(seq, {
      response: () => told.push(`${seq} answered`),
      reject: ({ message }) => told.push(`${seq} ${message}`),
    })
    return seq
  }
  return { clock, told, commands, add }
}

test('each response goes to its own command, once', () => {
  const { told, commands, add } = pending()
  const [a, b] = [add(), add()]
  expect(commands.take(ok(b))).toBe(true)
  expect(commands.take(ok(a))).toBe(true)
  expect(commands.take(ok(a))).toBe(false)
  expect(told).toEqual(['2 answered', '1 answered'])
})

test('each command has the whole deadline', () => {
  const { clock, told, add } = pending()
  add()
  clock.advance(600)
  add()
  clock.advance(399)
  expect(told).toEqual([])
  clock.advance(1)
  expect(told).toEqual(['1 late'])
  clock.advance(599)
  expect(told).toEqual(['1 late'])
  clock.advance(1)
  expect(told).toEqual(['1 late', '2 late'])
  expect(clock.timers).toBe(0)
})

test('a command that comes behind answered ones has its deadline too', () => {
  const { clock, told, commands, add } = pending()
  commands.take(ok(add()))
  clock.advance(5_000)
  add()
  clock.advance(1_000)
  expect(told).toEqual(['1 answered', '2 late'])
})

test('a late response is taken silently, and is none to a command that was never sent', () => {
  const { clock, told, commands, add } = pending()
  const seq = add()
  clock.advance(1_000)
  expect(commands.size).toBe(0)
  expect(commands.take(ok(seq))).toBe(true)
  expect(commands.take(ok(seq))).toBe(false)
  expect(told).toEqual(['1 late'])
})

test('at the end all are rejected, and no timer is left', () => {
  const { clock, told, commands, add } = pending()
  add()
  add()
  commands.rejectAll(new Error('closed'))
  expect(told).toEqual(['1 closed', '2 closed'])
  expect(commands.size).toBe(0)
  expect(clock.timers).toBe(0)
})
