import { describe, expect, test } from 'vitest'
import { ConnectionError, type Sample, StatusError, VOID } from '../../client/index.ts'
import { Mailbox } from '../../client/mailbox.ts'
import { Subscriptions } from '../../client/subscriptions.ts'
import type { Gap, ValueMessage } from '../../protocol/monitor/message.ts'
import { settle } from './fake-producer.ts'

/** The number of values above which reading is to pause. */
const LIMIT = 1024

const value = (transaction: number): ValueMessage => ({ kind: 'value', metric: 7, transaction, time: 0, value: VOID })
const gap = (transaction: number) => ({ kind: 'gap', transaction }) as Gap

function opened() {
  const sent: string[] = []
  const answers: { resolve(): void; reject(error: Error): void }[] = []
  const failures: Error[] = []
  const held: boolean[] = []
  const gaps: number[] = []
  const restored: string[] = []
  const mailbox = new Mailbox({
    after: undefined,
    isExplicit: false,
    subscriptions: new Subscriptions(),
    awaited: { take: () => undefined },
    generation: () => 'a',
    gap: ({ transaction }) => gaps.push(transaction),
    restored: ({ generation }) => restored.push(generation),
    hold: (isHeld) => held.push(isHeld),
    commit: (transaction, through) => {
      sent.push(through ? `..${transaction}` : `${transaction}`)
      return new Promise<void>((resolve, reject) => answers.push({ resolve, reject }))
    },
    failed: (error) => failures.push(error),
  })
  const receive = (...ids: readonly number[]) => {
    for (const id of ids) mailbox.receive(value(id))
  }
  let reader: AsyncIterator<Sample, undefined> | undefined
  /** Takes the next values and returns their ids. A value counts as handled when the next one is taken. */
  const take = async (count: number) => {
    reader ??= mailbox.iterator()
    const taken: (number | undefined)[] = []
    while (taken.length < count) taken.push((await reader.next()).value?.transaction)
    return taken
  }
  const leave = async () => {
    await reader?.return?.()
    reader = undefined
  }
  /** Receives these values and takes all of them, so that all but the last are handled. */
  const handle = async (...ids: readonly number[]) => {
    receive(...ids)
    await take(ids.length)
  }
  return { mailbox, sent, answers, failures, held, gaps, receive, take, leave, handle }
}

const upTo = (last: number) => Array.from({ length: last }, (_, i) => i + 1)

describe('what arrives', () => {
  test('is taken in its order', async () => {
    const { receive, take } = opened()
    const taken: unknown[] = []
    for (const id of upTo(10_000)) {
      receive(id)
      if (id % 3 === 0) taken.push(...(await take(1)))
    }
    taken.push(...(await take(10_000 - taken.length)))
    expect(taken).toEqual(upTo(10_000))
  })

  test('above the limit has reading pause, and at half of that resume, once each', async () => {
    const { mailbox, held, receive, take } = opened()
    receive(...upTo(LIMIT))
    expect(held).toEqual([])
    receive(LIMIT + 1, LIMIT + 2)
    expect(held).toEqual([true])
    await take(LIMIT / 2 + 1)
    expect(held).toEqual([true])
    expect(mailbox.isHeld).toBe(true)
    await take(2)
    expect(held).toEqual([true, false])
    expect(mailbox.isHeld).toBe(false)
  })

  test('and is left by its reader is the next to be taken', async () => {
    const { receive, take, leave } = opened()
    receive(1, 2, 3)
    expect(await take(2)).toEqual([1, 2])
    await leave()
    expect(await take(2)).toEqual([2, 3])
  })

  test('on a channel that is left then is gone, and reading resumes', async () => {
    const { mailbox, held, receive, take } = opened()
    receive(...upTo(LIMIT + 1))
    mailbox.switchChannel()
    expect(held).toEqual([true, false])
    receive(5)
    expect(await take(1)).toEqual([5])
  })

  test('wakes a reader that waits, and so does the end', async () => {
    const { mailbox, receive, take } = opened()
    const taken: unknown[] = []
    void take(1).then((ids) => taken.push(ids))
    await settle()
    expect(taken).toEqual([])
    receive(1)
    await settle()
    expect(taken).toEqual([[1]])
    void take(1).then((ids) => taken.push(ids))
    await settle()
    expect(taken).toHaveLength(1)
    mailbox.end(undefined)
    await settle()
    expect(taken).toEqual([[1], [undefined]])
  })

  test('as a GAP is reported to its listener, and counts as handled', async () => {
    const { mailbox, gaps, sent, take } = opened()
    mailbox.receive(gap(1))
    void take(1)
    await settle()
    expect([gaps, sent]).toEqual([[1], ['..1']])
  })
})

describe('COMMITs', () => {
  test('are not sent if nothing is due', async () => {
    const { mailbox, sent } = opened()
    await mailbox.committed()
    expect(sent).toEqual([])
  })

  test('are sent one group at a time; what was handled meanwhile is the next group', async () => {
    const { sent, answers, handle } = opened()
    await handle(1, 2)
    await handle(3, 4)
    await handle(5)
    await settle()
    expect(sent).toEqual(['..1'])
    answers[0]?.resolve()
    await settle()
    expect(sent).toEqual(['..1', '..4'])
  })

  test('are settled when everything that was due is stored', async () => {
    const { mailbox, answers, handle } = opened()
    await handle(1, 2, 3)
    let isSettled = false
    void mailbox.committed().then(() => {
      isSettled = true
    })
    answers[0]?.resolve()
    await settle()
    expect(isSettled).toBe(false)
    answers[1]?.resolve()
    await settle()
    expect(isSettled).toBe(true)
  })

  test('that are lost with a connection are no error; what is received again on the next one is committed again', async () => {
    const { mailbox, sent, answers, failures, receive, handle } = opened()
    await handle(1, 2, 3)
    answers[0]?.reject(new ConnectionError('CLOSED', 'lost'))
    await mailbox.committed()
    await settle()
    expect([sent, failures]).toEqual([['..1'], []])
    sent.length = answers.length = 0
    mailbox.reconnected()
    receive(1)
    receive(2)
    expect(sent).toEqual(['..1'])
    answers[0]?.resolve()
    await settle()
    expect(sent).toEqual(['..1', '..2'])
  })

  test('that are refused are reported', async () => {
    const { answers, failures, handle } = opened()
    await handle(1, 2)
    const refusal = new StatusError('COMMIT', 14, '')
    answers[0]?.reject(refusal)
    await settle()
    expect(failures).toEqual([refusal])
  })

  test('are not sent while they are suspended', async () => {
    const { mailbox, sent, answers, handle } = opened()
    await handle(1, 2, 3)
    mailbox.suspendCommits(true)
    answers[0]?.resolve()
    await handle(4)
    await mailbox.committed()
    expect(sent).toEqual(['..1'])
    mailbox.suspendCommits(false)
    expect(sent).toEqual(['..1', '..3'])
  })

  test('of a channel that was left do not hold up those of the next one', async () => {
    const { mailbox, sent, answers, handle } = opened()
    await handle(1, 2)
    mailbox.suspendCommits(true)
    mailbox.switchChannel()
    await handle(1, 2)
    expect(sent).toEqual(['..1', '..1'])
    await handle(3)
    answers[0]?.resolve()
    await settle()
    expect(sent).toEqual(['..1', '..1'])
    answers[1]?.resolve()
    await settle()
    expect(sent).toEqual(['..1', '..1', '..2'])
  })
})
