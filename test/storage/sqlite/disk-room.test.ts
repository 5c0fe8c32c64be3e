/** What is done while the disk is full: pieces, checkpoints, and the reserve. */
import { beforeEach, describe, expect, test, vi } from 'vitest'
import { frames } from '../../contracts/store-batch.ts'
import {
  BROKEN,
  BUSY,
  FULL,
  IDLE_MS,
  onBench,
  PLACE,
  PLENTY,
  RETRY_MS,
  soon,
  UNREADABLE,
  type WriterBench,
  wait,
} from './writer-bench.ts'

let bench: WriterBench
onBench((opened) => {
  bench = opened
})

describe('the disk', () => {
  test('counts as full when space is low, until the reserve is there and there is enough', () => {
    bench.free = 2 ** 20
    bench.hasReserve = false
    bench.canMake = false
    bench.write()
    expect(bench.noted.slice(1, 4)).toEqual(['durable 1', 'checkpoint', 'full'])
    bench.free = PLENTY
    wait(RETRY_MS)
    expect(bench.noted).not.toContain('room')
    bench.canMake = true
    wait(RETRY_MS)
    expect(bench.noted.filter((entry) => entry === 'room')).toHaveLength(1)
    wait(10 * RETRY_MS)
    expect(bench.noted).not.toContain('room')
  })

  test('does not count as full if a checkpoint makes enough space', () => {
    bench.free = 2 ** 20
    bench.hasReserve = false
    bench.canMake = false
    bench.atCheckpoint = () => {
      bench.free = PLENTY
    }
    bench.write()
    expect(bench.noted.slice(1)).toEqual(['durable 1', 'checkpoint'])
  })

  test('that is low and then has no room for a batch is reported for each such batch', () => {
    bench.free = 2 ** 20
    bench.hasReserve = false
    bench.canMake = false
    bench.write()
    for (let number = 2; number <= 3; number++) {
      expect(bench.noted.filter((entry) => entry === 'full')).toHaveLength(1)
      bench.onStore.push(FULL, FULL)
      bench.write()
      wait(RETRY_MS)
    }
    expect(bench.noted.filter((entry) => entry === 'full' || entry === 'durable 3')).toEqual(['full', 'durable 3'])
  })

  test('without room for a checkpoint is reported after its batch, and the reserve makes room for it', () => {
    bench.reopen(16)
    bench.canMake = false
    bench.onCheckpoint.push(FULL)
    bench.write({ blocks: large() })
    expect(bench.noted.slice(1, 6)).toEqual(['durable 1', 'checkpoint', 'full', 'releases', 'checkpoint'])
  })

  test('that fails in a checkpoint ends the writing: nothing is tried, reported or planned any more', () => {
    bench.reopen(16)
    bench.onCheckpoint.push(BROKEN)
    bench.free = 2 ** 20
    bench.write({ blocks: large() })
    expect(bench.noted.slice(1)).toEqual(['durable 1', 'checkpoint', 'failed IO'])
    wait(10 * IDLE_MS)
    expect([bench.noted, vi.getTimerCount()]).toEqual([[], 0])
  })

  /** Blocks that take up more of the log than runs a checkpoint. */
  function large() {
    return [1, 2, 3].map((id) => ({ id, frames: frames(id, 90_000) }))
  }
})

describe('a piece', () => {
  /** Leaves ten blocks to remove, none of which is removed yet. */
  beforeEach(() => {
    const ids = Array.from({ length: 10 }, (_, index) => index + 1)
    bench.write({ blocks: ids.map((id) => ({ id, frames: frames(id) })) })
    bench.hasReserve = false
    bench.onStore.push(FULL)
    bench.write({ removed: ids })
    expect(bench.noted).toContain('durable 2')
  })

  test('is removed after the batch, and then nothing is left', () => {
    soon()
    expect(bench.noted).toEqual(['removes 256', 'piece'])
    soon()
    expect([bench.noted, bench.tables.removals.isPending]).toEqual([[], false])
  })

  test('that finds no room is halved at once, and a single row waits', () => {
    bench.canMake = false
    bench.hasReserve = false
    bench.onPiece.push(...Array<string>(9).fill(FULL))
    soon()
    const rows = bench.noted.filter((entry) => entry.startsWith('removes'))
    expect(rows).toEqual([256, 128, 64, 32, 16, 8, 4, 2, 1].map((count) => `removes ${count}`))
    wait(RETRY_MS - 20)
    expect(bench.noted).toEqual([])
    soon()
    expect(bench.noted.slice(0, 2)).toContain('removes 1')
    wait(RETRY_MS)
    expect(bench.tables.removals.isPending).toBe(false)
  })

  test('that finds no room is reported, and gets the space of the reserve', () => {
    bench.canMake = false
    bench.onPiece.push(FULL)
    soon()
    const noted = bench.noted.slice(0, 7)
    expect(noted).toEqual(['removes 256', 'piece', 'full', 'releases', 'checkpoint', 'removes 128', 'piece'])
  })

  test('that meets another reader is halved, and nothing is reported', () => {
    bench.onPiece.push(BUSY)
    soon()
    expect(bench.noted).toEqual(['removes 256', 'piece', 'checkpoint', 'removes 128', 'piece'])
  })

  test('with a damaged row is tried again as long as more of them are set aside', () => {
    bench.damaged.push(3, 5)
    bench.onPiece.push(UNREADABLE, UNREADABLE)
    soon()
    const piece = ['removes 256', 'piece']
    expect(bench.noted).toEqual([...piece, 'examines', ...piece, 'examines', ...piece])
  })

  test('that is unreadable for another reason fails', () => {
    bench.onPiece.push(UNREADABLE)
    soon()
    expect(bench.noted).toEqual(['removes 256', 'piece', 'examines', 'failed DAMAGED'])
    expect(vi.getTimerCount()).toBe(0)
  })

  test('that meets any other error fails', () => {
    bench.onPiece.push(BROKEN)
    soon()
    expect(bench.noted).toEqual(['removes 256', 'piece', 'failed IO'])
  })

  test('that was removed lets a batch that waits try again at once', () => {
    bench.onStore.push(BUSY)
    bench.write()
    expect(bench.noted).toEqual(['removes 4096'])
    soon()
    expect(bench.noted).toEqual(['removes 256', 'piece', 'removes 4096', 'durable 3'])
  })

  test('is not removed while a batch is held, but after it', () => {
    bench.write({}, false)
    wait(10)
    expect(bench.noted).toEqual(['removes 4096'])
    bench.writer.inLog(PLACE)
    soon()
    expect(bench.noted).toEqual(['durable 3', 'removes 256', 'piece'])
  })
})
