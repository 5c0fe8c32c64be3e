import { describe, expect, test } from 'vitest'
import { countOpenFiles, type FileCounts, OpenFiles } from '../../../../server/kernel/core/open-files.ts'

function filesOf(first: FileCounts) {
  let counts = first
  const files = new OpenFiles(() => counts)
  const now = (open: number, max = counts.max): void => {
    counts = { open, max }
  }
  return { files, now }
}

describe('the last descriptors', () => {
  test('are refused to sources, also within a second, and are there again later', () => {
    const { files, now } = filesOf({ open: 700, max: 1024 })
    const entered = Array.from({ length: 100 }, () => files.enter())
    expect(entered.filter((has) => has)).toHaveLength(1024 - 700 - 256)
    expect(files.refused).toBe(32)
    now(768)
    expect(files.look()).toBe(true)
    expect(files.problem).toContain('768 of 1024 file descriptors are in use')
    expect(files.enter()).toBe(false)
    now(300)
    expect(files.look()).toBe(true)
    expect(files.look()).toBe(false)
    expect([files.problem, files.enter()]).toEqual([undefined, true])
  })

  test('are half of them if there are few', () => {
    const { files } = filesOf({ open: 40, max: 100 })
    expect(Array.from({ length: 20 }, () => files.enter()).filter((has) => has)).toHaveLength(10)
  })

  test('that consumers take are reported, once', () => {
    const { files, now } = filesOf({ open: 700, max: 1024 })
    expect([files.look(), files.problem]).toEqual([false, undefined])
    now(1000)
    expect([files.look(), files.look()]).toEqual([true, false])
    expect(files.problem).toContain('1000 of 1024')
  })
})

test('a limit that is lowered while the process runs counts', () => {
  const { files, now } = filesOf({ open: 40, max: 1_000_000 })
  expect(files.enter()).toBe(true)
  now(40, 47)
  files.look()
  expect([files.enter(), files.max]).toEqual([false, 47])
})

test('where the system does not say how many there are, nothing is refused', () => {
  const { files } = filesOf({ open: 0, max: undefined })
  expect([files.enter(), files.look(), files.problem]).toEqual([true, false, undefined])
})

test('Linux says how many are open, and may be', () => {
  const { open, max } = countOpenFiles()
  expect(open).toBeGreaterThan(3)
  expect(max).toBeGreaterThan(open)
})
