import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { abortable, askAgain } from '../../../storage/replicated/asking.ts'

/** Nats-servers that are asked: each question waits until it is answered here, or for ever. */
class Asked {
  readonly questions: { readonly answer: (text: string) => void; readonly fail: (error: Error) => void }[] = []

  ask(): Promise<string> {
    return new Promise((resolve, reject) => this.questions.push({ answer: resolve, fail: reject }))
  }
}

describe('a question that changes nothing', () => {
  beforeEach(() => {
    vi.useFakeTimers()
  })
  afterEach(() => {
    vi.useRealTimers()
  })

  it('is asked again while the first one is not answered, and the first answer counts', async () => {
    const asked = new Asked()
    const answer = askAgain(() => asked.ask(), 100)
    vi.advanceTimersByTime(99)
    expect(asked.questions).toHaveLength(1)
    vi.advanceTimersByTime(101)
    expect(asked.questions).toHaveLength(3)
    asked.questions[2]?.answer('from the new leader')
    expect(await answer).toBe('from the new leader')
    expect(vi.getTimerCount()).toBe(0)
  })

  it('may be answered late, to the first of them', async () => {
    const asked = new Asked()
    const answer = askAgain(() => asked.ask(), 100)
    vi.advanceTimersByTime(500)
    asked.questions[0]?.answer('late')
    expect(await answer).toBe('late')
  })

  it('is asked once if the answer comes at once', async () => {
    const asked = new Asked()
    const answer = askAgain(() => asked.ask(), 100)
    asked.questions[0]?.answer('at once')
    expect(await answer).toBe('at once')
    expect(vi.getTimerCount()).toBe(0)
    expect(asked.questions).toHaveLength(1)
  })

  it('takes no longer than the first of them', async () => {
    const asked = new Asked()
    const answer = askAgain(() => asked.ask(), 100)
    vi.advanceTimersByTime(200)
    asked.questions[0]?.fail(new Error('timeout'))
    await expect(answer).rejects.toThrow('timeout')
    // Those that are left fail too, and nobody has to catch that.
    asked.questions[1]?.fail(new Error('timeout'))
    asked.questions[2]?.fail(new Error('timeout'))
    expect(vi.getTimerCount()).toBe(0)
  })
})

it('whoever ends what waits for an answer does not wait for it', async () => {
  const ended = new AbortController()
  const waiting = abortable(new Promise<never>(() => {}), ended.signal)
  ended.abort(new Error('another node leads'))
  await expect(waiting).rejects.toThrow('another node leads')
})
