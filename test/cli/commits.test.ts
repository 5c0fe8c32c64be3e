import { expect, test } from 'vitest'
import { Commits } from '../../cli/commits.ts'

function start() {
  const sent: { through: number; answer: { resolve(): void; reject(error: Error): void } }[] = []
  const commits = new Commits({
    commit: (through, options) => {
      expect(options).toEqual({ through: true })
      return new Promise((resolve, reject) => sent.push({ through, answer: { resolve, reject } }))
    },
  })
  return { sent, commits }
}

test('what is dealt with while a COMMIT is under way goes with the next one', async () => {
  const { sent, commits } = start()
  for (const transaction of [1, 2, 3, 4]) commits.add(transaction)
  expect(sent.map(({ through }) => through)).toEqual([1])
  sent[0]!.answer.resolve()
  await new Promise(setImmediate)
  expect(sent.map(({ through }) => through)).toEqual([1, 4])
  let isSettled = false
  const settled = commits.settled().then(() => {
    isSettled = true
  })
  await new Promise(setImmediate)
  expect(isSettled).toBe(false)
  sent[1]!.answer.resolve()
  await settled
  commits.add(5)
  expect(sent).toHaveLength(3)
})

test('nothing is committed for a value without a transaction', async () => {
  const { sent, commits } = start()
  commits.add(0)
  await commits.settled()
  expect(sent).toEqual([])
})

test('a COMMIT that is refused stops the next step', async () => {
  const { sent, commits } = start()
  commits.add(1)
  const refusal = new Error('refused')
  sent[0]!.answer.reject(refusal)
  await expect(commits.settled()).rejects.toBe(refusal)
  expect(() => commits.add(2)).toThrow(refusal)
})
