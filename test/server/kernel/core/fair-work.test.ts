import { beforeEach, describe, expect, test } from 'vitest'
import { FairWork, type Party, type Steps } from '../../../../server/kernel/core/fair-work.ts'

/** Every look at the clock takes this long, so that a step does. */
const STEP_MS = 0.25

let work: FairWork
let deferred: (() => void)[]
/** What has done a step, in order. */
let done: string[]
let lookMs: number

beforeEach(() => {
  let nowMs = 0
  lookMs = STEP_MS
  deferred = []
  done = []
  const monotonicMs = (): number => {
    nowMs += lookMs
    return nowMs
  }
  work = new FairWork({ monotonicMs }, (turn) => deferred.push(turn))
})

/** The next turn of the event loop. */
function turn(): string[] {
  done = []
  for (const next of deferred.splice(0)) next()
  return done
}

function* steps(name: string, count: number): Steps<string> {
  for (let step = 1; step < count; step++) {
    done.push(name)
    yield
  }
  done.push(name)
  return `${name} is done`
}

const party = (tenant: string): Party => ({ tenant })
/** Uses up what this turn has. */
const spend = () => void work.run(party('spender'), steps('spent', 1000))
const times = (name: string) => done.filter((one) => one === name).length

test('what fits into the turn is done at once if nobody waits', () => {
  expect(work.run(party('a'), steps('one', 3))).toBe('one is done')
  expect(done).toHaveLength(3)
})

test('work shares 5 ms of each turn', async () => {
  const result = work.run(party('a'), steps('long', 50))
  // 5 ms are 20 looks at the clock: one at the beginning of the work and one after each step.
  expect(done).toHaveLength(20)
  const turns: number[] = []
  while (deferred.length > 0) turns.push(turn().length)
  // A slice is 1 ms: 4 steps, and a look at its beginning and its end.
  expect(turns.slice(0, 2)).toEqual([16, 14])
  expect(await result).toBe('long is done')
})

test('what was done at once counts too: the next of the tenant has to wait for its turn', async () => {
  spend()
  done = []
  const result = work.run(party('spender'), steps('next', 1))
  expect(done).toEqual([])
  turn()
  expect(await result).toBe('next is done')
})

test('another tenant has a slice at once, in each turn one, and 2 ms belong to all of them', () => {
  spend()
  expect(work.run(party('b'), steps('b', 1))).toBe('b is done')
  done = []
  void work.run(party('b'), steps('b again', 1))
  expect(done).toEqual([])
  void work.run(party('c'), steps('c', 1000))
  expect(times('c')).toBe(4)
  void work.run(party('d'), steps('d', 1000))
  void work.run(party('e'), steps('e', 1000))
  expect(times('e')).toBe(0)
  turn()
  expect(times('b again')).toBe(1)
  done = []
  expect(work.run(party('b'), steps('b', 1))).toBe('b is done')
})

test('what was answered goes out before what waits has its time, and nothing is sent where nothing waits', () => {
  const turns: (() => void)[] = []
  const order: string[] = []
  let nowMs = 0
  const fair = new FairWork({ monotonicMs: () => (nowMs += STEP_MS) }, (next) => void turns.push(next), {
    respond: () => void order.push('out'),
  })
  function* waiting(): Steps<void> {
    for (let step = 0; step < 40; step++) {
      order.push('step')
      yield
    }
  }
  void fair.run(party('a'), waiting())
  order.splice(0)
  turns.shift()?.()
  expect(order.slice(0, 2)).toEqual(['out', 'step'])
  while (turns.length > 0) turns.shift()?.()
  void fair.run(party('a'), steps('one', 1))
  order.splice(0)
  while (turns.length > 0) turns.shift()?.()
  expect(order).toEqual([])
})

test('tenants take turns, however much one of them wants', () => {
  spend()
  work.run(party('modest'), steps('what it has at once', 1))
  for (let count = 0; count < 50; count++) void work.run(party('greedy'), steps('greedy', 1000))
  void work.run(party('modest'), steps('modest', 4))
  turn()
  expect(times('modest')).toBe(4)
  expect(times('greedy')).toBeLessThanOrEqual(8)
})

test('so do the parties of one tenant, and each does its own work in turn', () => {
  spend()
  const [one, other] = [party('a'), party('a')]
  for (let count = 0; count < 3; count++) void work.run(one, steps(`one ${count}`, 1000))
  void work.run(other, steps('other', 1000))
  const order: string[] = []
  for (let count = 0; count < 4; count++) {
    for (const name of turn()) if (name !== 'spent' && name !== order.at(-1)) order.push(name)
  }
  expect(order.slice(0, 6)).toEqual(['one 0', 'other', 'one 1', 'other', 'one 2', 'other'])
})

test('work that a slice leads to is a part of it, as far as it goes', () => {
  spend()
  let inner: unknown
  function* outer(): Steps<void> {
    inner = work.run(party('b'), steps('inner', 2))
    yield
  }
  void work.run(party('a'), outer())
  turn()
  expect(inner).toBe('inner is done')
})

describe('work of a party that is over', () => {
  test('is dropped, and tidies up', () => {
    let isTidy = false
    function* tidying(): Steps<void> {
      try {
        yield* steps('dropped', 1000)
      } finally {
        isTidy = true
      }
    }
    const gone = { tenant: 'a', isOver: false }
    void work.run(gone, tidying())
    gone.isOver = true
    expect(turn()).toEqual([])
    expect(isTidy).toBe(true)
    turn()
    expect(deferred).toEqual([])
  })
})

describe('a fault', () => {
  function* failing(count: number): Steps<void> {
    yield* steps('failing', count)
    throw new Error('broken')
  }

  test('at once is thrown to whoever began the work', () => {
    expect(() => work.run(party('a'), failing(1))).toThrow('broken')
    expect(work.run(party('a'), steps('next', 1))).toBe('next is done')
  })

  test('later rejects, and others go on', async () => {
    spend()
    const failed = work.run(party('spender'), failing(1))
    const well = work.run(party('b'), steps('well', 1))
    turn()
    await expect(failed).rejects.toThrow('broken')
    expect(await well).toBe('well is done')
  })
})

test('an idle loop has nothing to do: no turn is asked for', () => {
  work.run(party('a'), steps('one', 1))
  turn()
  expect(deferred).toEqual([])
})
