/** Work in the background goes on in slices, and waits after a failure that may pass; a full disk ends no thread. */
import { beforeEach, expect, it } from 'vitest'
import { BackgroundWork } from '../../../../server/wings/history/background.ts'
import { StorageError } from '../../../../storage/store.ts'

let nowMs: number
let laters: (() => void)[]
let problems: string[]
let slices: number
let work: () => boolean
let background: BackgroundWork

beforeEach(() => {
  nowMs = 0
  laters = []
  problems = []
  slices = 0
  work = () => false
  const slice = (): boolean => {
    slices++
    return work()
  }
  background = new BackgroundWork(
    { work: slice },
    {
      monotonicMs: () => nowMs,
      later: (act) => laters.push(act),
      changed: () => problems.push(background.problem),
    },
  )
})

const later = (): void => {
  for (const act of laters.splice(0)) act()
}

it('goes on as long as there is more to do, once at a time, and not after its end', () => {
  work = () => slices < 3
  background.begin()
  background.begin()
  expect([slices, laters.length]).toEqual([1, 1])
  for (let turn = 0; turn < 5; turn++) later()
  expect(slices).toBe(3)
  work = () => true
  background.begin()
  background.end()
  later()
  expect([slices, problems]).toEqual([4, []])
})

it('waits half a minute after a full disk, and says when it goes on', () => {
  work = () => {
    throw new StorageError('FULL', 'the disk is full')
  }
  background.begin()
  nowMs = 29_999
  background.begin()
  expect([slices, problems]).toEqual([1, ['the disk is full']])
  work = () => false
  nowMs = 30_000
  background.begin()
  expect([slices, problems]).toEqual([2, ['the disk is full', '']])
})

it('throws what does not pass', () => {
  work = () => {
    throw new StorageError('DAMAGED', 'damaged')
  }
  expect(() => background.begin()).toThrow('damaged')
})
