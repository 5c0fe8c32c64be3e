import { expect, test } from 'vitest'
import { FakeClock } from './fake-clock.ts'

test('time stands still until it is advanced', () => {
  const clock = new FakeClock(1_000)
  expect([clock.wallMs(), clock.monotonicMs(), clock.microseconds()]).toEqual([1_000, 0, 1_000_000])
  clock.advance(5)
  expect([clock.wallMs(), clock.monotonicMs(), clock.microseconds()]).toEqual([1_005, 5, 1_005_000])
})

test('a wall clock that is set moves no timer', () => {
  const clock = new FakeClock(1_000)
  let ran = false
  clock.setTimeout(() => {
    ran = true
  }, 10)
  clock.jumpWall(-500)
  expect([clock.wallMs(), clock.monotonicMs(), ran]).toEqual([500, 0, false])
  clock.advance(10)
  expect([clock.wallMs(), ran]).toEqual([510, true])
})

test('timers run at their moment, in order of time, then of making', () => {
  const clock = new FakeClock()
  const seen: [string, number][] = []
  const note = (name: string) => () => seen.push([name, clock.monotonicMs()])
  clock.setTimeout(note('late'), 20)
  clock.setTimeout(note('first'), 10)
  clock.setTimeout(note('second'), 10)
  clock.advance(9)
  expect(seen).toEqual([])
  clock.advance(11)
  expect(seen).toEqual([
    ['first', 10],
    ['second', 10],
    ['late', 20],
  ])
  expect(clock.timers).toBe(0)
})

test('a timer made by a timer runs in the same advance when it falls due', () => {
  const clock = new FakeClock()
  const seen: number[] = []
  clock.setTimeout(() => clock.setTimeout(() => seen.push(clock.monotonicMs()), 5), 10)
  clock.advance(14)
  expect(seen).toEqual([])
  clock.advance(1)
  expect(seen).toEqual([15])
})

test('an interval runs until it is cleared, also by itself', () => {
  const clock = new FakeClock()
  const seen: number[] = []
  const interval = clock.setInterval(() => {
    seen.push(clock.monotonicMs())
    if (seen.length === 3) clock.clear(interval)
  }, 10)
  clock.advance(100)
  expect(seen).toEqual([10, 20, 30])
  expect(clock.timers).toBe(0)
})

test('to the next timer it goes exactly: whatever is due then runs, and what is due later does not', () => {
  const clock = new FakeClock()
  const seen: [string, number][] = []
  const note = (name: string) => () => void seen.push([name, clock.monotonicMs()])
  clock.advance(0.1)
  clock.setTimeout(note('one'), 1_000.2)
  clock.setTimeout(note('another'), 1_000.2)
  clock.setTimeout(note('later'), 1_000.3)
  expect(clock.advanceToNext()).toBe(true)
  expect(seen).toEqual(['one', 'another'].map((name) => [name, 0.1 + 1_000.2]))
  expect(clock.advanceToNext()).toBe(true)
  expect(seen.slice(2)).toEqual([['later', 0.1 + 1_000.3]])
  expect(clock.advanceToNext()).toBe(false)
})

test('a leap runs what fell due at its end, in the order in which it was due, an interval once', () => {
  const clock = new FakeClock()
  const seen: [string, number][] = []
  const note = (name: string) => () => void seen.push([name, clock.monotonicMs()])
  clock.setTimeout(note('later'), 500)
  clock.setInterval(note('interval'), 10)
  clock.setTimeout(note('sooner'), 400)
  clock.setTimeout(note('not yet'), 1_001)
  const wallMs = clock.wallMs()
  clock.leap(1_000)
  const due = ['interval', 'sooner', 'later'].map((name) => [name, 1_000])
  expect(seen).toEqual(due)
  expect(clock.wallMs() - wallMs).toBe(1_000)
  clock.advance(10)
  expect(seen.slice(3)).toEqual([
    ['not yet', 1_001],
    ['interval', 1_010],
  ])
})

test('a delay of 0 is 1 millisecond, as in Node, so that no timer runs forever without time passing', () => {
  const clock = new FakeClock()
  let runs = 0
  const again = (): void => {
    runs++
    clock.setTimeout(again, 0)
  }
  again()
  clock.advance(3)
  expect(runs).toBe(4)
})
