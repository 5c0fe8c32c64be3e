/** Waiting until everything is stored that was accepted before. */
import { expect, it } from 'vitest'
import { Marks } from '../../../../server/wings/history/recording.ts'

const channel = (accepted: number, settled: number) => ({ progress: { accepted, settled }, isOver: false })

async function isSettled(waiting: Promise<void>): Promise<boolean> {
  let settled = false
  waiting.then(
    () => {
      settled = true
    },
    () => {
      settled = true
    },
  )
  await new Promise((resolve) => setImmediate(resolve))
  return settled
}

it('ends when each channel has stored what it had accepted, whatever came since', async () => {
  const marks = new Marks()
  const [one, other] = [channel(10, 4), channel(3, 3)]
  const waiting = marks.reached([one, other])
  expect(await isSettled(waiting)).toBe(false)
  Object.assign(one.progress, { accepted: 50, settled: 9 })
  marks.look()
  expect(await isSettled(waiting)).toBe(false)
  one.progress.settled = 10
  marks.look()
  await waiting
})

it('does not wait for a channel that is gone, and waits for none where nothing is recorded', async () => {
  const marks = new Marks()
  const gone = channel(10, 4)
  const waiting = marks.reached([gone])
  gone.isOver = true
  marks.look()
  await waiting
  await marks.reached([])
})

it('fails when the history ends', async () => {
  const marks = new Marks()
  const waiting = marks.reached([channel(2, 1)])
  marks.ended()
  await expect(waiting).rejects.toThrow('the history ends')
})
