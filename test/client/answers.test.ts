import { expect, test } from 'vitest'
import { Answers } from '../../client/answers.ts'
import type { Request } from '../../client/commands.ts'
import type { ValueMessage } from '../../protocol/monitor/message.ts'
import { VOID } from '../../protocol/monitor/value.ts'
import { FakeClock } from '../support/fake-clock.ts'

const asked = { metric: 'host.uptime', args: [] }
const message = (metric: number): ValueMessage => ({ kind: 'value', metric, transaction: 0, time: 0, value: VOID })
/** Is answered at once with this id. */
const given =
  (id: number): Request =>
  (_name, _values, onOk) => {
    onOk?.(id)
    return Promise.resolve(id)
  }

test('the value with the id of the response is the answer, once', async () => {
  const answers = new Answers(new FakeClock())
  const asking = answers.ask(given(7), 'QUERY', asked, { isKept: false })
  expect(answers.take(message(8))).toBe(false)
  expect(answers.take(message(7))).toBe(true)
  expect(answers.take(message(7))).toBe(false)
  expect(await asking).toEqual(message(7))
})

test('a command that is refused has no answer', async () => {
  const answers = new Answers(new FakeClock())
  const asking = answers.ask(() => Promise.reject(new Error('refused')), 'QUERY', asked, { isKept: false })
  await expect(asking).rejects.toThrow('refused')
})

test('with the connection goes what it alone would bring; what is kept on the channel is still waited for', async () => {
  const answers = new Answers(new FakeClock())
  const query = answers.ask(given(7), 'QUERY', asked, { isKept: false })
  const result = answers.ask(given(8), 'EXECUTE', { control: 'x', args: [] }, { isKept: true })
  answers.reject(new Error('lost'), true)
  await expect(query).rejects.toThrow('lost')
  expect(answers.take(message(8))).toBe(true)
  expect(await result).toEqual(message(8))
})

test('at the end nothing is waited for any more', async () => {
  const clock = new FakeClock()
  const answers = new Answers(clock)
  const result = answers.ask(given(8), 'EXECUTE', { control: 'x', args: [] }, { isKept: true, deadlineMs: 5_000 })
  answers.reject(new Error('closed'), false)
  await expect(result).rejects.toThrow('closed')
  expect(clock.timers).toBe(0)
})

test('a deadline counts from the response, and leaves no timer behind an answer in time', async () => {
  const clock = new FakeClock()
  const answers = new Answers(clock)
  const late = answers.ask(given(7), 'QUERY', asked, { isKept: false, deadlineMs: 5_000 })
  const inTime = answers.ask(given(8), 'QUERY', asked, { isKept: false, deadlineMs: 5_000 })
  clock.advance(4_999)
  expect(answers.take(message(8))).toBe(true)
  expect(clock.timers).toBe(1)
  clock.advance(1)
  await expect(late).rejects.toMatchObject({ code: 'TIMEOUT', message: expect.stringContaining('5000 ms') })
  expect(await inTime).toEqual(message(8))
  expect(answers.take(message(7))).toBe(false)
  expect(clock.timers).toBe(0)
})
