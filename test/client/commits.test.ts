import { expect, test } from 'vitest'
import { Commits } from '../../client/commits.ts'
import { ConnectionError, StatusError } from '../../client/errors.ts'
import { Progress } from '../../client/progress.ts'
import { settle } from './fake-producer.ts'

function committing() {
  const progress = new Progress()
  const sent: string[] = []
  const answers: { resolve(): void; reject(error: Error): void }[] = []
  const failures: Error[] = []
  const commits = new Commits({
    progress,
    send: (transaction, through) => {
      sent.push(through ? `..${transaction}` : `${transaction}`)
      return new Promise<void>((resolve, reject) => answers.push({ resolve, reject }))
    },
    failed: (error) => failures.push(error),
  })
  const handle = (...ids: readonly number[]) => {
    for (const id of ids) {
      progress.arrived(id)
      progress.handled(id)
    }
    commits.flush()
  }
  return { progress, sent, answers, failures, commits, handle }
}

test('nothing is sent where nothing is due', async () => {
  const { commits, sent } = committing()
  commits.flush()
  await commits.settled()
  expect(sent).toEqual([])
})

test('one group is on its way at a time; what was handled meanwhile is the next', async () => {
  const { sent, answers, handle } = committing()
  handle(1)
  handle(2, 3)
  handle(4)
  await settle()
  expect(sent).toEqual(['..1'])
  answers[0]?.resolve()
  await settle()
  expect(sent).toEqual(['..1', '..4'])
})

test('it is settled when everything that was due is stored', async () => {
  const { commits, answers, handle } = committing()
  handle(1)
  handle(2)
  let isSettled = false
  void commits.settled().then(() => {
    isSettled = true
  })
  answers[0]?.resolve()
  await settle()
  expect(isSettled).toBe(false)
  answers[1]?.resolve()
  await settle()
  expect(isSettled).toBe(true)
})

test('a lost connection ends the group without an error; what comes again on the next one is sent again', async () => {
  const { progress, commits, sent, answers, failures, handle } = committing()
  handle(1)
  handle(2)
  answers[0]?.reject(new ConnectionError('CLOSED', 'lost'))
  await commits.settled()
  await settle()
  expect([sent, failures]).toEqual([['..1'], []])
  progress.connected()
  for (const id of [1, 2]) {
    progress.arrived(id)
    commits.flush()
  }
  answers[1]?.resolve()
  await settle()
  expect(sent).toEqual(['..1', '..1', '..2'])
})

test('a refusal is told', async () => {
  const { answers, failures, handle } = committing()
  handle(1)
  const refusal = new StatusError('COMMIT', 14, '')
  answers[0]?.reject(refusal)
  await settle()
  expect(failures).toEqual([refusal])
})

test('while it rests nothing more goes out', async () => {
  const { commits, sent, answers, handle } = committing()
  handle(1)
  handle(2)
  commits.rest(true)
  answers[0]?.resolve()
  handle(3)
  await commits.settled()
  expect(sent).toEqual(['..1'])
  commits.rest(false)
  commits.flush()
  expect(sent).toEqual(['..1', '..3'])
})
