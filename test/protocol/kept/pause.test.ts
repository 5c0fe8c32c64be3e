import { getEventListeners } from 'node:events'
import { describe, expect, test } from 'vitest'
import { pause, unlessAborted } from '../../../protocol/kept/pause.ts'
import { FakeClock } from '../../support/fake-clock.ts'

const settle = () => new Promise((resolve) => setImmediate(resolve))

describe('a pause', () => {
  async function paused(signal: AbortSignal) {
    const clock = new FakeClock()
    const over: number[] = []
    void pause(clock, 1_000, signal).then(() => over.push(clock.monotonicMs()))
    await settle()
    return { clock, over }
  }

  test('takes its time', async () => {
    const { clock, over } = await paused(new AbortController().signal)
    clock.advance(999)
    await settle()
    expect(over).toEqual([])
    clock.advance(1)
    await settle()
    expect(over).toEqual([1_000])
  })

  test('ends with its signal, and leaves no timer', async () => {
    const abort = new AbortController()
    const { clock, over } = await paused(abort.signal)
    clock.advance(400)
    abort.abort()
    await settle()
    expect([over, clock.timers]).toEqual([[400], 0])
  })

  test('does not begin after its signal', async () => {
    const { clock, over } = await paused(AbortSignal.abort())
    expect([over, clock.timers]).toEqual([[0], 0])
  })

  test('leaves no listener', async () => {
    const { signal } = new AbortController()
    const clock = new FakeClock()
    const over = pause(clock, 10, signal)
    expect(getEventListeners(signal, 'abort')).toHaveLength(1)
    clock.advance(10)
    await over
    expect(getEventListeners(signal, 'abort')).toHaveLength(0)
  })
})

describe('waiting unless aborted', () => {
  const never = new Promise<never>(() => {})

  test('gives what comes', async () => {
    const { signal } = new AbortController()
    expect(await unlessAborted(signal, Promise.resolve(1))).toBe(1)
    expect(await unlessAborted(undefined, Promise.resolve(2))).toBe(2)
    await expect(unlessAborted(signal, Promise.reject(new Error('no')))).rejects.toThrow('no')
  })

  test('ends with the reason of the signal, now or later', async () => {
    const abort = new AbortController()
    const waiting = unlessAborted(abort.signal, never)
    abort.abort(new Error('given up'))
    await expect(waiting).rejects.toThrow('given up')
    await expect(unlessAborted(abort.signal, never)).rejects.toThrow('given up')
  })

  test('keeps a later failure from being unhandled', async () => {
    await expect(
      unlessAborted(AbortSignal.abort(new Error('over')), Promise.reject(new Error('late'))),
    ).rejects.toThrow('over')
    await settle()
  })
})
