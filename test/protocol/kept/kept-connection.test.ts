import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Intervals } from '../../../protocol/kept/backoff.ts'
import {
  type ConnectionAttempt,
  KeptConnection,
  type KeptConnectionOptions,
  type KeptState,
} from '../../../protocol/kept/kept-connection.ts'
import { unlessAborted } from '../../../protocol/kept/pause.ts'
import { FakeClock } from '../../support/fake-clock.ts'

const INTERVALS: Intervals = { firstMs: 100, maxMs: 1_000, steadyMs: 500 }
const settle = () => new Promise((resolve) => setImmediate(resolve))

/** One attempt, which the test decides about. */
interface Call extends ConnectionAttempt {
  readonly atMs: number
  end(reason: string): void
  fail(reason: string): void
}

function kept(options: Partial<KeptConnectionOptions> = {}) {
  const clock = new FakeClock()
  const calls: Call[] = []
  const states: KeptState[] = []
  const connection = new KeptConnection({
    clock,
    intervals: INTERVALS,
    random: () => 0,
    run: (attempt) => {
      const { promise, resolve, reject } = promised()
      calls.push({
        ...attempt,
        atMs: clock.monotonicMs(),
        end: (reason) => resolve(new Error(reason)),
        fail: (reason) => reject(new Error(reason)),
      })
      return unlessAborted(attempt.signal, promise)
    },
    changed: (state) => states.push(state),
    ...options,
  })
  const last = () => calls.at(-1) as Call
  const advance = async (ms: number) => {
    clock.advance(ms)
    await settle()
  }
  /** What was reported, each in a word or two. */
  const reported = () =>
    states.map((state) => {
      if (state.is !== 'waiting') return state.is
      return `${state.failures}: ${state.lost.message}, at ${state.nextMs}`
    })
  return { clock, calls, states, connection, last, advance, reported }
}

function promised() {
  let [resolve, reject]: [(reason: Error) => void, (error: Error) => void] = [() => {}, () => {}]
  const promise = new Promise<Error>((...both) => {
    ;[resolve, reject] = both
  })
  return { promise, resolve, reject }
}

describe('a kept connection', () => {
  test('is made at once, and reports each of its states', async () => {
    const { connection, calls, last, advance, reported } = kept()
    expect(calls).toHaveLength(0)
    connection.start()
    expect([calls.length, connection.state]).toEqual([1, { is: 'connecting' }])
    last().fail('nobody')
    await settle()
    expect(connection.state).toMatchObject({ is: 'waiting', failures: 1, delayMs: 100, nextMs: 100 })
    await advance(100)
    expect(connection.state).toEqual({ is: 'connecting' })
    last().connected()
    expect(connection.state).toEqual({ is: 'connected' })
    last().end('cut')
    await settle()
    expect(reported()).toEqual(['connecting', '1: nobody, at 100', 'connecting', 'connected', '2: cut, at 300'])
  })

  test('is one at a time, however often it is started', async () => {
    const { connection, calls, advance } = kept()
    connection.start()
    connection.start()
    await advance(10_000)
    expect(calls).toHaveLength(1)
  })

  test('is tried again at growing intervals while attempts fail', async () => {
    const { connection, calls, last, advance } = kept()
    connection.start()
    for (const pauseMs of [100, 200, 400, 800, 1_000, 1_000]) {
      const made = calls.length
      last().fail('nobody')
      await settle()
      await advance(pauseMs - 1)
      expect(calls).toHaveLength(made)
      await advance(1)
      expect(calls).toHaveLength(made + 1)
    }
  })

  test.each([
    ['not after one that was of use for less than `steadyMs`', 499, 200],
    ['after one that was', 500, 100],
  ])('begins anew with the first interval %s', async (_, lastedMs, pauseMs) => {
    const { connection, clock, calls, last, advance } = kept()
    connection.start()
    last().fail('nobody')
    await settle()
    await advance(100)
    // How long it takes to connect says nothing.
    await advance(5_000)
    last().connected()
    await advance(lastedMs)
    last().end('cut')
    await settle()
    const lostMs = clock.monotonicMs()
    await advance(pauseMs - 1)
    expect(calls).toHaveLength(2)
    await advance(1)
    expect(last().atMs - lostMs).toBe(pauseMs)
  })

  test('does not count as good because an attempt took long', async () => {
    const { connection, last, advance } = kept()
    connection.start()
    for (const delayMs of [100, 200, 400]) {
      await advance(5_000)
      last().end('cut')
      await settle()
      expect(connection.state).toMatchObject({ is: 'waiting', delayMs })
      await advance(delayMs)
    }
  })

  test('is made soon after one that has made progress', async () => {
    const { connection, last, advance } = kept()
    connection.start()
    for (const isProgress of [false, false, true, false]) {
      if (isProgress) last().progressed()
      last().fail('nobody')
      await settle()
      await advance(1_000)
    }
    expect(connection.state.is).toBe('connecting')
    last().fail('nobody')
    await settle()
    expect(connection.state).toMatchObject({ failures: 3, delayMs: 400 })
  })
})

describe('dropping', () => {
  test('ends a connection, and another is made after the pause', async () => {
    const { connection, calls, last, advance, reported } = kept()
    connection.start()
    last().connected()
    connection.drop(new Error('useless'))
    expect(last().signal.reason).toEqual(new Error('useless'))
    await settle()
    expect(reported()).toEqual(['connecting', 'connected', '1: useless, at 100'])
    await advance(100)
    expect(calls).toHaveLength(2)
    expect(last().signal.aborted).toBe(false)
  })

  test('does nothing where there is no connection', async () => {
    const { connection, calls, last, advance, reported } = kept()
    connection.drop(new Error('useless'))
    connection.start()
    last().fail('nobody')
    await settle()
    connection.drop(new Error('useless'))
    await advance(99)
    expect(calls).toHaveLength(1)
    await advance(1)
    last().fail('nobody again')
    await settle()
    expect(reported()).toEqual(['connecting', '1: nobody, at 100', 'connecting', '2: nobody again, at 300'])
  })
})

describe('the signal of an attempt', () => {
  test('is aborted when the connection has ended, so that nothing can be left that depends on it', async () => {
    const { connection, last } = kept()
    connection.start()
    last().connected()
    expect(last().signal.aborted).toBe(false)
    last().end('cut')
    await settle()
    expect(last().signal.aborted).toBe(true)
  })
})

describe('what an attempt reports when it is over', () => {
  test('changes nothing', async () => {
    const { connection, calls, last, advance, states } = kept()
    connection.start()
    last().fail('nobody')
    await settle()
    await advance(100)
    last().fail('nobody')
    await settle()
    const before = states.length
    for (const call of calls) {
      call.connected()
      call.progressed()
    }
    expect(states).toHaveLength(before)
    await advance(200)
    last().fail('nobody')
    await settle()
    expect(connection.state).toMatchObject({ failures: 3, delayMs: 400 })
  })

  test('is not heard once the connection has to end', async () => {
    const { connection, last } = kept()
    connection.start()
    connection.drop(new Error('useless'))
    last().connected()
    expect(connection.state.is).toBe('connecting')
  })
})

describe('stopping', () => {
  const over = new Error('over')

  test.each(['while it connects', 'while it is connected', 'while it waits'])(
    '%s leaves nothing behind',
    async (when) => {
      const { connection, calls, last, advance, clock, states } = kept()
      connection.start()
      if (when === 'while it is connected') last().connected()
      if (when === 'while it waits') last().fail('nobody')
      await settle()
      const before = states.length
      await connection.stop(over)
      expect(last().signal.aborted).toBe(true)
      expect(clock.timers).toBe(0)
      await advance(60_000)
      expect([calls.length, states.length, connection.state]).toEqual([1, before, { is: 'ended' }])
    },
  )

  test('settles when the connection is closed', async () => {
    const { promise, resolve } = promised()
    const { connection } = kept({ run: () => promise })
    connection.start()
    let isStopped = false
    const stopped = connection.stop(over).then(() => {
      isStopped = true
    })
    await settle()
    expect(isStopped).toBe(false)
    resolve(over)
    await stopped
  })

  test('from an attempt that has failed for good means that no other follows', async () => {
    const setting = kept({
      run: async () => {
        void setting.connection.stop(over)
        throw new Error('refused')
      },
    })
    setting.connection.start()
    await setting.advance(60_000)
    expect([setting.reported(), setting.clock.timers]).toEqual([['connecting'], 0])
  })

  test('before the start means that nothing is made', async () => {
    const { connection, calls } = kept()
    await connection.stop(over)
    connection.start()
    expect(calls).toHaveLength(0)
  })

  test('from the report of a state means that nothing more is made', async () => {
    const stopping = (is: KeptState['is']) => {
      const setting = kept({
        changed: (state) => {
          if (state.is === is) void setting.connection.stop(over)
        },
      })
      return setting
    }
    const [first, second] = [stopping('connecting'), stopping('waiting')]
    first.connection.start()
    second.connection.start()
    second.last().fail('nobody')
    await settle()
    await second.advance(1_000)
    expect([first.calls.length, second.calls.length, second.clock.timers]).toEqual([0, 1, 0])
  })
})

/** What one connection does: how long it takes to be of use, if ever; how long it is; whether it has made progress. */
interface Course {
  readonly openMs: number
  readonly usefulMs: number | undefined
  readonly hasProgress: boolean
  readonly isDropped: boolean
  /** 0..1 */
  readonly chance: number
}

const course: fc.Arbitrary<Course> = fc.record({
  openMs: fc.integer({ min: 0, max: 2_000 }),
  usefulMs: fc.option(fc.integer({ min: 0, max: 1_200 }), { nil: undefined }),
  hasProgress: fc.boolean(),
  isDropped: fc.boolean(),
  chance: fc.constantFrom(0, 0.25, 0.5, 1),
})

describe('whatever becomes of its connections', () => {
  test('one follows the other after the pause that is due, and none after the end', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(course, { minLength: 1, maxLength: 12 }), async (courses) => {
        let chance = 0
        const { connection, clock, calls, last, advance } = kept({ random: () => chance })
        connection.start()
        let pauses = 0
        for (const [index, { openMs, usefulMs, hasProgress, isDropped, ...rest }] of courses.entries()) {
          ;({ chance } = rest)
          expect(calls).toHaveLength(index + 1)
          await advance(openMs)
          if (usefulMs !== undefined) {
            last().connected()
            await advance(usefulMs)
          }
          if (hasProgress) last().progressed()
          if (isDropped) connection.drop(new Error('dropped'))
          else last().end('cut')
          await settle()
          if (hasProgress || (usefulMs ?? 0) >= INTERVALS.steadyMs) pauses = 0
          const interval = Math.min(INTERVALS.firstMs * 2 ** pauses++, INTERVALS.maxMs)
          const pauseMs = Math.ceil(interval * (1 - chance / 2))
          expect(connection.state).toMatchObject({ is: 'waiting', failures: pauses, delayMs: pauseMs })
          expect(clock.timers).toBe(1)
          await advance(pauseMs - 1)
          expect(calls).toHaveLength(index + 1)
          await advance(1)
        }
        await connection.stop(new Error('over'))
        expect(clock.timers).toBe(0)
        await advance(10_000)
        expect(calls).toHaveLength(courses.length + 1)
      }),
      { numRuns: 100 },
    )
  })
})
