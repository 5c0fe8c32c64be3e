import { expect, test } from 'vitest'
import { CpuWindows, parseStat } from '../../../../server/wings/host/cpu.ts'
import { statOf } from './fake-host.ts'

const sample = (user: number, idle: number) => parseStat(statOf(user, idle)).cpu

test('the first reading of all is the average since the host started', () => {
  expect(new CpuWindows().percent(sample(10, 90), undefined, 0, 'a')?.user).toBe(10)
})

test('a series gets the time since its own previous reading, whatever others read in between', () => {
  const windows = new CpuWindows()
  windows.percent(sample(10, 90), undefined, 0, 'slow')
  windows.percent(sample(60, 140), undefined, 1_000, 'fast')
  expect(windows.percent(sample(60, 240), undefined, 2_000, 'fast')?.user).toBe(0)
  expect(windows.percent(sample(60, 240), undefined, 2_000, 'slow')?.user).toBe(25)
})

test('metrics read in one tick under one key add up to 100', () => {
  const windows = new CpuWindows()
  windows.percent(sample(10, 90), 0, 0, 'a')
  const later = sample(20, 120)
  expect(windows.percent(later, 0, 5_000, 'a')?.user).toBe(25)
  expect(windows.percent(later, 0, 5_000, 'a')?.idle).toBe(75)
})

test('one key keeps each CPU and all CPUs apart', () => {
  const windows = new CpuWindows()
  const before = parseStat('cpu 0 0 0 100\ncpu0 0 0 0 50\ncpu1 0 0 0 50\n').cpu
  const after = parseStat('cpu 50 0 0 150\ncpu0 50 0 0 50\ncpu1 0 0 0 100\n').cpu
  for (const cpu of [undefined, 0, 1]) windows.percent(before, cpu, 0, 'a')
  expect([undefined, 0, 1].map((cpu) => windows.percent(after, cpu, 2_000, 'a')?.user)).toEqual([50, 100, 0])
})

test.each([
  { ageMs: 999, user: 15, why: 'too young: since boot' },
  { ageMs: 1_000, user: 20, why: 'taken' },
  { ageMs: 59_999, user: 20, why: 'taken' },
  { ageMs: 60_000, user: 15, why: 'too old: since boot' },
])('a first reading with a sample $ageMs ms old: $why', ({ ageMs, user }) => {
  const windows = new CpuWindows()
  windows.percent(sample(10, 90), undefined, 0)
  expect(windows.percent(sample(30, 170), undefined, ageMs)?.user).toBe(user)
})

test('a first reading right after that of another series goes back to the sample before', () => {
  const windows = new CpuWindows()
  windows.percent(sample(10, 90), undefined, 0, 'a')
  windows.percent(sample(60, 140), undefined, 5_000, 'a')
  expect(windows.percent(sample(60, 141), undefined, 5_010)?.user).toBeCloseTo((50 / 101) * 100, 9)
})

test('a reading without a key leaves no trace in a series', () => {
  const windows = new CpuWindows()
  windows.percent(sample(10, 90), undefined, 0, 'a')
  windows.percent(sample(60, 140), undefined, 1_500)
  expect(windows.percent(sample(60, 240), undefined, 3_000, 'a')?.user).toBe(25)
})

test('while the counters stand still the last percentages hold', () => {
  const windows = new CpuWindows()
  windows.percent(sample(0, 100), undefined, 0, 'a')
  windows.percent(sample(40, 160), undefined, 2_000, 'a')
  expect(windows.percent(sample(40, 160), undefined, 2_001, 'a')?.user).toBe(40)
})

test('counters that were set back cost one reading, not a spike or a standstill', () => {
  const windows = new CpuWindows()
  windows.percent(sample(0, 100), undefined, 0, 'a')
  windows.percent(sample(40, 160), undefined, 2_000, 'a')
  expect(windows.percent(sample(1, 1), undefined, 4_000, 'a')?.user).toBe(40)
  expect(windows.percent(sample(21, 81), undefined, 6_000, 'a')?.user).toBe(20)
})

test('iowait running backwards by a tick gives 0, never less, and the rest still adds up to 100', () => {
  const windows = new CpuWindows()
  windows.percent(parseStat('cpu 0 0 0 100 10\n').cpu, undefined, 0, 'a')
  const percent = windows.percent(parseStat('cpu 50 0 0 150 9\n').cpu, undefined, 2_000, 'a')
  expect(percent).toMatchObject({ user: 50, idle: 50, iowait: 0 })
})

test('a series that was forgotten starts anew', () => {
  const windows = new CpuWindows()
  windows.percent(sample(10, 90), undefined, 0, 'a')
  windows.forget('a')
  expect(windows.percent(sample(30, 170), undefined, 120_000, 'a')?.user).toBe(15)
})

test('a CPU that is not in the sample has no percentages', () => {
  expect(new CpuWindows().percent(sample(10, 90), 7, 0, 'a')).toBeUndefined()
})
