import { describe, expect, test, vi } from 'vitest'
import { frames } from '../../contracts/store-batch.ts'
import {
  BROKEN,
  BUSY,
  FULL,
  IDLE_MS,
  onBench,
  PLACE,
  RETRY_MS,
  UNREADABLE,
  type WriterBench,
  wait,
} from './writer-bench.ts'

let bench: WriterBench
onBench((opened) => {
  bench = opened
})

describe('a batch', () => {
  test('is stored at once if nothing is in its way', () => {
    bench.write()
    expect(bench.noted).toEqual(['removes 4096', 'durable 1'])
  })

  test('that finds no room is tried again at once: with the space of the reserve, and only marking what it removes', () => {
    bench.canMake = false
    bench.onStore.push(FULL)
    bench.write()
    expect(bench.noted.slice(0, 6)).toEqual(['removes 4096', 'full', 'releases', 'checkpoint', 'marks', 'durable 1'])
  })

  test('is tried again at once without a reserve, too, as long as it has not left its removals', () => {
    bench.hasReserve = false
    bench.onStore.push(FULL)
    bench.write()
    expect(bench.noted.slice(0, 5)).toEqual(['removes 4096', 'full', 'checkpoint', 'marks', 'durable 1'])
  })

  test('that finds none after that waits, and is reported once however often it is tried', () => {
    bench.canMake = false
    bench.onStore.push(FULL, FULL, FULL, FULL)
    bench.write()
    expect(bench.noted).toEqual(['removes 4096', 'full', 'releases', 'checkpoint', 'marks', 'checkpoint'])
    wait(RETRY_MS - 1)
    expect(bench.noted).toEqual([])
    wait(1)
    expect(bench.noted).toEqual(['marks', 'checkpoint'])
    wait(2 * RETRY_MS)
    expect(bench.noted).toContain('durable 1')
    expect(bench.onStore).toEqual([])
  })

  test('finds none when it is committed: the same', () => {
    bench.onCommit.push(FULL)
    bench.write()
    expect(bench.noted.slice(0, 6)).toEqual(['removes 4096', 'full', 'releases', 'checkpoint', 'marks', 'durable 1'])
  })

  test('waits for another reader, as it is, and nothing is reported', () => {
    bench.onStore.push(BUSY)
    bench.write()
    expect(bench.noted).toEqual(['removes 4096'])
    wait(RETRY_MS)
    expect(bench.noted).toEqual(['removes 4096', 'durable 1'])
  })

  test('that touches a damaged row is tried again once, after what it touches was examined', () => {
    bench.onStore.push(UNREADABLE)
    bench.write({ blocks: [{ id: 1, frames: frames(1) }] })
    expect(bench.noted).toEqual(['removes 4096', 'examines', 'marks', 'durable 1'])
  })

  test('that was examined and finds no room gets the space of the reserve', () => {
    bench.onStore.push(UNREADABLE, FULL)
    bench.write()
    const noted = bench.noted.slice(0, 8)
    expect(noted).toEqual(['removes 4096', 'examines', 'marks', 'full', 'releases', 'checkpoint', 'marks', 'durable 1'])
  })

  test('that was examined and is still unreadable fails', () => {
    bench.onStore.push(UNREADABLE, UNREADABLE)
    bench.write()
    expect(bench.noted).toEqual(['removes 4096', 'examines', 'marks', 'failed DAMAGED'])
  })

  test('that was examined and finds no room waits without the reserve, and is not examined again', () => {
    bench.hasReserve = false
    bench.onStore.push(UNREADABLE, FULL, UNREADABLE)
    bench.write()
    expect(bench.noted).toEqual(['removes 4096', 'examines', 'marks', 'full', 'checkpoint'])
    wait(RETRY_MS)
    expect(bench.noted).toEqual(['marks', 'failed DAMAGED'])
  })

  test('that meets any other error fails, and nothing happens any more', () => {
    bench.onCommit.push(BROKEN)
    bench.write()
    expect(bench.noted).toEqual(['removes 4096', 'failed IO'])
    bench.write()
    bench.writer.start()
    wait(10 * IDLE_MS)
    expect([bench.noted, vi.getTimerCount(), bench.writer.failed]).toEqual([[], 0, true])
  })

  test('whose progress cannot be noted outside the database fails, and is not said to be durable', () => {
    bench.onProgress.push(BROKEN)
    bench.write({ reserves: true })
    expect(bench.noted).toEqual(['removes 4096', 'failed IO'])
  })
})

describe('a batch of a cluster', () => {
  test('is held until the log has it', () => {
    bench.write({}, false)
    wait(10 * RETRY_MS)
    expect(bench.noted).toEqual(['removes 4096'])
    bench.writer.inLog(PLACE)
    expect(bench.noted).toEqual(['durable 1'])
    expect(bench.tables.log.place).toMatchObject({ sequence: 1 })
  })

  test('whose record comes into the log while it waits for room is stored without being held', () => {
    bench.onStore.push(BUSY)
    bench.write({}, false)
    bench.writer.inLog(PLACE)
    expect(bench.noted).toEqual(['removes 4096'])
    wait(RETRY_MS)
    expect(bench.noted).toEqual(['removes 4096', 'durable 1'])
  })

  test('that finds no room when it is committed is not held a second time', () => {
    bench.onCommit.push(FULL)
    bench.write({}, false)
    bench.writer.inLog(PLACE)
    expect(bench.noted.slice(0, 6)).toEqual(['removes 4096', 'full', 'releases', 'checkpoint', 'marks', 'durable 1'])
  })

  test('that meets another reader when it is committed runs again later', () => {
    bench.onCommit.push(BUSY)
    bench.write({}, false)
    bench.writer.inLog(PLACE)
    expect(bench.noted).toEqual(['removes 4096'])
    wait(RETRY_MS)
    expect(bench.noted).toEqual(['removes 4096', 'durable 1'])
  })

  test('that is abandoned is rolled back, and nothing is written any more', () => {
    bench.write({ gaps: [] }, false)
    bench.writer.abandon()
    bench.writer.inLog(PLACE)
    bench.write()
    wait(10 * IDLE_MS)
    expect([bench.noted, bench.writer.failed, vi.getTimerCount()]).toEqual([['removes 4096'], true, 0])
    expect(bench.tables.log.place).toMatchObject({ sequence: 0 })
  })
})

describe('closing', () => {
  test('tries a batch that waits a last time, and stores it', () => {
    bench.onStore.push(BUSY)
    bench.write()
    bench.writer.close()
    expect([bench.noted, vi.getTimerCount()]).toEqual([['removes 4096', 'removes 4096', 'durable 1'], 0])
  })

  test('leaves a batch that still finds no room, and nothing is tried or written afterwards', () => {
    bench.hasReserve = false
    bench.canMake = false
    bench.onStore.push(FULL, FULL, FULL)
    bench.write()
    bench.writer.close()
    expect(bench.noted).toEqual(['removes 4096', 'full', 'checkpoint', 'marks', 'checkpoint', 'marks', 'checkpoint'])
    bench.write()
    wait(10 * IDLE_MS)
    expect([bench.noted, vi.getTimerCount(), bench.writer.failed]).toEqual([[], 0, false])
  })

  test('keeps the failure', () => {
    bench.onStore.push(BROKEN)
    bench.write()
    bench.writer.close()
    expect(bench.writer.failed).toBe(true)
  })
})

describe('at rest', () => {
  const TRUNCATES = 'wal_checkpoint(truncate)'

  test('the log is truncated once no batch has come for a whole interval', () => {
    bench.write()
    wait(IDLE_MS)
    expect(bench.noted).not.toContain(TRUNCATES)
    wait(IDLE_MS)
    expect(bench.noted).toContain(TRUNCATES)
    expect(vi.getTimerCount()).toBe(0)
  })

  test('each batch puts it off', () => {
    for (let number = 0; number < 5; number++) {
      bench.write()
      wait(IDLE_MS)
    }
    expect(bench.noted).not.toContain(TRUNCATES)
  })

  test('a batch in flight puts it off until it is stored', () => {
    bench.write()
    bench.write({}, false)
    wait(10 * IDLE_MS)
    expect(bench.noted).not.toContain(TRUNCATES)
    bench.writer.inLog(PLACE)
    wait(2 * IDLE_MS)
    expect(bench.noted).toContain(TRUNCATES)
  })
})
